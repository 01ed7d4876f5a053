"""Layouts as NumPy dtypes, against offsets and sizes that the WGSL spec prints in its tables and examples."""

import numpy as np
import pytest

from bankshot import sim
from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests import manifest_loader
from bankshot.oracle.manifests.reflection import check_module, dtype_of, entry_point
from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.diagnostics import WgslError


def struct(**members):
    return t.layout("S", [(name, type_, {}, None) for name, type_ in members.items()])


def test_a_struct_keeps_its_padding():
    # spec, "Structure Layout": a vec3 is aligned to 16 bytes and leaves 4 for the scalar behind it
    dtype = dtype_of(struct(a=t.U32, b=t.Vec(3, t.F32), c=t.F32, d=t.Vec(2, t.I32)))
    assert [dtype.fields[name][1] for name in "abcd"] == [0, 16, 28, 32]
    assert dtype.itemsize == 48
    value = np.zeros(1, dtype)
    value["b"], value["c"] = (1, 2, 3), 4
    assert value.view(np.float32)[4:8].tolist() == [1, 2, 3, 4]


def test_arrays_and_nested_structs():
    inner = struct(x=t.Vec(2, t.F32), y=t.F16)
    dtype = dtype_of(struct(items=t.Array(inner, 3), n=t.U32))
    assert (dtype.fields["items"][1], dtype.fields["n"][1], dtype.itemsize) == (0, 48, 56)


@pytest.mark.parametrize("type_", [t.Array(t.Vec(3, t.F32), 4), t.Array(t.F32, None), t.Mat(3, 3, t.F32)], ids=str)
def test_a_layout_that_numpy_lacks_is_named(type_):
    with pytest.raises(UsageError, match="has no NumPy layout; give its bytes as u32 words"):
        dtype_of(type_)


@pytest.mark.parametrize(
    ("names", "wanted", "message"),
    [
        ([], None, "k.wgsl: the shader has no compute entry point"),
        (["a", "b"], None, "several compute entry points; choose one of a, b"),
        (["a", "b"], "c", "no compute entry point is named c; there are a, b"),
    ],
)
def test_an_entry_point_is_found_or_must_be_named(names, wanted, message):
    text = "\n".join(f"@compute @workgroup_size(1) fn {name}() {{}}" for name in names)
    module = sim.check(text, name="k.wgsl")
    with pytest.raises(UsageError, match=message):
        entry_point(module, wanted)
    if names:
        assert entry_point(module, "b").name == "b"


def test_a_module_is_checked_again_after_its_text_changes(tmp_path):
    """An include changes, and comes back; a definition; the name that messages call the file."""
    (tmp_path / "k.wgsl").write_text('#include "n.wgsl"\n@compute @workgroup_size(N) fn main() {}\n')
    (tmp_path / "k.toml").write_text('[kernel]\nsource = "k.wgsl"\ndispatch = [1]\n')
    include = tmp_path / "n.wgsl"
    include.write_text("const N = 4;\n")
    kernel = manifest_loader.load(tmp_path / "k.toml")
    first = check_module(kernel)
    assert check_module(kernel) is first
    include.write_text("const N = 8;\n")
    second = check_module(kernel)
    assert second.pipeline().workgroup_size == (8, 1, 1)
    include.write_text("const N = 4;\n")
    assert check_module(kernel) is first
    include.write_text("// bankshot\nconst N = 4;\n")
    assert check_module(kernel).entry_points[0].span.line == first.entry_points[0].span.line
    assert check_module(kernel) is not first
    (tmp_path / "n.wgsl").rename(tmp_path / "m.wgsl")
    with pytest.raises(WgslError):
        check_module(kernel)
