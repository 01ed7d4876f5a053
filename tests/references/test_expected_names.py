"""The names that references expect of a manifest: listed, and checked before anything is computed."""

import json
from collections.abc import Mapping

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.manifests.quantization import FORMATS
from bankshot.oracle.references import expected_names, registered

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
