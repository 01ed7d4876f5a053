"""Kernels with quantized weights, compared in pairs: an optimization changes the counters, but no bit of the output.

`test_end_to_end` audits every kernel in every quick shape; this is about pairs of them.
"""

import math
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.oracle import references
from bankshot.oracle.comparison.compare import compare
from bankshot.oracle.comparison.rules import Rule
from bankshot.oracle.judge.case_run import run_on_gpu, simulate
from bankshot.oracle.manifests import manifest_loader
from bankshot.oracle.manifests.dimension_arithmetic import evaluate
from bankshot.oracle.manifests.reflection import check_module

SHADERS = Path(__file__).parents[2] / "shaders"
FOLDERS = ("q4_k", "gemv", "ffn", "rwkv")
KERNELS = {
    kernel.name: kernel
    for folder in FOLDERS
    for path in sorted((SHADERS / folder).glob("*.toml"))
    for kernel in manifest_loader.load_all(path)
}


def case_of(name, sizes, **given):
    """Return the kernel's case with some arrays replaced."""
    case = KERNELS[name].case(KERNELS[name].shape(sizes))
    case.arrays.update(given)
    return case


def run(name, sizes, device="nvidia", **given):
    return simulate(case_of(name, sizes, **given), device, "all")


def same_bits(a, b):
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def by_line(run, kind, name):
    """Return the sites of accesses to a variable by line."""
    return [site for site in run.sites if (site.kind, site.name) == (kind, name)]


# ---- Q4_K --------------------------------------------------------------------------------------------

# Share of the invocations that work on rows of 1152 weights, 64 columns and one row of X.
UTILIZATION = {
    "q4_fused": 5 / 256,
    "q4_fused_loop": 5 / 256,
    "q4_fused_split": 1,
    "q4_fused_2d": 1,
    "q4_fused_multicol": 1,
    "q4_fused_small_k": 64 / 256,
    "q4_fused_batched": 64 / 256,
}


@pytest.mark.parametrize("name", UTILIZATION)
def test_thread_utilization_on_a_row_of_1152(name):
    counters = run(name, {"M": 1, "N": 64, "K": 1152}).counters
    assert counters["working_invocations"] == UTILIZATION[name]


def test_the_guard_is_what_leaves_invocations_idle():
    """In `q4_fused` one subgroup of each workgroup unpacks weights, with five lanes; eight wait at the barrier."""
    done = run("q4_fused", {"M": 1, "N": 64, "K": 1152})
    (waits,) = (site for site in done.sites if site.kind == "barrier")
    (stores,) = by_line(done, "store", "partials")
    assert (waits.executions, waits.active_lanes) == (64 * 8, 64 * 256)
    assert (stores.executions, stores.active_lanes) == (64, 64 * 5)


def test_one_of_51_invocations_of_the_published_kernel_has_a_block():
    """Of the 256 invocations of a column, four load a whole block of 36 words, and one the half. Each of eight
    subgroups stores its sum."""
    done = run("q4_fused_published", {"M": 1, "N": 64, "K": 1152})
    assert sum(site.active_lanes for site in by_line(done, "load", "W")) == 64 * 5 * 36
    assert sum(site.active_lanes for site in by_line(done, "store", "partials")) == 64 * 8


def test_a_guard_that_returns_is_no_wgsl():
    """Invocations that have no block cannot leave before the barrier at which the others wait."""
    case = case_of("q4_fused", {"M": 1, "N": 64, "K": 1152})
    text, guard = check_module(case.kernel).source.text, "if thread < blocks {\n        partials"
    assert guard in text
    with pytest.raises(bankshot.WgslError, match="uniform"):
        bankshot.check(text.replace(guard, guard.replace("<", ">=").replace("{", "{ return; } {")))


def test_blocks_dealt_whole_leave_three_of_eight_invocations_idle():
    """A block is read as 36 words. Of the eight invocations of a column four have a whole one, and one the half; all
    count as working, because they store a sum."""
    done = run("q4_fused_multicol_published", {"M": 1, "N": 64, "K": 1152})
    lanes = {}
    for site in by_line(done, "load", "W"):
        lanes[site.line] = lanes.get(site.line, 0) + site.active_lanes
    assert list(lanes.values()) == [64 * 4 * 36, 64 * 36]
    assert done.counters["barriers"] == 2
    assert (done.counters["workgroup_memory_bytes"], done.counters["working_invocations"]) == (1024, 1)


def test_a_loop_over_blocks_helps_once_there_are_as_many_as_invocations():
    sizes = {"M": 1, "N": 1, "K": 257 * 256}
    assert run("q4_fused_loop", sizes).counters["working_invocations"] == 1


def test_dequantizing_first_agrees_with_fused_kernels():
    """Up to what f16 rounds off: a product with the unpacked weights is that of the fused kernel."""
    sizes = {"N": 33, "K": 260}
    fused = case_of("q4_fused_multicol", {"M": 1, **sizes})
    unpacked = run("dequant_q4k", sizes, W=fused.arrays["W"]).outputs["Y"]
    y = run("gemv_subgroup_multicol", sizes, W=unpacked, X=fused.arrays["X"]).outputs["Y"].astype(np.float64)
    truth = simulate(fused, "nvidia", "none").outputs["Y"].astype(np.float64)
    moved = 2.0**-11 * (np.abs(fused.arrays["X"]).astype(np.float64) @ np.abs(unpacked.astype(np.float64)).T)
    assert (np.abs(y - truth) <= 1.01 * moved).all()
    assert not same_bits(y, truth)


# ---- f16 GEMV ----------------------------------------------------------------------------------------


def test_a_vocabulary_needs_a_second_dimension_with_four_columns_a_workgroup():
    """65,536 workgroups are one more than WebGPU has to allow in a dimension; with 32 columns 8,192 do."""
    four, many = (KERNELS[name] for name in ("gemv_subgroup", "gemv_subgroup_multicol"))
    shape = {"N": 262144}
    grids = [[evaluate(size, {**kernel.dims, **shape}) for size in kernel.dispatch] for kernel in (four, many)]
    assert grids == [[32768, 2], [8192, 1]]
    case = case_of("gemv_subgroup", {"N": 4, "K": 4})
    with pytest.raises(bankshot.WgslError, match="65,536 is over maxComputeWorkgroupsPerDimension, which is 65,535"):
        bankshot.simulate(four.source, entry=four.entry, grid=65536, bindings=case.bindings, probes="none")


def test_loads_of_single_elements_take_four_times_the_sectors():
    """A subgroup has four columns. Eight neighbours are 16 bytes apart in x, and 8 in a row of W, so that each of the
    four loads touches all sectors of the four: 4 of x, and 4 columns times 2 of W. As vectors, each is touched once."""
    sizes = {"M": 1, "N": 64, "K": 1152}
    published, remedy = (run(f"gemv_subgroup_multicol{end}", sizes).counters for end in ("_published", ""))
    steps, stores = 64 // 4 * 1152 // 32, 64 // 4
    assert published["global_sectors"] == steps * 4 * (4 + 4 * 2) + stores == 27_664
    assert remedy["global_sectors"] == steps * (4 + 4 * 2) + stores == 6_928
    assert (published["barriers"], remedy["barriers"]) == (2, 0)


def test_both_dimensions_of_the_grid_are_used():
    """A grid that is folded after two workgroups instead of 32,768 writes the same."""
    case = case_of("gemv_subgroup", {"N": 33, "K": 20})
    flat, folded = (
        bankshot.simulate(case.kernel.source, entry="gemv_subgroup", grid=grid, bindings=case.bindings, probes="none")
        for grid in ((9, 1), (2, 5))
    )
    assert same_bits(flat.outputs["Y"], folded.outputs["Y"])


@pytest.mark.parametrize(
    ("name", "sizes"), [("gemv_subgroup", {"N": 33, "K": 260}), ("matmul_vec_fp16_subgroup", {"N": 5, "K": 264})]
)
def test_subgroups_add_in_the_order_of_the_adapter(lavapipe, name, sizes):
    """The specification leaves the order open; the profile of lavapipe has that of lavapipe."""
    case = case_of(name, sizes)
    ours, theirs = simulate(case, "lavapipe", "none"), run_on_gpu(case, lavapipe.name)
    assert same_bits(ours.outputs["Y"], theirs.outputs["Y"])


SIZES = {"lavapipe": 8, "intel": 16, "nvidia": 32, "amd-cdna": 64}


ANY_SUBGROUP = ["gemv_subgroup", "gemv_subgroup_multicol", "matmul_vec_fp16_subgroup", "gemv_subgroup_published",
                "q4_fused_published"]  # fmt: skip


@pytest.mark.parametrize("name", ANY_SUBGROUP)
def test_subgroups_of_every_size_will_do(name):
    case = case_of(name, {"N": 33, "K": 264})
    truth = references.find(case.kernel.reference)(case.arrays, case.shape.dims)["Y"]
    for device, size in SIZES.items():
        done = simulate(case, device, "none")
        assert done.device.subgroup_size == size
        result = compare(done.outputs["Y"], truth.value, Rule("bound"), bound=truth.bound)
        assert result.ok, (device, result)


# ---- the feed-forward layer --------------------------------------------------------------------------


def test_two_passes_compute_the_same_as_three_with_fewer_bytes():
    sizes = {"M": 17, "D": 35, "F": 50}
    both = case_of("ffn_gate_up", sizes).arrays
    gate = run("ffn_project", sizes, X=both["X"], W=both["W"])
    up = run("ffn_project", sizes, X=both["X"], W=both["C"])
    gate_up = run("ffn_gate_up", sizes)
    halves = gate.outputs["Y"], up.outputs["Y"]
    assert same_bits(gate_up.outputs["Y"], np.concatenate(halves, axis=1))
    down = run("ffn_down", sizes, GATE=halves[0], UP=halves[1])
    split = run("ffn_down_split", sizes, GATE_UP=gate_up.outputs["Y"], W=case_of("ffn_down", sizes).arrays["W"])
    assert same_bits(down.outputs["Y"], split.outputs["Y"])
    three, two = (sum(r.counters["global_bytes"] for r in runs) for runs in ((gate, up, down), (gate_up, split)))
    tiles_across = 4  # each of which reads X
    assert three - two == 4 * tiles_across * 17 * 35
    three, two = (sum(r.counters["barriers"] for r in runs) for runs in ((gate, up, down), (gate_up, split)))
    assert three > two


# ---- optimizations, before and after -----------------------------------------------------------------

VEC, MAT = {"M": 2, "N": 9, "K": 392}, {"M": 20, "N": 19, "K": 136}


@pytest.mark.parametrize(
    ("after", "before", "sizes"),
    [
        ("matmul_vec_int8_vector", "matmul_vec_int8", VEC),
        ("matmul_vec_nf4_vector", "matmul_vec_nf4", VEC),
        ("matmul_mat_int8_vector", "matmul_mat_int8", MAT),
        ("matmul_mat_nf4_vector", "matmul_mat_nf4", MAT),
        ("matmul_vec_int8_texture", "matmul_vec_int8_vector", VEC),
        ("matmul_vec_nf4_texture", "matmul_vec_nf4_vector", VEC),
        ("matmul_mat_int8_texture", "matmul_mat_int8_vector", MAT),
        ("matmul_mat_nf4_texture", "matmul_mat_nf4_vector", MAT),
        ("matmul_mat_fp16_tiled", "matmul_mat_fp16", MAT),
        ("matmul_mat_fp16_double", "matmul_mat_fp16_tiled", MAT),
    ],
)
def test_an_optimization_changes_no_bit(after, before, sizes):
    assert same_bits(run(after, sizes).outputs["Y"], run(before, sizes).outputs["Y"])


# Bytes of storage that eight weights take, one by one and at a time. One by one each reads its word and its scale; at a
# time there is one scale, and two words (int8) or one (nf4). The levels of nf4 lie in a uniform buffer.
BYTES = {"int8": (8 * (4 + 4), 2 * 4 + 4), "nf4": (8 * (4 + 4), 4 + 4)}


@pytest.mark.parametrize("form", BYTES)
@pytest.mark.parametrize("shape", ["vec", "mat"])
def test_unpacking_several_weights_at_a_time_reads_less(form, shape):
    eighths, outputs = 8 * 8 * 1024 // 8, 8 * 8 * 4
    for end, weights in zip(("", "_vector"), BYTES[form], strict=True):
        counters = run(f"matmul_{shape}_{form}{end}", {"M": 8, "N": 8, "K": 1024}).counters
        assert counters["global_bytes"] == eighths * (weights + 32) + outputs


@pytest.mark.parametrize("form", ["int8", "nf4"])
def test_a_texture_has_as_many_requested_bytes_as_a_buffer(form):
    """Counters lay out texels row by row, and do not model caches with two-dimensional locality."""
    sizes = {"M": 8, "N": 16, "K": 1024}
    buffer, texture = (run(f"matmul_mat_{form}_{kind}", sizes).counters for kind in ("vector", "texture"))
    for counter in ("global_requests", "global_bytes", "global_sectors", "flops"):
        assert buffer[counter] == texture[counter], counter


def test_tiles_reduce_loads_from_global_memory():
    """Without tiles, eight neighbours read a row each of W and X; with tiles, sixteen read what one has loaded."""
    sizes = {"M": 64, "N": 64, "K": 256}
    plain, tiled, double = (run(f"matmul_mat_fp16{end}", sizes).counters for end in ("", "_tiled", "_double"))
    outputs, rows = 64 * 64 * 4, 64 * 256
    assert plain["global_bytes"] == 64 * rows * (2 + 4) + outputs
    assert tiled["global_bytes"] == double["global_bytes"] == 64 // 16 * rows * (2 + 4) + outputs
    assert plain["global_sectors"] > 3 * tiled["global_sectors"]
    assert (plain["barriers"], tiled["barriers"], double["barriers"]) == (0, 16 * 8, 16 * 5)
    assert tiled["flops"] == double["flops"] == plain["flops"]


def test_subgroup_sums_save_barriers():
    sizes = {"M": 1, "N": 64, "K": 1024}
    tree, subgroups = (run(f"matmul_vec_fp16{end}", sizes).counters for end in ("", "_subgroup"))
    assert (tree["barriers"], subgroups["barriers"]) == (7 * 64, 64)
    assert tree["shared_wavefronts"] > 3 * subgroups["shared_wavefronts"]
    assert tree["global_bytes"] == subgroups["global_bytes"]


def test_subgroups_that_add_to_the_output_take_turns():
    """Four subgroups read the same bits, and one of those that are left succeeds at a time: 4 + 3 + 2 + 1 tries."""
    done = run("matmul_vec_fp16_atomic", {"M": 1, "N": 64, "K": 1024})
    assert (done.counters["barriers"], done.counters["shared_wavefronts"]) == (0, 0)
    assert done.counters["atomic_turns"] == 64 * 10
    assert done.counters["global_bytes"] == 64 * 1024 * 2 + 64 * 1024 * 4 + 64 * 4 * (4 + 10)


def test_sketched_tiles_conflict():
    """A row is eight words, so that rows four apart begin in the same bank: 16 rows of W take four wavefronts, and each
    half of a subgroup reads them by itself. It reads one element of X each, which neighbours share."""
    done = run("matmul_mat_fp16_sketch", {"M": 64, "N": 64, "K": 256})
    requests = 16 * 8 * 256 // 4  # workgroups, subgroups, quads of K
    for name, wavefronts in (("w_tile", 2 * 4), ("x_tile", 1)):
        loads = by_line(done, "load", name)
        assert sum(site.shared_requests for site in loads) == requests
        assert sum(site.shared_wavefronts for site in loads) == requests * wavefronts
    assert done.counters["global_bytes"] == 4 * 64 * 256 * (2 + 2) + 64 * 64 * 4
    assert done.counters["barriers"] == 16 * 2 * 256 // 16


def test_tiles_without_padding_conflict():
    """A subgroup of the published schedule is 8 x 4 invocations, each with four rows of either tile. Rows that are four
    apart begin in the same bank. Half a subgroup at a time reads eight rows of W, a quarter at a time one of X."""
    done = run("matmul_mat_fp16_published", {"M": 64, "N": 64, "K": 256})
    steps = 4 * 2 * 256 // 4  # four workgroups of two subgroups, and quads of K
    for name, wavefronts in (("w_tile", 2 * 8), ("x_tile", 4)):
        loads = by_line(done, "load", name)
        assert sum(site.shared_requests for site in loads) == steps * 4
        assert sum(site.shared_wavefronts for site in loads) == steps * 4 * wavefronts
    assert done.counters["global_bytes"] == 212_992
    assert done.counters["workgroup_memory_bytes"] == 6_144


@pytest.mark.parametrize(("kind", "word"), [("int8", 4), ("nf4", 8)])
def test_tiles_of_packed_weights_conflict_as_well(kind, word):
    """A row of W's tile has eight words, so that rows four apart begin in the same bank: a request takes a wavefront
    for each of its eight rows. X is as in f16; a request for one of two vec4 of an element is for 16 bytes, too."""
    done = run(f"matmul_mat_{kind}_published", {"M": 64, "N": 64, "K": 256})
    steps = 4 * 2 * 256 // word
    for name, requests, wavefronts in (("w_tile", steps * 4, 8), ("x_tile", 4 * 2 * 256 // 4 * 4, 4)):
        loads = by_line(done, "load", name)
        assert sum(site.shared_requests for site in loads) == requests
        assert sum(site.shared_wavefronts for site in loads) == requests * wavefronts
    weights, tokens, outputs = 2 * 64 * 256 * 4 // word, 2 * 64 * 256 * 4, 64 * 64 * 4
    scales = 256 * 256 // (8 * word) * 4 * 4  # of each invocation, step and row of W
    assert done.counters["global_bytes"] == weights + tokens + outputs + scales


def test_a_workgroup_for_four_rows_shares_a_token_and_a_tree():
    """The published schedule has four rows a workgroup, and a barrier more than halvings; ours has one row."""
    sizes = {"M": 1, "N": 64, "K": 1024}
    alone, published = (run(f"matmul_vec_fp16{end}", sizes).counters for end in ("", "_published"))
    weights, token, outputs = 64 * 1024 * 2, 1024 * 4, 64 * 4
    assert alone["global_bytes"] == weights + 64 * token + outputs
    assert published["global_bytes"] == weights + 64 // 4 * token + outputs
    assert (alone["barriers"], published["barriers"]) == (64 * 7, 64 // 4 * 8)


@pytest.mark.parametrize(("kind", "word"), [("int8", 4), ("nf4", 8)])
def test_four_rows_share_the_loads_in_every_format(kind, word):
    """A word has four or eight weights. Each request for one comes with one for the word of its block's scale."""
    sizes = {"M": 1, "N": 64, "K": 1024}
    done = run(f"matmul_vec_{kind}_published", sizes)
    assert sum(site.active_lanes for site in by_line(done, "load", "W")) == 64 * 1024 // word
    requests = 4 * 64 * 1024 // word
    assert done.counters["global_bytes"] == 2 * requests + 1024 * 4 * 64 // 4 + 64 * 4
    alone = run(f"matmul_vec_{kind}", sizes)
    assert alone.counters["barriers"] == 64 * 7
    assert done.counters["barriers"] == 64 // 4 * (9 if kind == "nf4" else 8)


def test_four_rows_share_the_loads_of_one_token():
    sizes = {"M": 1, "N": 64, "K": 2048}
    alone, single = (run(f"matmul_vec_fp16{end}", sizes).counters for end in ("", "_single"))
    weights, token, outputs = 64 * 2048 * 2, 2048 * 4, 64 * 4
    assert alone["global_bytes"] == weights + 64 * token + outputs
    assert single["global_bytes"] == weights + 64 // 4 * token + outputs


# ---- references detect faults ------------------------------------------------------------------------

# One word of weights among so many: the last of a block, or one in the middle of every other block.
LOST = {
    "q4_fused_multicol": (36, 35),
    "q4_fused_published": (36, 35),
    "q4_fused_multicol_published": (36, 35),
    "matmul_vec_q8_0": (17, 4),
    "matmul_vec_int8": (32, 31),
    "matmul_vec_nf4": (8, 7),
    "matmul_vec_int8_published": (32, 31),
    "matmul_vec_nf4_published": (8, 7),
    "matmul_mat_int8_published": (32, 31),
    "matmul_mat_nf4_published": (8, 7),
}


@pytest.mark.parametrize("name", LOST)
def test_a_kernel_that_loses_a_word_of_each_block_does_not_pass(name):
    every, word = LOST[name]
    sizes = {"M": 4 if "_mat_" in name else 1, "N": 64, "K": 1024}
    case = case_of(name, sizes)
    truth = references.find(case.kernel.reference)(case.arrays, case.shape.dims)["Y"]
    lost = case.arrays["W"].copy()
    lost.reshape(-1)[word::every] = 0
    result = compare(run(name, sizes, W=lost).outputs["Y"], truth.value, Rule("bound"), bound=truth.bound)
    assert result.share > 0.9


# ---- rmsnorm and silu --------------------------------------------------------------------------------


def test_rmsnorm_matches_its_formula():
    case = case_of("rmsnorm", {"M": 2, "N": 300})
    y = simulate(case, "nvidia", "none").outputs["Y"]
    for row, made in zip(case.arrays["X"].tolist(), y.tolist(), strict=True):
        mean = math.fsum(v * v for v in row) / 300
        expected = [v / math.sqrt(mean + 1e-6) * w for v, w in zip(row, case.arrays["W"].tolist(), strict=True)]
        assert made == pytest.approx(expected, rel=1e-6)


def test_silu_matches_its_formula():
    x = np.array([-100, -20, -1, -0.0, 0, 1e-30, 1, 20, 100], np.float32)
    y = run("silu", {"N": 9}, X=x).outputs["Y"]
    expected = [float(v) / (1 + math.exp(-float(v))) for v in x]
    assert y.tolist() == pytest.approx(expected, rel=1e-6, abs=1e-37)
