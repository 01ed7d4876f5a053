"""Properties of the project's kernels on every device: gradients, equivalent variants, accumulation, fusion.

`test_end_to_end` audits every kernel in every quick shape; here kernels are compared with each other.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.oracle import references
from bankshot.oracle.comparison.compare import compare
from bankshot.oracle.comparison.rules import DERIVED, Rule
from bankshot.oracle.judge.case_run import run_on_gpu, simulate
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.manifests.reflection import check_module

SHADERS = Path(__file__).parents[2] / "shaders"
KERNELS = {plan.kernel.name: plan.kernel for plan in plans([SHADERS], Request())}
TILED = [name for name, kernel in KERNELS.items() if kernel.source.stem.startswith("matmul")]

LADDER = [name for name in KERNELS if name.startswith("ladder") and not name.endswith("_published")]

UGLY = {"M": 70, "K": 36, "N": 68}  # more than one tile each way, and nothing a multiple of one


def case_of(name, sizes=UGLY, **given):
    """Return the kernel's case with some arrays replaced."""
    kernel = KERNELS[name]
    case = kernel.case(kernel.shape(sizes))
    case.arrays.update(given)
    return case


def output(name, sizes=UGLY, **given):
    """Return the simulator's result for a kernel's only output."""
    (made,) = simulate(case_of(name, sizes, **given), "nvidia", "none").outputs.values()
    return made


def same_bits(a, b):
    return a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("name", TILED)
def test_a_gpu_keeps_to_the_bound_of_the_reference(name):
    case = case_of(name)
    truth = references.find(case.kernel.reference)(case.arrays, case.shape.dims)["Y"]
    result = compare(run_on_gpu(case, None).outputs["Y"], truth.value, Rule("bound"), bound=truth.bound)
    assert result.ok, result


# Floats that are kept in atomic integers have no derived bound.
DERIVABLE = [name for name, kernel in KERNELS.items() if "atomic-order" not in kernel.allow]


@pytest.mark.parametrize("name", DERIVABLE)
def test_every_output_has_a_derived_bound_that_holds_the_reference(name):
    kernel = KERNELS[name]
    case = kernel.case(min(kernel.shapes, key=lambda shape: np.prod(list(shape.dims.values()))))
    run, variables = simulate(case, "nvidia", "none"), {b.name: b.var for b in kernel.bindings}
    for output, truth in references.find(kernel.reference, SHADERS)(case.arrays, case.shape.dims).items():
        actual, bound = (made[variables[output]].reshape(truth.value.shape) for made in (run.outputs, run.bounds))
        result = compare(actual, truth.value, DERIVED, bound=bound)
        assert (result.ok, result.unbounded) == (True, 0), result


# ---- equal outputs of different kernels --------------------------------------------------------------


@pytest.mark.parametrize(("name", "twin"), [("matmul", "matmul_single"), ("matmul_at", "matmul_at_unswapped")])
def test_twins_write_the_same_bits(name, twin):
    assert same_bits(output(name), output(twin))


@pytest.mark.parametrize(
    ("name", "plain", "addend"),
    [
        ("matmul_residual", "matmul", "R"),
        ("matmul_residual_w16", "matmul_w16", "R"),
        ("matmul_t_acc", "matmul_t", "Y"),
        ("matmul_t_acc_w16", "matmul_t_w16", "Y"),
        ("matmul_at_acc", "matmul_at", "Y"),
        ("matmul_at_acc_swiglu_a", "matmul_at_swiglu_a", "Y"),
    ],
)
def test_addends_are_added_once_at_the_end(name, plain, addend):
    before = case_of(name).arrays[addend]
    assert np.abs(before).min() > 0
    assert same_bits(output(name), output(plain) + before)


def test_accumulating_twice_adds_twice():
    zero = np.zeros_like(case_of("matmul_at_acc").arrays["Y"])
    once = output("matmul_at_acc", Y=zero)
    assert same_bits(once, output("matmul_at"))
    assert same_bits(output("matmul_at_acc", Y=once), once + once)


@pytest.mark.parametrize("name", [name for name in KERNELS if name.endswith("_w16")])
def test_f16_weights_are_f32_weights_rounded(name):
    """Only the stored weights are f16: widened in advance, they give the same bits."""
    weights = case_of(name).arrays["W"]
    assert weights.dtype == np.float16
    assert same_bits(output(name), output(name.removesuffix("_w16"), W=weights.astype(np.float32)))


@pytest.mark.parametrize(
    ("fused", "unfused"),
    [
        ("matmul_residual_swiglu_a", "matmul_residual"),
        ("matmul_residual_swiglu_a_w16", "matmul_residual_w16"),
        ("matmul_at_swiglu_a", "matmul_at"),
        ("matmul_at_acc_swiglu_a", "matmul_at_acc"),
    ],
)
def test_fusion_changes_no_bit(fused, unfused):
    assert same_bits(output(fused), output(unfused, X=output("swiglu", {"M": UGLY["M"], "K": UGLY["K"]})))


@pytest.mark.parametrize("rung", LADDER)
def test_every_rung_of_the_ladder_writes_the_same_bits(rung):
    assert same_bits(output(rung), output("ladder_one_thread"))


@pytest.mark.parametrize("name", [*TILED, "ladder_4x4", "ladder_unrolled_4x4", "ladder_unrolled_8x8"])
def test_the_values_of_loads_out_of_bounds_do_not_matter(name):
    """WebGPU allows a clamped index, zero, and any other element."""
    case = case_of(name)
    made = [
        bankshot.simulate(
            check_module(case.kernel),
            entry=case.kernel.entry,
            grid=case.grid,
            bindings=case.bindings,
            probes="bounds",
            out_of_bounds=policy,
        )
        for policy in ("clamp", "zero", "wrap")
    ]
    assert all(run.findings for run in made)
    first, *others = (output for run in made for output in run.outputs.values())
    assert all(same_bits(first, other) for other in others)


@pytest.mark.parametrize("left_out", [None, 0, 1], ids=["neither", "first", "second"])
@pytest.mark.parametrize("name", ["matmul", "matmul_single", "matmul_at"])
def test_each_barrier_of_a_tiled_matmul_is_needed(name, left_out):
    """Three steps of tiles, with both barriers and without either."""
    case = case_of(name, {"M": 48, "K": 48, "N": 48})
    pieces = check_module(case.kernel).source.text.split("workgroupBarrier();")
    assert len(pieces) == 3
    barriers = ["" if number == left_out else "workgroupBarrier();" for number in (0, 1)]
    text = pieces[0] + barriers[0] + pieces[1] + barriers[1] + pieces[2]
    run = bankshot.simulate(text, entry="multiply", grid=case.grid, bindings=case.bindings, probes="races")
    assert {finding.code for finding in run.findings} == (set() if left_out is None else {"race"})


@pytest.mark.parametrize(
    ("name", "bindings"),
    [
        ("matmul", "X W Y dims"),
        ("matmul_residual", "X W Y dims R"),
        ("matmul_residual_swiglu_a", "GATE UP W R Y dims"),
        ("matmul_t", "X W Y dims"),
        ("matmul_at", "X B Y dims"),
        ("matmul_at_swiglu_a", "GATE UP B Y dims"),
    ],
)
def test_bindings_are_those_of_the_description(name, bindings):
    """Group 0, numbered from 0 in this order."""
    entry = check_module(KERNELS[name]).pipeline(KERNELS[name].entry)
    found = {variable.binding: variable.name for variable in entry.store_types if variable.binding}
    assert found == {(0, number): each for number, each in enumerate(bindings.split())}


# ---- requirements for hosts --------------------------------------------------------------------------


def test_a_grid_for_16_x_16_invocations_leaves_three_quarters_unwritten():
    """The rungs with 8 x 8 invocations, dispatched as if they had 16 x 16."""
    case = case_of("ladder_row_from_y", {"M": 64, "N": 64, "K": 4})
    whole = simulate(case, "nvidia", "none").outputs["C"]
    part = simulate(replace(case, grid=(4, 4, 1)), "nvidia", "none").outputs["C"]
    assert np.isnan(part).mean() == 0.75
    assert same_bits(part[:32, :32], whole[:32, :32])


@pytest.mark.parametrize("n", [5, 6, 7])
def test_a_1x4_tile_writes_over_the_next_row_where_n_is_no_multiple_of_4(n):
    """Rows but the last lose the first of their columns; so they do with 16 rows to a workgroup and in any order."""
    sizes = {"M": 8, "N": n, "K": 3}
    wrong = output("ladder_1x4", sizes) != output("ladder_row_from_y", sizes)
    assert wrong[1:, : 8 - n].all()
    assert not wrong[0].any()


@pytest.mark.parametrize(
    ("sizes", "left"), [({"M": 4, "N": 66}, 8), ({"M": 20, "N": 66}, 40), ({"M": 32, "N": 66}, 64)]
)
def test_a_grid_without_ceil_leaves_the_last_outputs_unwritten(sizes, left):
    """`(M * N) / 256` workgroups, whose fraction is dropped; the manifest of the published kernel expects it."""
    whole = output("ladder_flat", {**sizes, "K": 8}).ravel()
    part = output("ladder_flat_published", {**sizes, "K": 8}).ravel()
    assert np.flatnonzero(np.isnan(part)).tolist() == list(range(part.size - left, part.size))
    assert same_bits(part[:-left], whole[:-left])


@pytest.mark.parametrize("sizes", [{"M": 8, "K": 34, "N": 8}, {"M": 8, "K": 8, "N": 34}], ids=str)
def test_a_tiled_matmul_needs_multiples_of_4(sizes):
    case = case_of("matmul", sizes)
    truth = references.find("matmul")(case.arrays, case.shape.dims)["Y"]
    y = simulate(case, "nvidia", "none").outputs["Y"]
    assert not compare(y, truth.value, Rule("bound"), bound=truth.bound).ok


# ---- gradients ---------------------------------------------------------------------------------------

# A kernel that makes a gradient; the layer, and which of its arrays the gradient belongs to; the gradient kernel's
# sizes and arrays as the layer calls them, where G is the gradient of the layer's output.
GRADIENTS = [
    ("matmul_t", "matmul", "X", {"M": "M", "N": "K", "K": "N"}, {"X": "G", "W": "W"}),
    ("matmul_t_w16", "matmul_w16", "X", {"M": "M", "N": "K", "K": "N"}, {"X": "G", "W": "W"}),
    ("matmul_at", "matmul", "W", {"K": "K", "N": "N", "M": "M"}, {"X": "X", "B": "G"}),
    ("matmul_at_swiglu_a", "matmul_residual_swiglu_a", "W", {}, {"GATE": "GATE", "UP": "UP", "B": "G"}),
]


def bound_of(case):
    return references.find(case.kernel.reference)(case.arrays, case.shape.dims)["Y"].bound


@pytest.mark.parametrize(("backward", "forward", "of", "sizes", "arrays"), GRADIENTS, ids=[row[0] for row in GRADIENTS])
def test_gradients_are_difference_quotients_of_the_forward_kernels(backward, forward, of, sizes, arrays):
    """Of the loss sum(G * Y), along a direction that moves every element, and along single elements.

    A layer is linear in the array, so the quotient is exact whatever the step, and only the roundings that the
    references' bounds allow stand between the two.
    """
    rng = np.random.default_rng(7)
    layer = case_of(forward)
    g = rng.standard_normal((UGLY["M"], UGLY["N"])).astype(np.float32)
    known = {**layer.arrays, "G": g}
    case = case_of(backward, {**UGLY, **{ours: UGLY[theirs] for ours, theirs in sizes.items()}})
    case.arrays.update({ours: known[theirs] for ours, theirs in arrays.items()})
    gradient = simulate(case, "nvidia", "none").outputs["Y"].astype(np.float64)
    assert gradient.shape == layer.arrays[of].shape

    def loss(at):
        """The loss, and how far float32 may have moved it."""
        there = case_of(forward, **{of: at})
        y = simulate(there, "nvidia", "none").outputs["Y"]
        return np.sum(g * y.astype(np.float64)), np.sum(np.abs(g) * bound_of(there))

    single = np.zeros((3, *gradient.shape))
    for direction in single:
        direction[tuple(rng.integers(gradient.shape))] = 1000
    for direction in [rng.choice([-1.0, 1.0], gradient.shape), *single]:
        ahead, behind = ((layer.arrays[of] + sign * direction).astype(np.float32) for sign in (1, -1))
        (up, up_error), (down, down_error) = loss(ahead), loss(behind)
        step = ahead.astype(np.float64) - behind
        allowed = up_error + down_error + np.sum(np.abs(step) * bound_of(case))
        assert abs(up - down - np.sum(gradient * step)) <= allowed
        assert allowed < 0.05 * np.linalg.norm(gradient * step)  # a wrong element would not pass
