"""Atomic operations that nothing orders, and whose order can show; the one that matters takes the blame."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.findings.unordered_atomics import Unordered, by_cause, find_unordered
from bankshot.sim.run.prepared import dispatch_of

HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<u32, 128>;
@group(0) @binding(1) var<storage, read_write> z: array<u32, 128>;
@group(0) @binding(2) var<storage, read_write> n: array<atomic<u32>, 4>;
@group(0) @binding(3) var<storage, read_write> m: array<atomic<u32>, 4>;
var<workgroup> s: array<atomic<u32>, 4>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {
_ = &y; _ = &z; _ = &n; _ = &m; let at = w.x * 64u + i;
"""
FIRST = HEAD.count("\n")

# Statements, a line each -> the lines of each pair, worked out by hand.
PAIRS = {
    "additions whose results are unused": ("atomicAdd(&n[0], 1u); atomicSub(&n[0], i);", []),
    "exchanges whose results are unused": ("atomicExchange(&n[0], i);", [(0, 0)]),
    "a result that is used": ("y[at] = atomicAdd(&n[0], 1u);", [(0, 0)]),
    "an addition and a maximum": ("atomicAdd(&n[0], i);\natomicMax(&n[0], i);", [(0, 1)]),
    "stores of several values": ("atomicStore(&s[0], i);\nworkgroupBarrier();\ny[at] = atomicLoad(&s[0]);", [(0, 0)]),
    "stores of one value": ("atomicStore(&s[0], 1u);\nworkgroupBarrier();\ny[at] = atomicLoad(&s[0]);", []),
    "exchanges of several values": ("_ = atomicCompareExchangeWeak(&s[0], 0u, i + 1u);\n"
                                    "workgroupBarrier();\ny[at] = atomicLoad(&s[0]);", [(0, 0)]),
    "a load that is unused": ("atomicAdd(&n[0], 1u);\nlet v = atomicLoad(&n[0]);", []),
    "a load of the last to add": ("atomicAdd(&n[0], 1u);\nif i == 63u { y[at] = atomicLoad(&n[0]); }", [(0, 1)]),
    "a store by the first to add": ("if i < 4u { atomicStore(&s[i], 9u); }\natomicAdd(&s[i & 3u], 1u);\n"
                                    "workgroupBarrier();\ny[at] = atomicLoad(&s[i & 3u]);", [(0, 1)]),
    "words of their own": ("atomicStore(&s[i & 3u], 0u);\nworkgroupBarrier();\n"
                           "if i < 4u { atomicAdd(&s[i], 1u);\ny[at] = atomicLoad(&s[i]); }", []),
    "only a barrier for other memory": ("if i == 0u { atomicStore(&n[w.x], 1u); }\nworkgroupBarrier();\n"
                                        "y[at] = atomicLoad(&n[w.x]);", [(0, 2)]),
    "a barrier for other memory, and none": ("atomicStore(&n[w.x], i);\nworkgroupBarrier();\natomicAdd(&n[w.x], 1u);\n"
                                             "y[at] = atomicLoad(&n[w.x]);", [(0, 0), (2, 3)]),
    "a barrier in each of two workgroups": ("if i == 0u { atomicStore(&n[0], w.x); }\nworkgroupBarrier();\n"
                                            "y[at] = atomicLoad(&n[0]);", [(0, 0), (0, 2)]),
    "a barrier": ("atomicAdd(&s[0], 1u);\nworkgroupBarrier();\ny[at] = atomicLoad(&s[0]);", []),
}  # fmt: skip


def bindings() -> dict[str, np.ndarray]:
    return {
        "y": np.zeros(128, np.uint32),
        "z": np.zeros(128, np.uint32),
        "n": np.zeros(4, np.uint32),
        "m": np.zeros(4, np.uint32),
    }


@pytest.mark.parametrize(("body", "lines"), PAIRS.values(), ids=PAIRS)
def test_pairs(body: str, lines: list[tuple[int, int]]) -> None:
    dispatch = dispatch_of(bankshot.check(HEAD + body + "\n}"), grid=2, bindings=bindings())
    pairs = find_unordered(dispatch.run, dispatch.influence)
    found = {tuple(sorted(site.span.line - 1 - FIRST for site in pair.sites)) for pair in pairs}
    assert found == set(lines)


def test_the_order_of_a_load_and_an_update_shows_only_in_what_the_load_returns() -> None:
    body = "y[at] = atomicAdd(&n[0], 1u);\nz[at] = atomicLoad(&n[0]);"
    dispatch = dispatch_of(bankshot.check(HEAD + body + "\n}"), grid=1, bindings=bindings())
    pairs = find_unordered(dispatch.run, dispatch.influence)
    found = {tuple(sorted(site.span.line - 1 - FIRST for site in pair.sites)): pair.influences for pair in pairs}
    assert found == {(0, 0): {"y"}, (0, 1): {"z"}}


def found_in(body: str) -> list[bankshot.Finding]:
    return bankshot.simulate(HEAD + body + "\n}", grid=2, bindings=bindings()).findings


def test_a_pair_without_a_barrier_that_the_memory_needs_counts_before_one_that_waits() -> None:
    """A workgroupBarrier makes one wait for the other, whatever memory it orders."""
    body = """atomicStore(&n[w.x], i);
workgroupBarrier();
atomicAdd(&n[w.x], 1u);
y[at] = atomicLoad(&n[w.x]);"""
    (finding,) = found_in(body)
    assert {span.line - 1 - FIRST for _, span in finding.spans} == {0, 2, 3}


def test_one_finding_for_each_set_of_outputs() -> None:
    body = """y[at] = atomicAdd(&n[0], 1u);
z[at] = atomicExchange(&m[0], at);"""
    found = found_in(body)
    assert [(f.span.line - 1 - FIRST, f.outputs) for f in found if f.span] == [(0, ("y",)), (1, ("z", "m"))]
    assert [f.workgroup for f in found] == [(0, 0, 0)] * 2


def test_one_finding_where_both_reach_one_output() -> None:
    body = """let a = atomicAdd(&n[0], 1u);
y[at] = a + atomicExchange(&m[0], at);"""
    (finding,) = found_in(body)
    assert {span.line - 1 - FIRST for _, span in finding.spans} == {0, 1}


def test_the_note_names_the_partner() -> None:
    body = """atomicAdd(&s[0], 1u);
if i == 5u { y[w.x] = atomicLoad(&s[0]); }"""
    (finding,) = [f for f in found_in(body) if f.code == "atomic-order"]
    assert [(note.message, note.span.line - 1 - FIRST) for note in finding.notes if note.span] == [
        ("nothing orders it and this atomicLoad", 1)
    ]


def test_an_update_whose_result_is_needed_takes_the_blame_before_others() -> None:
    body = "atomicAdd(&n[0], i);\ny[at] = atomicMax(&n[0], 5u);"
    run = bankshot.simulate(HEAD + body + "\n}", grid=2, bindings=bindings())
    (finding,) = [f for f in run.findings if f.code == "atomic-order"]
    assert finding.span is not None
    assert finding.span.text == "atomicMax(&n[0], 5u)"
    assert [note.span.text for note in finding.notes if note.span] == ["atomicAdd(&n[0], i)"]


def test_of_two_variables_at_one_place_the_first_that_is_called_with_takes_the_blame() -> None:
    body = "y[at] = take(&n[0]) + take(&m[0]);\natomicMax(&m[0], 7u);"
    for indent in range(8):  # whatever the order of a set that the places are in
        take = f"{' ' * indent}fn take(p: ptr<storage, atomic<u32>, read_write>) -> u32 {{ return atomicAdd(p, 1u); }}"
        text = HEAD.replace("@compute", f"{take}\n@compute") + body + "\n}"
        (finding,) = bankshot.simulate(text, grid=2, bindings=bindings()).findings
        assert [note.message for note in finding.notes if note.span] == [
            "or at this atomicAdd",
            "or at this atomicMax",  # a partner only of the one in m
        ]


def test_a_race_in_a_branch_that_only_another_order_takes() -> None:
    body = """t[i] = 0u; workgroupBarrier();
atomicAdd(&s[0], 1u);
if atomicLoad(&s[0]) < 64u { t[0] = i; }
workgroupBarrier(); y[at] = t[0];"""
    text = HEAD.replace("var<workgroup> s", "var<workgroup> t: array<u32, 64>;\nvar<workgroup> s") + body + "\n}"
    run = bankshot.simulate(bankshot.check(text, uniformity="off"), grid=2, bindings=bindings())
    race = next(f for f in run.findings if f.code == "race")
    assert [f.code for f in run.findings if f.code != "uninit"] == ["atomic-order", "race"]
    assert race.span.line == FIRST + 4
    assert race.notes[-1].message.startswith("the order of atomic operations decides whether this happens; here, run ")
    assert run.cures == ()
    right = text.replace("atomicAdd(&s[0], 1u);", "atomicAdd(&s[0], 1u); workgroupBarrier();")
    assert [f.code for f in bankshot.simulate(right, grid=2, bindings=bindings()).findings] in ([], ["uninit"])


@pytest.mark.parametrize(
    ("influences", "changed", "groups"),
    [
        (["a", "b"], "ab", [[0], [1]]),
        (["a", "a"], "a", [[0, 1]]),
        (["a", "b", "ab"], "ab", [[0, 1, 2]]),  # the third shows in what both others show in
        (["a", "b", "ab"], "a", [[0, 2]]),
        (["a", "b", "c", "bc"], "abc", [[0], [1, 2, 3]]),
        (["a", "b"], "", []),
    ],
)
def test_pairs_that_show_in_one_variable_have_one_cause(influences, changed, groups):
    pairs = [Unordered((), frozenset(each), (0, 0), False, False) for each in influences]
    found = by_cause(pairs, frozenset(changed))
    assert [[next(n for n, pair in enumerate(pairs) if pair is each) for each in group] for group in found] == groups
