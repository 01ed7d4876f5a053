"""The small kernel that many tests judge: y = factor * x, element by element, and the manifest of any like it."""

SHADER = """\
struct Params { n: u32, factor: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
@compute @workgroup_size(32)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < params.n {
        y[id.x] = params.factor * x[id.x];
    }
}
"""
PARAMS = """
[bind.params]
struct = { n = "N", factor = 2.5 }
"""


def manifest(
    *rest: str, source: str = "scale.wgsl", kernel: str = "", n: int = 40, lanes: int = 32, y: str = "zeros"
) -> str:
    """Of a kernel with `x` and `y`, each of N numbers, and `lanes` invocations to a workgroup. `kernel`: a line more of
    its first table; `y`: what that holds at first; `rest`: more tables."""
    head = f"""\
[kernel]
source = "{source}"
dims = {{ N = {n} }}
dispatch = ["ceil(N / {lanes})"]
{kernel}
[bind.x]
dtype = "f32"
shape = ["N"]
init = "normal"

[bind.y]
dtype = "f32"
shape = ["N"]
init = "{y}"
"""
    return "".join((head, *rest))
