"""Accesses to four neighbors in an array, which the machine may take at once: the same as one by one."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.codegen import wide_accesses
from bankshot.sim.codegen.build import INSTRUCTION_PASSES
from bankshot.sim.codegen.virtual_registers import Ins, Reg
from bankshot.sim.ir import passes
from bankshot.sim.machine import instruction as field
from bankshot.sim.machine import opcodes as op

LANES, WORDS = 40, 256
ALONE = passes.ALL - frozenset(INSTRUCTION_PASSES)
KINDS = {"f32": (np.float32, ""), "u32": (np.uint32, ""), "f16": (np.float16, "enable f16;")}
# index of the first of four neighbors, in WGSL and in NumPy
PLACES = {
    "apart": ("i * 4u + 1u", lambda i: i * 4 + 1),
    "apart, with gaps": ("i * 5u", lambda i: i * 5),
    "padded rows": ("i / 4u * 17u + i % 4u * 4u", lambda i: i // 4 * 17 + i % 4 * 4),
    "descending, with gaps": ("(39u - i) * 5u", lambda i: (39 - i) * 5),
    "overlapping": ("i * 2u + 3u", lambda i: i * 2 + 3),
    "overlapping, one further": ("i + 9u", lambda i: i + 9),
    "the same in pairs": ("i / 2u * 4u", lambda i: i // 2 * 4),
    "scattered": ("(i * 37u) % 64u * 4u", lambda i: i * 37 % 64 * 4),
    "past the end": ("i * 4u + 120u", lambda i: i * 4 + 120),
    "the last past the end": ("i * 4u + 97u", lambda i: i * 4 + 97),
    "before the start": ("i * 4u - 2u", lambda i: i * 4 - 2),
}
LOADS = """{enable}
@group(0) @binding(0) var<storage, read> x: array<{kind}>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<{kind}>>;
@compute @workgroup_size({lanes}) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {{
    let at = {place};
    y[w.x * {lanes}u + i] = vec4(x[at], x[at + 1u], x[at + 2u], x[at + 3u]);
}}
"""
STORES = """{enable}
{memory}
@group(0) @binding(0) var<storage, read> x: array<vec4<{kind}>>;
@group(0) @binding(1) var<storage, read_write> y: array<{kind}>;
@compute @workgroup_size({lanes}) fn main(@builtin(local_invocation_index) i: u32) {{
    let at = {place};
    let v = x[i];
    {to}[at] = v.x; {to}[at + 1u] = v.y; {to}[at + 2u] = v.z; {to}[at + 3u] = v.w;
    {copy}
}}
"""
IN_WORKGROUP = "workgroupBarrier(); for (var k = i; k < 256u; k += 40u) { y[k] = tile[k]; }"


def neighbors(program, opcode):
    """The accesses of this kind that start four with ascending constants."""
    code = program.code
    starts = [n for n in range(len(code) - 4) if code[n, field.OP] == opcode]
    return [n for n in starts if (np.diff(code[n : n + 4, field.CONSTANT]) == 1).all()]


@pytest.mark.parametrize("policy", ["clamp", "zero", "wrap"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_loads_of_neighbors(place, kind, policy):
    (dtype, enable), (text, places) = KINDS[kind], PLACES[place]
    x = np.arange(1, WORDS + 1).astype(dtype)
    source = LOADS.format(enable=enable, kind=kind, lanes=LANES, place=text)
    bindings = {"x": x, "y": np.zeros((2 * LANES, 4), dtype)}
    run = bankshot.simulate(source, grid=2, bindings=bindings, probes="none", out_of_bounds=policy)
    if kind != "f16":  # whose loads have conversions between them
        (start,) = neighbors(run.program, op.LOAD)
        assert run.program.code[start, field.MASK] == field.FOUR
    at = (places(np.arange(LANES))[:, None] + np.arange(4)) % 2**32  # indices wrap like u32
    inside = at < WORDS
    expected = {
        "clamp": x[np.minimum(at, WORDS - 1)],
        "zero": np.where(inside, x[np.minimum(at, WORDS - 1)], 0),
        "wrap": x[at % WORDS],
    }[policy]
    assert run.outputs["y"].tolist() == [*expected.tolist(), *expected.tolist()]


@pytest.mark.parametrize("policy", ["clamp", "zero"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory", ["storage", "workgroup"])
@pytest.mark.parametrize("place", PLACES)
def test_stores_to_neighbors(place, memory, kind, policy):
    (dtype, enable), (text, places) = KINDS[kind], PLACES[place]
    x = np.arange(1, 4 * LANES + 1).astype(dtype).reshape(LANES, 4)
    shared = memory == "workgroup"
    source = STORES.format(
        enable=enable,
        kind=kind,
        lanes=LANES,
        place=text,
        memory=f"var<workgroup> tile: array<{kind}, {WORDS}>;" if shared else "",
        to="tile" if shared else "y",
        copy=IN_WORKGROUP if shared else "",
    )
    bindings = {"x": x, "y": np.zeros(WORDS, dtype)}
    run = bankshot.simulate(source, grid=1, bindings=bindings, probes="none", out_of_bounds=policy)
    assert kind == "f16" or neighbors(run.program, op.STORE_FOUR)
    expected = np.zeros(WORDS, dtype)
    for word in range(4):
        for lane in range(LANES):
            at = (places(lane) + word) % 2**32
            if at < WORDS or policy == "clamp":
                expected[min(at, WORDS - 1)] = x[lane, word]
    alone = run._dispatch.run(frozenset(), passes=ALONE)[0].outputs()["y"]
    assert run.outputs["y"].tolist() == alone.tolist()
    if "overlapping" not in place and "end" not in place and "before" not in place:
        assert run.outputs["y"].tolist() == expected.tolist()


def test_loads_that_follow_one_another_go_one_by_one():
    source = """
        @group(0) @binding(0) var<storage, read> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
            var at = i;
            at = x[at]; at = x[at + 1u]; at = x[at + 2u]; at = x[at + 3u];
            y[i] = at;
        }
        """
    x = np.random.default_rng(3).integers(0, 60, 64).astype(np.uint32)
    run = bankshot.simulate(source, grid=1, bindings={"x": x, "y": np.zeros(32, np.uint32)}, probes="none")
    at = np.arange(32)
    for more in range(4):
        at = x[at + more]
    assert run.outputs["y"].tolist() == at.tolist()


WORDS_OF = [(8, 0), (8, 1), (8, 2), (8, 3)]  # the access and the constant of each
ADDRESSES, SHIFTS = Reg(), Reg()


def loads(places, **changed):
    """Four loads at these places; `changed`: of a field, which load has which value."""
    four = [Ins(op.LOAD, Reg(), ADDRESSES, -1, constant, access, mask=0, x=SHIFTS) for access, constant in places]
    for name, (number, value) in changed.items():
        setattr(four[number], name, value)
    return four


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (WORDS_OF, True),
        ([(8, 5), (9, 5), (10, 5), (11, 5)], True),
        ([(9, 4), (10, 4), (11, 4), (11, 5)], True),  # some units of one element, then the next word
        ([(10, 4), (11, 4), (12, 4), (13, 4)], False),  # the units of one access end before 12
        ([(8, 0), (8, 1), (8, 3), (8, 4)], False),
        ([(8, 0), (8, 1), (8, 1), (8, 2)], False),
        ([(8, 3), (8, 2), (8, 1), (8, 0)], False),
        ([(8, 0), (9, 1), (10, 2), (11, 3)], False),
        ([(11, 0), (10, 1), (9, 2), (8, 3)], False),
        ([(8, 0), (8, 1), (8, 2), (8, 4)], False),
        ([(8, 0), (8, 1), (8, 2), (9, 2)], True),
        ([(8, 0), (10, 0), (11, 0), (11, 1)], False),
    ],
)
def test_four_loads_of_consecutive_words(places, expected):
    assert wide_accesses.are_consecutive(loads(places)) == expected


@pytest.mark.parametrize("number", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("name", "value"), [("op", op.LOAD_KNOWN), ("a", Reg()), ("b", Reg()), ("x", Reg()), ("mask", field.ONE_LANE)]
)
def test_four_loads_at_other_addresses(name, value, number):
    assert not wide_accesses.are_consecutive(loads(WORDS_OF, **{name: (number, value)}))


@pytest.mark.parametrize(("number", "expected"), [(0, False), (1, False), (2, False), (3, True)])
def test_a_load_that_changes_the_addresses_of_the_next_one(number, expected):
    assert wide_accesses.are_consecutive(loads(WORDS_OF, dest=(number, ADDRESSES))) == expected
