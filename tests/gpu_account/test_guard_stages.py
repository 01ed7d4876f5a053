"""Where the stages of an entry point begin: marked in the text with a ^, worked out from the rule in `guards`."""

import pytest

import bankshot
from bankshot.oracle.gpu_account.guards import find_stages

HEAD = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read_write> sum: atomic<u32>;
var<workgroup> tile: array<f32, 8>;
var<private> mine: f32;
"""
WORK = "fn work(i: u32) { y[i] = 1.0; }\n"
LEAVES = "fn work(i: u32) {^ if i > 50u { return; }^ y[i] = 1.0; }\n"
READS = "fn work(i: u32) -> f32 { if i > 9u { return 0.0; } return y[i]; }\n"
PURE = "fn pure(x: f32) -> f32 { if x > 9.0 { return x; } return x + x; }\n"
MAIN = "@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32)"

# The functions before the entry point, and its body.
BODIES = {
    "no guard": ("", "{^ y[i] = 1.0; }"),
    "a return": ("", "{^ if i > 5u { return; }^ y[i] = 1.0; }"),
    "a return at the end": ("", "{^ y[i] = 1.0; if i > 5u { return; } }"),
    "a return in a loop": ("", "{^ for (var k = 0u; k < 5u; k++) { y[k] = 1.0; if k > i { return; } }^ y[i] = 2.0; }"),
    "a return in a block": ("", "{^ { if i > 5u { return; }^ y[i] = 1.0; } y[i] += 2.0; }"),
    "two returns": ("", "{^ if i > 6u { return; }^ y[i] = 1.0; if i > 5u { return; }^ y[i] = 2.0; }"),
    "a break": ("", "{^ loop { if i > 3u { break; } y[i] = 1.0; }^ y[i] = 2.0; }"),
    "a continue": ("", "{^ for (var k = 0u; k < 5u; k++) { if k == i { continue; } y[k] = 1.0; }^ y[i] = 2.0; }"),
    "a loop without a jump": ("", "{^ for (var k = 0u; k < 5u; k++) { y[k] = 1.0; } y[i] = 2.0; }"),
    "an if around all": ("", "{^ let f = f32(i); if i < 5u {^ y[i] = f; } }"),
    "an if around all, and then more": ("", "{^ if i < 5u {^ y[i] = 1.0; }^ let f = f32(i); }"),
    "an if with work beside it": ("", "{^ y[0] = 1.0; if i < 5u { y[i] = 2.0; } }"),
    "an if within an if": ("", "{^ if i < 5u {^ if i > 2u {^ y[i] = 1.0; } } }"),
    "an else": ("", "{^ if i < 5u { mine = 1.0; } else {^ y[i] = 1.0; } }"),
    "an else if": ("", "{^ if i < 2u { } else if ^i < 5u {^ y[i] = 1.0; } }"),
    "both arms": ("", "{^ if i < 5u { y[i] = 1.0; } else { y[i] = 2.0; } }"),
    "neither arm": ("", "{^ if i < 5u { mine = 1.0; } else { mine = 2.0; } }"),
    "a condition with work": ("", "{^ if y[i] > 5.0 { y[i] = 1.0; } }"),
    "a switch": ("", "{^ switch i { case 1u: {^ y[i] = 1.0; } default: { } } }"),
    "a switch on work": ("", "{^ switch u32(y[i]) { case 1u: { y[i] = 1.0; } default: { } } }"),
    "a switch in two arms": ("", "{^ switch i { case 1u: { y[i] = 1.0; } case 2u: { y[i] = 2.0; } default: { } } }"),
    "a switch with a break": ("", "{^ switch i { case 1u: {^ if i > 2u { break; }^ y[i] = 1.0; } default: { } } }"),
    "a switch with a return": ("", "{^ switch i { case 1u: { return; } default: { } }^ y[i] = 1.0; }"),
    "a loop around all": ("", "{^ for (var k = 0u; k < i; k++) { if k > 2u { y[i] = 1.0; } } }"),
    "a call": (LEAVES, "{^ work(i); }"),
    "a call, and then more": (WORK.replace("{ y", "{^ y"), "{^ work(i)^; mine = 1.0; }"),
    "a call in an if": (LEAVES, "{^ if i < 5u {^ work(i); } }"),
    "two calls": (WORK, "{^ work(i); work(i + 1u); }"),
    "two calls in a statement": (READS, "{^ mine = work(i) + work(i + 1u); }"),
    "a call whose result is private": (READS.replace("{ if", "{^ if").replace("} return", "}^ return"),
                                       "{^ mine = work(i); }"),
    "a call whose result is stored": (READS, "{^ y[i] = work(i + 1u); }"),
    "a call beside a load": (READS, "{^ mine = work(i) + y[i]; }"),
    "a call without work": (PURE, "{^ mine = pure(1.0); y[i] = mine; }"),
    "an if around a call without work": (PURE, "{^ if i < 3u { mine = pure(1.0); } else {^ y[i] = 2.0; } }"),
    "workgroup memory": ("", "{^ if i < 5u {^ tile[i] = 1.0; } }"),
    "private memory": ("", "{^ y[0] = 0.0; if i < 5u { mine = 1.0; } }"),
    "a compound assignment": ("", "{^ if i < 5u {^ tile[i] += 1.0; } }"),
    "a load alone": ("", "{^ if i < 5u {^ mine = tile[i]; } }"),
    "an atomic": ("", "{^ if i < 5u {^ atomicAdd(&sum, 1u); } }"),
    "a barrier": ("", "{^ if i < 5u { mine = 1.0; } workgroupBarrier(); y[i] = mine; }"),
    "the length of an array": ("", "{^ if i < 5u { mine = f32(arrayLength(&y)); } else {^ y[i] = 1.0; } }"),
    "an if that is decided": ("const ON = true; ", "{^ if ON { if i > 5u { return; }^ y[i] = 1.0; } y[i] += 2.0; }"),
    "an else that is decided": ("const ON = false; ", "{^ if ON { y[i] = 0.0; } else { if i > 5u { return; }^ "
                                                      "y[i] = 1.0; } }"),
    "an override that decides": ("override ON = true; ", "{^ if ON { if i > 5u { return; }^ y[i] = 1.0; } }"),
    "nothing left of an if": ("const ON = false; ", "{^ if ON { return; } y[i] = 1.0; }"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_stages_begin_where_the_text_is_marked(name):
    functions, body = BODIES[name]
    marked = f"{HEAD}{functions}{MAIN} {body}"
    text = marked.replace("^", "")
    stages = find_stages(bankshot.check(text, uniformity="off").pipeline())
    found = set()
    for stage in stages:
        start = stage.span.start
        opens = text.find("{", start) + 1
        found.add({"open": opens, "after": stage.span.end, "condition": start}[stage.how])
    assert "".join("^" * (at in found) + char for at, char in enumerate(text)) == marked
    assert len(found) == len(stages)
