"""The registers of kernels whose live values were counted by hand."""

import pytest

from bankshot.sim.codegen.build import lowered
from bankshot.sim.performance.chains import program_costs
from bankshot.sim.performance.registers import LiveWords, words_in_flight
from bankshot.sim.run.prepared import dispatch_of

FRAME = """\
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
BODY
}
"""
OTHERS = 10  # that every program has


def live_words(body: str) -> LiveWords:
    dispatch = dispatch_of(FRAME.replace("BODY", body), grid=1, bindings={"x": [0] * 64, "y": [0] * 64})
    program = lowered(dispatch.pipeline, **dispatch.build_options(frozenset({"lanes"})))
    return program_costs(program, barriers=True, held=255, register_unit=8).live


def live(body: str) -> int:
    return live_words(body).registers - OTHERS


def test_an_operand_is_live_until_its_last_use_and_a_result_from_then_on() -> None:
    assert live("y[i] = 3u;") == 1  # i
    assert live("y[i] = i * i + 5u;") == 3  # i, the product, the sum


def test_values_that_wait_for_each_other_are_live_at_once() -> None:
    products = "".join(f"let v{k} = i * {k + 2}u; " for k in range(8))
    both = live(products + f"y[i] = {' ^ '.join(f'v{k}' for k in range(8))};")
    one = live("y[i] = i * 2u;")
    assert both - one == 8  # seven products, and the first sum


def test_a_load_that_is_used_later_is_moved_there_but_into_no_loop() -> None:
    loads = "".join(f"let v{k} = x[i + {k}u]; " for k in range(8))
    used = "".join(f"a = (a ^ v{k}) * 3u; " for k in range(8))
    later, looped = (
        live(f"var a = 0u; {loads} {each} y[i] = a;") for each in (used, f"for (var n = 0u; n < 9u; n++) {{ {used} }}")
    )
    assert looped - later == 7  # all but the one that was used last


def test_a_table_of_constants_takes_no_registers() -> None:
    table = f"array<u32, 64>({', '.join(f'{n * n % 61}u' for n in range(64))})"
    assert live(f"const table = {table}; y[i] = table[i];") == 3  # i, that within the table, the element


def loop(kept: int) -> str:
    """Keep so many values through a loop."""
    made = "".join(f"var a{k} = x[i + {k}u]; " for k in range(kept))
    changed = "".join(f"a{k} ^= x[n]; " for k in range(kept))
    stored = "".join(f"y[i + {k}u] = a{k}; " for k in range(kept))
    return f"{made} for (var n = 0u; n < 9u; n++) {{ {changed} }} {stored}"


def test_a_variable_that_a_loop_keeps_takes_a_register_to_its_end() -> None:
    assert live(loop(20)) - live(loop(10)) == 10


def test_what_a_loop_needs_from_before_it_is_live_to_its_end() -> None:
    body = "let before = x[i]; var a = 0u; for (var n = 0u; n < 9u; n++) { a += USED; y[i + n] = x[i + n]; } y[i] = a;"
    used, unused = (live(body.replace("USED", each)) for each in ("before", "i"))
    assert used - unused == 1


@pytest.mark.parametrize(("elements", "held"), [(16, 16), (32, 0)])
def test_a_short_array_is_in_registers_and_a_long_one_in_memory(elements: int, held: int) -> None:
    fill = f"var a: array<u32, {elements}>; for (var k = 0u; k < {elements}u; k++) {{ a[k] = x[i + k]; }} "
    array, scalar = live(fill + "y[i] = a[x[i] & 7u];"), live("var a = 0u; y[i] = x[x[i] & 7u];")
    assert held <= array - scalar <= held + 3


def test_a_constant_in_an_address_takes_no_register() -> None:
    kept = "let v = x[i + 7u]; for (var n = 0u; n < 9u; n++) { y[i + n * 64u] = v; } y[i + 7u] = i;"
    assert live(kept) == live(kept.replace("i + 7u", "i"))


def test_what_all_lanes_share_takes_no_register_of_an_invocation() -> None:
    body = "let s = x[0] + x[1]; let t = x[2] * s; y[i] = i ^ s ^ t;"
    assert live(body) == live("y[i] = i ^ 5u ^ 3u;")


def test_what_is_used_before_a_loop_and_after_it_is_live_through_it() -> None:
    (through,) = live_words(loop(20)).through.values()
    assert through == 20 + 1  # and i


@pytest.mark.parametrize(
    ("held", "live", "most"),  # words that loads of an H200 fill at once, between those of two loops that were timed
    [
        *((32, 5, (16, 20)), (32, 9, (12, 16)), (32, 17, (12, 16)), (32, 25, (21, 24)), (32, 33, (24, 32))),
        *((40, 5, (24, 32)), (64, 5, (48, 64)), (80, 5, (64, 80)), (80, 25, (32, 48)), (80, 33, (32, 48))),
    ],
)
def test_loads_in_flight_fill_registers_without_reducing_occupancy(held: int, live: int, most: tuple[int, int]) -> None:
    least, too_many = most
    assert least <= words_in_flight(held, live, unit=8) < too_many


def test_registers_are_rounded_up_to_the_unit_of_the_device() -> None:
    assert words_in_flight(33, 5, unit=24) == words_in_flight(48, 5, unit=8)
