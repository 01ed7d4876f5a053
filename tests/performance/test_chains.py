"""Instructions and chains of dependent steps, of kernels whose chains were worked out by hand."""

import pytest

import bankshot
from bankshot.sim.codegen.build import lowered
from bankshot.sim.models.time_model import COSTS
from bankshot.sim.models.work import Work
from bankshot.sim.performance.chains import RegionCosts, program_costs
from bankshot.sim.performance.instruction_costs import CHECK, ISSUED, STEPS
from bankshot.sim.run.prepared import dispatch_of

FRAME = """\
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
BODY
}
"""


def costs(body: str, *, barriers: bool = True, held: int = 255, frame: str = FRAME) -> list[RegionCosts]:
    dispatch = dispatch_of(frame.replace("BODY", body), grid=1, bindings={"x": [0] * 64, "y": [0] * 64})
    program = lowered(dispatch.pipeline, **dispatch.build_options(frozenset({"lanes"})))
    return program_costs(program, barriers=barriers, held=held, register_unit=8).regions


def test_a_store_waits_for_the_load_and_the_sum() -> None:
    (whole,) = costs("y[i] = x[i] + 3u;")
    assert whole.issued == {"storage_load": 1, "integer": 1, "storage_store": 1}
    assert whole.chain == {"storage_load": 1, "alu": 1}


def test_loads_that_do_not_depend_on_each_other_are_waited_for_together() -> None:
    (whole,) = costs("y[i] = x[i] + x[63u - i] + x[i ^ 1u];")
    assert whole.issued["storage_load"] == 3
    assert whole.chain == {"next_load": 2, "storage_load": 1, "alu": 1}  # the last load, and its sum


def test_a_load_whose_address_was_loaded_waits_twice() -> None:
    (whole,) = costs("y[i] = x[x[i]];")
    assert whole.chain["storage_load"] == 2


def test_a_barrier_waits_for_what_was_stored_before() -> None:
    before, after = costs("t[i] = x[i]; workgroupBarrier(); y[i] = t[63u - i];")
    assert before.chain == {"storage_load": 1, "barrier": 1}
    assert after.chain == {"alu": 1, "workgroup_load": 1}  # the index is computed where the text has it


@pytest.mark.parametrize("barriers", [True, False])
def test_a_barrier_that_orders_storage_waits_for_stores_before_it(barriers: bool) -> None:
    found = costs("y[i] = 1u; storageBarrier(); t[i] = 1u; storageBarrier(); y[i] = t[i];", barriers=barriers)
    waited = [(each.chain.get("storage_barrier", 0), each.chain.get("stores_before_barrier", 0)) for each in found]
    assert waited == ([(1, 1), (1, 0), (0, 0)] if barriers else [(2, 1)])


@pytest.mark.parametrize(
    ("operation", "step"),
    [
        ("atomicLoad(&y[i])", "storage_atomic_load"),
        ("atomicMax(&y[i], 3u)", "storage_atomic"),
        ("atomicExchange(&y[i], 3u)", "storage_atomic"),
        ("atomicLoad(&t[i])", "workgroup_load"),
        ("atomicMax(&t[i], 3u)", "workgroup_atomic"),
        ("atomicExchange(&t[i], 3u)", "workgroup_exchange"),
        ("atomicCompareExchangeWeak(&t[i], 3u, 4u).old_value", "workgroup_exchange"),
    ],
)
def test_the_result_of_an_atomic_operation_is_waited_for(operation: str, step: str) -> None:
    text = FRAME.replace("y: array<u32>", "y: array<atomic<u32>>").replace(
        "t: array<u32, 64>", "t: array<atomic<u32>, 64>"
    )
    (whole,) = costs(f"atomicStore(&y[0], {operation} + 1u);", frame=text)
    assert whole.chain == {step: 1, "alu": 1}


def test_what_follows_a_barrier_that_is_left_out_still_waits_for_what_came_before() -> None:
    (whole,) = costs("t[i] = x[i]; workgroupBarrier(); y[i] = t[63u - i];", barriers=False)
    assert whole.chain == {"storage_load": 1, "alu": 1, "workgroup_load": 1}
    assert "barrier" not in whole.issued
    assert whole.issued["branch"] == 1  # what stays of it keeps the order of accesses


def test_values_that_nothing_stores_cost_nothing() -> None:
    (whole,) = costs("let unused = x[i] * 5u + i; y[i] = i;")
    assert "integer" not in whole.issued
    assert "integer_multiply" not in whole.issued


def test_an_iteration_waits_for_the_one_before_through_memory() -> None:
    found = costs("var at = i; for (var k = 0u; k < 9u; k++) { at = x[at]; } y[i] = at;")
    (body,) = (region for region in found if region.iterates)
    assert body.chain == {"storage_load": 1, "loop": 1}  # longer than the check


def test_a_value_from_before_a_loop_is_waited_for_once() -> None:
    found = costs(
        "let first = x[i]; var sum = 0u; for (var k = 0u; k < 9u; k++) { sum = (sum ^ first) + k; } y[i] = sum;"
    )
    (body,) = (region for region in found if region.iterates)
    assert "storage_load" not in body.chain
    assert found[0].chain["storage_load"] == 1


def test_a_short_iteration_takes_as_long_as_the_check_that_bounds_it_and_its_end() -> None:
    found = costs("var sum = 0u; for (var k = 0u; k < 9u; k++) { sum = sum ^ i; } y[i] = sum;")
    _, _, body, _, _ = found
    assert body.iterates
    assert body.chain == {"alu": 1, "loop": pytest.approx(1 + (30 - 4.5 - 2) / 24)}  # two other instructions issue


def test_the_counter_of_a_loop_does_not_wait_for_the_body() -> None:
    """The sum of the counter issues while the load is on its way; a sum of what is loaded waits for it."""
    loop = "var a = 0u; for (var k = 0u; k < 9u; UPDATE) { a = x[a]; } y[i] = a;"
    counter, waits = (costs(loop.replace("UPDATE", update))[3].chain for update in ("k += 1u", "k += a * a"))
    assert counter == {"issue": 1}
    assert waits == {"alu": 2}


def test_both_branches_have_their_own_chains() -> None:
    long = "".join(f"y[i] = {n}u; " for n in range(9))
    found = costs(f"if (i < 9u) {{ y[i] = x[i]; {long} }} else {{ y[i] = x[x[i]]; }}")
    assert [region.chain.get("storage_load", 0) for region in found] == [0, 1, 2]


def test_the_sides_of_a_predicated_branch_are_waited_for_together() -> None:
    found = costs("if (i < 9u) { y[i] = x[i]; } else { y[i] = x[x[i]]; }")
    assert sum(region.chain.get("storage_load", 0) for region in found) == 2


def test_a_difference_in_an_address_is_one_instruction() -> None:
    """The index is split for loops that it does not change in, with a product by -1."""
    found = costs("for (var k = 0u; k < i; k++) { t[i - k] = k; }")
    (body,) = (region for region in found if region.iterates)
    assert "integer_multiply" not in body.issued
    assert body.issued["integer"] == 1


def test_regions_name_their_basic_blocks() -> None:
    found = costs("for (var k = 0u; k < 9u; k++) { if (i < k) { y[i] = k; } } y[i] = 1u;")
    numbers = [number for region in found for number in region.blocks]
    assert sorted(numbers) == list(range(len(numbers)))
    assert (
        bankshot.simulate(
            FRAME.replace("BODY", "for (var k = 0u; k < 9u; k++) { if (i < k) { y[i] = k; } } y[i] = 1u;"),
            grid=1,
            bindings={"x": [0] * 64, "y": [0] * 64},
        ).work.issued["loop"]
        == 2 * 9
    )  # subgroups times iterations


def test_an_array_at_an_index_that_lanes_share_is_told_from_one_at_their_own() -> None:
    fill = "var own: array<u32, 24>; for (var k = 0u; k < 24u; k++) { own[k] = x[k]; } "
    shared = costs(fill + "y[i] = own[x[0] & 7u];")
    scattered = costs(fill + "y[i] = own[x[i] & 7u];")
    zeros = 24  # that the array begins with
    assert [each[0].issued["local_fill"] for each in (shared, scattered)] == [zeros, zeros]
    assert (shared[-1].issued["local"], shared[-1].issued["local_scattered"]) == (1, 0)
    assert (scattered[-1].issued["local"], scattered[-1].issued["local_scattered"]) == (0, 24)  # a line each
    assert scattered[-1].chain["local_scattered"] == 1
    (body,) = (region for region in shared if region.iterates)
    assert body.issued["local_store"] == 1


@pytest.mark.parametrize("words", [16, 20])
def test_a_short_array_is_in_registers(words: int) -> None:
    """For each element, the index is compared, which counts as two selections, and the element selected."""
    (whole,) = costs(f"var own: array<u32, {words}>; own[x[i] & 15u] = i; y[i] = own[x[i + 1u] & 15u];")
    assert whole.issued["selection"] == 2 * 3 * words
    assert not LOCAL & {*whole.issued}


def test_an_index_is_compared_once_with_each_number_that_it_may_have() -> None:
    (whole,) = costs("var own: array<u32, 8>; let at = x[0] & 7u; own[at] = own[at] + i; y[i] = own[i & 7u];")
    assert whole.issued["selection"] == (3 + 1 + 3) * 8


@pytest.mark.parametrize(
    ("accesses", "loads", "stores"),
    [
        ("own[a] += 1u; own[a] += 2u; own[a] += 3u;", 1, 1),  # the sums are made before the store
        ("own[a] += own[b]; own[b] += own[a];", 3, 2),  # the first store may be to `b`
        ("own[a] = 1u; own[b] = own[a]; own[a] = 2u;", 0, 2),  # nothing loads what the first one stores
        ("own[a] = own[b]; own[b] = own[b + 1u];", 2, 2),  # elements beside each other are not the same
    ],
)
def test_accesses_that_compilers_leave_out_cost_nothing(accesses: str, loads: int, stores: int) -> None:
    """With indices that all lanes share, an array of 32 elements is in memory."""
    (whole,) = costs(f"var own: array<u32, 32>; let a = x[0]; let b = x[1]; {accesses} y[i] = own[3];")
    last = 1  # what the last statement loads, at an index that is known
    assert (whole.issued["local"], whole.issued["local_store"]) == (loads + last, stores)


LOCAL = {"local", "local_store", "local_fill", "local_scattered", "local_scattered_store"}
UPDATES = "for (var a = 0u; a < {rows}u; a++) {{ for (var b = 0u; b < {columns}u; b++) {{ {update} }} }}"


@pytest.mark.parametrize(
    ("rows", "columns", "update", "in_memory"),
    [  # where an H200 has them, by the times of loops over arrays of different lengths
        (2, 4, "own[a * 4u + b] += 7u;", False),
        (3, 3, "own[a * 3u + b] += 7u;", False),
        (4, 4, "own[a * 4u + b] += 7u;", True),
        (4, 4, "own[a * 4u + b] += x[a] * x[32u + b];", False),  # the longer the loop, the more selections
        (4, 5, "own[a * 5u + b] += x[a] * x[32u + b];", True),
    ],
)
def test_an_array_is_in_memory_if_selections_would_make_a_loop_much_longer(
    rows: int, columns: int, update: str, in_memory: bool
) -> None:
    loops = UPDATES.format(rows=rows, columns=columns, update=update)
    found = costs(f"var own: array<u32, {rows * columns}>; {loops} y[i] = own[3];")
    assert any(LOCAL & {*each.issued} for each in found) == in_memory


def test_arrays_are_filled_at_the_start_and_those_of_a_loop_in_each_iteration() -> None:
    whole, *_ = costs("if (x[0] < 9u) { var own: array<u32, 300>; own[x[i]] = i; y[i] = own[x[1]]; }")
    assert whole.issued["local_fill"] == 300
    found = costs("for (var k = 0u; k < 9u; k++) { var own: array<u32, 21>; own[x[i] % 9u] = k; y[i] = own[k % 9u]; }")
    (body,) = (region for region in found if region.iterates)
    assert (found[0].issued["local_fill"], body.issued["local_fill"], body.issued["local"]) == (0, 21, 1)


def test_lanes_with_indices_of_their_own_access_at_most_a_line_each() -> None:
    (*_, whole) = (
        region for region in costs("var own: array<u32, 64>; own[x[i] & 63u] = i; y[i] = own[x[i + 1u] & 63u];")
    )
    assert (whole.issued["local_scattered"], whole.issued["local_scattered_store"]) == (32, 32)
    (*_, few) = costs("var own: array<u32, 21>; own[x[i] % 5u] = i; y[i] = own[x[i + 1u] % 5u];")
    assert (few.issued["local_scattered"], few.issued["local_scattered_store"]) == (21, 32)


def test_a_loop_that_only_accesses_an_array_of_function_space_is_counted_by_its_iterations() -> None:
    body = (
        "var own: array<u32, 24>; own[x[i] & 7u] = 1u; var at = i & 7u; for (var k = 0u; k < 9u; k++) { at = own[at]; }"
    )
    text = FRAME.replace("BODY", body + " y[i] = at;")
    found = bankshot.simulate(text, grid=1, bindings={"x": [0] * 64, "y": [0] * 64}).work
    assert found.issued["local_scattered"] == 2 * 9 * 24  # subgroups, iterations, lines


@pytest.mark.parametrize(
    ("call", "special", "arithmetic"),
    [("inverseSqrt(v)", 1, 0), ("exp(v)", 1, 2), ("pow(v, v)", 2, 1), ("tanh(v)", 3, 3)],
)
def test_a_function_takes_the_instructions_that_compute_it(call: str, special: int, arithmetic: int) -> None:
    (whole,) = costs(f"let v = bitcast<f32>(x[i]); y[i] = bitcast<u32>({call});")
    assert (whole.issued["special"], whole.issued["fp32"]) == (special, arithmetic)


@pytest.mark.parametrize(
    ("expression", "products", "others", "divisions"),
    [
        ("x[i] / 7u", 1, 3, 0),
        ("x[i] % 7u", 2, 4, 0),
        ("bitcast<u32>(bitcast<i32>(x[i]) / -7)", 1, 3, 0),
        ("x[i] / 8u", 0, 1, 0),  # a shift
        ("7u / (x[i] | 1u)", 0, 1, 1),
    ],
)
def test_a_division_by_a_constant_is_a_multiplication(
    expression: str, products: int, others: int, divisions: int
) -> None:
    issued = costs(f"y[i] = {expression};")[0].issued
    simple = issued["integer"] + issued["comparison"]
    assert (issued["integer_multiply"], simple, issued["integer_divide"]) == (products, others, divisions)


@pytest.mark.parametrize(
    ("declared", "access", "candidates"),
    [
        ("array<u32, 8>", "a[k]", 8),
        ("array<vec4u, 4>", "a[k].y", 4),  # of 16 scalars, those of one component
        ("array<array<u32, 4>, 4>", "a[k][2]", 4),
        ("array<array<u32, 4>, 4>", "a[k][k]", 4),  # those of the diagonal
        ("array<array<u32, 4>, 4>", "a[k][i]", 16),
    ],
)
def test_an_access_to_a_short_array_selects_among_what_its_index_may_name(
    declared: str, access: str, candidates: int
) -> None:
    body = f"let k = x[i]; var a: {declared}; ACCESS y[i] = k;"
    (none,), (some,) = costs(body.replace("ACCESS", "")), costs(body.replace("ACCESS", f"{access} = k;"))
    assert (none.issued["selection"], some.issued["selection"]) == (0, 3 * candidates)


@pytest.mark.parametrize(
    ("declared", "index", "turns"),
    [
        ("const table = array(4u, 7u, 1u, 8u);", "x[i] & 3u", 4),
        ("var table = array(4u, 7u, 1u, 8u, 4u, 7u, 1u, 9u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u);", "x[i] & 15u", 14),
        ("const table = array(4u, 7u, 1u, 8u);", "x[0] & 3u", 1),  # the same for all lanes
    ],
)
def test_lanes_that_name_different_constants_of_a_table_take_turns(declared: str, index: str, turns: int) -> None:
    (whole,) = costs(f"{declared} y[i] = table[{index}];")
    assert whole.issued["constant_table"] == turns
    assert (whole.issued["local_fill"], whole.chain["uniform_load"]) == (0, 1)


def test_a_table_that_is_changed_holds_no_constants() -> None:
    (whole,) = costs("var table = array(4u, 7u, 1u, 8u); table[x[i] & 3u] = i; y[i] = table[i & 3u];")
    assert whole.issued["constant_table"] == 0
    (whole,) = costs("var table = array(4u, 7u, 1u, 8u); table[1] = i; y[i] = table[x[i] & 3u];")
    assert whole.issued["constant_table"] == 0


def test_a_quotient_and_a_remainder_of_unsigned_operands_take_one_division() -> None:
    (both,) = costs("let n = x[0] | 1u; let v = x[i]; y[i] = v / n + v % n;")
    assert (both.issued["integer_divide"], both.issued["integer_multiply"]) == (1, 1)
    (apart,) = costs("let n = x[0] | 1u; let v = x[i]; y[i] = v / n + v % (n + 2u);")
    assert (apart.issued["integer_divide"], apart.issued["integer_multiply"]) == (2, 0)


@pytest.mark.parametrize(
    ("body", "divisions"),
    [
        ("if (i < 9u) { y[i] = v / n; } else { y[i] = v % n; }", 2),
        ("if (i < 9u) { y[i] = v / n; } y[i + 64u] = v % n;", 2),
        ("let q = v / n; if (i < q) { y[i] = v % n; } else { y[i + q] = (v % n) ^ i; }", 1),
        ("for (var k = 0u; k < v / n; k++) { y[k] = v % n; }", 1),
    ],
)
def test_a_division_serves_what_it_precedes_on_every_path(body: str, divisions: int) -> None:
    found = costs(f"let n = x[0] | 1u; let v = x[i]; {body}")
    assert sum(region.issued["integer_divide"] for region in found) == divisions


def test_signed_divisions_are_not_joined() -> None:
    (whole,) = costs("let n = i32(x[0] | 1u); let v = i32(x[i]); y[i] = u32(v / n + v % n);")
    assert (whole.issued["signed_divide"], whole.issued["integer_divide"]) == (2, 0)


def test_a_division_of_floats_is_a_reciprocal_and_a_product() -> None:
    (whole,) = costs("let v = bitcast<f32>(x[i]); y[i] = bitcast<u32>(3.0 / v);")
    assert (whole.issued["fp32_divide"], whole.issued["fp32"]) == (1, 1)
    assert whole.chain == {"storage_load": 1, "special": 1, "alu": 1}


def test_the_reciprocal_of_a_divisor_does_not_wait_for_the_dividend() -> None:
    body = "let v = bitcast<f32>(x[i]); let w = sqrt(sqrt(v)); y[i] = bitcast<u32>(A / B);"
    late, early = (costs(body.replace("A", a).replace("B", b))[0].chain for a, b in (("v", "w"), ("w", "v")))
    assert late == {"storage_load": 1, "special": 3, "alu": 1}
    assert early == {"storage_load": 1, "special": 2, "alu": 1}


def test_a_condition_is_ready_later_than_other_results() -> None:
    (whole,) = costs("y[i] = select(x[0], 7u, x[i] > 5u);")
    assert whole.chain["comparison"] == 1
    assert whole.chain["alu"] == 1  # the selection


@pytest.mark.parametrize("call", ["ceil", "floor", "round", "trunc", "fract"])
def test_rounding_takes_the_unit_of_conversions(call: str) -> None:
    (whole,) = costs(f"y[i] = bitcast<u32>({call}(bitcast<f32>(x[i])));")
    assert whole.issued["bit_count"] == 1
    assert whole.chain == {"storage_load": 1, "conversion": 1} | ({"alu": 1} if call == "fract" else {})


@pytest.mark.parametrize("change", ["-v", "abs(v)", "saturate(v)"])
def test_signs_of_floats_are_a_part_of_the_instruction_that_takes_them(change: str) -> None:
    body = "let v = bitcast<f32>(x[i]); y[i] = bitcast<u32>(CHANGE * 3.0);"
    changed, plain = (costs(body.replace("CHANGE", each)) for each in (change, "v"))
    assert [each.issued for each in changed] == [each.issued for each in plain]


def test_a_long_branch_is_waited_for() -> None:
    long = "".join(f"y[i] = {n}u; " for n in range(9))
    whole, *_ = costs(f"if (i < x[0]) {{ {long} }}")
    assert (whole.chain["comparison"], whole.chain["branch"]) == (1, 1)


def test_a_subgroup_goes_on_when_it_knows_that_no_lane_jumps() -> None:
    loop = "var v = i; for (var k = 0u; k < 99u; k++) { CONDITION v = v ^ k; } y[i] = v;"
    plain, jumps = (costs(loop.replace("CONDITION", each)) for each in ("", "if (v > 1000u) { break; }"))
    assert not any("jump" in each.chain for each in plain)
    assert sum(each.chain.get("jump", 0) for each in jumps if each.repeats) == 1
    assert sum(each.issued["branch"] for each in jumps) == 1


@pytest.mark.parametrize(
    ("call", "issued"),
    [
        ("atomicAdd(&n, i);", {"workgroup_atomic_sum": 1}),
        ("atomicAdd(&n, 1u);", {"workgroup_atomic": 1}),
        ("atomicExchange(&n, i);", {"workgroup_atomic": 1}),
        ("y[i] = atomicAdd(&n, i);", {"workgroup_atomic": 1, "subgroup": 5}),
        ("y[i] = atomicMax(&n, i);", {"workgroup_atomic": 1}),
    ],
)
def test_what_an_atomic_operation_issues_depends_on_the_use_of_its_result(call: str, issued: dict[str, int]) -> None:
    dispatch = dispatch_of(
        FRAME.replace("var<workgroup> t", "var<workgroup> n: atomic<u32>;\nvar<workgroup> t").replace("BODY", call),
        grid=1,
        bindings={name: [0] * 64 for name in ("x", "y") if f"{name}[" in call},
    )
    program = lowered(dispatch.pipeline, **dispatch.build_options(frozenset({"lanes"})))
    (whole,) = program_costs(program, barriers=True, held=255, register_unit=8).regions
    kinds = ("workgroup_atomic", "workgroup_atomic_sum", "subgroup")
    assert {kind: whole.issued[kind] for kind in kinds if whole.issued[kind]} == issued


def test_every_class_and_step_has_a_cost_and_no_cost_is_without_one() -> None:
    charged = {name for name in COSTS if name.startswith(("issue_", "latency_"))}
    beside = ("l2", "dram", "storage_wavefront", "wavefront")  # of loads, beside their own steps
    charged -= {f"latency_{each}" for each in beside}
    assert charged == {*(f"issue_{each}" for each in ISSUED), *(f"latency_{each}" for each in STEPS)}


COPIES = """struct Whole {{ first: u32, numbers: array<u32, 24> }}
    fn part(numbers: array<u32, 24>, at: u32) -> u32 {{ return numbers[at]; }}
    {frame}"""


def work_of_copies(body: str) -> Work:
    numbers = ", ".join(f"x[{k}]" for k in range(24))
    frame = FRAME.replace("BODY", f"let whole = Whole(x[0], array({numbers})); var sum = i; {body} y[i] = sum;")
    text = COPIES.format(frame=frame)
    return bankshot.simulate(text, grid=1, bindings={"x": [0] * 65, "y": [0] * 64}, probes="counters").work


@pytest.mark.parametrize(
    ("statement", "stores"),
    [
        ("sum += part(whole.numbers, sum & 7u);", 24),  # a parameter: each element is stored, for each call
        ("sum = part(whole.numbers, sum & 7u) + part(whole.numbers, (sum + 1u) & 7u);", 48),
        ("sum += whole.numbers[sum & 7u];", 24),
        ("sum += part(whole.numbers, 3u);", 0),  # the index is known
    ],
)
def test_a_long_array_value_is_copied_to_memory_to_be_indexed(statement: str, stores: int) -> None:
    found = work_of_copies(f"for (var k = 0u; k < 5u; k++) {{ {statement} }}")
    assert found.issued.get("local_fill", 0) == 5 * 2 * stores  # iterations and subgroups
    assert found.issued.get("local_scattered", 0) == 5 * 2 * stores  # a line for each element that there is
    assert found.chain.get("local_fill", 0) == 5 * stores  # which the access waits for


def test_a_long_array_value_stays_in_registers_where_that_makes_a_loop_little_longer() -> None:
    """On an H200, a loop that takes the bytes of an array of 32 words takes 32 us, one that takes its words 265."""
    statement = "sum = sum * 5u + ((part(whole.numbers, (sum / 4u) & 7u) >> (8u * (sum & 3u))) & 15u);"
    found = work_of_copies(f"for (var k = 0u; k < 5u; k++) {{ {statement} }}")
    assert found.issued["selection"] >= 5 * 2 * 24
    assert not LOCAL & {kind for kind, times in found.issued.items() if times}


def test_a_value_of_few_words_is_in_registers() -> None:
    few = "let few = array(x[0], x[1], x[2], x[3]);", "let few = vec4u(x[0], x[1], x[2], x[3]);"
    for declared in few:
        (whole,) = costs(f"{declared} y[i] = few[x[i] & 3u];")
        assert not LOCAL & {kind for kind, times in whole.issued.items() if times}


def test_a_short_array_value_is_in_registers() -> None:
    """Each element is compared with and selected, as those of a variable are. An H200 takes as long for both."""
    text = f"""fn part(numbers: array<u32, 8>, at: u32) -> u32 {{ return numbers[at]; }}
        {FRAME.replace("BODY", "let own = array(i, i, i, i, x[0], x[1], x[2], x[3]); y[i] = part(own, x[i] & 7u);")}"""
    found = bankshot.simulate(text, grid=1, bindings={"x": [0] * 64, "y": [0] * 64}, probes="counters").work
    assert found.issued["selection"] == 2 * 3 * 8
    assert not LOCAL & {kind for kind, times in found.issued.items() if times}


def test_what_follows_a_return_is_counted_where_it_is_executed() -> None:
    found = costs("if (i >= 9u) { return; } y[i] = x[i] * 3u;")
    (check,) = (each for each in found if each.issued["comparison"])
    (rest,) = (each for each in found if each.issued["storage_store"])
    assert len(check.counted_blocks) == len(rest.counted_blocks) == 1
    assert check.counted_blocks < rest.counted_blocks
    assert check.parent is rest.parent
    assert rest.chain["storage_load"] == 1
    assert "storage_load" not in check.chain


def test_what_follows_a_jump_out_of_a_loop_is_counted_with_the_loop() -> None:
    found = costs("for (var k = 0u; k < 9u; k++) { if (x[k] == i) { break; } } y[i] = x[i] * 3u;")
    (rest,) = (each for each in found if each.issued["storage_store"])
    (first, *_) = (each for each in found if each.counted_blocks)
    assert rest.counted_blocks == first.counted_blocks


def test_a_loop_checks_once_if_jumps_divide_its_body() -> None:
    found = costs("var a = 0u; for (var k = 0u; k < 9u; k++) { if (k == i) { break; } a += k; } y[i] = a;")
    (body,) = (each for each in found if each.iterates)
    parts = [each for each in found if each.repeats]
    assert len({tuple(each.counted_blocks) for each in parts}) == len(parts)
    assert sum("loop" in each.chain for each in found) == 1
    taken = sum(STEPS[step] * count for each in parts for step, count in each.chain.items())
    body_alone = STEPS["comparison"] + STEPS["jump"] + STEPS["alu"] + 2 * STEPS["issue"]
    assert taken == pytest.approx(max(CHECK, body_alone) + STEPS["loop"])
    assert "loop" in body.chain
