"""Idle lanes by cause, compared with counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from tests.programs_made import random_programs as rp
from tests.programs_made.dispatch import run

CAUSES = ("executions", "active_lanes", "idle_guard", "idle_overhang", "idle_divergence", "idle_skipped")


def idle(body: str, place: int = -1, **options) -> tuple[int, ...]:
    """The counters `CAUSES` of the last store to `y` in the source, or of number `place`."""
    options = {"device": "nvidia", "probes": "lanes", "outputs": 256, **options}
    sites = [s for s in run(body, **options).sites if s.kind == "store" and s.name == "y"]
    site = sorted(sites, key=lambda s: s.span.start)[place]
    return tuple(getattr(site, name) for name in CAUSES)


GUARDS = {
    "a return": "if i >= 40u { return; } y[i] = 1u;",
    "an if around everything": "let n = 40u; if i < n { y[i] = 1u; }",
    "an else around everything": "if i >= 40u { return; } else { y[i] = 1u; }",
    "two guards": "if i >= 50u { return; } if i < 40u { y[i] = 1u; }",
    "a switch": "switch i / 40u { case 0u: { y[i] = 1u; } default: { return; } }",
    "in a function": "work(i);",
}
FUNCTION = "fn work(i: u32) { if i >= 40u { return; } y[i] = 1u; }"


@pytest.mark.parametrize("guard", GUARDS)
def test_lanes_behind_a_guard(guard: str) -> None:
    """40 of 64: the second subgroup has 8 at work and 24 behind it. Of 128, two more subgroups are not there at all."""
    assert idle(GUARDS[guard], size=64, before=FUNCTION) == (2, 40, 24, 0, 0, 0)
    assert idle(GUARDS[guard], size=128, before=FUNCTION) == (2, 40, 24, 0, 0, 64)


def test_lanes_past_the_workgroup() -> None:
    """Workgroups of 40 fill 8 of the second 32; those of 20, side by side, 20 of 32 each; and 8 of the third 16."""
    assert idle("y[i] = 1u;", size=40) == (2, 40, 0, 24, 0, 0)
    assert idle("y[i] = 1u;", size=20, groups=3) == (3, 60, 0, 36, 0, 0)
    assert idle("y[i] = 1u;", size=40, device="intel") == (3, 40, 0, 8, 0, 0)


def test_lanes_that_wait_for_a_branch() -> None:
    body = "y[i] = 0u; if i % 2u == 0u { y[i] = 1u; }"
    assert idle(body, size=64) == (2, 32, 0, 0, 32, 0)
    assert idle(body, size=20) == (1, 10, 0, 12, 10, 0)
    cases = "switch i % 4u { case 0u: { y[i] = 1u; } case 1u: { y[i] = 2u; } default: { y[i] = 3u; } }"
    assert [idle(cases, place, size=64)[1:] for place in range(3)] == [
        (16, 0, 0, 48, 0),
        (16, 0, 0, 48, 0),
        (32, 0, 0, 32, 0),
    ]


def test_lanes_that_wait_for_a_loop() -> None:
    """Invocation i takes i turns: of 4, three turns with 3, 2 and 1; of 34, subgroup 0 takes 31 and subgroup 1 takes
    33, of which it takes 2 without subgroup 0."""
    body = "for (var k = 0u; k < i; k++) { y[i] = k; }"
    assert idle(body, size=4) == (3, 6, 0, 84, 6, 0)
    waits = (31 * 32 - 496) + (33 * 2 - 65)
    assert idle(body, size=34) == (64, 496 + 65, 0, 33 * 30, waits, 2 * 32)


def test_subgroups_without_lanes_at_work() -> None:
    """5 of 64 have something to do: 27 wait with them, and a subgroup of 32 is not there; of 256, seven are not."""
    body = "for (var k = i; k < 5u; k += 256u) { y[k] = 1u; }"
    assert idle(body, size=64) == (1, 5, 0, 0, 27, 32)
    assert idle(body, size=256) == (1, 5, 0, 0, 27, 224)


def test_all_causes_at_once() -> None:
    """40 invocations, 36 past the guard, the odd ones in the branch: 16 of 32, and 2 of 4 of 8 of 32."""
    body = "if i >= 36u { return; } y[i] = 0u; if i % 2u == 1u { y[i] = 1u; }"
    assert idle(body, size=40) == (2, 18, 4, 24, 18, 0)
    assert idle(body, 0, size=40) == (2, 36, 4, 24, 0, 0)


def test_a_return_from_inside_a_loop() -> None:
    """Those who return wait, as it were, for the end of the loop, and are gone after it."""
    body = "for (var k = 0u; k < 4u; k++) { if k == i { return; } y[i] = k; } y[i] = 9u;"
    assert idle(body, 0, size=8) == (4, 7 + 6 + 5 + 4, 0, 4 * 24, 1 + 2 + 3 + 4, 0)
    assert idle(body, 1, size=8) == (1, 4, 4, 24, 0, 0)


def test_an_if_beside_other_work_is_no_guard() -> None:
    beside = "if i < 40u { y[i] = 1u; } workgroupBarrier();"
    assert idle(beside, size=64) == (2, 40, 0, 0, 24, 0)


@pytest.mark.parametrize("seed", range(200, 215))
@pytest.mark.parametrize("size", [3, 24])
def test_every_lane_is_accounted_for(seed: int, size: int) -> None:
    given = np.arange(24, dtype=np.uint32) % 7
    source = rp.render(rp.Maker(seed).program(), size)
    bindings = {"out": np.zeros(24 * rp.LOGGED, np.uint32), "given": given, "same": 2}
    result = bankshot.simulate(source, grid=24 // size, bindings=bindings, device="swiftshader", probes="lanes")
    for site in result.sites:
        executions, active, *causes, skipped = (getattr(site, name) for name in CAUSES)
        assert executions * 4 == active + sum(causes)
        assert min(*causes, skipped) >= 0
    for name in CAUSES:
        assert result.counters[name] == sum(getattr(site, name) for site in result.sites)
