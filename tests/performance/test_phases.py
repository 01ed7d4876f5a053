"""The phases of kernels: where each begins, what it accesses, and which executions count for it."""

import pytest

from tests.performance.test_chains import costs


def phases(body: str) -> list[tuple[int, dict[str, int]]]:
    """Return the phase and the accesses of each region, of those that access memory."""
    kinds = ("storage_load", "storage_store", "workgroup_load", "workgroup_store")
    found = [(each.phase, {kind: each.issued[kind] for kind in kinds if each.issued[kind]}) for each in costs(body)]
    return [(phase, accesses) for phase, accesses in found if accesses]


LOAD, STORE = {"storage_load": 1}, {"storage_store": 1}


def test_a_phase_ends_at_a_barrier() -> None:
    found = phases("t[i] = x[i]; workgroupBarrier(); y[i] = t[63u - i];")
    assert found == [(0, {**LOAD, "workgroup_store": 1}), (1, {"workgroup_load": 1, **STORE})]


def test_a_phase_that_has_done_nothing_goes_on() -> None:
    assert phases("workgroupBarrier(); var a = i; for (var k = 0u; k < i; k++) { a += x[k]; } y[i] = a;") == [
        (0, LOAD),
        (1, STORE),
    ]


def test_outermost_loops_are_phases_and_those_inside_them_are_not() -> None:
    loop = "for (var k = 0u; k < i; k++) { for (var m = 0u; m < i; m++) { a += x[k + m]; } y[k] = a; }"
    assert phases(f"var a = i; {loop} {loop}") == [(0, STORE), (0, LOAD), (1, STORE), (1, LOAD)]


def test_a_loop_with_barriers_has_phases_inside() -> None:
    tile = "t[i] = x[k]; workgroupBarrier(); for (var m = 0u; m < 64u; m++) { a += t[m]; } workgroupBarrier();"
    found = phases(f"var a = 0u; for (var k = 0u; k < 9u; k++) {{ {tile} }} y[i] = a;")
    assert found == [(0, {**LOAD, "workgroup_store": 1}), (1, {"workgroup_load": 1}), (2, STORE)]


def test_a_region_in_several_phases_is_counted_by_its_own_blocks() -> None:
    found = costs("if x[0] < 9u { t[i] = x[i]; workgroupBarrier(); y[i] = t[63u - i]; }")
    inside = [each for each in found if each.issued["workgroup_store"] or each.issued["workgroup_load"]]
    assert [each.phase for each in inside] == [0, 1]
    assert inside[0].counted_blocks == inside[1].counted_blocks != []


def test_the_check_of_an_iteration_runs_beside_its_first_phase() -> None:
    body = "t[i] = x[k]; workgroupBarrier(); a += t[63u - i]; workgroupBarrier();"
    found = costs(f"var a = 0u; for (var k = 0u; k < 9u; k++) {{ {body} }} y[i] = a;")
    (first,) = (each for each in found if each.iterates)
    assert first.chain["storage_load"] == 1  # longer than the check
    assert [each.chain["loop"] for each in found if "loop" in each.chain] == [1]
    short = "t[i] = k; workgroupBarrier(); a += x[63u - i]; workgroupBarrier();"
    found = costs(f"var a = 0u; for (var k = 0u; k < 9u; k++) {{ {short} }} y[i] = a;")
    (first,) = (each for each in found if each.iterates)
    header_and_counter = 2  # cycles to issue them
    assert first.chain == {"barrier": 1, "loop": pytest.approx(1 + (30 - header_and_counter) / 24)}
