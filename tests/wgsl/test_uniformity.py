"""Uniformity: a barrier is accepted only where every invocation of the workgroup surely comes by."""

from __future__ import annotations

from itertools import combinations

import pytest

from bankshot.sim.wgsl import typed
from bankshot.sim.wgsl.check.check_module import check
from bankshot.sim.wgsl.diagnostics import Diagnostic, WgslError
from bankshot.sim.wgsl.source import Source

HEAD = """
enable subgroups;
@group(0) @binding(0) var<uniform> dims: vec4u;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;
var<workgroup> shared_count: atomic<u32>;
var<workgroup> flag: u32;
fn barrier() { workgroupBarrier(); }
fn is_even(x: u32) -> bool { return x % 2 == 0; }
fn spoil(p: ptr<function, u32>) { *p = data[0]; }
fn keep(p: ptr<function, u32>) { *p += 1; }
fn spoil_second(p: ptr<function, u32>, q: ptr<function, u32>) { *p = 1; *q = data[0]; }
fn clear(p: ptr<function, u32>) -> u32 { *p = 0; return 0; }
fn cleared(p: ptr<function, u32>) -> bool { *p = 0; return true; }
fn taint(p: ptr<function, u32>) -> u32 { *p = data[0]; return 0; }
fn sum(p: ptr<function, u32>, x: u32) -> u32 { return *p + x; }
@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_id) lid: vec3u,
    @builtin(workgroup_id) wid: vec3u,
    @builtin(subgroup_id) sid: u32,
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(num_workgroups) grid: vec3u,
    @builtin(num_subgroups) subgroups: u32,
    @builtin(subgroup_size) width: u32,
    @builtin(local_invocation_index) index: u32,
    @builtin(global_invocation_id) gid: vec3u,
) {
"""

UNIFORM = {
    "an 'else' after an 'if' that assigns": "var x = 1u; if dims.x == 0 { x = lid.x; } "
    "else { if x == 1 { barrier(); } }",
    "a clause after one that assigns": "var x = 1u; switch dims.x { case 0: { x = lid.x; } "
    "default { if x == 1 { workgroupBarrier(); } } }",
    "after a branch that assigns and returns": "var x = 1u; if dims.x == 0 { x = lid.x; return; } "
    "if x == 1 { workgroupBarrier(); }",
    "after an 'else' that assigns and returns": "var x = 1u; if dims.x == 0 {} else { x = lid.x; return; } "
    "if x == 1 { workgroupBarrier(); }",
    "after both branches assign": "var x = lid.x; if dims.x == 0 { x = 1; } else { x = 2; } "
    "if x == 1 { workgroupBarrier(); }",
    "at the top": "workgroupBarrier();",
    "a loop over a uniform bound": "for (var k = 0u; k < dims.x; k += 16) { workgroupBarrier(); }",
    "a branch on the workgroup": "if wid.x == 0 { workgroupBarrier(); }",
    "after a divergent branch": "if lid.x == 0 { flag = 1; } workgroupBarrier();",
    "a divergent store that is overwritten": "var x = lid.x; x = 3; if x == 3 { workgroupBarrier(); }",
    "a value from workgroupUniformLoad": "let x = workgroupUniformLoad(&flag); if x > 0 { workgroupBarrier(); }",
    "a helper with a uniform argument": "if is_even(dims.x) { barrier(); }",
    "a pointer to a uniform variable": "var x = 1u; keep(&x); if x > 1 { workgroupBarrier(); }",
    "a call clears what it is assigned to": "var x = lid.x; x = clear(&x); if x == 0 { workgroupBarrier(); }",
    "a compound assignment loads before the call": "var x = 1u; x += taint(&x); if x == 1 { workgroupBarrier(); }",
    "an update loads before the call": "for (var x = 0u; x < 2; x += taint(&x)) { workgroupBarrier(); }",
    "a later argument clears what an earlier points to": "var x = lid.x; if sum(&x, clear(&x)) == 0 { barrier(); }",
    "a call on the right of a short circuit": "var x = 1u; _ = dims.x == 0 && cleared(&x); if x == 1 { barrier(); }",
    "the first of two pointers, of which the second is spoilt": (
        "var x = 1u; var z = 1u; spoil_second(&z, &x); if z > 1 { workgroupBarrier(); }"
    ),
    "subgroup operations in a branch on the subgroup": "if sid == 0 { data[1] = subgroupAdd(1u); }",
    "a branch on the grid": "if grid.x == 0 { workgroupBarrier(); }",
    "a branch on the number of subgroups": "if subgroups == 1 { workgroupBarrier(); }",
    "a branch on the subgroup size": "if width == 32 { workgroupBarrier(); }",
    "subgroup operations in a branch on the workgroup": "if wid.x + grid.x == 0 { data[1] = subgroupAdd(1u); }",
    "after a switch on a uniform value": "var x = 1u; switch dims.x { case 0: { x = 2; break; } default {} } "
    "if x == 2 { workgroupBarrier(); }",
    "a loop that overwrites what a switch continues with": "var x = 1u; loop { x = 1; if x == 1 { barrier(); } "
    "switch dims.x { case 0: { x = lid.x; continue; } default {} } continuing { break if dims.y == 0; } }",
    "what a switch continues with is overwritten there": "var x = 1u; loop { if x == 1 { workgroupBarrier(); } "
    "switch dims.x { case 0: { x = lid.x; continue; } default {} } continuing { x = 1; break if dims.y == 0; } }",
    "subgroup operations in a branch on the subgroups": "if width * subgroups == 4 { data[1] = subgroupAdd(1u); }",
}

DIVERGENT = {
    "a branch on the lane": "if lid.x < 32 { workgroupBarrier(); }",
    "after a divergent return": "if lid.x < 32 { return; } workgroupBarrier();",
    "a loop over a divergent bound": "for (var k = 0u; k < lid.x; k++) { workgroupBarrier(); }",
    "after a divergent break": "loop { if lid.x > 3 { break; } workgroupBarrier(); }",
    "before a divergent break": "loop { workgroupBarrier(); if lid.x > 3 { break; } }",
    "a branch on storage that is written": "if data[0] == 1 { workgroupBarrier(); }",
    "a branch on an atomic": "if atomicLoad(&shared_count) == 1 { workgroupBarrier(); }",
    "a helper in a divergent branch": "if lid.x == 0 { barrier(); }",
    "a helper with a divergent argument": "if is_even(lid.x) { barrier(); }",
    "a variable assigned divergently": "var x = 0; if lid.x == 0 { x = 1; } if x == 1 { workgroupBarrier(); }",
    "a variable spoilt through a pointer": "var x = 1u; spoil(&x); if x > 1 { workgroupBarrier(); }",
    "a variable spoilt through the second of two pointers": (
        "var x = 1u; var z = 1u; spoil_second(&z, &x); if x > 1 { workgroupBarrier(); }"
    ),
    "through a let pointer": "var x = 1u; let p = &x; *p = lid.x; if x > 1 { workgroupBarrier(); }",
    "a component kept from before": "var v = lid; v.x = 1; if v.x == 1 { workgroupBarrier(); }",
    "an element at a divergent index": "var a = array(1, 2); if a[lid.x] == 1 { workgroupBarrier(); }",
    "the right of a short circuit": "if lid.x == 0 && workgroupUniformLoad(&flag) == 1 { }",
    "a compound assignment keeps what it loaded": "var x = lid.x; x += clear(&x); if x == 0 { workgroupBarrier(); }",
    "so does an increment at an index": "var a = array(lid.x); a[clear(&a[0])]++; if a[0] == 1 { workgroupBarrier(); }",
    "an update that keeps it": "for (var x = lid.x; x < 2; x += clear(&x)) { workgroupBarrier(); }",
    "a later argument taints what an earlier points to": "var x = 1u; if sum(&x, taint(&x)) == 1 { barrier(); }",
    "the right of && may not run": "var x = lid.x; _ = dims.x == 0 && cleared(&x); if x == 0 { barrier(); }",
    "the right of || may not run": "var x = lid.x; let y = dims.x == 0 || cleared(&x); if x == 0 { barrier(); }",
    "nor in a condition": "var x = lid.x; if dims.x == 0 && cleared(&x) {} if x == 0 { barrier(); }",
    "nor in the condition of a loop": "var x = lid.x; while dims.x == 0 && cleared(&x) {} if x == 0 { barrier(); }",
    "nor in an argument": "var x = lid.x; _ = select(1, 2, dims.x == 0 && cleared(&x)); if x == 0 { barrier(); }",
    "nor after a divergent left side": "var x = 1u; _ = lid.x == 0 && cleared(&x); if x == 0 { workgroupBarrier(); }",
    "an 'else' that assigns": "var x = 1u; if dims.x == 0 {} else { x = lid.x; } if x == 1 { workgroupBarrier(); }",
    "a clause that assigns and falls out": "var x = 1u; switch dims.x { case 0: { x = lid.x; } case 1: {} default {} } "
    "if x == 1 { workgroupBarrier(); }",
    "a divergent switch": "switch lid.x { case 0: { workgroupBarrier(); } default {} }",
    "after a switch that a break leaves": "var x = 1u; switch dims.x { case 0: { x = lid.x; break; } default {} } "
    "if x == 1 { workgroupBarrier(); }",
    "after a switch whose last clause assigns": "var x = 1u; switch dims.x { case 0: {} default { x = lid.x; } } "
    "if x == 1 { workgroupBarrier(); }",
    "a loop that a switch continues": "var x = 1u; loop { if x == 1 { workgroupBarrier(); } "
    "switch dims.x { case 0: { x = lid.x; continue; } default {} } x = 1; continuing { break if dims.y == 0; } }",
    "a loop that a switch in a switch continues": "var x = 1u; loop { if x == 1 { workgroupBarrier(); } "
    "switch dims.x { case 0: { switch dims.z { case 1: { x = lid.x; continue; } default {} } } default {} } "
    "x = 1; continuing { break if dims.y == 0; } }",
    "the rest of a loop that a divergent switch continues": "loop { switch lid.x { case 0: { continue; } default {} } "
    "workgroupBarrier(); continuing { break if dims.y == 0; } }",
    "the inner of two loops, where a switch continues": "var x = 1u; loop { loop { if x == 1 { workgroupBarrier(); } "
    "switch dims.x { case 0: { x = lid.x; continue; } default {} } x = 1; continuing { break if dims.y == 0; } } "
    "x = 1; continuing { break if dims.y == 1; } }",
    "subgroup operations in a divergent branch": "if lid.x < 3 { data[1] = subgroupAdd(1u); }",
    "a branch on the subgroup": "if sid == 0 { workgroupBarrier(); }",
    "a branch on the lane of the subgroup": "if sub_lane == 0 { workgroupBarrier(); }",
    "a branch on the index of the invocation": "if index == 0 { workgroupBarrier(); }",
    "a branch on the place in the grid": "if gid.x == 0 { workgroupBarrier(); }",
    "subgroup operations in a branch on the subgroup's lane": "if sub_lane < 3 { data[1] = subgroupAdd(1u); }",
}


def main(statements: str) -> typed.Module:
    return check(Source(f"{HEAD} {statements} }}"))


@pytest.mark.parametrize("statements", UNIFORM.values(), ids=UNIFORM.keys())
def test_uniform(statements: str) -> None:
    assert main(statements).entry_points


@pytest.mark.parametrize("statements", DIVERGENT.values(), ids=DIVERGENT.keys())
def test_divergent(statements: str) -> None:
    with pytest.raises(WgslError) as error:
        main(statements)
    assert error.value.diagnostics[0].code == "non-uniform"


# Whether the results of an operation are equal in a subgroup.
SUBGROUP_RESULTS = {
    **dict.fromkeys(("Add", "Mul", "Max", "Min", "And", "Or", "Xor", "BroadcastFirst"), ("({value})", True)),
    **dict.fromkeys(("All", "Any"), ("({value} == 1)", True)),
    "Broadcast": ("({value}, 0)", True),
    "Ballot": ("({value} == 1).x", True),
    **dict.fromkeys(("ExclusiveAdd", "ExclusiveMul", "InclusiveAdd", "InclusiveMul"), ("({value})", False)),
    **dict.fromkeys(("Shuffle", "ShuffleXor", "ShuffleUp", "ShuffleDown"), ("({value}, 1u)", False)),
    "Elect": ("()", False),
}


@pytest.mark.parametrize("name", SUBGROUP_RESULTS)
def test_what_a_subgroup_operation_returns_is_uniform_in_a_subgroup_or_not(name: str) -> None:
    arguments, equal = SUBGROUP_RESULTS[name]
    call = f"let value = subgroup{name}{arguments.format(value='dims.x')};"
    condition = "value" if name in ("All", "Any", "Elect") else "value == 0"
    inside = f"{call} if {condition} {{ data[1] = subgroupAdd(1u); }}"
    if equal:
        assert main(inside).warnings == []
    else:
        with pytest.raises(WgslError, match="subgroupAdd"):
            main(inside)
    with pytest.raises(WgslError, match="workgroupBarrier"):  # the workgroup has several subgroups
        main(f"{call} if {condition} {{ workgroupBarrier(); }}")


def test_the_reason_is_told_where_it_is() -> None:
    with pytest.raises(WgslError) as error:
        main("if lid.x < 32 { workgroupBarrier(); }")
    diagnostic = error.value.diagnostics[0]
    assert diagnostic.span is not None
    assert diagnostic.span.text == "workgroupBarrier()"
    assert told(diagnostic) == [("under this condition", "lid.x < 32"), ("'lid' may differ between invocations", "lid")]


def told(diagnostic: Diagnostic) -> list[tuple[str, str]]:
    return [(note.message, note.span.text) for note in diagnostic.notes if note.span]


@pytest.mark.parametrize(
    ("read", "note"),
    [
        ("data[0]", "reading 'data' may give a non-uniform value"),
        ("flag", "reading 'flag' may give a non-uniform value; workgroupUniformLoad(&flag) does not"),
    ],
)
def test_only_workgroup_memory_can_be_loaded_uniformly(read: str, note: str) -> None:
    with pytest.raises(WgslError) as error:
        main(f"if {read} > 0 {{ workgroupBarrier(); }}")
    assert told(error.value.diagnostics[0])[-1][0] == note


LID = ("'lid' may differ between invocations", "lid")


@pytest.mark.parametrize(
    ("statements", "notes"),
    [
        ("if lid.x < 32 { return; } workgroupBarrier();", ["return", "lid.x < 32"]),
        ("loop { if lid.x < 32 { break; } workgroupBarrier(); }", ["break", "lid.x < 32"]),
        ("for (;;) { if wid.x == 0 { break; } if lid.x < 3 { continue; } barrier(); }", ["continue", "lid.x < 3"]),
        ("switch lid.x { case 0: { return; } default { } } workgroupBarrier();", ["return", "lid.x"]),
        ("loop { if lid.x > 3 { return; } break; } workgroupBarrier();", ["return", "lid.x > 3"]),
    ],
)
def test_a_jump_before_the_barrier_is_told_with_its_condition(statements: str, notes: list[str]) -> None:
    with pytest.raises(WgslError) as error:
        main(statements)
    diagnostic = error.value.diagnostics[0]
    jump, condition = notes
    steps = [note for note in told(diagnostic) if "called" not in note[0]]
    assert steps[0] == (f"after this '{jump}'", f"{jump}")
    assert steps[-2][1] == condition
    assert steps[-1] == LID
    assert diagnostic.hint is not None
    assert f"instead of the '{jump}'" in diagnostic.hint


def test_a_barrier_in_a_helper_is_told_with_its_call() -> None:
    with pytest.raises(WgslError) as error:
        main("if lid.x < 32 { barrier(); }")
    diagnostic = error.value.diagnostics[0]
    assert diagnostic.span is not None
    assert diagnostic.span.text == "workgroupBarrier()"
    assert [note.message for note in diagnostic.notes] == [
        "'barrier' is called here",
        "under this condition",
        "'lid' may differ between invocations",
    ]


@pytest.mark.parametrize(("severity", "warnings"), [("off", []), ("warning", ["warning"])])
def test_the_whole_analysis_can_be_toned_down(severity: str, warnings: list[str]) -> None:
    made = check(Source(f"{HEAD} if lid.x < 32 {{ workgroupBarrier(); }} }}"), uniformity=severity)
    assert [w.severity for w in made.warnings] == warnings


@pytest.mark.parametrize(("severity", "warnings"), [("off", []), ("warning", ["warning"]), ("info", ["info"])])
def test_a_filter_changes_the_severity(severity: str, warnings: list[str]) -> None:
    made = main(f"@diagnostic({severity}, subgroup_uniformity) if lid.x < 3 {{ data[1] = subgroupAdd(1u); }}")
    assert [w.severity for w in made.warnings] == warnings


def test_a_struct_of_inputs_is_uniform_if_each_member_is() -> None:
    text = """
    struct In { @builtin(workgroup_id) group: vec3u, MEMBER }
    @compute @workgroup_size(64) fn main(in: In) { if in.group.x == 0 { workgroupBarrier(); } }
    """
    check(Source(text.replace("MEMBER", "@builtin(num_workgroups) grid: vec3u")))
    with pytest.raises(WgslError) as error:
        check(Source(text.replace("MEMBER", "@builtin(local_invocation_index) lane: u32")))
    assert error.value.diagnostics[0].code == "non-uniform"
    assert ("'in' may differ between invocations", "in") in told(error.value.diagnostics[0])


def test_what_fails_in_a_helper_is_told_there_alone():
    helper = "fn where_read(x: u32) { if data[0] == x { workgroupBarrier(); } }\n@compute"
    text = HEAD.replace("@compute", helper) + " where_read(lid.x); where_read(wid.x); }"
    (warning,) = check(Source(text), uniformity="warning").warnings
    assert warning.span is not None
    assert warning.span.text == "workgroupBarrier()"
    assert ("under this condition", "data[0] == x") in told(warning)


def test_of_two_arguments_that_are_not_uniform_the_first_is_told() -> None:
    params = ", ".join(f"x{i}: u32" for i in range(6))
    total = " + ".join(f"x{i}" for i in reversed(range(6)))
    result = f"fn total({params}) -> u32 {{ return {total}; }}"
    need = f"fn where_none({params}) {{ if {total} == 0 {{ barrier(); }} }}"
    head = HEAD.replace("@compute", f"{result}\n{need}\n@compute")
    for first, second in combinations(range(6), 2):
        arguments = ", ".join(f"data[{i}]" if i in (first, second) else "dims.x" for i in range(6))
        for statement in (f"if total({arguments}) == 0 {{ barrier(); }}", f"where_none({arguments});"):
            with pytest.raises(WgslError) as error:
                check(Source(f"{head} {statement} }}"))
            assert told(error.value.diagnostics[0])[-1][1] == f"data[{first}]"
