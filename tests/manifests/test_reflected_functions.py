"""What the functions of a shader show: along which axes its workgroups differ, which builtins decide its accuracy."""

import pytest

from bankshot.oracle.manifests.id_axes import id_axes
from bankshot.oracle.manifests.reflection import entry_point, has_float_arithmetic, inexact_builtins, recomposed
from bankshot.sim.wgsl import typed
from bankshot.sim.wgsl.check.check_module import check
from bankshot.sim.wgsl.source import Source


def entry(body: str, parameters: str = "", declared: str = "") -> typed.Function:
    text = f"""{declared}
@group(0) @binding(0) var<storage, read_write> y: array<u32, 4>;
@group(0) @binding(1) var<storage, read_write> f: array<f32, 4>;
@compute @workgroup_size(4) fn main({parameters}) {{
    {body}
}}"""
    return entry_point(check(Source(text, "shader.wgsl")), None)


VECTORS = ("global_invocation_id", "workgroup_id")  # what the specification types as vec3<u32>
INDICES = ("global_invocation_index", "workgroup_index")  # and as u32
SAME_IN_ALL = ("local_invocation_id", "num_workgroups")


@pytest.mark.parametrize("builtin", VECTORS)
@pytest.mark.parametrize(
    ("body", "axes"),
    [
        ("y[0] = id.x;", {0}),
        ("y[0] = id.y;", {1}),
        ("y[0] = id.z;", {2}),
        ("y[0] = id.x + id.z;", {0, 2}),
        ("let at = id.zy; y[0] = at.x;", {1, 2}),
        ("let copy = id; y[0] = copy.y;", {1}),
        ("let copy = id; let again = copy; y[0] = again.z;", {2}),
        ("let copy = id; y[0] = copy.y; y[1] = dot(copy, vec3u(1));", {0, 1, 2}),
        ("y[0] = dot(id, vec3u(1));", {0, 1, 2}),
        ("let other = vec3u(7).zyx; y[0] = other.z + id.y;", {1}),
        ("let other = 3u; y[0] = other + id.y;", {1}),
        ("y[0] = 1u;", set()),
    ],
)
def test_workgroups_differ_along_the_axes_that_are_read(builtin: str, body: str, axes: set[int]) -> None:
    assert id_axes(entry(body, f"@builtin({builtin}) id: vec3u")) == axes
    ids = f"struct Ids {{ @builtin({builtin}) id: vec3u }}"
    assert id_axes(entry(body.replace("id", "ids.id"), "ids: Ids", ids)) == axes


@pytest.mark.parametrize("builtin", INDICES)
def test_an_index_of_all_depends_on_the_first_axis_at_least(builtin: str) -> None:
    """A grid is as wide as the elements need: the others would only repeat them."""
    allowed = "requires linear_indexing;"
    assert id_axes(entry("y[0] = id;", f"@builtin({builtin}) id: u32", allowed)) == {0}
    assert id_axes(entry("y[0] = 1u;", f"@builtin({builtin}) id: u32", allowed)) == set()


@pytest.mark.parametrize("builtin", SAME_IN_ALL)
def test_what_is_the_same_in_all_workgroups_has_no_axes(builtin: str) -> None:
    assert id_axes(entry("y[0] = dot(id, vec3u(1)) + id.y;", f"@builtin({builtin}) id: vec3u")) == set()


def test_components_of_other_vectors_count_for_nothing() -> None:
    declared = "struct Pair { a: vec3u, b: vec3u }\n@group(0) @binding(2) var<storage> pair: array<Pair, 2>;"
    body = "var own: Pair; own.b = pair[1].a; y[0] = own.b.z + pair[0].b.y + id.x;"
    assert id_axes(entry(body, "@builtin(workgroup_id) id: vec3u", declared)) == {0}


# WGSL, "Accuracy of Concrete Floating Point Expressions": which are correctly rounded, and which have other bounds.
@pytest.mark.parametrize(
    ("body", "inexact", "arithmetic"),
    [
        ("f[0] = f[1] + f[2];", [], True),
        ("f[0] = f[1] - f[2];", [], True),
        ("f[0] = f[1] * f[2];", [], True),
        ("f[0] += f[1];", [], True),
        ("f[0] = f[1] / f[2];", ["/"], False),
        ("f[0] /= f[1];", ["/"], False),
        ("f[0] = exp(f[1]);", ["exp"], False),
        ("f[0] = exp(sqrt(f[1]));", ["exp", "sqrt"], False),
        ("f[0] = max(f[1], floor(f[2]));", [], False),
        ("f[0] = frexp(f[1]).fract;", [], False),
        ("y[0] = y[1] * y[2] + y[3] / y[0];", [], False),
        ("y[0] += y[1];", [], False),
        ("f[0] = called();", ["sin"], True),
    ],
)
def test_which_operations_decide_how_exact_results_are(body: str, inexact: list[str], arithmetic: bool) -> None:
    function = entry(
        body, declared="fn called() -> f32 { return sin(f[1]) + 1.0; }\nfn not_called() { f[0] = cos(f[0]); }"
    )
    assert inexact_builtins(function) == inexact
    assert has_float_arithmetic(function) == arithmetic


@pytest.mark.parametrize(
    ("body", "holds"),
    [
        ("f[0] = mix(f[1], f[2], f[3]);", True),
        ("f[0] = smoothstep(f[1], f[2], f[3]);", True),
        ("f[0] = normalize(vec2f(f[1], f[2])).x;", True),
        ("f[0] = determinant(mat2x2f(f[0], f[1], f[2], f[3]));", True),
        ("f[0] = f[1] % f[2];", True),
        ("y[0] = y[1] % y[2];", False),
        ("f[0] = quantizeToF16(f[1]);", True),
        ("f[0] = unpack4x8snorm(y[0]).x;", True),
        ("f[0] = unpack4x8unorm(y[0]).x;", True),
        ("f[0] = unpack2x16snorm(y[0]).x;", True),
        ("f[0] = unpack2x16unorm(y[0]).x;", True),
        ("f[0] = unpack2x16float(y[0]).x;", False),
        ("f[0] = (mat2x2f(f[0], f[1], f[2], f[3]) * vec2f(f[0], f[1])).x;", True),
        ("f[0] = (vec2f(f[0], f[1]) * mat2x2f(f[0], f[1], f[2], f[3])).x;", True),
        ("f[0] = (mat2x2f(f[0], f[1], f[2], f[3]) + mat2x2f())[0].x;", False),
        ("f[0] = f[1] * f[2];", False),
        ("f[0] = dot(vec2f(f[0], f[1]), vec2f(f[2], f[3]));", False),
    ],
)
def test_which_builtins_adapters_compute_by_other_expressions(body: str, holds: bool) -> None:
    assert recomposed(entry(body)) == holds
