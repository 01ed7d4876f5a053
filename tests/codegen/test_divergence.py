"""Divergent lanes compute what each would compute alone: random control flow against a plain interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from tests.programs_made import random_programs as rp

INVOCATIONS = 24
GIVEN = np.array([(i * 7 + i // 5) % 11 for i in range(INVOCATIONS)], np.uint32)


def run(program: rp.Program, workgroup_size: int, probes: str, same: int = 2) -> np.ndarray:
    out = np.zeros(INVOCATIONS * rp.LOGGED, np.uint32)
    result = bankshot.simulate(
        rp.render(program, workgroup_size),
        grid=(INVOCATIONS // workgroup_size, 1, 1),
        bindings={"out": out, "given": GIVEN, "same": same},
        probes=probes,
        budget=100_000,
    )
    return result.outputs["out"].reshape(INVOCATIONS, rp.LOGGED)


def wrong_lanes(seed: int, workgroup_size: int, probes: str = "none") -> list[int]:
    """Invocations whose log differs from what the interpreter says."""
    program = rp.Maker(seed).program()
    got = run(program, workgroup_size, probes)
    wanted = [rp.interpret(program, int(GIVEN[i]), 2, i) for i in range(INVOCATIONS)]
    return [i for i in range(INVOCATIONS) if got[i].tolist() != wanted[i]]


@pytest.mark.parametrize("seed", range(60))
def test_one_workgroup_computes_what_each_invocation_would_alone(seed: int) -> None:
    assert wrong_lanes(seed, INVOCATIONS) == []


@pytest.mark.parametrize("seed", range(60, 90))
def test_several_workgroups_of_a_batch_do_too(seed: int) -> None:
    assert wrong_lanes(seed, 3) == []


@pytest.mark.parametrize("seed", range(90, 105))
def test_counting_changes_nothing(seed: int) -> None:
    assert wrong_lanes(seed, 8, "all") == []
