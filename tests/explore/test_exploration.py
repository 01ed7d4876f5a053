"""`bankshot.explore`: outcomes with witnesses, limits, deadlocks, and accesses whose order nothing guarantees."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

HEAD = """
@group(0) @binding(0) var<storage, read_write> m: array<atomic<u32>, 64>;
@group(0) @binding(1) var<storage, read_write> r: array<u32>;
var<workgroup> t: array<atomic<u32>, 4>;
@compute @workgroup_size({size})
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32) {{
    _ = &m; _ = &r; _ = &t;
{body}
}}
"""


def explored(body, grid=2, size=1, **options):
    text = HEAD.format(size=size, body=body)
    bindings = {"m": np.zeros(64, np.uint32), "r": np.zeros(4, np.uint32)}
    return bankshot.explore(text, grid=grid, bindings=bindings, **options)


GUARDED = """
    if w.x == 0u {
        atomicStore(&m[0], 42u);
        atomicStore(&m[32], 1u);
    } else if atomicLoad(&m[32]) == 1u {
        if atomicLoad(&m[0]) != 42u { r[0] = 1u; }
    }"""


def test_an_invocation_waits_in_a_subgroup_operation_while_others_go_on():
    body = "if i == 1u { atomicAdd(&m[0], 5u); } let sum = subgroupAdd(i + 1u); if i == 0u { r[w.x] = sum; }"
    text = "enable subgroups;" + HEAD.format(size=2, body=body)
    bindings = {"m": np.zeros(64, np.uint32), "r": np.zeros(4, np.uint32)}
    found = bankshot.explore(text, grid=2, bindings=bindings)
    assert found.complete
    assert [o.outputs["r"].tolist() for o in found.outcomes] == [[3, 3, 0, 0]]


def test_guarded_message_passing_without_a_barrier_is_found():
    found = explored(GUARDED)
    assert found.complete
    assert {int(o.outputs["r"][0]): o.weak for o in found.outcomes} == {0: False, 1: True}
    (finding,) = found.findings
    assert (finding.code, finding.severity) == ("weak-order", "warning")
    assert finding.span.text == "atomicLoad(&m[0])"
    (note,) = finding.notes
    assert note.span.text == "atomicStore(&m[0], 42u)"
    assert "reads 0 from m[0] (42 is newer)" in str(found.outcomes[1].witness[-1])


def test_it_is_right_where_the_value_is_in_the_word_that_is_checked():
    body = """
    if w.x == 0u { atomicStore(&m[0], 42u); }
    else { let v = atomicLoad(&m[0]); if v != 0u { r[0] = v; } }"""
    found = explored(body)
    assert {int(o.outputs["r"][0]) for o in found.outcomes} == {0, 42}
    assert not found.findings
    assert not any(o.weak for o in found.outcomes)


def test_a_barrier_of_the_right_kind_cures_it_within_a_workgroup():
    body = """
    if i == 0u {{ atomicStore(&m[0], 42u); }}
    {barrier}();
    if i == 1u && atomicLoad(&m[0]) != 42u {{ r[0] = 1u; }}"""
    cured = explored(body.format(barrier="storageBarrier"), grid=1, size=2)
    wrong = explored(body.format(barrier="workgroupBarrier"), grid=1, size=2)
    assert [int(o.outputs["r"][0]) for o in cured.outcomes] == [0]
    assert {int(o.outputs["r"][0]): o.weak for o in wrong.outcomes} == {0: False, 1: True}
    assert not cured.findings
    assert [f.code for f in wrong.findings] == ["weak-order"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "if w.x == 0u { r[0] = atomicLoad(&m[1]); atomicStore(&m[0], 1u); }"
            "else { r[1] = atomicLoad(&m[0]); atomicStore(&m[1], 1u); }",
            "after its own next accesses",
        ),
        (
            "if w.x == 0u { atomicStore(&m[0], 1u); atomicStore(&m[1], 2u); }"
            "else { atomicStore(&m[1], 1u); atomicStore(&m[0], 2u); }",
            "may come before the",
        ),
    ],
    ids=["LB", "2+2W"],
)
def test_each_way_of_taking_effect_out_of_order_is_said(body, words):
    found = explored(body)
    assert any(o.weak for o in found.outcomes)
    assert any(words in f.message for f in found.findings)


@pytest.mark.parametrize("memory", ["sc", "weak"])
def test_a_witness_leads_to_its_outcome(memory):
    """Replay each witness of four additions to one word: what each reads and stores says what each result is."""
    found = explored("r[w.x] = atomicAdd(&m[0], w.x + 1u);", grid=4, memory=memory)
    assert len(found.outcomes) == 24
    for outcome in found.outcomes:
        total, results = 0, [0] * 4
        for move in outcome.witness:
            x = move.workgroup[0]
            assert move.does == f"reads {total} from m[0], and stores {total + x + 1}"
            results[x], total = total, total + x + 1
        assert outcome.outputs["r"].tolist() == results


def test_a_plain_update_loses_counts():
    found = explored("r[0] = r[0] + 1u;", grid=3, memory="sc")
    assert {int(o.outputs["r"][0]) for o in found.outcomes} == {1, 2, 3}


def test_the_kernel_that_fixed_orders_leave_alone():
    body = """
    if w.x == 1u {
        var n = 0u;
        loop { n += 1u; if atomicLoad(&m[0]) == 1u { break; } if n > 50u { break; } }
        r[w.x] = n;
    } else { atomicStore(&m[0], 1u); r[w.x] = 7u; }"""
    found = explored(body, memory="sc")
    assert sorted(int(o.outputs["r"][1]) for o in found.outcomes) == list(range(1, 52))


def test_a_spin_loop_has_finitely_many_states():
    body = "if w.x == 1u { loop { if atomicLoad(&m[0]) == 1u { break; } } r[0] = 5u; } else { atomicStore(&m[0], 1u); }"
    for memory in ("sc", "weak"):
        found = explored(body, memory=memory)
        assert found.complete
        assert [int(o.outputs["r"][0]) for o in found.outcomes] == [5]
        assert found.states < 20


def test_a_deadlock_is_found_with_its_places():
    """Each takes one lock, and waits for the other."""
    lock = "loop {{ if atomicExchange(&m[{}], 1u) == 0u {{ break; }} }}"
    body = "if w.x == 0u { %s %s r[0] = 1u; } else { %s %s r[1] = 1u; }"
    crossed, ordered = ((0, 1, 1, 0), (0, 1, 0, 1))
    release = "atomicStore(&m[0], 0u); atomicStore(&m[1], 0u); "
    for locks, found_one in ((crossed, True), (ordered, False)):
        takes = [lock.format(each) for each in locks]
        takes[1], takes[3] = takes[1] + release, takes[3] + release
        found = explored(body % tuple(takes), memory="sc")
        assert found.complete
        assert [o.outputs["r"].tolist() for o in found.outcomes] == [[1, 1, 0, 0]]
        assert bool(found.deadlocks) == found_one
        assert [f.code for f in found.findings] == ["deadlock"] * found_one
        if found_one:
            (finding,) = found.findings
            assert "workgroup (0, 0, 0)" in finding.message
            assert finding.span.text == "atomicExchange(&m[1], 1u)"
            assert finding.notes[0].span.text == "atomicExchange(&m[0], 1u)"


def test_a_wait_for_what_no_one_stores_is_a_deadlock():
    found = explored("if w.x == 1u { loop { if atomicLoad(&m[0]) == 1u { break; } } } else { r[0] = 1u; }")
    assert not found.outcomes
    assert [f.code for f in found.findings] == ["deadlock"]
    local = explored("loop { if w.x == 5u { break; } }", grid=1)
    assert [f.code for f in local.findings] == ["deadlock"]


@pytest.mark.parametrize(("size", "barrier"), [(32, "workgroupBarrier();"), (4, "")])
def test_a_reduction_has_one_outcome_if_its_barriers_are_there(size, barrier):
    text = f"""
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    var<workgroup> t: array<u32, {size}>;
    @compute @workgroup_size({size})
    fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {{
        t[i] = x[i];
        workgroupBarrier();
        for (var s = {size}u / 2u; s > 0u; s /= 2u) {{ if i < s {{ t[i] += t[i + s]; }} {barrier} }}
        if i == 0u {{ y[w.x] = t[0]; }}
    }}"""
    bindings = {"x": np.arange(size, dtype=np.uint32), "y": np.zeros(2, np.uint32)}
    found = bankshot.explore(text, grid=2, bindings=bindings)
    sums = {tuple(o.outputs["y"].tolist()) for o in found.outcomes}
    assert found.complete
    assert (size * (size - 1) // 2,) * 2 in sums
    assert (len(sums) == 1) == bool(barrier)
    assert found.states < 1000


def test_limits_are_said():
    found = explored("r[w.x] = atomicAdd(&m[0], w.x);", grid=6, states=100)
    assert not found.complete
    assert "the first" in repr(found)
    with pytest.raises(bankshot.WgslError, match="65 invocations"):
        explored("r[0] = 1u;", grid=65)
    with pytest.raises(bankshot.WgslError, match="memory must be one of"):
        explored("r[0] = 1u;", memory="strong")


def test_a_subgroup_operation_that_some_skip_is_refused():
    text = """enable subgroups;
    @group(0) @binding(0) var<storage, read_write> r: array<u32, 4>;
    @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
        if i < 2u { r[i] = subgroupAdd(i); } else { r[i] = subgroupAdd(7u); }
    }"""
    text = "diagnostic(off, subgroup_uniformity);" + text
    with pytest.raises(bankshot.WgslError, match="some invocations of a subgroup skip"):
        bankshot.explore(text, grid=1, bindings={"r": np.zeros(4, np.uint32)})


def test_halves_of_a_word_are_separate():
    text = """enable f16;
    @group(0) @binding(0) var<storage, read_write> h: array<f16, 2>;
    @compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3u) { h[w.x] = h[w.x] + f16(w.x + 1u); }"""
    for memory in ("sc", "weak"):
        found = bankshot.explore(text, grid=2, bindings={"h": np.array([1, 2], np.float16)}, memory=memory)
        assert [o.outputs["h"].tolist() for o in found.outcomes] == [[2, 4]]


def test_one_outcome_that_only_weak_memory_has_is_weak():
    """Workgroups that read the store of the other never end; in sequentially consistent orders, one of them does."""
    body = """
    atomicStore(&m[w.x], 1u);
    if atomicLoad(&m[1u - w.x]) == 1u { loop { if w.x == 5u { break; } } }
    r[w.x] = 3u;"""
    (outcome,) = explored(body).outcomes
    assert outcome.outputs["r"].tolist() == [3, 3, 0, 0]
    assert outcome.weak
    assert not explored(body, memory="sc").outcomes
    (outcome,) = explored("atomicAdd(&m[0], 1u);").outcomes
    assert not outcome.weak


def test_what_stores_nothing_new_is_no_store():
    """Workgroup 1 leaves the 42 as it is, and is not who stored what workgroup 2 may miss."""
    body = """
    if w.x == 0u { atomicStore(&m[0], 42u); atomicStore(&m[32], 1u); }
    else if w.x == 1u { r[1] = atomicMax(&m[0], 5u); }
    else if atomicLoad(&m[32]) == 1u { r[0] = atomicLoad(&m[0]) + 1u; }"""
    (finding,) = explored(body, 3).findings
    assert finding.span.text == "atomicLoad(&m[0])"
    assert finding.notes[0].span.text == "atomicStore(&m[0], 42u)"


def test_an_access_that_might_as_well_have_come_before_is_not_to_blame():
    body = GUARDED.replace("} else if", "} else if w.x == 2u { r[1] = atomicLoad(&m[0]); } else if", 1)
    (finding,) = explored(body, 3).findings
    assert finding.span.text == "atomicLoad(&m[0])"
    assert finding.span.line_text.strip().startswith("if atomicLoad(&m[0]) != 42u")


@pytest.mark.parametrize("memory", ["weak", "sc"])
def test_the_limit_of_time_ends_long_computations_as_well(memory):
    text = """
    @group(0) @binding(0) var<storage, read_write> y: array<u32, 64>;
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
        var n = i;
        for (var k = 0u; k < 100000u; k++) { n = n * 3u + k; }
        y[i] = n;
    }"""
    found = bankshot.explore(
        text, grid=1, bindings={"y": np.zeros(64, np.uint32)}, memory=memory, progress="fair", seconds=0.01
    )
    assert (found.complete, found.states, found.outcomes, found.findings) == (False, 0, [], [])
    assert [each.ends for each in found.progress] == [None]
    assert found.seconds < 5


@pytest.mark.parametrize("memory", ["weak", "sc"])
def test_invocations_that_barriers_keep_apart_add_no_states(memory):
    text = """
    @group(0) @binding(0) var<storage, read_write> total: array<u32, 3>;
    var<workgroup> s: array<u32, 16>;
    var<workgroup> count: atomic<u32>;
    @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {
        s[i] = i;
        atomicAdd(&count, 1u);
        for (var step = 8u; step > 0u; step /= 2u) {
            workgroupBarrier();
            if i < step { s[i] += s[i + step]; }
        }
        if i == 0u { total[w.x] = s[0] + atomicLoad(&count) * 1000u; }
    }"""
    found = bankshot.explore(text, grid=3, bindings={"total": np.zeros(3, np.uint32)}, memory=memory)
    assert found.complete
    [outcome] = found.outcomes
    assert outcome.outputs["total"].tolist() == [16120] * 3
    assert found.states < 500  # about as many as accesses: 3 workgroups with 16 stores, 16 additions, 15 sums, 1 end


@pytest.mark.parametrize("half", [0, 1])
def test_an_element_of_two_bytes_may_hold_what_a_load_reads_later(half):
    """Load buffering, with what is read in half a word: both may read the other's store."""
    text = f"""enable f16;
    @group(0) @binding(0) var<storage, read_write> m: array<atomic<u32>, 2>;
    @group(0) @binding(1) var<storage, read_write> h: array<f16, 4>;
    @compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3u) {{
        h[w.x * 2u + {half}u] = f16(atomicLoad(&m[1u - w.x]));
        h[w.x * 2u + {half}u] += 2.0h;
        atomicStore(&m[w.x], 1u);
    }}"""
    given = {"m": np.zeros(2, np.uint32), "h": np.array([5, 6, 7, 8], np.float16)}
    for memory, weak in (("sc", set()), ("weak", {(3, 3)})):
        found = bankshot.explore(text, grid=2, bindings=given, memory=memory)
        rows = [outcome.outputs["h"].tolist() for outcome in found.outcomes]
        assert {(row[half], row[2 + half]) for row in rows} == {(2, 2), (2, 3), (3, 2)} | weak
        assert {(row[1 - half], row[3 - half]) for row in rows} == {(6 - half, 8 - half)}
