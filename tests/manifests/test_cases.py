"""The cases that paths and options make: what is inferred for bare shaders, sizes, and refusals, each in full."""

import numpy as np
import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.sim.wgsl.diagnostics import WgslError
from tests.scaling import PARAMS, SHADER, manifest

BINDINGS = """\
@group(0) @binding(0) var<storage, read> a: array<f32, 6>;
@group(0) @binding(1) var<storage, read> b: array<vec2<u32>, 3>;
@group(0) @binding(2) var<storage, read_write> c: array<f32, 4>;
@group(0) @binding(3) var<uniform> d: vec4<u32>;
@group(0) @binding(4) var<storage, read> e: array<i32>;
@group(0) @binding(5) var s: sampler;
@group(0) @binding(6) var<storage, read_write> unused: array<f32>;
struct Two { x: f32, y: u32 }
@group(0) @binding(7) var<storage, read> pair: Two;
@group(0) @binding(8) var depth: sampler_comparison;
var<workgroup> tile: array<f32, 3>;
"""
SAMPLERS = ("s", "depth")
MAIN = "@compute @workgroup_size(1) fn main() {{ {} }}\n"


@pytest.fixture
def bare(tmp_path):
    """`bare(USED, **request)`: the plan of a shader whose entry point uses these bindings."""

    def make(used, **given):
        path = tmp_path / "bare.wgsl"
        path.write_text(
            BINDINGS + MAIN.format(" ".join(f"_ = {name if name in SAMPLERS else '&' + name};" for name in used))
        )
        (plan,) = plans([path], Request(**given))
        return plan

    return make


ONE = "a grid of one workgroup, as the shader reads no ids of several (give --grid X,Y,Z for another)"
# The bindings that are used; the contents that are made, as dtype and count; and what the report says of them.
INFERRED = {
    "": ({}, []),
    "a": ({"a": ("float32", 6)}, ["normal contents for a (array<f32, 6>, storage, read)"]),
    "b": ({"b": ("uint32", 6)}, ["uniform contents for b (array<vec2<u32>, 3>, storage, read)"]),
    "c": ({"c": ("float32", 4)}, ["zeros contents for c (array<f32, 4>, storage, read_write)"]),
    "ac": (
        {"a": ("float32", 6), "c": ("float32", 4)},
        ["normal contents for a (array<f32, 6>, storage, read)",
         "zeros contents for c (array<f32, 4>, storage, read_write)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("used", INFERRED)
@pytest.mark.parametrize("grid", [None, (2, 1, 1)])
def test_contents_that_a_shader_determines_are_made(bare, used, grid):
    contents, words = INFERRED[used]
    plan = bare(used, grid=grid)
    assert plan.assumed == (*([] if grid else [ONE]), *words)
    (case,) = plan.cases()
    assert {name: (str(array.dtype), array.size) for name, array in case.arrays.items()} == contents
    assert (case.grid, case.kernel.entry, case.kernel.name) == (grid or (1, 1, 1), "main", "bare")
    assert not any(case.arrays["c"]) if "c" in used else True


def test_samplers_are_made(bare):
    plan = bare(["s", "depth"])
    assert plan.assumed == (ONE, "default contents for s (sampler)", "default contents for depth (sampler_comparison)")
    assert plan.request.arrays == {"s": {}, "depth": {"compare": "less"}}


# What a shader does with its ids, its grid, and the words that say why.
TWO_OF_EACH = "a grid of {} workgroups, two along each axis whose ids it reads (give --grid X,Y,Z for another)"
ONE_FITS = "a grid of one workgroup, as several access elements out of bounds (give --grid X,Y,Z for another)"
GRIDS = {
    "y[g.x] = 1u;": ((2, 1, 1), TWO_OF_EACH.format("2 x 1 x 1")),
    "y[w.y] = 1u;": ((1, 2, 1), TWO_OF_EACH.format("1 x 2 x 1")),
    "y[g.x + 4u * w.z] = 1u;": ((2, 1, 2), TWO_OF_EACH.format("2 x 1 x 2")),
    "y[i] = 1u;": ((1, 1, 1), ONE),
    "y[12u + g.x] = 1u;": ((1, 1, 1), ONE_FITS),
    "y[15u + w.x] = 1u;": ((1, 1, 1), ONE_FITS),
    "y[15u + w.y] = 1u;": ((1, 1, 1), ONE_FITS),
    "y[15u + w.z] = 1u;": ((1, 1, 1), ONE_FITS),
    "y[15u + w.x + w.y + w.z] = 1u;": ((1, 1, 1), ONE_FITS),
    "y[14u + g.x] = 1u;": ((2, 1, 1), TWO_OF_EACH.format("2 x 1 x 1")),  # one workgroup is out of bounds, too
    "for (var k = 0u; k < 9000u; k++) { y[k % 16u] = k; } y[12u + g.x] = 1u;": ((1, 1, 1), ONE_FITS),  # it ends
    "if 12u + g.x < 16u { y[12u + g.x] = 1u; }": ((2, 1, 1), TWO_OF_EACH.format("2 x 1 x 1")),
}


@pytest.mark.parametrize("body", GRIDS)
def test_a_grid_shows_two_workgroups_where_the_shader_tells_them_apart(tmp_path, body):
    path = tmp_path / "bare.wgsl"
    path.write_text(f"""
@group(0) @binding(0) var<storage, read_write> y: array<u32, 16>;
@compute @workgroup_size(4) fn main(
    @builtin(global_invocation_id) g: vec3u, @builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32
) {{ {body} }}
""")
    (plan,) = plans([path], Request())
    (case,) = plan.cases()
    assert (case.grid, plan.assumed[0]) == GRIDS[body]


def test_contents_that_it_does_not_determine_are_asked_for_all_at_once(bare, tmp_path):
    with pytest.raises(UsageError) as error:
        bare(["a", "d", "e", "pair"])
    assert str(error.value).splitlines() == [
        f"{tmp_path / 'bare.wgsl'}: there is no manifest bare.toml, and the shader does not say what these hold; give",
        "  --bind d=…   vec4<u32>, uniform",
        "  --bind e=…   array<i32>, storage, read",
        "  --bind pair=…   Two, storage, read",
        "as NAME=FILE.npy, NAME=u32:1,2,3 or NAME=normal:f32:512,768",
    ]


def test_given_contents_are_not_made(bare):
    given = np.arange(6, dtype=np.float32)
    plan = bare(["a", "c"], arrays={"a": given}, grid=(1, 1, 1))
    assert plan.assumed == ("zeros contents for c (array<f32, 4>, storage, read_write)",)
    (case,) = plan.cases()
    assert case.arrays["a"] is given


WRONG = [
    ("a", {"arrays": {"z": 1}}, "main uses no binding named z; it uses a"),
    ("", {"arrays": {"z": 1}}, "main uses no binding named z; it uses none"),
    ("ab", {"arrays": {"z": 1}}, "main uses no binding named z; it uses a, b"),
    ("a", {"dims": {"N": 1}}, "--set gives sizes to a manifest's dims, and bare.wgsl has no manifest beside it"),
]


@pytest.mark.parametrize(("used", "given", "words"), WRONG)
def test_requests_that_a_bare_shader_cannot_meet(bare, tmp_path, used, given, words):
    with pytest.raises(UsageError) as error:
        bare(used, **given)
    assert str(error.value) == f"{tmp_path / 'bare.wgsl'}: {words}"


# ---- with a manifest ---------------------------------------------------------------------------------

FAMILY = '\n[[variant]]\nkernel.name = "one"\n[[variant]]\nkernel.name = "two"\nkernel.reference = "own.py:two"\n'
SWEEP = '\n[[sweep]]\nN = [32, 64]\n[[sweep]]\nN = 96\ncost = "heavy"\n'


@pytest.fixture
def family(tmp_path):
    (tmp_path / "scale.wgsl").write_text(SHADER)
    (tmp_path / "scale.toml").write_text(manifest(PARAMS, SWEEP, FAMILY))
    return tmp_path


@pytest.mark.parametrize(
    ("request_", "sizes", "left_out"),
    [
        (Request(), [32, 64, 96], 0),
        (Request(quick=True), [32, 64], 1),
        (Request(sweep=False), [40], 0),
        (Request(dims={"N": 7}), [7], 0),
        (Request(dims={"N": 7}, quick=True), [7], 0),
    ],
)
def test_the_shapes_of_a_request(family, request_, sizes, left_out):
    for path in (family, family / "scale.toml", family / "scale.wgsl"):
        found = plans([path], request_)
        assert [(plan.kernel.name, plan.left_out) for plan in found] == [("one", left_out), ("two", left_out)]
        assert [[shape.dims["N"] for shape in plan.shapes] for plan in found] == [sizes, sizes]


def test_how_many_numbers_a_case_reads_and_writes(family):
    """A struct counts as one."""
    text = manifest(PARAMS, SWEEP, '\n[expect]\nx = { rule = "ulp", max = 1 }\n', y="unwritten")
    for changed, numbers in ((manifest(PARAMS, SWEEP), (41, 40)), (text, (1, 80))):
        (family / "scale.toml").write_text(changed)
        (plan,) = plans([family / "scale.toml"], Request(sweep=False))
        assert plan.numbers(plan.shapes[0]) == numbers
    given = {"x": np.zeros(100, np.float32), "params": np.zeros(2, np.uint32)}
    (plan,) = plans([family / "scale.toml"], Request(sweep=False, arrays=given))
    assert plan.numbers(plan.shapes[0]) == (102, 40)


def test_a_broken_file_is_listed_unless_the_kernel_is_found_elsewhere(family):
    (family / "broken.toml").write_text("[kernel]\n")
    for kernel, count in ((None, 1), ("one", 0)):
        broken = []
        found = plans([family], Request(kernel=kernel), broken)
        assert (len(broken), {plan.kernel.name for plan in found}) == (count, {kernel} if kernel else {"one", "two"})
    with pytest.raises(UsageError, match=r"^no kernel is named three; there are one, two$"):
        plans([family], Request(kernel="three"), [])
    with pytest.raises(UsageError, match=r"broken\.toml"):
        plans([family], Request())


def test_a_wrong_shader_is_listed_and_the_next_is_planned(tmp_path):
    wrong, right = tmp_path / "wrong.wgsl", tmp_path / "right.wgsl"
    wrong.write_text("@compute @workgroup_size(1) fn main() { undeclared(); }")
    right.write_text(MAIN.format(""))
    broken = []
    (plan,) = plans([wrong, right], Request(), broken)
    assert plan.kernel.path == right
    assert [(each.path, type(each.error)) for each in broken] == [(wrong, WgslError)]


@pytest.mark.parametrize("name", ["none", "none.toml", "none.wgsl"])
def test_a_path_that_does_not_exist_is_an_error_of_the_request(tmp_path, name):
    broken = []
    with pytest.raises(UsageError, match=rf"{name}: there is no such file or folder$"):
        plans([tmp_path / name], Request(), broken)
    assert broken == []


REFUSED = {
    "a reference": (None, "two", "reference own.py:two"),
    "a preprocessor": ("cc -E", "one", "preprocessor cc -E"),
    "both": ("cc -E", "two", "reference own.py:two and preprocessor cc -E"),
    "neither": (None, "one", None),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("code", [True, False])
def test_without_code_what_names_code_is_refused(family, name, code):
    preprocess, kernel, words = REFUSED[name]
    (plan,) = plans([family], Request(kernel=kernel, code=code, preprocess=preprocess, sweep=False))
    if words is None or code:
        plan.refuse_code()
        assert plan.kernel.name == kernel
    else:
        with pytest.raises(UsageError) as error:
            plan.case(plan.shapes[0])
        assert str(error.value) == f"{family / 'scale.toml'}: not run, as --no-code leaves out {words}"


def test_options_override_the_manifest(family):
    (family / "scale.toml").write_text(manifest(PARAMS, SWEEP, kernel='entry = "scale"\ndefines = { A = 1, B = 2 }'))
    plain, changed = (
        plans([family / "scale.toml"], request)[0].kernel
        for request in (
            Request(), Request(entry="other", overrides={"W": 2}, defines={"B": "3"}, include_dirs=(family,), budget=9)
        )
    )  # fmt: skip
    assert (plain.entry, plain.overrides, plain.defines, plain.include_dirs, plain.budget) == (
        "scale", {}, {"A": 1, "B": 2}, (), None
    )  # fmt: skip
    assert (changed.entry, changed.overrides, changed.defines, changed.include_dirs, changed.budget) == (
        "other", {"W": 2}, {"A": 1, "B": "3"}, (family,), 9
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "holds"),
    [({}, True), ({"arrays": {"x": 1}}, False), ({"grid": (1, 1, 1)}, False), ({"entry": "e"}, False),
     ({"overrides": {"a": 1}}, False), ({"dims": {"N": 1}}, True), ({"defines": {"A": "1"}}, True)],
)  # fmt: skip
def test_goldens_apply_to_kernels_as_in_their_manifest(given, holds):
    assert Request(**given).as_in_manifest is holds
