"""A verdict for each cause: a harmless race beside a harmful one, lost updates, and data that hide a race."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.findings.replay import Judge

HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> z: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
@group(0) @binding(3) var<storage, read> w: array<f32>;
var<workgroup> t: array<u32, {size}>;
var<workgroup> s: array<f32, {size}>;
var<workgroup> junk: u32;
var<workgroup> total: u32;
@compute @workgroup_size({size})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {{
    let last = {size}u - 1u; let at = g.x * {size}u + i;
    _ = &y; _ = &z; _ = &x; _ = &w;
"""
SIZES = [4, 32, 64, 100, 128, 256]


def races(body: str, size: int, groups: int = 1, x: int = 0) -> list[bankshot.Finding]:
    text = HEAD.format(size=size) + body + "\n}"
    count = size * groups
    bindings = {
        "y": np.zeros(count, np.uint32),
        "z": np.zeros(count, np.uint32),
        "x": np.full(count, x, np.uint32),
        "w": np.full(count, x, np.float32),
    }
    run = bankshot.simulate(bankshot.check(text, uniformity="off"), grid=groups, bindings=bindings)
    assert {f.code for f in run.findings} <= {"race"}
    return run.findings


def verdicts(body: str, size: int, **options: int) -> dict[str, str | None]:
    """The verdict of each race, by the text of its line."""
    found = races(body, size, **options)
    return {(HEAD.format(size=size) + body).splitlines()[f.span.line - 1]: f.verdict for f in found if f.span}


@pytest.mark.parametrize("size", SIZES)
def test_a_harmless_race_beside_a_harmful_one(size: int) -> None:
    found = verdicts("t[i] = i;\njunk = i;\ny[i] = t[last - i];", size)
    assert found == {"junk = i;": "unseen", "y[i] = t[last - i];": "harmful"}


@pytest.mark.parametrize("size", SIZES)
def test_a_harmful_race_beside_one_whose_result_is_multiplied_by_zero(size: int) -> None:
    found = verdicts("t[i] = i + 1u;\ntotal = i;\nworkgroupBarrier();\nz[0] = total * 0u;\ny[i / 2u] = i;", size)
    assert found["total = i;"] == "unseen"
    assert found["y[i / 2u] = i;"] == "harmful"


def test_the_note_names_an_output_that_the_race_influences() -> None:
    one, two = races("y[i / 2u] = i;\nz[i / 2u] = i;", 64)
    assert " of y differ" in one.notes[-1].message
    assert " of z differ" in two.notes[-1].message


def test_what_others_change_is_not_called_unchanged() -> None:
    junk, _ = races("t[i] = i;\njunk = i;\ny[i] = t[last - i];", 64)
    assert junk.notes[-1].message == "no output depends on it"


def test_a_load_influences_what_its_value_reaches_and_not_what_its_variable_reaches() -> None:
    """The first race is about a load whose value only z depends on; later loads of t reach y."""
    first, second = "t[i] = i;\nz[i] = min(t[last - i], 0u);", "t[i] = i * 3u;\ny[i] = t[i ^ 1u];"
    one, other = races(f"{first}\nworkgroupBarrier();\n{second}", 64)
    assert [one.verdict, other.verdict] == ["unseen", "harmful"]
    assert one.notes[-1].message == "no output that depends on it changes in any of 5 orders"


def test_an_atomic_operation_outside_influences_what_its_variable_reaches() -> None:
    text = """@group(0) @binding(0) var<storage, read_write> y: array<u32, 64>;
var<workgroup> counts: array<atomic<u32>, 4>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    atomicAdd(&counts[i + 9u], 1u);
    y[i + 1u] = i;
}"""
    found = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(64, np.uint32)}).findings
    assert {f.span.line: f.verdict for f in found if f.span} == {4: "unseen", 5: "harmful"}


# Two causes that reach one output, with a barrier between them; `min` with 0 is 0 whatever it is given.
ONE_OUTPUT = """t[i] = i;
let a = t[last - i]; workgroupBarrier();
SECOND
let b = LOAD; workgroupBarrier();
y[i] = a + LAST;"""


CURED, NOT_CURED = ("t[i] = i * 3u;", "t[i ^ 1u]"), ("total = i; workgroupBarrier();", "total")


@pytest.mark.parametrize(("second", "load"), [CURED, NOT_CURED], ids=["cured", "not cured"])
@pytest.mark.parametrize("size", [4, 64, 100])
def test_of_two_causes_that_reach_one_output_only_one_may_matter(second: str, load: str, size: int) -> None:
    body = ONE_OUTPUT.replace("SECOND", second).replace("LOAD", load)
    one, other = races(body.replace("LAST", "min(b, 0u)"), size)
    assert [one.verdict, other.verdict] == ["harmful", "unseen"]
    assert (one.severity, other.severity) == ("error", "warning")
    assert any(note.message.startswith("with the other races cured, no output changes in any") for note in other.notes)
    assert {race.verdict for race in races(body.replace("LAST", "b"), size)} == {"harmful"}


def test_the_first_of_two_causes_may_be_the_harmless_one() -> None:
    second, load = CURED
    body = ONE_OUTPUT.replace("SECOND", second).replace("LOAD", load).replace("a + LAST", "min(a, 0u) + b")
    assert [race.verdict for race in races(body, 64)] == ["unseen", "harmful"]


# ---- lost updates ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, *SIZES])
def test_updates_between_workgroups_are_lost(size: int) -> None:
    text = f"""
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size({size})
fn main(@builtin(workgroup_id) g: vec3u, @builtin(local_invocation_index) i: u32) {{
    if i == 0u {{ x[g.x] = x[g.x] * 2.0; }}
}}"""
    found = bankshot.simulate(text, grid=(16, 8), bindings={"x": np.ones(16, np.float32)}).findings
    assert "harmful" in {f.verdict for f in found}
    if size > 4:  # else all of them run side by side
        for each in found:
            (shown,) = [note.message for note in each.notes if "run side-by-side(0,16), " in note.message]
            assert shown.endswith("the first is x[0]: 128.0 instead of 256.0")


def test_a_lost_update_can_be_shown_again() -> None:
    text = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) g: vec3u, @builtin(local_invocation_index) i: u32) {
    if i == 0u { x[g.x] = x[g.x] * 2.0; }
}"""
    bindings = {"x": np.ones(2, np.float32)}
    run = bankshot.simulate(text, grid=(2, 3), bindings=bindings, probes="none", schedule="side-by-side(1,3)")
    assert run.outputs["x"].tolist() == [4.0, 4.0]  # in pairs: 1 and 3, 0 and 2, 4 and 5


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("groups", [1, 2, 5, 12])
def test_a_maximum_by_comparison_and_store(size: int, groups: int) -> None:
    found = races("let v = at * 7919u % 1009u;\nif y[0] < v { y[0] = v; }", size, groups)
    assert {f.verdict for f in found} == {"harmful"}


@pytest.mark.parametrize(
    "name",
    ["side-by-side()", "side-by-side(1)", "side-by-side(1,a)", "random()", "random(1,lanes)", "pct(1)", "pct(1,2,3)"],
)
def test_schedules_that_do_not_exist(name: str) -> None:
    with pytest.raises(bankshot.WgslError, match="schedule cannot be"):
        bankshot.simulate(HEAD.format(size=4) + "}", grid=1, bindings={}, schedule=name)


# ---- data --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "body",
    [
        "t[i] = x[i]; y[i] = t[last - i];",
        "s[i] = w[i]; y[i] = bitcast<u32>(s[last - i]);",
        "total = x[i]; workgroupBarrier(); y[i] = total;",
        "y[i / 2u] = x[i];",
    ],
)
def test_equal_data_hide_no_race(body: str, size: int) -> None:
    (finding,) = races(body, size)
    assert finding.verdict == "harmful"
    assert finding.notes[-1].message.startswith("with other values in ")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "body",
    [
        "total = 1u; workgroupBarrier(); y[i] = total;",
        "total = x[0]; workgroupBarrier(); y[i] = total;",
        "if x[i] == 0u { y[0] = 1u; }",  # other values in x would take another branch
        "y[x[i]] = 1u;",
    ],
)
def test_a_value_that_does_not_depend_on_who_stores_it(body: str, size: int) -> None:
    (finding,) = races(body, size)
    assert (finding.verdict, finding.severity) == ("same-value", "warning")


PARTS = """struct Particle { at: vec4f, speed: vec4f }
@group(0) @binding(0) var<storage, read_write> p: array<Particle>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    STORE
    let other = p[i ^ 1u];
    y[i] = USE;
}"""


@pytest.mark.parametrize(
    ("store", "use", "verdict", "words"),
    [
        # What is stored is one part of an element, and the load's other parts alone reach an output.
        ("p[i].at.w = f32(i);", "other.at.x + other.speed.y", "unseen", "no output depends on it"),
        ("p[i].speed.x = f32(i);", "dot(other.at, other.at) + other.speed.w", "unseen", "no output depends on it"),
        ("p[i].speed = vec4f(f32(i));", "other.at.w", "unseen", "no output depends on it"),
        # That part reaches it, or decides a branch.
        ("p[i].at.w = f32(i);", "other.at.w", "harmful", "elements of y differ"),
        ("p[i].at = vec4f(f32(i));", "other.at.x", "harmful", "elements of y differ"),
        ("p[i].at.w = f32(i);", "select(1.0, 2.0, other.at.w == f32(i ^ 1u))", "harmful", "elements of y differ"),
        # The part is known at run time only.
        ("p[i].at[i % 4u] = f32(i) + 1.0;", "other.at.w", "harmful", "elements of y differ"),
    ],
)
def test_a_load_is_judged_by_the_parts_that_the_store_changes(store: str, use: str, verdict: str, words: str) -> None:
    arrays = {"p": np.zeros(64 * 8, np.float32), "y": np.zeros(64, np.float32)}
    text = PARTS.replace("STORE", store).replace("USE", use)
    found = bankshot.simulate(text, grid=1, bindings=arrays, probes="races", cures=False).findings
    (race,) = [each for each in found if each.code == "race"]
    assert race.verdict == verdict
    message = race.notes[-1].message
    assert message == words if verdict == "unseen" else words in message


def test_no_rerun_is_made_where_no_output_depends_on_a_race(monkeypatch: pytest.MonkeyPatch) -> None:
    reruns: list[object] = []
    monkeypatch.setattr(Judge, "_result", lambda _, rerun: reruns.append(rerun))
    one, _ = races("t[i] = i;\n_ = t[last - i];\njunk = i;\ny[i] = i;", 64)
    assert (one.verdict, one.notes[-1].message, reruns) == ("unseen", "no output depends on it", [])


def test_a_race_that_decides_whether_a_loop_ends_is_judged_by_reruns() -> None:
    """In lockstep the store comes first; where another invocation begins, it has loaded a zero."""
    body = "if i == 0u { junk = 1u; }\nlet found = junk;\nloop { if found == 1u { break; } }\ny[i] = i;"
    (race,) = races(body, 64)
    assert race.verdict == "harmful"
    assert "it does not terminate" in race.notes[-1].message
