"""Subgroup and quad operations against a model of one subgroup: the result of each active lane, in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.sim.models import get

DTYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "u32": np.uint32}
# Lanes per subgroup, per workgroup, and workgroups: the last subgroup is never full, small workgroups share a batch.
SHAPES = [(4, 50, 3), (8, 50, 3), (32, 50, 3), (64, 150, 2), (128, 150, 2), (128, 50, 3)]
HEADER = "enable subgroups; enable f16; diagnostic(off, subgroup_uniformity);\n"


def device(size: int) -> bankshot.Device:
    return get("nvidia").with_(subgroup_size=size)


class Lanes(dict[int, Any]):
    """Active lane -> value; `every` holds those of the lanes that are not active too."""

    every: dict[int, Any]

    def __init__(self, active: dict[int, Any]) -> None:
        super().__init__(active)
        self._folded: dict[Any, dict[int, tuple[Any, Any]]] = {}

    def folded(self, combine: Callable[[Any, Any], Any]) -> dict[int, tuple[Any, Any]]:
        """For each active lane, the values of those before it, combined in lane order, and with its own. None where
        there are none before it."""
        if combine not in self._folded:
            through = list(accumulate((self[k] for k in sorted(self)), combine))
            self._folded[combine] = dict(zip(sorted(self), zip([None, *through], through, strict=False), strict=True))
        return self._folded[combine]


Model = Callable[[Lanes, int, int], Any]  # the value that one active lane gets; the last is its argument


def whole(combine: Callable[[Any, Any], Any]) -> Model:
    return lambda lanes, lane, argument: lanes.folded(combine)[max(lanes)][1]


def inclusive(combine: Callable[[Any, Any], Any]) -> Model:
    return lambda lanes, lane, argument: lanes.folded(combine)[lane][1]


def exclusive(combine: Callable[[Any, Any], Any], first: int) -> Model:
    def model(lanes: Lanes, lane: int, argument: int) -> Any:
        before, _ = lanes.folded(combine)[lane]
        return first if before is None else before

    return model


def source(choose: Callable[[int, int], int]) -> Model:
    """The value of a chosen lane, active or not; our choice where there is no such lane is 0."""
    return lambda lanes, lane, argument: lanes.every.get(choose(lane, argument), 0)


def source_or_last(choose: Callable[[int, int], int]) -> Model:
    """The value of a chosen lane, active or not; our choice where there is no such lane is the last one."""
    return lambda lanes, lane, argument: lanes.every.get(choose(lane, argument), lanes.every[max(lanes.every)])


ARITHMETIC: dict[str, Model] = {
    "subgroupAdd(x)": whole(np.add),
    "subgroupInclusiveAdd(x)": inclusive(np.add),
    "subgroupExclusiveAdd(x)": exclusive(np.add, 0),
    "subgroupMul(x)": whole(np.multiply),
    "subgroupInclusiveMul(x)": inclusive(np.multiply),
    "subgroupExclusiveMul(x)": exclusive(np.multiply, 1),
    "subgroupMin(x)": whole(min),
    "subgroupMax(x)": whole(max),
    "subgroupBroadcast(x, 3)": source(lambda lane, argument: 3),
    "subgroupBroadcast(x, 40)": source(lambda lane, argument: 40),
    "subgroupBroadcastFirst(x)": lambda lanes, lane, argument: lanes[min(lanes)],
    "subgroupShuffle(x, y)": source_or_last(lambda lane, argument: argument),
    "subgroupShuffle(x, i32(y) - 2)": source_or_last(lambda lane, argument: argument - 2),
    "subgroupShuffleUp(x, 5)": source(lambda lane, argument: lane - 5),
    "subgroupShuffleDown(x, 3)": source(lambda lane, argument: lane + 3),
    "subgroupShuffleXor(x, 6)": source(lambda lane, argument: lane ^ 6),
    "quadBroadcast(x, 2)": source(lambda lane, argument: lane // 4 * 4 + 2),
    "quadSwapX(x)": source(lambda lane, argument: lane + (1, -1)[lane % 2]),
    "quadSwapY(x)": source(lambda lane, argument: lane + (2, 2, -2, -2)[lane % 4]),
    "quadSwapDiagonal(x)": source(lambda lane, argument: lane // 4 * 4 + 3 - lane % 4),
}
BITWISE: dict[str, Model] = {
    "subgroupAnd(x)": whole(np.bitwise_and),
    "subgroupOr(x)": whole(np.bitwise_or),
    "subgroupXor(x)": whole(np.bitwise_xor),
}


def expected(model: Model, x: Any, y: Any, active: Any, size: int, workgroup: int) -> Any:
    """What the model gives every active invocation of the grid; 0 in the others."""
    out = np.zeros_like(x)
    for start in range(0, len(x), workgroup):
        for first in range(start, start + workgroup, size):
            last = min(first + size, start + workgroup)
            lanes = Lanes({i - first: x[i] for i in range(first, last) if active[i]})
            lanes.every = dict(enumerate(x[first:last]))
            with np.errstate(all="ignore"):
                for lane in lanes:
                    out[first + lane] = model(lanes, lane, int(y[first + lane]))
    return out


def kernel(body: str, workgroup: int, type_: str, result: str | None = None) -> str:
    return (
        HEADER
        + f"""
        @group(0) @binding(0) var<storage, read> xs: array<{type_}>;
        @group(0) @binding(1) var<storage, read> ys: array<u32>;
        @group(0) @binding(2) var<storage, read> on: array<u32>;
        @group(0) @binding(3) var<storage, read_write> out: array<{result or type_}>;
        @compute @workgroup_size({workgroup})
        fn main(@builtin(global_invocation_id) gid: vec3u) {{
            let g = gid.x;
            let x = xs[g];
            let y = ys[g];
            {body}
        }}"""
    )


def numbers(rng: np.random.Generator, kind: str, count: int) -> Any:
    if kind in ("f32", "f16"):
        return rng.uniform(-2, 2, count).astype(DTYPES[kind])
    return rng.integers(0, 1 << 32, count, np.uint32).view(DTYPES[kind])


def run(wgsl: str | bankshot.Module, size: int, groups: int, out: Any, **bindings: Any) -> Any:
    return bankshot.simulate(wgsl, grid=groups, bindings={**bindings, "out": out}, device=device(size)).outputs["out"]


CASES = [(e, m, k) for e, m in ARITHMETIC.items() for k in DTYPES]
CASES += [(e, m, k) for e, m in BITWISE.items() for k in ("i32", "u32")]


@pytest.mark.parametrize(("expression", "model", "kind"), CASES, ids=lambda c: c if isinstance(c, str) else "")
def test_every_operation_on_some_of_the_lanes(expression: str, model: Model, kind: str) -> None:
    """In every shape for one kind of float and one of integer; in the first and the last for the other two."""
    rng = np.random.default_rng(len(expression))
    for size, workgroup, groups in SHAPES if kind in ("f32", "u32") else SHAPES[::5]:
        count = workgroup * groups
        x, y = numbers(rng, kind, count), rng.integers(0, size + 3, count, np.uint32)
        module = bankshot.check(kernel(f"if (on[g] == 1) {{ out[g] = {expression}; }}", workgroup, kind))
        for share in (1.0, 0.6):
            on = (rng.random(count) < share).astype(np.uint32)
            got = run(module, size, groups, np.zeros_like(x), xs=x, ys=y, on=on)
            want = expected(model, x, y, on, size, workgroup)
            np.testing.assert_array_equal(got, want, f"{size} lanes, {workgroup} invocations")


PREDICATES: dict[str, Model] = {
    "subgroupAll(x == 1)": lambda lanes, lane, argument: all(lanes.values()),
    "subgroupAny(x == 1)": lambda lanes, lane, argument: any(lanes.values()),
    "subgroupElect()": lambda lanes, lane, argument: lane == min(lanes),
    "subgroupElect() && x == 1": lambda lanes, lane, argument: lane == min(lanes) and lanes[lane] == 1,
}


@pytest.mark.parametrize("expression", PREDICATES)
def test_every_predicate_on_some_of_the_lanes(expression: str) -> None:
    rng = np.random.default_rng(1)
    for size, workgroup, groups in SHAPES:
        count = workgroup * groups
        for share in (0.02, 0.5, 0.98):  # of the lanes that hold 1: all and any are both seen
            x = (rng.random(count) < share).astype(np.uint32)
            on = (rng.random(count) < 0.7).astype(np.uint32)
            wgsl = kernel(f"if (on[g] == 1) {{ out[g] = u32({expression}); }} _ = y;", workgroup, "u32")
            got = run(wgsl, size, groups, np.zeros_like(x), xs=x, ys=x, on=on)
            np.testing.assert_array_equal(got, expected(PREDICATES[expression], x, x, on, size, workgroup))


@pytest.mark.parametrize(("size", "workgroup", "groups"), SHAPES)
def test_a_ballot_has_a_bit_for_each_active_lane(size: int, workgroup: int, groups: int) -> None:
    rng = np.random.default_rng(2)
    count = workgroup * groups
    x, on = rng.integers(0, 2, (2, count), np.uint32)
    wgsl = kernel("if (on[g] == 1) { out[g] = subgroupBallot(x == 1); } _ = y;", workgroup, "u32", "vec4u")
    got = run(wgsl, size, groups, np.zeros((count, 4), np.uint32), xs=x, ys=x, on=on)
    for word in range(4):

        def bits(lanes: Lanes, lane: int, argument: int, word: int = word) -> int:
            return sum(1 << (k % 32) for k, v in lanes.items() if v and k // 32 == word)

        np.testing.assert_array_equal(got[:, word], expected(bits, x, x, on, size, workgroup))


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize(
    "expression", ["subgroupExclusiveAdd(x)", "subgroupMax(x)", "subgroupBroadcastFirst(x)", "quadSwapY(x)"]
)
def test_vectors_go_component_by_component(expression: str, kind: str) -> None:
    rng = np.random.default_rng(3)
    x = numbers(rng, kind, 4 * 150).reshape(150, 4)
    on = rng.integers(0, 2, 150, np.uint32)
    wgsl = kernel(f"if (on[g] == 1) {{ out[g] = {expression}; }} _ = y;", 50, f"vec4<{kind}>")
    got = run(wgsl, 8, 3, np.zeros_like(x), xs=x, ys=on, on=on)
    for part in range(4):
        np.testing.assert_array_equal(got[:, part], expected(ARITHMETIC[expression], x[:, part], on, on, 8, 50))


def test_a_loop_keeps_the_lanes_that_are_still_in_it() -> None:
    turns = np.random.default_rng(4).integers(0, 9, 150, np.uint32)
    body = """
        var total = 0u;
        for (var i = 0u; i < x; i++) {
            if (i == 3) { continue; }
            total += subgroupAdd(i + 1);
            if (i == 6) { break; }
        }
        out[g] = total + 1000 * subgroupAdd(1u);
        _ = y; _ = on[0];"""
    got = run(kernel(body, 50, "u32"), 8, 3, np.zeros_like(turns), xs=turns, ys=turns, on=turns)
    for g, mine in enumerate(turns):
        first = g // 50 * 50 + g % 50 // 8 * 8
        group = turns[first : min(first + 8, g // 50 * 50 + 50)]
        total = sum((i + 1) * int((group > i).sum()) for i in range(min(mine, 7)) if i != 3)
        assert got[g] == total + 1000 * len(group)


def test_lanes_that_returned_are_inactive() -> None:
    on = np.random.default_rng(5).integers(0, 3, 150, np.uint32)
    body = """
        switch on[g] {
            case 0: { return; }
            case 1: { out[g] = subgroupAdd(1u); }
            default: { out[g] = 100 * subgroupAdd(1u); }
        }
        out[g] += 10000 * subgroupBroadcastFirst(x) + subgroupExclusiveAdd(0u) + 0 * y;"""
    x = np.arange(150, dtype=np.uint32)
    got = run(kernel(body, 50, "u32"), 32, 3, np.zeros_like(x), xs=x, ys=x, on=on)
    for g in range(150):
        first = g // 50 * 50 + g % 50 // 32 * 32
        group = on[first : min(first + 32, g // 50 * 50 + 50)]
        alike = int((group == on[g]).sum()) * (0, 1, 100)[on[g]]
        there = first + int(np.flatnonzero(group)[0])
        assert got[g] == (alike + 10000 * there if on[g] else 0)


def test_a_value_may_be_shuffled_into_itself() -> None:
    """The sum of a subgroup by the butterfly that kernels use."""
    body = """
        var sum = x;
        for (var d = 16u; d > 0; d /= 2) { sum += subgroupShuffleXor(sum, d); }
        out[g] = sum; _ = y; _ = on[0];"""
    x = np.arange(128, dtype=np.uint32)
    got = run(kernel(body, 64, "u32"), 32, 2, np.zeros_like(x), xs=x, ys=x, on=x)
    np.testing.assert_array_equal(got, np.repeat(x.reshape(4, 32).sum(1), 32))


@pytest.mark.parametrize(("size", "workgroup", "groups"), SHAPES)
def test_builtin_values_describe_the_subgroup(size: int, workgroup: int, groups: int) -> None:
    wgsl = f"""enable subgroups;
        @group(0) @binding(0) var<storage, read_write> out: array<vec4u>;
        @compute @workgroup_size({workgroup // 5}, 5)
        fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32,
                @builtin(subgroup_size) size: u32, @builtin(subgroup_invocation_id) lane: u32,
                @builtin(subgroup_id) group: u32, @builtin(num_subgroups) groups: u32) {{
            out[w.x * {workgroup} + i] = vec4u(size, lane, group, groups);
        }}"""
    got = run(wgsl, size, groups, np.zeros((groups * workgroup, 4), np.uint32))
    want = [(size, i % size, i // size, -(-workgroup // size)) for _ in range(groups) for i in range(workgroup)]
    np.testing.assert_array_equal(got, want)


def test_each_operation_is_counted_once_where_lanes_take_part() -> None:
    on = np.zeros(100, np.uint32)
    on[[3, 4, 40, 50]] = 1  # two subgroups of the first workgroup, one of the second
    wgsl = kernel("if (on[g] == 1) { out[g] = subgroupAdd(vec3u(x)).y; } _ = y;", 50, "u32")
    result = bankshot.simulate(wgsl, grid=2, bindings={"xs": on, "ys": on, "on": on, "out": on}, device=device(32))
    (site,) = (s for s in result.sites if s.kind == "subgroup")
    assert (site.name, site.executions, site.active_lanes) == ("subgroupAdd", 3, 4)


SIZED = """enable subgroups; enable subgroup_size_control;
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    @compute @workgroup_size(64) @subgroup_size(16)
    fn main(@builtin(local_invocation_index) i: u32) { out[i] = subgroupAdd(1u); }"""


def test_an_entry_point_may_ask_for_a_subgroup_size() -> None:
    flexible = get("nvidia").with_(subgroup_sizes=(8, 16, 32))
    result = bankshot.simulate(SIZED, grid=1, bindings={"out": np.zeros(64, np.uint32)}, device=flexible)
    np.testing.assert_array_equal(result.outputs["out"], np.full(64, 16))
    assert result.device.subgroup_size == 16


def test_a_subgroup_size_that_the_device_lacks_is_refused() -> None:
    with pytest.raises(bankshot.WgslError, match="requests subgroups of 16, but the device nvidia has 32"):
        bankshot.simulate(SIZED, grid=1, bindings={"out": np.zeros(64, np.uint32)}, device="nvidia")
