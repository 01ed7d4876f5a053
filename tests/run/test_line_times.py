"""The predicted time by line, and what changes would save: figures worked out by hand from what lines do."""

from functools import cache

import numpy as np
import pytest

import bankshot
from bankshot.oracle.reports.cost_places import cost_places
from bankshot.sim.models.time_model import GPU, WORTH, predicted_us
from bankshot.sim.run import line_times, what_if

HEAD = """\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> t: array<u32, WORDS>;
var<workgroup> a: atomic<u32>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {
"""
TAIL = "\n}\n"
FIRST = HEAD.count("\n") + 1  # line of the body
STORES = """\
for (var k = 0u; k < 64u; k++) {
t[(i * 32u + k) % 1024u] = k;
t[(i * 16u + k) % 1024u] = k;
}
y[w.x * 32u + i] = t[i];"""
SPECIAL = """\
var f = 1.0; var g = 2.0;
for (var k = 0u; k < 64u; k++) {
f = sin(f);
g = f32(u32(g));
}
y[w.x * 32u + i] = bitcast<u32>(f + g);"""
WAITING = """\
for (var k = 0u; k < 64u; k++) { y[w.x * 32u + i] += atomicExchange(&a, k); }
t[i] = 0u;"""
MIXED = """\
for (var k = 0u; k < 64u; k++) { t[(i * 32u + k) % 1024u] = atomicExchange(&a, k) + atomicExchange(&a, i); }
if (i < 8u) { var s = t[i]; for (var k = 0u; k < 500u; k++) { s += k * s; } y[w.x * 32u + (i * 9u) % 32u] = s; }"""


@cache  # no test changes the run of another
def run(body: str, words: int = 1024, grid: int = 1000, device: str = "nvidia-h200") -> bankshot.Run:
    text = HEAD.replace("WORDS", f"{words}u") + body + TAIL
    return bankshot.simulate(text, grid=grid, bindings={"y": np.zeros(grid * 32, np.uint32)}, device=device)


# ---- lines -------------------------------------------------------------------------------------------


def test_each_unit_of_the_model_is_divided_among_lines_or_is_of_none() -> None:
    _, units = predicted_us(run(STORES).work, GPU.begin, cores=132)
    assert {*units} <= {*line_times._WEIGHTS, *line_times.NO_LINE}


def test_the_lines_and_what_is_of_no_line_add_up_to_the_prediction() -> None:
    found = run(STORES)
    parts = found.predicted_time.parts
    of_none = sum(parts.get(unit, 0.0) for unit in line_times.NO_LINE)
    assert sum(line.us for line in found.line_times) + of_none == pytest.approx(found.predicted_time.us)
    for line in found.line_times:
        assert sum(line.parts.values()) == pytest.approx(line.us)
        assert line.share == pytest.approx(line.us / found.predicted_time.us)


def test_lines_share_workgroup_memory_as_they_share_wavefronts() -> None:
    found = {line.line: line.parts.get("workgroup memory") for line in run(STORES).line_times}
    # A stride of 32 words is 32-way, a stride of 16 is 16-way: two lanes of each bank pair up on distinct words.
    first, second = found[FIRST + 1], found[FIRST + 2]
    assert first is not None
    assert second is not None
    assert first == pytest.approx(2 * second)


def test_lines_share_special_functions_by_what_each_kind_costs() -> None:
    """A sine is one special instruction; its line has nothing else of the unit. The next line converts twice."""
    found = run(SPECIAL)
    costs = found.device.costs
    assert costs is not None
    special, conversion = costs.value("issue_special"), costs.value("issue_conversion")
    assert special != conversion
    weights = line_times._special(found, costs)
    lines = {line: weight for (_, line), weight in weights.items()}
    assert lines[FIRST + 2] / lines[FIRST + 3] == pytest.approx(special / (2 * conversion))


def test_lines_share_issue_slots_by_what_each_instruction_costs() -> None:
    """A line adds; the next one compares and branches."""
    found = run("var s = y[w.x * 32u + i];\ns += 3u;\nif s > i\n{ s = 1u; }\ny[w.x * 32u + i] = s;")
    costs = found.device.costs
    assert costs is not None
    add, branch = costs.value("issue_integer"), costs.value("issue_branch")
    assert add != branch
    lines = {line: weight for (_, line), weight in line_times._issued(found, costs).items()}
    assert lines[FIRST + 2] / lines[FIRST + 1] == pytest.approx((add + branch) / add)


def test_each_line_has_its_own_limiter_and_the_longest_is_first() -> None:
    first, second, *rest = run(STORES).line_times
    assert (first.line, first.limiter, second.line, second.limiter) == (
        FIRST + 1, "workgroup memory", FIRST + 2, "workgroup memory",
    )  # fmt: skip
    assert first.code == "t[(i * 32u + k) % 1024u] = k;"
    (loads,) = [line for line in run("y[w.x * 32u + i] += 1u; t[i] = 0u;").line_times if line.line == FIRST]
    assert loads.limiter in ("latency", "L2 cache", "cache lines")
    assert [line.us for line in rest] == sorted((line.us for line in rest), reverse=True)


# ---- changes -----------------------------------------------------------------------------------------


def test_a_share_of_a_change_saves_a_part_of_it() -> None:
    found = run(STORES)
    none, half, whole = (what_if.saving(found, "no bank conflicts", share) for share in (0.0, 0.5, 1.0))
    assert none == 0 < half < whole
    assert whole == pytest.approx(found.predicted_time.savings["no bank conflicts"])
    assert found.time_savings["no bank conflicts"] == whole


@pytest.mark.parametrize("change", ["no bank conflicts", "no idle lanes", "atomic operations that never wait"])
def test_a_larger_share_of_a_change_saves_more(change: str) -> None:
    found = run(MIXED)
    saved = [what_if.saving(found, change, share) for share in (0.0, 0.25, 0.5, 1.0)]
    assert saved[0] == 0
    assert saved == sorted({*saved})


@pytest.mark.parametrize("change", what_if.CHANGES)
def test_a_change_is_one_of_each_phase(change: str) -> None:
    found = run(f"for (var n = 0u; n < 3u; n++) {{ {MIXED} }} workgroupBarrier(); {MIXED}", grid=300)
    changed = what_if.CHANGES[change](found)
    assert len(changed.phases) == len(found.work.phases) > 1
    for name in ("wavefronts", "load_lines", "store_sectors", "workgroup_atomic_turns"):
        assert sum(getattr(each, name) for each in changed.phases) == pytest.approx(getattr(changed, name))
    assert sum(sum(each.issued.values()) for each in changed.phases) == pytest.approx(sum(changed.issued.values()))
    assert {each.resident for each in changed.phases} == {changed.resident}
    saved = [what_if.saving(found, change, share) for share in (0.0, 0.5, 1.0)]
    assert saved == sorted(saved)


def test_savings_are_those_worth_mentioning_the_most_first() -> None:
    found = run(MIXED)
    saved = {change: what_if.saving(found, change) for change in what_if.CHANGES}
    assert 0 < saved["no idle lanes"] < WORTH * found.predicted_time.us
    assert saved["atomic operations that never wait"] > saved["no bank conflicts"] > WORTH * found.predicted_time.us
    assert [*found.time_savings] == ["atomic operations that never wait", "no bank conflicts"]
    assert found.time_savings.items() <= saved.items()


def test_half_the_workgroup_memory_holds_more_workgroups() -> None:
    changed = what_if.CHANGES["half the workgroup memory (a single buffer)"]
    found = run("t[i] = i; workgroupBarrier(); y[w.x * 32u + i] = t[31u - i];", words=6144)  # half of a core's memory
    assert (found.work.resident, changed(found).resident) == (2, 4)
    small = run("t[i] = i; workgroupBarrier(); y[w.x * 32u + i] = t[31u - i];", words=32)
    assert changed(small).resident == small.work.resident


def test_operations_that_never_wait_take_a_turn_each() -> None:
    found = run(WAITING)
    changed = what_if.CHANGES["atomic operations that never wait"](found)
    assert changed.workgroup_atomic_turns == pytest.approx(found.work.workgroup_atomic_turns / 32)
    assert "atomic operations that never wait" in found.time_savings


def test_atomic_loads_have_no_turns_to_save() -> None:
    found = run(WAITING.replace("atomicExchange(&a, k)", "atomicExchange(&a, k) + atomicLoad(&a)"))
    changed = what_if.CHANGES["atomic operations that never wait"](found)
    assert changed.workgroup_atomic_turns == pytest.approx(found.work.workgroup_atomic_turns / 32)


def test_operations_in_each_space_take_a_turn_each() -> None:
    """One exchange of 32 lanes on one word of workgroup memory, and one of 16 lanes on each of two in a buffer."""
    text = """
        @group(0) @binding(0) var<storage, read_write> y: array<atomic<u32>, 32>;
        var<workgroup> a: atomic<u32>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
            let old = atomicExchange(&a, i);
            atomicExchange(&y[i % 2u], old);
        }"""
    found = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(32, np.uint32)}, device="nvidia-h200")
    changed = what_if.CHANGES["atomic operations that never wait"](found)
    assert (found.work.workgroup_atomic_turns, changed.workgroup_atomic_turns) == (32, 1)
    assert (found.work.atomic_turns, changed.atomic_turns) == (16, 1)


def test_no_idle_lanes_issue_what_the_active_lanes_fill() -> None:
    found = run("if (i < 8u) { for (var k = 0u; k < 99u; k++) { t[i] += k * i; } } y[w.x * 32u + i] = t[i];")
    active = found.counters["active_lanes"] / (
        found.counters["active_lanes"] + sum(found.counters[key] for key in ("idle_guard", "idle_divergence"))
    )
    changed = what_if.CHANGES["no idle lanes"](found)
    assert changed.issued["integer_multiply"] == pytest.approx(found.work.issued["integer_multiply"] * active)


def test_a_kernel_that_does_nothing_has_nothing_to_save() -> None:
    assert run("_ = &y;").time_savings == {}


# ---- places ------------------------------------------------------------------------------------------


def test_places_are_ranked_by_the_time_that_they_cost() -> None:
    mixed = STORES + "\nfor (var k = 0u; k < i / 8u; k++) { y[w.x * 32u + i] = y[w.x * 32u + i] ^ k; }"
    timed, counted = cost_places(run(mixed)), cost_places(run(mixed, device="nvidia"))
    assert [place.saved_us for place in timed] == sorted((place.saved_us or 0 for place in timed), reverse=True)
    us = run(mixed).predicted_time.us
    assert timed[0].weight == pytest.approx((timed[0].saved_us or 0) / us)
    assert {place.saved_us for place in counted} == {None}
