"""Bindings of a manifest that are not those of its shader: one sentence that names the manifest, and what to change."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests import binding_checks

WGSL = """\
struct Params { rows: u32, columns: u32 }
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
@group(0) @binding(3) var<storage, read> other: array<f32>; // of another entry point
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) { y[i] = x[0][i % params.columns]; }
"""
MANIFEST = """\
[kernel]
source = "k.wgsl"
dispatch = [1]
[bind.x]
dtype = "f32"
shape = [4]
init = "normal"
[bind.y]
dtype = "f32"
shape = [8]
init = "unwritten"
[bind.params]
struct = { rows = 1, columns = 4 }
[expect]
flops = 0
unchecked = { y = "what is bound is tested" }
"""


def audit(folder: Path, old: str = "", new: str = ""):
    (folder / "k.wgsl").write_text(WGSL)
    (folder / "k.toml").write_text(MANIFEST.replace(old, new, 1))
    return CliRunner().invoke(main, ["audit", str(folder / "k.toml"), "--no-gpu"])


def test_a_fitting_manifest_runs(tmp_path):
    assert audit(tmp_path).exit_code == 0
    assert audit(tmp_path, "[bind.x]", '[bind.X]\nvar = "x"').exit_code == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[bind.x]", "[bind.xs]", "[bind.xs]: the shader has no binding xs, did you mean 'x'?"),
        (
            "[bind.x]",
            "[bind.weights]",
            "[bind.weights]: the shader has no binding weights; it has x, y, params, other, "
            "and `var` says what it calls a binding",
        ),
        (
            "[bind.params]\nstruct = { rows = 1, columns = 4 }",
            "",
            "nothing is bound to params, a Params; the manifest needs a [bind.params]",
        ),
        ('"f32"', '"f16"', '[bind.x] is f16, and x is array<vec4<f32>>; it takes `dtype = "f32"`'),
        ("flops", "flop", "[expect] names flop, which is no output and no counter, did you mean 'flops'?"),
    ],
)
def test_a_mismatch_is_reported_in_terms_of_the_manifest(tmp_path, old, new, message):
    result = audit(tmp_path, old, new)
    assert result.exit_code == 2
    assert f"error: {tmp_path / 'k.toml'}: {message}\n" in result.output


FLOATS = "struct Params { rows: u32, scale: f32, columns: u32 }"


@pytest.mark.parametrize(
    ("word", "means"),
    [
        (0, None), (1, "1.4e-45"), (2, "2.8e-45"), (0x7FFFFF, "1.2e-38"),  # up to the largest subnormal number
        (0x800000, None), (0x40000000, None),
        (0x80000000, None),  # -0
        (0x80000001, "-1.4e-45"), (0x807FFFFF, "-1.2e-38"),
        (0x80800000, None), (0xFFFFFFFF, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["u32", "i32"])
def test_integers_listed_for_floats(tmp_path, monkeypatch, word, means, dtype):
    """The bits of a subnormal float are more likely a whole number."""
    monkeypatch.setattr(f"{__name__}.WGSL", WGSL.replace("struct Params { rows: u32, columns: u32 }", FLOATS))
    given = word - (1 << 32) if dtype == "i32" and word >> 31 else word
    result = audit(tmp_path, "struct = { rows = 1, columns = 4 }", f'dtype = "{dtype}"\nvalues = [1, {given}, 4]')
    if means is None and dtype == "i32":
        assert "Params holds f32 and u32" in result.output  # no i32 is in it
    elif means is None:
        assert result.exit_code == 0, result.output
    else:
        assert result.exit_code == 2
        what = f"params.scale is an f32, to which the {dtype} {given} is {means}"
        hint = "give members by name, `struct = { … }`"
        assert f"error: {tmp_path / 'k.toml'}: [bind.params] {what}; {hint}\n" in result.output


@pytest.mark.parametrize(
    ("members", "declared", "contents"),
    [
        (FLOATS, "params: Params", 'dtype = "u32"\ninit = "arange"\nshape = [3]'),  # made, not listed
        (FLOATS.replace("u32", "f32"), "params: Params", 'dtype = "f32"\nvalues = [1, 1e-45, 4]'),  # floats
        (FLOATS, "params: array<Params, 1>", 'dtype = "u32"\nvalues = [1, 1, 4]'),
    ],
)
def test_only_integers_listed_for_a_struct_are_taken_for_floats(tmp_path, monkeypatch, members, declared, contents):
    """The bits of its second member are 1 in each case."""
    text = WGSL.replace("struct Params { rows: u32, columns: u32 }", members).replace("% params.columns", "% 4u")
    text = text.replace("<uniform> params: Params", f"<storage, read> {declared}").replace(
        "{ y[i]", "{ _ = &params; y[i]"
    )
    monkeypatch.setattr(f"{__name__}.WGSL", text)
    result = audit(tmp_path, "struct = { rows = 1, columns = 4 }", contents)
    assert (result.exit_code, "to which" in result.output) == (0, False), result.output


# The type of a variable, and a dtype; the error, if it does not fit.
TYPES = {
    ("f32", "array<f32>"): None,
    ("f32", "array<vec4<f32>>"): None,
    ("u32", "array<atomic<u32>>"): None,
    ("u32", "array<f32>"): '[bind.b] is u32, and v is array<f32>; it takes `dtype = "f32"`',
    ("i32", "array<u32>"): '[bind.b] is i32, and v is array<u32>; it takes `dtype = "u32"`',
    ("f16", "array<u32>"):
        '[bind.b] is f16, and v is array<u32>; it takes `dtype = "u32"`, or `dtype = "f32"` for 32-bit floats that are '
        "kept as their bits",
    ("f32", "array<u32>"):
        '[bind.b] is f32, and v is array<u32>; it takes `dtype = "u32"`: floats kept as bits are for kernels that call '
        "bitcast, and this one does not",
    ("f32", "array<I>"):
        '[bind.b] is f32, and v is array<I>, which holds i32 and u32 in a struct; it takes `dtype = "u32"`',
    ("f32", "array<M>"): None,  # a struct that has floats, too
    ("u32", "array<M>"): None,
    ("u8", "array<u32>"): None,  # texels, which are checked elsewhere
}  # fmt: skip


def misfit(dtype, declared):
    """The error for a binding `b` of the variable `v`, or None."""
    module = bankshot.check(f"""struct I {{ a: u32, b: i32 }} struct M {{ a: u32, b: f32 }}
        @group(0) @binding(0) {declared}; @compute @workgroup_size(1) fn main() {{ }}""")
    binding, case = (
        SimpleNamespace(name="b", var="v", dtype=dtype, packed=False),
        SimpleNamespace(kernel=SimpleNamespace(path="k.toml")),
    )
    try:
        binding_checks._fit_type(case, binding, module.globals[0], module.entry_points[0])
    except UsageError as error:
        return str(error).removeprefix("k.toml: ")
    return None


@pytest.mark.parametrize(("dtype", "type_"), TYPES)
def test_the_dtype_of_a_binding_is_that_of_its_scalars(dtype, type_):
    assert misfit(dtype, f"var<storage, read_write> v: {type_}") == TYPES[dtype, type_]


def test_a_uniform_keeps_no_floats_as_bits():
    words = '[bind.b] is f32, and v is vec4<u32>; it takes `dtype = "u32"`'
    assert misfit("f32", "var<uniform> v: vec4<u32>") == words
    assert misfit("u32", "var<uniform> v: vec4<u32>") is None


def test_a_sampler_and_a_texture_have_no_scalars():
    assert misfit("f32", "var v: sampler") is None
    assert misfit("f32", "var v: texture_2d<u32>") is None
