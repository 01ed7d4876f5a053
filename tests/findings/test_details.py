"""What findings say of places that run several times, of parts of structs, of composed builtins, and of who waits."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement
from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.sim.findings import explain, races
from bankshot.sim.findings.finding import Finding
from bankshot.sim.findings.grouping import group_races
from bankshot.sim.findings.table import depending_on
from bankshot.sim.machine import layout as at
from bankshot.sim.machine.probe_arrays import MOST_RACES

HEAD = """enable f16;
struct Pair { a: u32, b: u32, c: array<u32, 2> }
struct Flags { spare: u32, ready: array<atomic<u32>, 4> }
@group(0) @binding(0) var<storage, read_write> y: array<u32, 8>;
@group(0) @binding(1) var<storage, read_write> flags: Flags;
@group(0) @binding(2) var<storage, read_write> f: array<f32, 8>;
var<workgroup> t: array<u32, 4>;
var<workgroup> pair: Pair;
var<workgroup> own: atomic<u32>;
fn put(v: u32) { t[0] = v; }
fn five() { t[0] = 5u; }
fn six() { t[0] = 6u; }
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {
    _ = &y; _ = &flags; _ = &f;
"""
LINES = {name: 1 + HEAD[: HEAD.index(f"fn {name}(")].count("\n") for name in ("put", "five", "six")}
LINES["body"] = 1 + HEAD.count("\n")


def run(body, groups=1, **options):
    bindings = {"y": np.zeros(8, np.uint32), "flags": np.zeros(5, np.uint32), "f": np.zeros(8, np.float32)}
    return bankshot.simulate(f"{HEAD}{body}\n}}", grid=groups, bindings=bindings, **options)


def only(body, code, groups=1, **options):
    (found,) = [each for each in run(body, groups, **options).findings if each.code == code]
    return found


BARRIER = "workgroupBarrier();"
RESULT = f"{BARRIER} if i == 0u {{ y[0] = t[0]; }}"


@pytest.mark.parametrize(
    ("body", "count", "verdict"),
    [
        ("put(7u);", 3, "same-value"),
        (f"put(7u); {BARRIER} put(7u);", 6, "same-value"),
        ("put(i + 5u);", 3, "harmful"),
        (f"put(7u); {BARRIER} put(i + 5u);", 6, "harmful"),
        (f"put(i + 5u); {BARRIER} put(7u);", 6, "unseen"),
    ],
)
def test_one_place_that_races_in_two_calls_is_one_race(body, count, verdict):
    found = only(f"{body} {RESULT}", "race")
    assert (found.count, found.verdict) == (count, verdict)
    assert found.span.line == LINES["put"]


# From the worst.
SEVERITIES = ("harmful", "wrong-barrier", None, "unseen", "same-value")


@pytest.mark.parametrize(("worse", "better"), [*combinations_with_replacement(SEVERITIES, 2)])
def test_of_races_at_the_same_places_the_worst_is_reported(worse, better):
    one, other = (Finding("race", "error", f"{verdict}", None, 2, (0, 0, 0), (0, 1), verdict=verdict)
                  for verdict in (worse, better))  # fmt: skip
    for found in (group_races([one, other]), group_races([other, one])):
        assert [(each.verdict, each.message, each.count) for each in found] == [(worse, str(worse), 4)]


def test_only_races_of_one_pair_of_places_are_grouped():
    race = Finding("race", "error", "", None, 1, (0, 0, 0), (0, 1), epoch=0)
    across = replace(race, epoch=None)
    outside = replace(race, code="out-of-bounds")
    assert group_races([race, across, outside, replace(outside, count=3)]) == [
        race, across, outside, replace(outside, count=3),
    ]  # fmt: skip


def test_two_places_that_race_in_either_order_are_one_race():
    first = "if i == 0u { five(); } if i == 1u { six(); }"
    second = "if i == 1u { six(); } if i == 0u { five(); }"
    assert only(f"{first} {RESULT}", "race").count == 1
    found = only(f"{first} {BARRIER} {second} {RESULT}", "race")
    assert (found.count, found.span.line, found.notes[0].span.line) == (2, LINES["six"], LINES["five"])


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("let v = pair; y[i] = v.a;", "harmful"),
        ("let v = pair; y[i] = v.b;", "harmful"),
        ("let v = pair; y[i] = v.c[1];", "harmful"),
        ("let v = pair; y[i] = v.a * 0u;", "unseen"),
        ("pair.a = 1u; workgroupBarrier(); y[i] = pair.b;", "harmful"),
        ("pair.c[0] = 1u; workgroupBarrier(); y[i] = pair.c[1];", "harmful"),
        ("y[i] = t[i] & 0u;", "unseen"),
        ("y[i] = t[i];", "harmful"),
        ("let last = y[0] + 3u; y[i] = t[last];", "harmful"),
    ],
)
def test_the_verdict_of_unwritten_memory_is_about_the_part_that_is_read(body, verdict):
    assert {each.verdict for each in run(body).findings if each.code == "uninit"} == {verdict}


def test_each_read_of_an_unwritten_member_is_judged_alone():
    found = {each.span.text: each.verdict for each in run("y[0] = pair.a;\ny[1] = pair.b & 0u;").findings
             if each.code == "uninit"}  # fmt: skip
    assert found == {"pair.a": "harmful", "pair.b": "unseen"}


@pytest.mark.parametrize(
    ("expression", "code", "words"),
    [
        ("length(vec2f(big, 0))", "not-finite", "fma(2e+38, 2e+38, 0.0) = inf in length"),
        ("distance(big, -big)", "not-finite", "2e+38 - -2e+38 = inf in distance"),
        ("big * big", "not-finite", "computes 2e+38 * 2e+38 = inf"),
        ("big + big", "not-finite", "computes 2e+38 + 2e+38 = inf"),
        ("-big - big", "not-finite", "computes -2e+38 - 2e+38 = -inf"),
        ("exp(big)", "not-finite", "computes exp(2e+38) = inf"),
        ("zero / zero", "not-finite", "computes 0.0 / 0.0 = nan"),
        ("zero % zero", "not-finite", "= nan"),
        ("pow(zero - 2.0, 0.5)", "not-finite", "pow(-2.0, 0.5) = nan"),
        ("f32(u32(big))", "conversion", "computes u32(2e+38) = 4294967040"),
        ("f32(7u / i)", "division-by-zero", "computes 7 / 0 = 7"),
        ("f32(7u % i)", "division-by-zero", "computes 7 % 0 = 0"),
        ("f32(1u << (i + 40u))", "shift-count", "computes 1 << 40 = 256"),
        ("f32(256u >> (i + 40u))", "shift-count", "computes 256 >> 40 = 1"),
        ("f32(exp(f16(20.0 + zero)))", "not-finite", "computes f16: exp(20.0) = inf"),
    ],
)
def test_what_a_check_computed(expression, code, words):
    body = f"if i == 0u {{ let zero = f32(i); let big = 2e38 + zero; f[0] = {expression}; }}"
    found = only(body, code)
    assert (found.count, found.lanes, found.workgroup) == (1, (0,), (0, 0, 0))
    assert words in found.message
    assert (" in " in found.message.partition(" = ")[2]) == (" in " in words)


def test_the_components_of_a_vector_are_counted_together():
    found = only("let q = vec3u(7) / vec3u(i, 9 + i, i); f[i] = f32(q.x + q.y + q.z);", "division-by-zero")
    assert (found.count, found.lanes) == (2, (0,))


SPIN = "while atomicLoad(&flags.ready[{}]) == 0u {{ }}"


@pytest.mark.parametrize(
    ("body", "groups", "notes"),
    [
        (
            SPIN.format(2),
            1,
            ["invocation 0 of workgroup (0, 0, 0) and 3 more like it wait for flags.ready[2] here; "
             "all others that could store to flags have ended"],
        ),
        (
            f"if i == 2u {{ {SPIN.format('0')} }}",
            1,
            ["invocation 2 of workgroup (0, 0, 0) waits for flags.ready[0] here; "
             "all others that could store to flags have ended"],
        ),
        (
            f"if i >= 2u {{ {SPIN.format('i')} }}",
            1,
            ["invocation 2 of workgroup (0, 0, 0) waits for flags.ready[2] here; "
             "all others that could store to flags have ended",
             "invocation 3 of workgroup (0, 0, 0) waits for flags.ready[3] here; "
             "all others that could store to flags have ended"],
        ),
        (
            "if i == 0u { while atomicLoad(&own) == 0u { } }",
            1,
            ["invocation 0 of workgroup (0, 0, 0) waits for own here; all others that could store to own have ended"],
        ),
    ],
)  # fmt: skip
def test_who_waits_for_which_element(body, groups, notes):
    found = only(body, "endless-loop", groups)
    assert [note.message for note in found.notes] == notes


def test_only_its_own_workgroup_could_store_to_workgroup_memory():
    text = """@group(0) @binding(0) var<storage, read_write> lock: atomic<u32>;
        var<workgroup> flag: atomic<u32>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3u) {
            if w.x == 0u { while atomicLoad(&flag) == 0u {} } else { while atomicLoad(&lock) == 0u {} }
            atomicStore(&flag, 1u);
        }"""
    (found,) = bankshot.simulate(text, grid=2, bindings={"lock": np.zeros(1, np.uint32)}).findings
    assert [note.message for note in found.notes] == [
        "invocation 0 of workgroup (0, 0, 0) waits for flag here; all others that could store to flag have ended",
        "invocation 0 of workgroup (1, 0, 0) waits for lock here; all others that could store to lock have ended",
    ]


def test_invocations_that_wait_at_a_barrier_for_one_that_spins():
    body = f"if i == 1u {{ {SPIN.format(1)} }}\nworkgroupBarrier();\natomicStore(&flags.ready[1], 1u);"
    found = only(body, "endless-loop")
    assert [note.message for note in found.notes] == [
        "invocation 1 of workgroup (0, 0, 0) waits for flags.ready[1] here; "
        "invocation 0 of workgroup (0, 0, 0) could still store to flags, but waits, too",
        f"3 invocations wait at a barrier in line {LINES['body'] + 1}",
    ]


def test_what_a_finding_in_one_workgroup_depends_on():
    """An occurrence may depend on the lanes alone, on the data that they compute, or on other workgroups."""
    of_lanes, of_data, of_workgroups = map(depending_on, ("lanes", "data", "workgroups"))
    assert {"out-of-bounds", "barrier-divergence"} <= of_lanes
    assert {"not-finite", "division-by-zero", "shift-count", "conversion"} == of_data
    assert {"race", "endless-loop", "schedule-dependent", "weak-order"} <= of_workgroups
    assert not of_lanes & of_data | of_lanes & of_workgroups | of_data & of_workgroups


VECTORS = """@group(0) @binding(0) var<storage, read_write> v: array<vec4u, 2>;
var<workgroup> q: array<vec4u, 2>;
@compute @workgroup_size(2)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {
    _ = &v; _ = &q;
"""
ALONE = "give each invocation a vector of its own, or use an array of scalars"


@pytest.mark.parametrize(
    ("body", "groups", "hint"),
    [
        ("q[0][i] = i;", 1, ALONE),
        ("v[0][i] = i;", 1, ALONE),
        ("if i == 0u { q[0].x = 1u; }\nif i == 1u { q[0].y = 2u; }", 1,
         f"put workgroupBarrier() between line 6 and line 7, or {ALONE}"),
        ("if i == 0u { v[0].x = 1u; }\nif i == 1u { v[0].y = 2u; }", 1,
         f"put storageBarrier() between line 6 and line 7, or {ALONE}"),
        ("if i == 0u { v[0][w.x] = 1u; }", 2, ALONE),
        ("if i + w.x == 0u { v[0].x = 1u; }\nif i == 0u && w.x == 1u { v[0].y = 2u; }", 2, ALONE),
    ],
)  # fmt: skip
def test_the_advice_for_components_of_one_vector(body, groups, hint):
    run = bankshot.simulate(f"{VECTORS}{body}\n}}", grid=groups, bindings={"v": np.zeros((2, 4), np.uint32)})
    (found,) = run.findings
    assert (found.code, found.hint) == ("component-race", hint)
    assert [f" of workgroup ({n}, 0, 0)" in found.message for n in (0, 1)] == [groups > 1] * 2


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((), ""),
        ((3,), "3"),
        ((3, 4), "3 to 4"),
        ((0, 2), "0 and 2"),
        ((0, 1, 2, 5, 7, 8), "0 to 2, 5 and 7 to 8"),
        ((0, 2, 4, 6), "0, 2, 4 and 6"),
        ((0, 2, 4, 6, 8), "0, 2, 4, 6, … 8"),
        ((0, 2, 4, 6, 8, 10, 11), "0, 2, 4, 6, … 10 to 11"),
    ],
)
def test_numbers_are_abbreviated(numbers, words):
    assert explain.ranges(numbers) == words


def test_a_full_table_of_races_is_noted_at_the_last_race_and_no_finding_is_lost():
    findings = [only("t[0] = i;", "race") for _ in range(2)]
    other = replace(findings[0], code="uninit")
    full = SimpleNamespace(races=at.RACES.new(1 + MOST_RACES))
    full.races[at.HEADER, at.RECORDED] = MOST_RACES
    first, last, after = races.note_limit([*findings, other], full)
    assert (first, after) == (findings[0], other)
    assert last.notes[-1].message.startswith("the first 256 pairs of accesses that race were recorded")
    full.races[at.HEADER, at.RECORDED] = MOST_RACES - 1
    assert races.note_limit([*findings, other], full) == [*findings, other]
