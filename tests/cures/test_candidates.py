"""Candidates for cures: where a barrier may separate two accesses, in which order they are tried, and their texts."""

from __future__ import annotations

import pytest

import bankshot
from bankshot.sim.cures.changes import Change, Race, both_ways, changes
from bankshot.sim.cures.places import Places
from bankshot.sim.wgsl.source import Span
from bankshot.sim.wgsl.text_edits import replaced

HEAD = """var<workgroup> t: array<u32, 64>;
var<workgroup> c: atomic<u32>;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
fn once(i: u32) {
    t[i] = 1u;
    y[0] = t[1];
}
fn twice(i: u32) {
    t[i] = 2u;
    y[0] = t[2];
    inner(i);
}
fn inner(i: u32) {
    t[i] = 3u;
    y[0] = t[3];
}
fn looped(i: u32) {
    t[i] = 4u;
    y[0] = t[4];
}
fn by_two(i: u32) {
    t[i] = 5u;
    y[0] = t[5];
}
fn calls_it(i: u32) { by_two(i); }
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
"""
AT = HEAD.count("\n")  # lines above the body
CALLS = """once(i);
twice(i);
twice(i);
while i < 2u { looped(i); }
by_two(i);
calls_it(i);
while i < 3u { y[1] = 1u; }
"""
Pair = tuple[str, str]


def candidates(body: str, *pairs: Pair, space: str = "workgroup", tail: str = "}\n") -> list[tuple[Change, str]]:
    """The changes for races between pairs of pieces of the text, and the body with each."""
    text = f"{HEAD}{body}\n{tail}"
    module = bankshot.check(text, uniformity="off")

    def span(piece: str) -> Span:
        start = text.index(piece, len(HEAD) if piece in body else 0)
        return Span(module.source, start, start + len(piece))

    races = [Race(span(one), span(two), space, "t", across=False) for one, two in pairs]
    found = changes(module.source, Places(module.functions["main"]), races)
    return [(change, replaced(text, change.replacements)[len(HEAD) : -len(tail) - 1]) for change in found]


def after(line: int) -> str:
    return f"a workgroupBarrier() after line {AT + line}"


def loop_end(line: int, loop: int) -> str:
    return f"a workgroupBarrier() after line {AT + line}, at the end of the loop in line {AT + loop},"


def start(line: int) -> str:
    return f"a workgroupBarrier() at the start of the block in line {AT + line}"


def instead(kind: str, line: int) -> str:
    return f"workgroupBarrier() instead of {kind}() in line {AT + line}"


STORE, LOAD = "t[i] = i", "t[63u - i]"
CASES: dict[str, tuple[str, list[Pair], list[str]]] = {
    "one after the other": ("t[i] = i;\ny[i] = t[63u - i];", [(STORE, LOAD)], [after(1)]),
    "in the other order": ("t[i] = i;\ny[i] = t[63u - i];", [(LOAD, STORE)], [after(1)]),
    "statements between": ("t[i] = i;\nlet v = i;\ny[v] = t[63u - i];", [(STORE, LOAD)], [after(1)]),
    "a block before": ("if i < 3u {\nt[i] = i;\n}\ny[i] = t[63u - i];", [(STORE, LOAD)], [after(3), after(2)]),
    "a block after": ("t[i] = i;\nif i < 3u {\ny[i] = t[63u - i];\n}", [(STORE, LOAD)], [after(1), start(2)]),
    "both branches": ("if i < 3u {\nt[i] = i;\n} else {\ny[i] = t[63u - i];\n}", [(STORE, LOAD)], []),
    "a condition": ("if t[63u - i] < 9u {\nt[i] = i;\n}", [(STORE, LOAD)], [start(1)]),
    "a block without need": ("{\n{\nt[i] = i;\n}\n}\ny[i] = t[63u - i];", [(STORE, LOAD)],
                             [after(5), after(4), after(3)]),
    # each place of a loop is between its turns; where neighbors are alike, the end of the loop is tried
    "a loop": ("while i < 9u {\nt[i] = i;\ny[i] = t[63u - i];\n}", [(STORE, LOAD)],
               [after(2), loop_end(3, 1), start(1)]),
    "a place in a loop": ("while i < 9u {\ny[0] = 1u;\nt[i] = i;\ny[1] = 1u;\n}", [(STORE, STORE)],
                          [loop_end(4, 1)]),
    "a loop in a loop": ("while i < 8u {\nwhile i < 9u {\nt[i] = i;\n}\n}", [(STORE, STORE)],
                         [loop_end(4, 1), loop_end(3, 2)]),
    "a loop beside": ("while i < 8u {\ny[0] = 1u;\n}\nwhile i < 9u {\nt[i] = i;\n}\ny[0] = 2u;", [(STORE, STORE)],
                      [loop_end(5, 4)]),
    "only one in the loop": ("while i < 9u {\nt[i] = i;\n}\ny[i] = t[63u - i];", [(STORE, LOAD)],
                             [after(3), loop_end(2, 1)]),
    "the condition of a loop": ("while t[63u - i] < 9u {\nt[i] = i;\n}", [(STORE, LOAD)],
                                [start(1), loop_end(2, 1)]),
    "the condition of a loop in a block": ("{\nwhile t[63u - i] < 9u {\nt[i] = i;\n}\n}", [(STORE, LOAD)],
                                           [start(2), loop_end(3, 2)]),
    "a function that nothing calls": ("t[i] = i;", [("t[i] = 1u", STORE)], []),
    "no place after a jump": ("loop {\nif i < 2u {\nt[i] = i;\nbreak;\n}\nt[0] = 1u;\ncontinue;\n}",
                              [("t[i] = i", "t[0] = 1u")], [after(5), after(3), after(6), start(1), start(2)]),
    "two races": ("t[i] = i;\ny[0] = t[63u - i];\nt[0] = 1u;", [(STORE, LOAD), (LOAD, "t[0] = 1u")],
                  [after(1), after(2)]),
    "two races at one place": ("t[i] = i;\nlet v = 1u;\ny[0] = t[63u - i] + t[0];", [(STORE, LOAD), (STORE, "t[0]")],
                               [after(1)]),
    "more races first": ("t[11] = i;\ny[0] = t[12];\ny[1] = t[13];", [("t[12]", "t[13]"), ("t[11]", "t[13]")],
                         [after(2), after(1)]),
    # a barrier of another kind
    "another kind": ("t[i] = i;\nstorageBarrier();\ny[i] = t[63u - i];", [(STORE, LOAD)],
                     [instead("storageBarrier", 2), after(1)]),
    "a third kind": ("t[i] = i;\ntextureBarrier();\ny[i] = t[63u - i];", [(STORE, LOAD)],
                     [instead("textureBarrier", 2), after(1)]),
    "the right kind": ("t[i] = i;\nworkgroupBarrier();\ny[i] = t[63u - i];", [(STORE, LOAD)], [after(1)]),
    "a call of something else": ("t[i] = i;\natomicAdd(&c, 1u);\ny[i] = t[63u - i];", [(STORE, LOAD)], [after(1)]),
    "a barrier elsewhere": ("storageBarrier();\nt[i] = i;\ny[i] = t[63u - i];\nstorageBarrier();", [(STORE, LOAD)],
                            [after(2)]),
    # functions: their places are between calls where they are called again
    "a function": (CALLS, [("t[i] = 1u", "t[1]")], ["a workgroupBarrier() after line 5"]),
    "one place of a function": (CALLS, [("t[i] = 1u", "t[i] = 1u")], []),
    "a function that is called twice": (CALLS, [("t[i] = 2u", "t[i] = 2u")],
                                        [after(2), "a workgroupBarrier() after line 11"]),
    "a function that this one calls": (CALLS, [("t[i] = 3u", "t[i] = 3u")],
        [after(2), "a workgroupBarrier() after line 15", "a workgroupBarrier() after line 11"]),
    "a function that is called in a loop": (CALLS, [("t[i] = 4u", "t[i] = 4u")],
        ["a workgroupBarrier() after line 19",
         f"a workgroupBarrier() after column 25 of line {AT + 4}, at the end of the loop in line {AT + 4},"]),
    "a function that two functions call": (CALLS, [("t[i] = 5u", "t[i] = 5u")],
                                           [after(5), "a workgroupBarrier() after line 23"]),
    "two functions": (CALLS, [("t[i] = 1u", "t[i] = 5u")], [after(1)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_candidates_in_the_order_in_which_they_are_tried(name: str) -> None:
    body, pairs, expected = CASES[name]
    assert [change.words for change, _ in candidates(body, *pairs)] == expected


BARRIER = "workgroupBarrier();"
SPLIT, SPLIT_2 = ("t[i]", "t[63u - i]"), ("t[i]", "t[i + 1u]")
# name: the body, a race, and the body with the candidate that is tried first
TEXTS: dict[str, tuple[str, Pair, str]] = {
    "a line of its own": ("  t[i] = i;\n  y[i] = t[63u - i];", (STORE, LOAD),
                          f"  t[i] = i;\n  {BARRIER}\n  y[i] = t[63u - i];"),
    "after a comment": ("t[i] = i; // store\ny[i] = t[63u - i];", (STORE, LOAD),
                        f"t[i] = i; // store\n{BARRIER}\ny[i] = t[63u - i];"),
    "a comment before the semicolon": ("t[i] = i /* ; */ // ;\n;\ny[i] = t[63u - i];", (STORE, LOAD),
                                       f"t[i] = i /* ; */ // ;\n;\n{BARRIER}\ny[i] = t[63u - i];"),
    "one line": ("t[i] = i; y[i] = t[63u - i];", (STORE, LOAD), f"t[i] = i; {BARRIER} y[i] = t[63u - i];"),
    "not the first of a line": ("let v = i; t[i] = i;\ny[v] = t[63u - i];", (STORE, LOAD),
                                f"let v = i; t[i] = i; {BARRIER}\ny[v] = t[63u - i];"),
    "before other code": ("t[i] = i; /* no end */\ny[i] = t[63u - i];", (STORE, LOAD),
                          f"t[i] = i; {BARRIER} /* no end */\ny[i] = t[63u - i];"),
    "the start of a block": ("if t[63u - i] < 9u {\n  t[i] = i;\n}", (STORE, LOAD),
                             f"if t[63u - i] < 9u {{\n  {BARRIER}\n  t[i] = i;\n}}"),
    "the start of a block in one line": ("if t[63u - i] < 9u { t[i] = i; }", (STORE, LOAD),
                                         f"if t[63u - i] < 9u {{ {BARRIER} t[i] = i; }}"),
    "after a block": ("if i < 9u {\n  t[i] = i;\n}\ny[i] = t[63u - i];", (STORE, LOAD),
                      f"if i < 9u {{\n  t[i] = i;\n}}\n{BARRIER}\ny[i] = t[63u - i];"),
    "another kind": ("t[i] = i;\nstorageBarrier(); // all\ny[i] = t[63u - i];", (STORE, LOAD),
                     f"t[i] = i;\n{BARRIER} // all\ny[i] = t[63u - i];"),
    "a statement in two": ("  t[i] = t[63u - i];", SPLIT,
                           f"  let loaded = t[63u - i];\n  {BARRIER}\n  t[i] = loaded;"),
    "a statement that computes": ("t[i] += t[i + 1u] * 2u;", SPLIT_2,
                                  f"let loaded = t[i + 1u] * 2u;\n{BARRIER}\nt[i] += loaded;"),
    "a line of two statements": ("let v = 1u; t[i] = t[63u - i] + v;", SPLIT,
                                 f"let v = 1u; let loaded = t[63u - i] + v; {BARRIER} t[i] = loaded;"),
    "a name that is taken": ("let loaded = 1u;\nlet loaded_ = 2u;\nt[i] = t[63u - i];", SPLIT,
        f"let loaded = 1u;\nlet loaded_ = 2u;\nlet loaded__ = t[63u - i];\n{BARRIER}\nt[i] = loaded__;"),
    "a branch": ("  if i < 63u { t[i] = t[i + 1u]; }", SPLIT_2,
                 "  let taken = i < 63u;\n  var loaded: u32;\n  if taken { loaded = t[i + 1u]; }\n"
                 f"  {BARRIER}\n  if taken {{ t[i] = loaded; }}"),
    "a branch in a line": ("let taken = i; if taken < 63u { t[i] = t[i + 1u]; }", SPLIT_2,
                           "let taken = i; let taken_ = taken < 63u; var loaded: u32; "
                           f"if taken_ {{ loaded = t[i + 1u]; }} {BARRIER} if taken_ {{ t[i] = loaded; }}"),
    "a branch with an else": ("if i < 63u {\nt[i] = t[i + 1u];\n} else {\ny[0] = 1u;\n}", SPLIT_2,
        f"if i < 63u {{\nlet loaded = t[i + 1u];\n{BARRIER}\nt[i] = loaded;\n}} else {{\ny[0] = 1u;\n}}"),
    "a branch with more": ("if i < 63u {\nt[i] = t[i + 1u];\ny[0] = 1u;\n}", SPLIT_2,
                           f"if i < 63u {{\nlet loaded = t[i + 1u];\n{BARRIER}\nt[i] = loaded;\ny[0] = 1u;\n}}"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_of_the_first_candidate(name: str) -> None:
    body, race, expected = TEXTS[name]
    assert candidates(body, race)[0][1] == expected


@pytest.mark.parametrize(
    ("body", "race"),
    [
        ("for (var k = 0u; k < 9u; t[i] = t[63u - i]) { k++; }", SPLIT),  # no statement fits there
        ("t[i] = t[63u - i];", ("t[i]", "t[i]")),  # no barrier orders two stores of one statement
        ("t[i] = i; y[i] = t[63u - i];", (STORE, LOAD)),
        ("var v = t[63u - i]; t[i] = v;", (LOAD, "t[i] = v")),
        ("t[i]++;", ("t[i]", "t[i]")),
        ("if i > 63u { y[0] = 1u; } else if i < 63u { t[i] = t[i + 1u]; }", SPLIT_2),  # nor before an `else if`
    ],
)
def test_what_is_not_split(body: str, race: Pair) -> None:
    assert not [change for change, _ in candidates(body, race) if change.effort == 2]


def test_a_split_says_what_it_is() -> None:
    ((change, _),) = candidates("y[0] = 1u;\nt[i] = t[63u - i];", SPLIT)
    assert change.words == f"a {BARRIER[:-1]} between the load and the store of line {AT + 2}"
    assert (change.straight, change.depth, change.effort, len(change.orders)) == (1, 1, 2, 1)


@pytest.mark.parametrize("kind", ["storage", "texture"])
def test_the_barrier_of_other_memory(kind: str) -> None:
    found = candidates("t[i] = i;\nworkgroupBarrier();\ny[i] = t[63u - i];", (STORE, LOAD), space=kind)
    assert [change.words for change, _ in found] == [
        f"{kind}Barrier() instead of workgroupBarrier() in line {AT + 2}",
        f"a {kind}Barrier() after line {AT + 1}",
    ]


def test_in_a_loop_a_race_may_take_a_barrier_before_and_one_behind() -> None:
    loop = "for (var k = 0u; k < 3u; k++) {\nt[i] = i;\ny[i] = t[63u - i];\n}"
    found = [change for change, _ in candidates(loop, (STORE, LOAD))]
    pair, *_ = both_ways(found)
    ahead, back = (f"a {BARRIER[:-1]} after line {AT + line}" for line in (2, 3))
    assert pair.words == f"{ahead} and {back}, at the end of the loop in line {AT + 1},"
    assert pair.joint
    assert [each.text.strip() for each in pair.replacements] == [BARRIER, BARRIER]
    assert len(pair.orders) == 1
    assert both_ways(change for change, _ in candidates(f"{STORE};\ny[i] = {LOAD};", (STORE, LOAD))) == []


def test_a_barrier_is_replaced_only_where_it_separates_a_race_in_other_memory() -> None:
    """The barrier is between the accesses to workgroup memory, which it orders, and not between those to storage."""
    text = f"{HEAD}t[i] = i;\nworkgroupBarrier();\ny[i] = t[63u - i];\ny[63u - i] = 1u;\n}}\n"
    module = bankshot.check(text)

    def span(code: str) -> Span:
        start = text.index(code, len(HEAD))
        return Span(module.source, start, start + len(code))

    races = [
        Race(span("t[i]"), span("t[63u - i]"), "workgroup", "t", across=False),
        Race(span("y[i]"), span("y[63u - i]"), "storage", "y", across=False),
    ]
    found = {change.words for change in changes(module.source, Places(module.functions["main"]), races)}
    assert found == {f"a workgroupBarrier() after line {AT + 1}", f"a storageBarrier() after line {AT + 3}"}


def test_a_split_has_a_barrier_for_each_kind_of_memory() -> None:
    text = f"{HEAD}t[i] = t[63u - i];\n}}\n"
    module = bankshot.check(text)
    start = text.index("t[i] = t[63")
    one, two = Span(module.source, start, start + 4), Span(module.source, start + 7, start + 17)
    races = [Race(one, two, space, "t", across=False) for space in ("workgroup", "storage", "workgroup")]
    (change,) = (each for each in changes(module.source, Places(module.functions["main"]), races) if each.effort == 2)
    assert change.replacements[0].text.splitlines()[1:3] == ["workgroupBarrier();", "storageBarrier();"]


def test_no_barrier_orders_workgroups() -> None:
    text = f"{HEAD}{STORE};\n}}\n"
    module = bankshot.check(text)
    start = text.index(STORE)
    span = Span(module.source, start, start + len(STORE))
    race = Race(span, span, "storage", "t", across=True)
    assert changes(module.source, Places(module.functions["main"]), [race]) == []
