"""Orders that only weak memory has, in dispatches too large to search: the search of a reduced dispatch finds them."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.explore.reduced import _MOST_WORDS, find_weak_orders

HEAD = """
@group(0) @binding(0) var<storage, read_write> m: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<workgroup> t: array<atomic<u32>, 64>;
@compute @workgroup_size({size})
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32,
        @builtin(global_invocation_id) id: vec3u) {{
    _ = &m; _ = &y; _ = &t;
{body}
}}
"""
SECONDS = 60.0  # more than any of these searches takes


def run(body, *, grid=100, size="256", words=128):
    given = {"m": np.zeros(words, np.uint32), "y": np.zeros(64, np.uint32)}
    enable = "enable subgroups;" if "subgroup" in body else ""
    module = bankshot.check(enable + HEAD.format(body=body, size=size), uniformity="off")
    return bankshot.simulate(module, grid=grid, bindings=given, probes="none")


def found(body, **how):
    ran = run(body, **how)
    return find_weak_orders(ran.dispatch, ran.program, SECONDS)[0]


LEADERS = "if i != 0u { return; }\n"
GUARDED = """
    if w.x == 0u {
        atomicStore(&m[0], 42u);
        atomicStore(&m[32], 1u);
    } else if atomicLoad(&m[32]) == 1u {
        if atomicLoad(&m[0]) != 42u { y[0] = 1u; }
    }"""


def test_guarded_message_passing_between_workgroups_is_found():
    (finding,) = found(LEADERS + GUARDED)
    assert (finding.code, finding.severity, finding.verdict) == ("weak-order", "warning", "harmful")
    assert finding.span is not None
    assert finding.span.text == "atomicLoad(&m[0])"
    stored, how = finding.notes
    assert stored.span is not None
    assert stored.span.text == "atomicStore(&m[0], 42u)"
    assert how.message.endswith("all orders of invocation 0 in each workgroup of a grid of 2 x 1 x 1")


def test_the_first_axis_that_is_longer_than_one_is_searched():
    body = GUARDED.replace("w.x", "w.y")
    (finding,) = found("if i != 0u { return; }" + body, grid=(1, 100))
    assert "grid of 1 x 2 x 1" in finding.notes[-1].message


@pytest.mark.parametrize(
    "body",
    [
        "if i == 255u {" + GUARDED + "}",
        GUARDED.replace("w.x == 0u", "w.x == 0u && i == 0u").replace("else if", "else if i == 255u &&"),
    ],
    ids=["both", "one"],
)
def test_the_last_invocation_may_pass_it_on(body):
    (finding,) = found(body)
    assert finding.span is not None
    assert finding.span.text == "atomicLoad(&m[0])"


def test_subgroups_of_the_invocations_that_run_are_those_of_the_workgroup():
    body = GUARDED.replace("w.x == 0u", "subgroupAdd(1u) > 0u && i == 0u").replace("else if", "else if i == 32u &&")
    (finding,) = found(body, grid=1)
    assert "invocations 0 and 32" in finding.notes[-1].message


def test_it_is_right_where_one_word_holds_both():
    body = "if w.x == 0u { atomicStore(&m[0], 42u); } else { let v = atomicLoad(&m[0]); if v != 0u { y[0] = v; } }"
    assert not found(LEADERS + body)


LOOK_BACK = """
    var sum = w.x + 1u;
    if w.x > 0u {{
        loop {{
            let before = {load};
            if before != 0u {{ sum += {value}; break; }}
        }}
    }}
    {store}"""
PACKED = LOOK_BACK.format(load="atomicLoad(&m[w.x - 1u])", value="before", store="atomicStore(&m[w.x], sum);")
SPLIT = LOOK_BACK.format(
    load="atomicLoad(&m[64u + w.x - 1u])",
    value="atomicLoad(&m[w.x - 1u])",
    store="atomicStore(&m[w.x], sum); atomicStore(&m[64u + w.x], 1u);",
)


def test_a_look_back_with_its_flag_in_another_word_is_found():
    (finding,) = found(LEADERS + SPLIT, grid=8)
    assert finding.span is not None
    assert finding.span.text == "atomicLoad(&m[w.x - 1u])"


def test_a_look_back_in_one_word_is_right():
    assert not found(LEADERS + PACKED, grid=8)


def test_a_barrier_of_the_workgroup_orders_no_workgroups():
    body = GUARDED.replace("atomicStore(&m[32], 1u);", "storageBarrier(); atomicStore(&m[32], 1u);")
    assert found(body.replace("w.x == 0u", "w.x == 0u && i == 0u"))


WITHIN = """
    if i == 0u {{ atomicStore(&t[0], 42u); }}
    {barrier}
    if i == 0u {{ atomicStore(&t[1], 1u); }}
    else if i == 1u && atomicLoad(&t[1]) == 1u {{ y[0] = 1u + atomicLoad(&t[0]); }}"""


@pytest.mark.parametrize(
    ("barrier", "count"),
    [("", 1), ("storageBarrier();", 1), ("workgroupBarrier();", 0)],
    ids=["none", "wrong", "right"],
)
def test_within_a_workgroup_the_right_barrier_orders_them(barrier, count):
    assert len(found(WITHIN.format(barrier=barrier), grid=1, size=64)) == count


@pytest.mark.parametrize(
    "body",
    [
        "atomicAdd(&m[i % 16u], 1u);",  # a histogram
        "y[atomicAdd(&m[0], 1u) % 64u] = 7u;",  # a list in any order
        "atomicMax(&m[0], id.x); atomicMin(&m[1], id.x);",
        "atomicAdd(&m[1], atomicAdd(&m[0], 1u));",
        "loop { if atomicCompareExchangeWeak(&m[0], 0u, 1u).exchanged { break; } } atomicStore(&m[0], 0u);",
    ],
)
def test_what_one_word_orders_is_right(body):
    assert not found(LEADERS + body)


def test_a_comment_may_allow_it_at_either_place():
    ran = run(LEADERS + GUARDED.replace(" 42u);", " 42u);  // bankshot: allow(weak-order) because it is a test", 1))
    left, allowed = find_weak_orders(ran.dispatch, ran.program, SECONDS)
    assert not left
    assert [f.code for f in allowed] == ["weak-order"]


def test_without_atomics_or_with_much_memory_nothing_is_searched(monkeypatch):
    from bankshot.sim.explore import reduced

    def search(*given, **how):
        raise AssertionError("searched")

    monkeypatch.setattr(reduced, "search", search)
    assert not found("y[i % 64u] = i;")
    assert not found(LEADERS + GUARDED, words=_MOST_WORDS + 1)


def test_time_ends_the_search():
    ran = run(LEADERS + GUARDED)
    assert find_weak_orders(ran.dispatch, ran.program, -1.0) == ([], [])


def test_what_the_search_cannot_run_is_left_out(monkeypatch):
    from bankshot.sim.explore import invocations

    assert found(GUARDED, size=1)
    monkeypatch.setattr(invocations, "MOST_LOCAL_STEPS", 10)
    assert not found("var k = 0u; while k < 20u { k += 1u; } y[1] = k;" + GUARDED, size=1)


def test_orders_of_plain_accesses_are_left_to_the_findings_of_races():
    plain = GUARDED.replace("atomicStore(&m[0], 42u)", "y[1] = 42u").replace("atomicLoad(&m[0])", "y[1]")
    assert found(LEADERS + plain) == []
