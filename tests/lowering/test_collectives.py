"""The builtins by which the lanes of a subgroup exchange values: all of the spec have a lowering."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.lowering.subgroup_builtins import COLLECTIVES

# Spec: "Subgroup Built-in Functions" and "Quad Operations".
SPEC = """
subgroupAdd subgroupInclusiveAdd subgroupExclusiveAdd subgroupMul subgroupInclusiveMul subgroupExclusiveMul
subgroupMin subgroupMax subgroupAnd subgroupOr subgroupXor subgroupAll subgroupAny subgroupBallot subgroupElect
subgroupBroadcastFirst subgroupBroadcast subgroupShuffle subgroupShuffleXor subgroupShuffleUp subgroupShuffleDown
quadBroadcast quadSwapX quadSwapY quadSwapDiagonal
"""


def test_every_collective_of_the_spec_has_a_lowering():
    assert COLLECTIVES.keys() == set(SPEC.split())


# Of lanes that hold 3, 5, 6 and 7.
REDUCED = {"subgroupAdd": 21, "subgroupMul": 630, "subgroupMin": 3, "subgroupMax": 7, "subgroupAnd": 0,
           "subgroupOr": 7, "subgroupXor": 7}  # fmt: skip
BITWISE = ("subgroupAnd", "subgroupOr", "subgroupXor")


@pytest.mark.parametrize("kind", ["f32", "f16", "i32", "u32"])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions_of_every_kind_of_number(name, kind):
    if kind in ("f32", "f16") and name in BITWISE:
        with pytest.raises(bankshot.WgslError):
            reduced(name, kind)
    else:
        assert reduced(name, kind) == [REDUCED[name]] * 4


def reduced(name, kind):
    wgsl = f"""enable f16; enable subgroups;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {{
            let x = array<{kind}, 4>(3, 5, 6, 7)[i];
            y[i] = u32({name}(x));
        }}"""
    return bankshot.simulate(wgsl, grid=1, bindings={"y": np.zeros(4, np.uint32)}).output("y").tolist()
