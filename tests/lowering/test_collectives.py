"""The builtins by which the lanes of a subgroup exchange values: all of the spec have a lowering."""

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
