"""What a race says: its sentence, its notes with their lines, its hint and its verdict, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

HEAD = """var<workgroup> t: array<u32, 4>;
@group(0) @binding(0) var<storage, read_write> y: array<u32, 4>;
@compute @workgroup_size({size})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {{
"""
AT = HEAD.count("\n")
NO_BARRIER = "; no barrier orders them"


def between(first: int, second: int, kind: str = "workgroup") -> str:
    return f"put {kind}Barrier() between line {AT + first} and line {AT + second}"


# name: the body, the size of a workgroup and how many there are; the message, the notes with their lines in the body,
# the hint, and the verdict
RACES = {
    "two stores": (
        "t[0] = i + 5u;", 2, 1,
        "invocation 1 stores to t[0], and invocation 0 stores to it" + NO_BARRIER,
        [("one stores 5 here, the other 6", 1)],
        "let only one invocation store there, give each its own element, or use atomics", None,
    ),
    "two stores of one value": (
        "t[0] = 7u;", 2, 1,
        "invocation 1 stores to t[0], and invocation 0 stores to it" + NO_BARRIER,
        [("both store 7", 1)],
        "let only one invocation store there, give each its own element, or use atomics", "same-value",
    ),
    "two stores in two lines": (
        "if i == 0u { t[0] = 5u; }\nif i == 1u { t[0] = 6u; }", 2, 1,
        "invocation 1 stores to t[0], and invocation 0 stores to it" + NO_BARRIER,
        [("one stores 5 here, the other 6", 1)],
        between(1, 2), None,
    ),
    "a load after a store": (
        "t[i] = i + 5u;\ny[i] = t[1u - i];", 2, 1,
        "invocation 0 loads t[1], and invocation 1 stores to it" + NO_BARRIER,
        [("the store of 6 is here", 1)],
        between(1, 2), None,
    ),
    "a load before a store": (
        "y[i] = t[1u - i];\nt[i] = i + 5u;", 2, 1,
        "invocation 0 stores to t[0], and invocation 1 loads it" + NO_BARRIER,
        [("the load is here; the store changes its value from 0 to 5", 1)],
        between(1, 2), None,
    ),
    "one line": (
        "t[i] = i + 5u; y[i] = t[1u - i];", 2, 1,
        "invocation 0 loads t[1], and invocation 1 stores to it" + NO_BARRIER,
        [("the store of 6 is here", 1)],
        f"put workgroupBarrier() between the two accesses, or after line {AT + 1} if they are in different iterations",
        None,
    ),
    "the next iteration": (
        "for (var k = 0u; k < 2u; k++) {\ny[i] = t[1u - i];\nworkgroupBarrier();\nt[i] = i + 5u;\n}", 2, 1,
        "invocation 0 loads t[1], and invocation 1 stores to it" + NO_BARRIER,
        [("the store of 6 is here", 4)],
        f"put workgroupBarrier() after line {AT + 4}, before the next iteration reaches line {AT + 2}", None,
    ),
    "the wrong barriers": (
        "t[i] = i + 5u;\nstorageBarrier();\ntextureBarrier();\ny[i] = t[1u - i];", 2, 1,
        "invocation 0 loads t[1], and invocation 1 stores to it" + NO_BARRIER,
        [("the store of 6 is here", 1), ("storageBarrier orders storage memory, not workgroup memory", 2),
         ("textureBarrier orders texture memory, not workgroup memory", 3)],
        "use workgroupBarrier() there", "wrong-barrier",
    ),
    "storage": (
        "y[i] = i + 5u;\nlet v = y[1u - i];\nworkgroupBarrier();\ny[i + 2u] = v;", 2, 1,
        "invocation 0 loads y[1], and invocation 1 stores to it" + NO_BARRIER,
        [("the store of 6 is here", 1)],
        between(1, 2, "storage"), None,
    ),
    "two workgroups": (
        "y[0] = w.x + 5u;", 1, 2,
        "invocation 0 of workgroup (1, 0, 0) stores to y[0], and invocation 0 of workgroup (0, 0, 0) stores to it; "
        "nothing orders workgroups",
        [("one stores 5 here, the other 6", 1)],
        "give each workgroup its own elements, use atomics, or continue in a second dispatch", None,
    ),
    "two workgroups, one of which loads": (
        "if w.x == 0u { y[0] = 5u; }\nif w.x == 1u { y[1] = y[0]; }", 1, 2,
        "invocation 0 of workgroup (1, 0, 0) loads y[0], and invocation 0 of workgroup (0, 0, 0) stores to it; "
        "nothing orders workgroups",
        [("the store of 5 is here", 1)],
        "give each workgroup its own elements, use atomics, or continue in a second dispatch", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RACES)
def test_what_a_race_says(name):
    body, size, grid, message, notes, hint, verdict = RACES[name]
    given = {"bindings": {"y": np.zeros(4, np.uint32)}, "probes": ["races"], "replay": False, "cures": False}
    (race,) = bankshot.simulate(f"{HEAD.format(size=size)}{body}\n}}", grid=grid, **given).findings
    assert (race.code, race.message, race.hint, race.verdict) == ("race", message, hint, verdict)
    assert [(note.message, note.span.line - AT) for note in race.notes if note.span] == notes
    assert race.severity == ("warning" if verdict == "same-value" else "error")
    assert (race.epoch is None) == (grid > 1)
    assert len(race.lanes) == 2


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize(
    ("body", "lanes"),
    [
        ("t[0] = i;", (0, 1)),
        ("t[i / 2u] = i;", (0, 1)),
        ("if i < 2u { t[0] = i; }", (0, 1)),
        ("t[i] = i; y[i] = t[1u - i];", (1, 0)),
        ("y[i] = t[1u - i]; t[i] = i;", (1, 0)),
    ],
)
def test_a_race_in_workgroup_memory_is_that_of_its_workgroup(body, lanes, size):
    given = {"bindings": {"y": np.zeros(4, np.uint32)}, "probes": ["races"], "replay": False, "cures": False}
    text = f"{HEAD.format(size=size)} if w.x == 1u {{ {body} }}\n}}"
    (race,) = bankshot.simulate(text, grid=3, **given).findings
    assert (race.workgroup, race.lanes) == ((1, 0, 0), lanes)
