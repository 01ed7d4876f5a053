"""Atomics in place of loads and stores: each kind of statement, with the text that it becomes, written by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import bankshot
from bankshot.sim.cures.atomics import atomic_changes
from bankshot.sim.cures.changes import Change, Race
from bankshot.sim.cures.places import Places
from bankshot.sim.wgsl.source import Span
from bankshot.sim.wgsl.text_edits import replaced

HEAD = """@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<u32>;
var<workgroup> n: u32;
var<workgroup> t: array<u32, 4>;
var<workgroup> s: i32;
var<workgroup> f: f32;
var<workgroup> v: vec4u;
fn main_part(i: u32) {{ {part} }}
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {{ main_part(i); _ = &x;
{body}
}}
"""


def changed(body: str, *, variable: str = "n", part: str = "", at: tuple[str, str] | None = None,
            same_value: bool = False) -> list[tuple[Change, str]]:  # fmt: skip
    """The changes for a race of a variable, and the text of each; `at`: where the accesses begin, or at its first."""
    text = HEAD.format(body=body, part=part)
    module = bankshot.check(text, uniformity="off")
    first = text.index(part) if part else text.index("_ = &x;") + len("_ = &x;")
    places = [text.index(each, first) for each in at or (variable, variable)]
    spans = [Span(module.source, start, start + len(variable)) for start in places]
    race = Race(spans[0], spans[1], "workgroup", variable, across=False, same_value=same_value)
    found = atomic_changes(module.source, Places(module.functions["main"]), [race])
    return [(change, replaced(text, change.replacements)) for change in found]


def _updates() -> Iterator[tuple[str, str]]:
    for sign, name in {"+": "Add", "-": "Sub", "&": "And", "|": "Or", "^": "Xor"}.items():
        yield f"n {sign}= i;", f"atomic{name}(&n, i);"
        yield f"n = n {sign} i;", f"atomic{name}(&n, i);"
        if sign != "-":
            yield f"n = (i * 2u) {sign} n;", f"atomic{name}(&n, i * 2u);"
    for name in ("max", "min"):
        yield f"n = {name}(n, i);", f"atomic{name.title()}(&n, i);"
        yield f"n = {name}(i, n);", f"atomic{name.title()}(&n, i);"
    for sign, mirrored, name in (("<", ">", "Max"), ("<=", ">=", "Max"), (">", "<", "Min"), (">=", "<=", "Min")):
        yield f"if n {sign} i {{ n = i; }}", f"atomic{name}(&n, i);"
        yield f"if i {mirrored} n {{ n = i; }}", f"atomic{name}(&n, i);"


UPDATES = {
    **dict(_updates()),
    "n++;": "atomicAdd(&n, 1);",
    "n--;": "atomicSub(&n, 1);",
    # in blocks, with other uses of the variable beside
    "if i > 1u { n += i; }": "if i > 1u { atomicAdd(&n, i); }",
    "if i > 1u { y[0] = 1u; } else { n += i; }": "if i > 1u { y[0] = 1u; } else { atomicAdd(&n, i); }",
    "{ n += i; }": "{ atomicAdd(&n, i); }",
    "for (var k = 0u; k < 2u; k++) { { n += k; } }": "for (var k = 0u; k < 2u; k++) { { atomicAdd(&n, k); } }",
    "loop { n++; if i < 2u { break; } }": "loop { atomicAdd(&n, 1); if i < 2u { break; } }",
    "n += n;": "atomicAdd(&n, atomicLoad(&n));",
    "n += i; y[i] = n * n;": "atomicAdd(&n, i); y[i] = atomicLoad(&n) * atomicLoad(&n);",
    "n += i; n = 0u;": "atomicAdd(&n, i); atomicStore(&n, 0u);",
    "n += i; n = n * 2u;": "atomicAdd(&n, i); atomicStore(&n, atomicLoad(&n) * 2u);",
    "n += i; if n > 2u { y[n] = 1u; }": "atomicAdd(&n, i); if atomicLoad(&n) > 2u { y[atomicLoad(&n)] = 1u; }",
    "n += i; while n < 2u { n++; }": "atomicAdd(&n, i); while atomicLoad(&n) < 2u { atomicAdd(&n, 1); }",
}  # fmt: skip


@pytest.mark.parametrize("body", UPDATES)
def test_an_update_becomes_atomic(body: str) -> None:
    ((change, text),) = changed(body)
    head = HEAD.format(body=UPDATES[body], part="").replace("n: u32;", "n: atomic<u32>;")
    assert text == head
    assert (change.effort, change.straight, len(change.orders), change.depth) == (3, 1, 1, 0)


ARRAYS = {
    ("t", "t[i] += i;"): "atomicAdd(&t[i], i);",
    ("t", "t[t[i]] += t[1];"): "atomicAdd(&t[atomicLoad(&t[i])], atomicLoad(&t[1]));",
    ("t", "t[0] = t[0] + i;"): "atomicAdd(&t[0], i);",
    ("t", "t[1] += i; t[t[0]] = t[2];"): "atomicAdd(&t[1], i); atomicStore(&t[atomicLoad(&t[0])], atomicLoad(&t[2]));",
    ("y", "y[0]++; y[i] = 2u;"): "atomicAdd(&y[0], 1); atomicStore(&y[i], 2u);",
    ("s", "s += i32(i);"): "atomicAdd(&s, i32(i));",
}  # fmt: skip
TYPES = {
    "t": ("array<u32, 4>", "array<atomic<u32>, 4>"),
    "y": ("y: array<u32>", "y: array<atomic<u32>>"),
    "s": ("i32;", "atomic<i32>;"),
}


@pytest.mark.parametrize(("variable", "body"), ARRAYS)
def test_elements_and_other_types(variable: str, body: str) -> None:
    ((_, text),) = changed(body, variable=variable)
    assert text == HEAD.format(body=ARRAYS[variable, body], part="").replace(*TYPES[variable], 1)


NOT_ATOMIC = {
    "another operation": ("n", "n *= i;"),
    "the other order of a difference": ("n", "n = i - n;"),
    "an operation that has no atomic": ("n", "n = n << i;"),
    "another value than the compared one": ("n", "if n < i { n = 3u; }"),
    "another value than the one before the sign": ("n", "if i > n { n = 3u; }"),
    "another word than the compared one": ("t", "if t[0] < i { t[1] = i; }"),
    "another word than the loaded one": ("t", "t[0] = t[1] + i;"),
    "an else": ("n", "if n < i { n = i; } else { y[0] = 1u; }"),
    "another statement in the branch": ("n", "if n < i { n = i; y[0] = 1u; }"),
    "an equality": ("n", "if n != i { n = i; }"),
    "a type that has no atomics": ("f", "f += 1.0;"),
    "components": ("v", "v.x += i;"),
    "an address": ("n", "n += i; let p = &n; *p = 1u;"),
    "a copy of all": ("t", "t[0] += i; let all = t; y[i] = all[i];"),
    "a load alone": ("n", "y[i] = n;"),
    "memory that is only read": ("x", "y[i] = x[i];"),
}


@pytest.mark.parametrize("why", NOT_ATOMIC)
def test_what_has_no_atomic_stays(why: str) -> None:
    variable, body = NOT_ATOMIC[why]
    assert changed(body, variable=variable) == []


def test_both_accesses_must_be_updates() -> None:
    """An update and a load of another statement race: an atomic makes neither order certain."""
    assert changed("n += i; y[i] = n;", at=("n += i", "n;")) == []
    assert changed("n += i; y[i] = n;", at=("n;", "n += i")) == []
    assert changed("n += n;", at=("n += n", "n;")) == []  # the operand is loaded apart
    assert len(changed("n += i; y[i] = n;", at=("n += i", "n += i"))) == 1
    assert len(changed("n += i; n -= i;", at=("n += i", "n -= i"))) == 1


def test_stores_of_one_value_become_atomic() -> None:
    ((change, text),) = changed("n = 7u;", same_value=True)
    assert text == HEAD.format(body="atomicStore(&n, 7u);", part="").replace("n: u32;", "n: atomic<u32>;")
    assert change.words == "atomicStore with n of atomic<u32>"


def test_functions_that_the_entry_point_calls_change_too() -> None:
    ((change, text),) = changed("n -= i;", part="n += i; n += 2u;")
    part = "atomicAdd(&n, i); atomicAdd(&n, 2u);"
    assert text == HEAD.format(body="atomicSub(&n, i);", part=part).replace("n: u32;", "n: atomic<u32>;")
    assert change.words == "atomicSub in line 11 and atomicAdd in line 8 with n of atomic<u32>"


def test_a_change_for_each_variable() -> None:
    text = HEAD.format(body="n += i; t[0] -= i;", part="")
    module = bankshot.check(text)
    races: list[Race] = []
    for variable, start in (("n", text.index("n +=")), ("t", text.index("t[0]")), ("f", 0)):
        span = Span(module.source, start, start + 1)
        races.append(Race(span, span, "workgroup", variable, across=False))
    found = list(atomic_changes(module.source, Places(module.functions["main"]), races))
    assert [(change.words, change.orders) for change in found] == [
        ("atomicAdd in line 11 with n of atomic<u32>", {races[0]}),
        ("atomicSub in line 11 with t of atomic<u32>", {races[1]}),
    ]
