"""Progress models on kernels: verdicts reasoned from the definitions, and who waits for whom."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.sim.explore.invocations import Event
from bankshot.sim.explore.progress import MODELS, Stuck
from bankshot.sim.explore.search import search
from bankshot.sim.explore.starvation import waits_of
from bankshot.sim.explore.visibility import Visibility
from bankshot.sim.run.prepared import dispatch_of
from tests.explore.exchange_programs import BY_HAND, wgsl

HEAD = """
@group(0) @binding(0) var<storage, read_write> f: array<atomic<u32>, 4>;
@group(0) @binding(1) var<storage, read_write> y: array<u32, 4>;
var<workgroup> s: array<atomic<u32>, 4>;
@compute @workgroup_size({size})
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32) {{
    _ = &f; _ = &y; _ = &s;
{body}
}}
"""
FIRST_LINE = 8  # of a body


def explored(body, grid=2, size=1, memory="sc", progress=(*MODELS,), **options):
    text = HEAD.format(size=size, body=body)
    bindings = {"f": np.zeros(4, np.uint32), "y": np.zeros(4, np.uint32)}
    return bankshot.explore(text, grid=grid, bindings=bindings, memory=memory, progress=progress, **options)


def ends(found):
    return {each.model for each in found.progress if each.ends}


def only(found):
    (each,) = found.progress
    return each


LOOK_BACK = """
    var sum = w.x + 1u;
    if w.x > 0u {
        loop {
            let before = atomicLoad(&f[w.x - 1u]);
            if before != 0u { sum += before; break; }
        }
    }
    atomicStore(&f[w.x], sum);"""
SPIN_LOCK = """
    while !atomicCompareExchangeWeak(&f[0], 0u, 1u).exchanged {}
    y[0] += 1u;
    atomicStore(&f[0], 0u);"""
TICKET_LOCK = """
    let ticket = atomicAdd(&f[0], 1u);
    while atomicLoad(&f[1]) != ticket {}
    y[0] += 1u;
    atomicStore(&f[1], ticket + 1u);"""
# A dispatch has no barrier across workgroups; this one works only if all run at the same time.
GLOBAL_BARRIER = """
    atomicAdd(&f[0], 1u);
    while atomicLoad(&f[0]) < 2u {}"""
CONSUMER_FIRST = """
    if w.x == 0u {
        while atomicLoad(&f[0]) == 0u {}
    } else {
        atomicStore(&f[0], 1u);
    }"""


@pytest.mark.parametrize("memory", ["sc", "weak"])
@pytest.mark.parametrize(
    ("body", "grid", "models"),
    [
        (LOOK_BACK, 3, "fair hsa hsa+obe lobe"),
        (SPIN_LOCK, 2, "fair obe hsa+obe lobe"),
        (TICKET_LOCK, 2, "fair obe hsa+obe lobe"),
        (GLOBAL_BARRIER, 2, "fair"),
        (CONSUMER_FIRST, 2, "fair"),
    ],
)
def test_kernels_whose_workgroups_wait_for_others(body, grid, models, memory):
    found = explored(body, grid, memory=memory)
    assert found.complete
    assert ends(found) == {*models.split()}
    assert not any(each.never for each in found.progress)


@pytest.mark.parametrize("name", BY_HAND)
def test_programs_of_exchange_and_branch(name):
    program, models = BY_HAND[name]
    bindings = {"m": np.zeros(2, np.uint32)}
    grid = len(program)
    found = bankshot.explore(wgsl(program), grid=grid, bindings=bindings, memory="sc", progress=[*MODELS])
    assert found.complete
    assert ends(found) == {*models.split()}


def test_the_sentence_names_who_waits_for_whom():
    found = only(explored(LOOK_BACK, 3, progress="obe"))
    assert found.sentence == (
        "may not end under OBE: workgroup (1, 0, 0) waits at line 12 for f[0], which workgroup (0, 0, 0) writes at "
        "line 16; OBE guarantees only workgroups that have started"
    )
    assert not found.way
    assert [str(move) for move in found.cycle] == ["workgroup (1, 0, 0), invocation 0, line 12: reads 0 from f[0]"]


def test_a_lock_that_is_held_by_who_never_runs_again():
    found = only(explored(SPIN_LOCK, progress="hsa"))
    assert found.sentence == (
        "may not end under HSA: workgroup (0, 0, 0) waits at line 9 for f[0], which workgroup (1, 0, 0) writes at "
        "line 11; HSA guarantees only the first workgroup that has not ended"
    )
    (taken,) = found.way
    assert (taken.workgroup, taken.does) == ((1, 0, 0), "reads 0 from f[0], and stores 1")


def test_each_waits_for_the_other():
    body = """
    while atomicLoad(&f[1u - w.x]) == 0u {}
    atomicStore(&f[w.x], 1u);"""
    found = only(explored(body, progress="fair"))
    assert found.never
    waits = "workgroup {} waits at line 9 for f[{}], which no other invocation changes"
    assert found.sentence == f"never ends under fair scheduling: {waits.format('(0, 0, 0)', 1)}; " + waits.format(
        "(1, 0, 0)", 0
    )


def test_who_has_ended_stores_no_more():
    # Workgroup 0 takes the 1 that workgroup 1 stores, and waits for another one.
    body = """
    if w.x == 0u {
        while atomicExchange(&f[0], 0u) == 0u {}
        while atomicLoad(&f[0]) == 0u {}
    } else {
        atomicStore(&f[0], 1u);
    }"""
    found = only(explored(body, progress="fair"))
    assert found.never
    assert "line 11 for f[0], which no other invocation changes" in found.sentence


def test_a_loop_without_loads():
    found = only(explored("    loop { if w.x == 7u { break; } }", progress="fair"))
    assert found.never
    assert "forever" in found.sentence
    assert {move.does for move in found.cycle} == {"repeats a loop in which nothing changes"}


def test_memory_that_is_only_read_is_not_waited_for():
    text = """
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> f: array<u32, 4>;
    @compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3u) {
        while x[w.x] == 0u { f[w.x] = 1u; }
        f[3] = 1u;
    }"""
    given = {"x": np.zeros(4, np.uint32), "f": np.zeros(4, np.uint32)}
    found = only(bankshot.explore(text, grid=2, bindings=given, memory="sc", progress="fair"))
    assert found.sentence.startswith("never ends under fair scheduling: workgroup (0, 0, 0) repeats the loop at line 5")
    assert "x[" not in found.sentence


# ---- invocations of one workgroup ------------------------------------------------------------------

FLAG = """
    if i == %d { while atomicLoad(&s[0]) == 0u {} }
    else { atomicStore(&s[0], 1u); }"""


@pytest.mark.parametrize(
    ("waiting", "models"), [(0, "fair"), (1, "fair hsa hsa+obe lobe")], ids=["the first waits", "the second waits"]
)
def test_invocations_of_a_workgroup_by_their_own_model(waiting, models):
    found = {within: explored(FLAG % waiting, 1, 2, progress="none", within=within) for within in MODELS}
    assert {within for within, each in found.items() if ends(each)} == {*models.split()}


def test_the_model_of_invocations_is_named():
    found = only(explored(FLAG % 0, 1, 2, progress="fair", within="hsa"))
    assert found.sentence == (
        "may not end under fair scheduling, and under HSA in each workgroup: invocation 0 waits at line 9 for s[0], "
        "which invocation 1 writes at line 10; HSA guarantees only the first invocation that has not ended"
    )


def test_others_wait_at_a_barrier_for_an_invocation_that_spins():
    body = """
    if i == 0u { while atomicLoad(&s[0]) == 0u {} }
    workgroupBarrier();
    if i == 1u { atomicStore(&s[0], 1u); }"""
    found = explored(body, 1, 3, progress=["fair"])
    each = only(found)
    assert each.never
    assert each.sentence == (
        "never ends under fair scheduling: invocation 0 waits at line 9 for s[0], which no other invocation changes; "
        "2 invocations of workgroup (0, 0, 0) wait at the barrier at line 10, which invocation 0 does not reach"
    )
    assert [finding.code for finding in found.findings] == ["deadlock"]


# ---- findings ------------------------------------------------------------------------------------


def test_one_finding_for_a_place_with_all_its_models():
    found = explored(LOOK_BACK, 3)
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.span.line) == ("starvation", "error", 12)
    assert finding.message.endswith("may wait here forever for f[0], under OBE and without guarantees")
    notes = [(note.message, note.span and note.span.line) for note in finding.notes]
    assert notes == [
        ("workgroup (0, 0, 0) stores to it here", 16),
        ("OBE guarantees only workgroups that have started", None),
        ("no workgroup is guaranteed to run", None),
    ]


def test_no_finding_for_models_that_nobody_asked_for():
    found = explored(LOOK_BACK, 3, progress=["fair", "lobe"])
    assert not found.findings
    assert not explored(LOOK_BACK, 3, progress=()).progress


@pytest.mark.parametrize("wrong", [{"progress": "weakly"}, {"progress": ["fair", ""]}, {"within": "fairly"}])
def test_a_model_that_does_not_exist_is_an_error(wrong):
    with pytest.raises(bankshot.WgslError, match="one of fair, hsa, obe"):
        explored(LOOK_BACK, **wrong)


# ---- what was not seen, and weak memory ------------------------------------------------------------


def test_a_limit_leaves_the_verdict_open():
    found = only(explored(TICKET_LOCK, progress="fair", states=5))
    assert found.ends is None
    assert found.sentence.startswith("may end under fair scheduling: no run that does not was found")


def test_a_run_without_an_end_is_one_whatever_was_not_seen():
    found = explored(LOOK_BACK, 3, progress=["obe"], states=2)
    assert not found.complete
    assert only(found).ends is False


def test_weak_memory_lets_both_miss_the_store_of_the_other():
    # In every sequentially consistent order the second to load sees the other's store, and releases both.
    body = """
    atomicStore(&f[w.x], 1u);
    if atomicLoad(&f[1u - w.x]) == 1u { atomicStore(&f[2], 1u); }
    while atomicLoad(&f[2]) == 0u {}"""
    assert only(explored(body, progress="fair", memory="sc")).ends
    weak = only(explored(body, progress="fair", memory="weak"))
    assert (weak.ends, weak.never, weak.memory) == (False, False, "weak")
    # The store is not ahead any more, but it is one that the other might have reached.
    assert "workgroup (0, 0, 0) waits at line 11 for f[2], which workgroup (1, 0, 0) writes at line 10" in weak.sentence


# The exchange may wait until `old` is needed.
HELD = """
    let old = atomicExchange(&f[w.x], 1u);
    while atomicLoad(&f[1u - w.x]) == 0u {}
    atomicAdd(&f[w.x], old);
    atomicAdd(&f[1u - w.x], old);"""


def test_an_access_that_waits_is_performed_while_its_thread_spins():
    found = explored(HELD, progress="fair", memory="weak")
    assert found.complete
    assert only(found).ends


def test_too_many_states_of_weak_memory_leave_the_verdict_of_sequential_consistency():
    # An exchange that spins adds a store in every turn.
    body = """
    if w.x == 0u { atomicStore(&f[1], 1u); } else { while atomicLoad(&f[1]) == 0u {} }
    while atomicExchange(&f[0], 1u) == 1u {}
    atomicStore(&f[0], 0u);"""
    found = explored(body, progress=["fair", "obe"], memory="weak", states=200)
    assert not found.complete
    fair, obe = found.progress
    assert (fair.ends, fair.memory) == (True, "sc")
    assert (obe.ends, obe.memory) == (False, "weak")


def test_a_store_does_not_come_before_a_newer_one_forever():
    # Were every 1 of workgroup 0 ordered before the 2 of workgroup 1, workgroup 1 would read 2 forever.
    body = """
    if w.x == 0u {
        loop { atomicStore(&f[0], 1u); if atomicLoad(&f[1]) == 1u { break; } }
    } else {
        atomicStore(&f[0], 2u);
        while atomicLoad(&f[0]) == 2u {}
        atomicStore(&f[1], 1u);
    }"""
    assert only(explored(body, progress="fair", memory="weak", states=120)).ends is not False


def test_a_compare_exchange_that_fails_stores_nothing():
    # Workgroup 1 sees the 2 of workgroup 0 and fails again and again; workgroup 2 sees it in the end.
    body = """
    if w.x == 0u { atomicStore(&f[0], 2u); }
    else if w.x == 1u {
        loop {
            atomicCompareExchangeWeak(&f[0], 5u, 6u);
            if atomicLoad(&f[1]) == 1u { break; }
        }
    } else {
        while !atomicCompareExchangeWeak(&f[0], 2u, 3u).exchanged {}
        atomicStore(&f[1], 1u);
    }"""
    found = explored(body, 3, progress="fair", memory="weak")
    assert found.complete
    assert only(found).ends


def visibility(body):
    """The graph of two workgroups with weak memory, its steps, and what bars some of them."""
    bindings = {"f": np.zeros(4, np.uint32), "y": np.zeros(4, np.uint32)}
    graph = search(dispatch_of(HEAD.format(size=1, body=body), grid=2, bindings=bindings), "weak")
    assert graph.complete
    steps = {(before, unit, after) for before, edges in enumerate(graph.edges) for unit, after in edges}
    return graph, steps, Visibility(graph).barred


def test_old_values_may_be_read_while_new_ones_are_stored():
    body = """
    if w.x == 0u { while atomicLoad(&f[0]) == 0u {} }
    else { atomicStore(&f[0], 1u); while atomicLoad(&f[0]) == 1u {} }"""
    _, steps, barred = visibility(body)
    loads = {step for step in steps if step[0] == step[2] and step[1] == 0}
    assert len(loads) == 2
    assert len(barred(loads)) == 1  # of the value before the store, after it
    assert not barred(steps)


def test_an_access_waits_forever_only_while_its_thread_stands_still():
    graph, steps, barred = visibility(HELD)
    queues = enumerate(threads[0].queue for threads, _ in graph.states)
    waiting = {state for state, queue in queues if queue and queue[0].op == "exchange"}
    inside = {step for step in steps if step[1] == 0 and {step[0], step[2]} <= waiting}
    performing = {step for step in steps if step[1] == 0 and step[0] in waiting and step[2] not in waiting}
    assert inside
    assert inside & barred(inside) == inside
    one = min(step for step in performing if step[0] < step[2])
    assert one not in barred({one} | {step for step in steps if step[0] == one[2]})


def test_who_is_blocked_for_a_while_only_waits_to_be_scheduled():
    """Unit 0 steps forever between two states. Unit 1 is blocked in one of them, and unit 2 in both."""
    graph = SimpleNamespace(
        units=3, finished=[(), ()], blocked=[{1, 2}, {2}], states=[((0, 1, 2), None)] * 2, edges=[[(0, 1)], [(0, 0)]]
    )
    graph.span = lambda state, unit: None
    graph.system = SimpleNamespace(
        dispatch=SimpleNamespace(lanes=3),
        invocations=[SimpleNamespace(event=lambda thread: Event("barrier", thread))] * 3,
        code=SimpleNamespace(span_near=lambda pc: None),
        words=SimpleNamespace(name=str),
    )
    waits = waits_of(graph, Stuck((), 0, ((0, 0, 1), (1, 0, 0))))  # type: ignore
    assert {wait.units: wait.kind for wait in waits} == {(0,): "loop", (1,): "unscheduled", (2,): "barrier"}


@pytest.mark.parametrize(
    ("grid", "size", "waiting"),
    [
        (1, 2, "invocation 0"),
        (2, 1, "workgroup (0, 0, 0)"),
        (2, 2, "invocation 0 of workgroup (0, 0, 0)"),
    ],
)
def test_an_invocation_is_named_as_far_as_there_are_others(grid, size, waiting):
    found = explored("if i == 0u { while atomicLoad(&s[0]) == 0u {} }", grid, size, progress=["fair"])
    assert only(found).sentence.startswith(f"never ends under fair scheduling: {waiting} waits at line 8 for s[0], ")
