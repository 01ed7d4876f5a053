"""The names that references expect of a manifest: listed, and checked before anything is computed."""

import json
from collections.abc import Mapping

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.quantization import FORMATS
from bankshot.oracle.references import Expected, expected_names, find, registered
from bankshot.oracle.references.reference_registry import Names

SHADER = """
@group(0) @binding(0) var<storage, read> {0}: array<f32>;
@group(0) @binding(1) var<storage, read> {1}: array<f32>;
@group(0) @binding(2) var<storage, read_write> {2}: array<f32>;
@compute @workgroup_size(1)
fn main() {{ {2}[0] = {0}[0] * {1}[0]; }}
"""
BINDING = '\n[bind.{}]\ndtype = "f32"\nshape = {}\ninit = "{}"\n'


class Given(Mapping):
    """Arrays by name that note which were asked for."""

    def __init__(self, names, packed):
        self.names, self.packed, self.asked = names, packed, set()

    def __getitem__(self, name):
        self.asked.add(name)
        if name not in self.names:
            raise KeyError(name)
        return self.packed.get(name, np.ones((256, 256), np.float32))

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.names)


@pytest.mark.parametrize("name", sorted(registered()))
def test_the_listed_names_are_those_that_a_reference_asks_for(name):
    names = expected_names()[name]
    format_ = FORMATS.get(name.removeprefix("matmul_t_"))
    packed = {part or "W": data for part, data in format_.pack(np.ones((256, 256))).items()} if format_ else {}
    for takes in names.takes:
        for lacking in takes:
            given = Given([each for each in takes if each != lacking], packed)
            with pytest.raises(KeyError):
                registered()[name](given, {"N": 256, "K": 256})
        given = Given(takes, packed)
        try:
            registered()[name](given, {"N": 256, "K": 256})
        except KeyError as error:
            pytest.fail(f"{name} asks for {error}, too")
        except (ValueError, IndexError, TypeError):
            pass  # arrays of another kind
        assert given.asked >= set(takes)


def folder_with(tmp_path, names, reference="matmul", shape="[1, 1]", dims="{}"):
    (tmp_path / "k.wgsl").write_text(SHADER.format(*names))
    bindings = "".join(
        BINDING.format(name, shape, init) for name, init in zip(names, ("normal", "normal", "zeros"), strict=True)
    )
    (tmp_path / "k.toml").write_text(
        f'[kernel]\nsource = "k.wgsl"\n  reference = "{reference}"\ndims = {dims}\ndispatch = [1]\n{bindings}'
    )
    return tmp_path / "k.toml"


def audit(path):
    return CliRunner().invoke(main, ["audit", str(path), "--no-gpu", "--format", "json"])


def test_names_that_fit_are_compared(tmp_path):
    assert audit(folder_with(tmp_path, ("X", "W", "Y"))).exit_code == 0


@pytest.mark.parametrize(
    ("names", "reference", "words"),
    [
        (("x", "W", "Y"), "matmul", "takes X, W and gives Y, and the bindings are x, W, Y; did you mean X by x?"),
        (
            ("left", "right", "out"),
            "matmul",
            "takes X, W and gives Y, and the bindings are left, right, out; rename them, and",
        ),
        (("X", "W", "y"), "matmul", "takes X, W and gives Y, and the bindings are X, W, y; did you mean Y by y?"),
        (("X", "W", "Y"), "matmul_t_int8", "takes X, W, W_SCALE"),
        (("W", "b", "Y"), "dequant_q4_k", "takes the dims N, K, and [kernel] dims lacks N, K"),
    ],
)
def test_other_names_are_an_error_of_the_manifest_with_its_place(tmp_path, names, reference, words):
    if "SCALE" in words:
        words = f"takes {', '.join(expected_names()[reference].takes[0])} and gives Y"
    done = audit(folder_with(tmp_path, names, reference))
    assert done.exit_code == 2
    assert f"k.toml:3:15: reference {reference} {words}" in json.loads(done.stdout)["cases"][0]["error"]


def test_arrays_that_do_not_fit_are_an_error_of_the_manifest(tmp_path):
    path = folder_with(tmp_path, ("X", "W", "Y"))
    before, after = path.read_text().split("[bind.W]")
    path.write_text(f"{before}[bind.W]{after.replace('[1, 1]', '[2, 1]', 1)}")
    done = audit(path)
    assert done.exit_code == 2
    (case,) = json.loads(done.stdout)["cases"]
    assert "k.toml:3:15: reference matmul cannot compute with these arrays: " in case["error"]


def test_the_command_lists_every_reference_with_its_names():
    done = CliRunner().invoke(main, ["references"])
    assert done.exit_code == 0
    assert "matmul: Y = X @ W\n    takes X, W; gives Y\n" in done.stdout
    assert "takes GATE, UP, W or GATE_UP, W; gives Y" in done.stdout
    found = json.loads(CliRunner().invoke(main, ["references", "--json"]).stdout)["cases"]
    assert [each["name"] for each in found] == sorted(registered())
    by_name = {each.pop("name"): each for each in found}
    assert by_name["matmul"] == {"takes": [["X", "W"]], "gives": ["Y"], "dims": [], "computes": "Y = X @ W"}
    assert by_name["dequant_q4_k"]["dims"] == ["N", "K"]
    assert [["GATE", "UP", "W"], ["GATE_UP", "W"]] in [each["takes"] for each in by_name.values()]
    assert all(each["computes"] and each["gives"] for each in by_name.values())


# ---- what a manifest lacks, in words -----------------------------------------------------------------

NAMES = Names((("X", "W"), ("GATE_UP", "W", "B")), ("Y", "Z"), ("N", "K"), "something")
TAKES = "takes X, W or GATE_UP, W, B and gives Y, Z, and the bindings are "
RENAME = "; rename them, and name the shader's as `var`"


@pytest.mark.parametrize(
    ("bindings", "dims", "words"),
    [
        ("X W Y Z", "N K", ""),
        ("GATE_UP W B Y Z other", "N K M", ""),
        ("", "N K", f"{TAKES}none{RENAME}"),
        ("left", "N K", f"{TAKES}left{RENAME}"),
        ("x W Y Z", "N K", f"{TAKES}x, W, Y, Z; did you mean X by x?"),
        ("X W Y zz", "N K", f"{TAKES}X, W, Y, zz; did you mean Z by zz?"),
        ("GATE_UP B x Y Z", "N K", f"{TAKES}GATE_UP, B, x, Y, Z{RENAME}"),  # W alone is lacking
        ("w x Y Z", "N K", f"{TAKES}w, x, Y, Z; did you mean W by w?"),  # the first by name
        ("X W Y Z", "N", "takes the dims N, K, and [kernel] dims lacks K"),
        ("X W Y Z", "", "takes the dims N, K, and [kernel] dims lacks N, K"),
        ("X W Y Z", "n k", "takes the dims N, K, and [kernel] dims lacks N, K"),
    ],
)
def test_what_a_manifest_lacks(bindings, dims, words):
    assert NAMES.mismatch(bindings.split(), dims.split()) == words


@pytest.mark.parametrize(
    ("shape", "wanted", "fits"),
    [
        ((3, 4), (3, 4), True), ((3, 4), (1, 3, 1, 4), True), ((1, 3, 4), (3, 4), True), ((1,), (), True),
        ((3, 4), (4, 3), False), ((3, 4), (12,), False), ((3,), (), False), ((0,), (0, 1), True),
    ],
)  # fmt: skip
def test_axes_of_length_1_may_be_added_and_dropped(shape, wanted, fits):
    value = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)
    for bound in (None, value / 2):
        made = Expected(value, bound).shaped(wanted)
        assert (made is not None) == fits
        if made is not None:
            assert made.value.shape == tuple(wanted)
            assert made.value.ravel().tolist() == value.ravel().tolist()
            assert (made.bound is None) == (bound is None)
            assert bound is None or made.bound.shape == tuple(wanted)


def test_an_unknown_reference_is_an_error_with_the_nearest_or_all():
    assert find("matmul") is registered()["matmul"]
    with pytest.raises(UsageError) as near:
        find("matmull")
    assert str(near.value) == "no reference is named matmull; did you mean matmul?"
    with pytest.raises(UsageError) as far:
        find("zzz")
    known = ", ".join(sorted(registered()))
    own = "one of your own is named `file.py:function`"
    assert str(far.value) == f"no reference is named zzz; there are {known}; {own}"
