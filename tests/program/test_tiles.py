"""Instructions that are taken several at once: the same bits, counters and findings as one by one."""

import numpy as np
import pytest
from random_products import WORDS, Maker

import sim
from sim.machine import opcodes as op

COUNTERS = ("lanes", "banks", "sectors", "barriers", "flops", "bounds")
GROUPS = 3


def simulated(wgsl, size, device="lavapipe", probes="none", turns=7, outputs=64):
    random = np.random.default_rng(5)
    x = random.standard_normal(WORDS).astype(np.float32)
    x[::97] = random.choice(np.array([np.inf, -np.inf, np.nan, -0.0, 1e-40, 3e38], np.float32), len(x[::97]))
    bindings = {
        "x": x,
        "v": x[::-1].copy(),
        "y": np.zeros(GROUPS * size * outputs, np.float32),
        "same": np.array([1.5, 2, -3, 0.125], np.float32),
        "turns": np.uint32(turns),
    }
    return sim.simulate(wgsl, grid=GROUPS, bindings=bindings, device=device, probes=probes)


def tiles(program):
    return int((program.code[:, op.OP] == op.TILE).sum())


@pytest.mark.parametrize("seed", range(60))
def test_nothing_changes(seed):
    maker = Maker(seed)
    wgsl = maker.program()
    device, probes = ("lavapipe", "nvidia")[seed % 2], ("none", COUNTERS)[seed // 2 % 2]
    together = simulated(wgsl, maker.size, device, probes)
    launch, outcome = together._dispatch.run(frozenset(() if probes == "none" else probes), grouped=False)
    assert tiles(launch.program) == 0
    for name, values in launch.outputs().items():
        assert together.outputs[name].tobytes() == values.tobytes(), wgsl
    if probes != "none":
        again = together._dispatch.run(frozenset(probes))[1]
        for one, other in zip(
            (again.blocks, again.tallies, again.bounds), (outcome.blocks, outcome.tallies, outcome.bounds), strict=True
        ):
            assert one.tolist() == other.tolist(), wgsl
