"""Cures: which change ends races, that its text is right, and where none is claimed."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.cures.search import Cure
from bankshot.sim.wgsl.text_edits import replaced

HEAD = """var<workgroup> t: array<u32, 64>;
var<workgroup> total: u32;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
fn put(at: u32, value: u32) { t[at] = value; }
fn shift(i: u32) {
    let v = t[(i + 1u) % 64u];
    workgroupBarrier();
    t[i] = v;
}
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
"""
LANE = np.arange(64, dtype=np.uint32)
LINE = HEAD.count("\n")  # lines above the body


def run(body: str, **options) -> bankshot.Run:
    module = bankshot.check(f"{HEAD}{body}\n}}\n", uniformity="off")
    given = {"grid": 1, "bindings": {"y": np.zeros(64, np.uint32)}, "cures": True}
    return bankshot.simulate(module, **{**given, **options})


def text_of(run: bankshot.Run) -> str:
    changes = [each for cure in run.cures for each in cure.replacements]
    return replaced(run.pipeline.module.source.text, changes)


def outputs(text: str, schedule: str) -> np.ndarray:
    done = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(64, np.uint32)}, schedule=schedule)
    assert [f for f in done.findings if f.code == "race"] == []
    return done.outputs["y"]


# name: the body, the words of each cure, the outputs
CURED = {
    "between two statements": (
        "t[i] = i;\ny[i] = t[63u - i];",
        [f"a workgroupBarrier() after line {LINE + 1}"],
        63 - LANE,
    ),
    "after a store in a function": (
        "put(i, i);\ny[i] = t[63u - i];",
        [f"a workgroupBarrier() after line {LINE + 1}"],
        63 - LANE,
    ),
    "outside of a branch": (
        "if i < 32u {\nt[i] = i;\n}\nif i >= 32u {\ny[i] = t[i - 32u];\n}",
        [f"a workgroupBarrier() after line {LINE + 3}"],
        np.where(LANE >= 32, LANE - 32, 0),
    ),
    "at the end of a loop": (
        "var v = i;\nfor (var k = 0u; k < 3u; k++) {\nt[i] = v + k;\nworkgroupBarrier();\nv = t[i ^ 1u];\n}\ny[i] = v;",
        [f"a workgroupBarrier() after line {LINE + 5}, at the end of the loop in line {LINE + 2},"],
        (LANE ^ 1) + 3,
    ),
    "before and behind what a loop loads": (  # of lane i, it gets i and 63 - i in turns
        "var v = i;\nfor (var k = 0u; k < 3u; k++) {\nt[i] = v;\nv = t[63u - i];\n}\ny[i] = v;",
        [
            f"a workgroupBarrier() after line {LINE + 3} and "
            f"a workgroupBarrier() after line {LINE + 4}, at the end of the loop in line {LINE + 2},"
        ],
        63 - LANE,
    ),
    "in a function that is called again": (
        "t[i] = i;\nworkgroupBarrier();\nshift(i);\nshift(i);\nshift(i);\nworkgroupBarrier();\ny[i] = t[i];",
        ["a workgroupBarrier() after line 8"],
        (LANE + 3) % 64,
    ),
    "the other kind of barrier": (
        "t[i] = i;\nstorageBarrier();\ny[i] = t[63u - i];",
        [f"workgroupBarrier() instead of storageBarrier() in line {LINE + 2}"],
        63 - LANE,
    ),
    "storage": (
        "y[i] = i;\nlet v = y[63u - i];\nstorageBarrier();\ny[i] = v;",
        [f"a storageBarrier() after line {LINE + 1}"],
        63 - LANE,
    ),
    "a statement that loads and stores": (
        "t[i] = i;\nworkgroupBarrier();\nt[i] = t[63u - i];\nworkgroupBarrier();\ny[i] = t[i];",
        [f"a workgroupBarrier() between the load and the store of line {LINE + 3}"],
        63 - LANE,
    ),
    "such a statement in a branch": (
        "t[i] = i;\nworkgroupBarrier();\nif i < 63u { t[i] += t[i + 1u]; }\nworkgroupBarrier();\ny[i] = t[i];",
        [f"a workgroupBarrier() between the load and the store of line {LINE + 3}"],
        np.where(LANE < 63, 2 * LANE + 1, 63),
    ),
    "a sum": (
        "total += i;\nworkgroupBarrier();\ny[i] = total;",
        [f"atomicAdd in line {LINE + 1} with total of atomic<u32>"],
        np.full(64, 2016),
    ),
    "a sum, spelled out": (
        "total = i + total;\nworkgroupBarrier();\ny[i] = total;",
        [f"atomicAdd in line {LINE + 1} with total of atomic<u32>"],
        np.full(64, 2016),
    ),
    "a largest value": (
        "if total < i { total = i; }\nworkgroupBarrier();\ny[i] = total;",
        [f"atomicMax in line {LINE + 1} with total of atomic<u32>"],
        np.full(64, 63),
    ),
    "a count in storage": (
        "y[i % 4u]++;",
        [f"atomicAdd in line {LINE + 1} with y of atomic<u32>"],
        np.where(LANE < 4, 16, 0),
    ),
    "a flag": ("y[0] = 7u;", ["atomicStore with y of atomic<u32>"], np.where(LANE == 0, 7, 0)),
    "two causes": (
        "total += i;\ny[i] = total;",
        [
            f"a workgroupBarrier() after line {LINE + 1}",
            f"atomicAdd in line {LINE + 1} with total of atomic<u32>",
        ],
        np.full(64, 2016),
    ),
}


@pytest.mark.parametrize("name", CURED)
def test_a_cure_ends_the_races_and_gives_the_outputs_of_the_right_text(name: str) -> None:
    body, words, expected = CURED[name]
    done = run(body)
    assert sorted(cure.words for cure in done.cures) == sorted(words)
    assert len([f for f in done.findings if f.code == "race"]) == len(words)
    for schedule in ("lockstep", "reversed", "random(1)"):
        np.testing.assert_array_equal(outputs(text_of(done), schedule), expected)


NOT_CURED = {
    "no place is in uniform control flow": "if i < 32u {\nt[i] = i;\nif t[i ^ 1u] > 0u { y[i] = 1u; }\n}",
    "different stores to one word": "t[0] = i;\nworkgroupBarrier();\ny[i] = t[0];",
    "the address is taken": "let p = &total;\n*p += i;\nworkgroupBarrier();\ny[i] = *p;",
}


@pytest.mark.parametrize("name", NOT_CURED)
def test_no_cure_is_claimed(name: str) -> None:
    done = run(NOT_CURED[name])
    assert done.cures == ()
    races = [f for f in done.findings if f.code == "race"]
    assert races
    assert not any("removes" in (f.hint or "") for f in races)


@pytest.mark.parametrize("groups", [1, 8])
def test_no_cure_is_claimed_that_makes_outputs_depend_on_the_order(groups: int) -> None:
    """Atomics would end both races. For each change only the first of 8 workgroups is rerun, and all at last."""
    text = """var<workgroup> t: array<u32, 64>;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {
    if i < 32u {
        if i < 2u { t[0] = 7u; }
        y[64u * w.x + i] = t[0];
    }
}"""
    run = bankshot.simulate(text, grid=groups, bindings={"y": np.zeros(64 * groups, np.uint32)})
    assert [(f.code, f.span.line) for f in run.findings if f.span] == [("race", 7)]
    assert run.cures == ()


def test_the_hint_counts_the_races_and_notes_list_a_few() -> None:
    loads = "\n".join(f"y[i] += t[(i + {n}u) % 64u];" for n in range(1, 7))
    (race,) = run(f"t[i] = i;\n{loads}").findings
    assert race.hint == f"a workgroupBarrier() after line {LINE + 1} removes all 6 races"
    notes = [note.message for note in race.notes]
    assert sum("another race of this cause" in note for note in notes) == 3
    assert "and 2 more" in notes


def test_a_cure_takes_along_what_the_race_causes() -> None:
    body = "y[i] = t[63u - i];\nt[i] = i;"  # loads that find memory unwritten are no part of the race
    assert {f.code for f in run(body).findings} == {"race", "uninit"}
    (race,) = run("if i < 32u { t[i] = i; t[i + 32u] = i; }\nif i >= 32u { y[i] = t[i]; }").findings
    assert race.code == "race"


def test_without_cures_each_pair_of_places_is_a_finding() -> None:
    found = run("t[i] = i;\ny[i] = t[63u - i] +\nt[i ^ 1u];", cures=False)
    assert [f.span.line for f in found.findings] == [LINE + 2, LINE + 3]
    assert found.cures == ()


def test_a_suppressed_race_has_no_cure() -> None:
    done = run("t[i] = i; // bankshot: allow(race) because it is a test\ny[i] = t[63u - i];")
    assert (done.findings, done.cures) == ([], ())


@pytest.mark.parametrize("text", ["var<workgroup> a: array<array<u32, 32>, 64>;", "var<workgroup> a: array<S, 64>;"])
def test_an_access_of_many_parts_is_one_finding_that_counts_all(text: str) -> None:
    struct = "struct S { m: array<u32, 32> }\n"
    load = "a[63u - i].m" if "S," in text else "a[63u - i]"
    store = "a[i].m[k] = k;" if "S," in text else "a[i][k] = k;"
    module = bankshot.check(f"""{struct}{text}
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {{
    for (var k = 0u; k < 32u; k++) {{ {store} }}
    let all = {load};
    y[i] = all[5];
}}
""")
    (race,) = bankshot.simulate(module, grid=1, bindings={"y": np.zeros(64, np.uint32)}).findings
    assert race.count == 64 * 32


def test_a_full_table_of_races_says_so() -> None:
    loads = "\n".join(f"let v{n} = a[(i + {n}u) % 64u];\ny[i] += v{n}[i % 32u];" for n in range(1, 10))
    module = bankshot.check(f"""var<workgroup> a: array<array<u32, 32>, 64>;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {{
    for (var k = 0u; k < 32u; k++) {{ a[i][k] = k; }}
    {loads}
}}
""")
    found = bankshot.simulate(module, grid=1, bindings={"y": np.zeros(64, np.uint32)}, replay=False).findings
    notes = [note.message for f in found for note in f.notes]
    assert sum("the first 256 pairs of accesses that race were recorded" in note for note in notes) == 1
    notes = [note.message for f in run("t[i] = i;\ny[i] = t[63u - i];").findings for note in f.notes]
    assert not any("were recorded" in note for note in notes)


def test_races_within_and_between_workgroups_of_the_same_places_have_one_cause() -> None:
    module = bankshot.check("""@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x / 128u + id.x % 2u] = id.x; }""")
    (race,) = bankshot.simulate(module, grid=4, bindings={"y": np.zeros(64, np.uint32)}).findings
    assert race.verdict == "harmful"
    apart = bankshot.simulate(module, grid=4, bindings={"y": np.zeros(64, np.uint32)}, cures=False).findings
    assert sorted(f.epoch is None for f in apart) == [False, True]
    assert race.count == sum(f.count for f in apart)


def test_two_barriers_remove_what_neither_removes_alone() -> None:
    done = run(CURED["before and behind what a loop loads"][0])
    assert [cure.sentence.endswith(" remove this race") for cure in done.cures] == [True]


def test_several_changes_remove_and_one_removes() -> None:
    (race,) = run("t[i] = i;\ny[i] = t[63u - i];").findings
    assert Cure("a barrier", (), (race,)).sentence == "a barrier removes this race"
    assert Cure("a and b", (), (race, race), joint=True).sentence == "a and b remove all 2 races"
    assert Cure("a and b", (), (race,), joint=True).says_to_remove("it") == "a and b remove it"
