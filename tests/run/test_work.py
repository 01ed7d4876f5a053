"""What a dispatch asks of a device, for kernels whose work was worked out by hand."""

import math

import numpy as np
import pytest

import bankshot
from bankshot.sim.models import Cost, MeasuredCosts, get
from bankshot.sim.models.work import Work
from bankshot.sim.run import atomic_contention, program_work

HEAD = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> n: array<atomic<u32>>;
var<workgroup> t: array<f32, 2048>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {
  let g = w.x * 64u + i;
"""
GRID = 6


def work(body: str, grid: int = GRID, n: int = 1024, **options: object) -> Work:
    bindings = {"x": np.ones(4096, np.float32), "y": np.zeros(4096, np.float32), "n": np.zeros(n, np.uint32)}
    used = {name: data for name, data in bindings.items() if f"{name}[" in body}
    return bankshot.simulate(HEAD + body + "}", grid=grid, bindings=used, **options).work


def test_a_copy_moves_each_sector_once() -> None:
    found = work("y[g] = x[g];")
    assert (found.workgroups, found.subgroups) == (6, 2)
    assert found.load_lines == found.store_lines == 6 * 2
    assert found.load_sectors == found.store_sectors == 6 * 8
    assert found.footprint == 2 * 6 * 64 * 4
    assert found.missed == 1.0


@pytest.mark.parametrize(
    ("stride", "wavefronts"),
    [(0, 1), (1, 1), (3, 1.5), (8, 8), (9, 3), (32, 32), (33, 8.75), (36, 8.75), (40, 8.75), (48, 16)],
)
def test_a_load_has_bank_conflicts_in_the_cache(stride: int, wavefronts: float) -> None:
    """On an H200, such loads take 2.1, 2.1, 2.1, 8, 3, 32, 8.8, 7.7, 10 and 16 cycles; no load less than 2."""
    found = work(f"y[g] = x[(i & 31u) * {stride}u];", grid=1)
    assert found.load_wavefronts == 2 * wavefronts
    assert found.ideal_load_wavefronts <= 2


def test_a_load_of_four_words_takes_a_wavefront_for_eight_lanes() -> None:
    text = """
        @group(0) @binding(0) var<storage, read> x: array<vec4f>;
        @group(0) @binding(1) var<storage, read_write> y: array<vec4f>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) { y[i] = x[i * STRIDEu]; }"""
    bindings = {name: np.zeros((1024, 4), np.float32) for name in "xy"}
    for stride, wavefronts in ((1, 4), (2, 8), (3, 4), (4, 16), (8, 32)):
        found = bankshot.simulate(text.replace("STRIDE", str(stride)), grid=1, bindings=bindings).work
        assert found.load_wavefronts == wavefronts


def test_code_is_what_is_executed_at_all() -> None:
    body = "var sum = 0.0; for (var k = 0u; k < 4u; k++) { sum += x[g + k]; } y[g] = sum; "
    found = work(body)
    assert found.issued["storage_load"] == GRID * 2 * 4
    assert (found.code["storage_load"], found.code["loop"]) == (1, 1)
    assert work(body + "if w.x > 6u { for (var k = 0u; k < 4u; k++) { y[g] = x[g + 9u]; } }").code["storage_load"] == 1


def test_a_load_that_the_sampled_workgroup_does_not_execute_misses_the_cache() -> None:
    found = work("if w.x == 0u { y[g] = x[g]; }")
    assert (found.missed, found.load_sectors, found.load_lines) == (1.0, 8, 2)


def test_a_load_is_delayed_if_one_of_its_subgroups_misses() -> None:
    found = work("var sum = 0.0; for (var k = 0u; k < 4u; k++) { sum += x[w.x * 8u + k * 2u]; } y[g] = sum;")
    assert found.missed == 1 / 8  # of 2 subgroups in 4 iterations on one sector
    assert found.delayed == 1 / 4


def test_loads_of_one_variable_that_are_waited_for_together_miss_in_turn() -> None:
    both = "sum += x[w.x * 8u + k * 2u] + x[w.x * 8u + k * 2u + 1u];"
    found = work(f"var sum = 0.0; for (var k = 0u; k < 4u; k++) {{ {both} }} y[g] = sum;")
    assert found.chain["storage_load"] == 4
    assert found.delayed == 1 / 4  # one of 8 loads misses, in one of 4 steps


def test_an_iteration_waits_for_a_miss_though_other_subgroups_do_not_load() -> None:
    """A subgroup of two loads a new line in each iteration, and a word of its own that stays in the cache."""
    loop = "for (var k = 0u; k < 9u; k++) { sum += x[(g + 128u * k) % 4096u] * y[i]; }"
    found = work(f"var sum = 0.0; if (i < 32u) {{ {loop} }} y[i + 2048u] = sum;", grid=1)
    assert found.delayed == 1.0
    assert found.longest["storage_load"] == 9


def test_loads_of_different_variables_miss_at_the_same_time() -> None:
    both = "sum += x[w.x * 8u + k * 2u] + y[w.x * 8u + k * 2u];"
    found = work(f"var sum = 0.0; for (var k = 0u; k < 4u; k++) {{ {both} }} y[g] = sum;")
    assert found.chain["storage_load"] == 4
    assert found.delayed == 1 / 4  # two of 8 loads miss, in one of 4 steps


TILES = """
var sum = 0.0;
for (var k = 0u; k < 3u; k++) {
  t[i] = x[g + k * 512u];
  workgroupBarrier();
  for (var m = 0u; m < 64u; m++) { sum += t[m]; }
  workgroupBarrier();
}
y[g] = sum;
atomicAdd(&n[i], 1u);
"""


TEXELS = """\
@group(0) @binding(0) var texels: texture_2d<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> t: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
  t[i] = y[i];
  workgroupBarrier();
  y[i] = t[63u - i] + textureLoad(texels, vec2u(0u, i), 0).x;
}
"""


def test_a_load_of_texels_waits_in_its_own_phase() -> None:
    """Each of 32 lanes loads from a line of its own."""
    given = {"texels": np.ones((64, 64), np.float32), "y": np.ones(64, np.float32)}
    before, after = bankshot.simulate(TEXELS, grid=1, bindings=given).work.phases
    assert before.chain["storage_wavefront"] == 0
    loads = after.chain["storage_load"] + after.chain["next_load"]
    assert after.chain["storage_wavefront"] == 31 * loads > 0


def test_each_access_is_in_the_work_of_its_phase() -> None:
    found = work(TILES)
    loads, sums, stores = found.phases
    rounds = GRID * 2 * 3  # of loops over k, by all subgroups
    assert [each.load_lines for each in found.phases] == [rounds, 0, 0]
    assert [each.wavefronts for each in found.phases] == [rounds, rounds * 64, 0]
    assert [each.store_lines for each in found.phases] == [0, 0, GRID * 2]
    assert (loads.chain["storage_load"], sums.chain["workgroup_load"]) == (3, 3 * 64)
    assert (loads.atomic_sectors, stores.atomic_sectors) == (0, found.atomic_sectors)


def test_a_load_in_a_function_is_in_each_phase_that_calls_it() -> None:
    """Once before the barriers, and three times between them: 12 subgroups load a line each time."""
    function = "fn load(at: u32) { t[at % 64u] = x[at]; } @compute"
    body = "load(g); for (var k = 0u; k < 3u; k++) { workgroupBarrier(); load(g + 64u * k); } y[g] = t[63u - i];"
    bindings = {"x": np.ones(4096, np.float32), "y": np.zeros(4096, np.float32)}
    found = bankshot.simulate(HEAD.replace("@compute", function) + body + "}", grid=GRID, bindings=bindings).work
    assert [phase.load_lines for phase in found.phases if phase.load_lines] == [12, 36]
    assert found.load_lines == 48


def test_phases_add_up_to_the_dispatch() -> None:
    found = work(TILES)
    for name in ("wavefronts", "load_lines", "load_sectors", "missed_lines", "store_lines", "stored_lines",
                 "store_sectors", "moved", "moved_again", "atomic_sectors", "atomic_turns"):  # fmt: skip
        assert sum(getattr(each, name) for each in found.phases) == pytest.approx(getattr(found, name))
    for name in ("issued", "chain"):
        for kind, count in getattr(found, name).items():
            assert sum(getattr(each, name).get(kind, 0.0) for each in found.phases) == pytest.approx(count)
    assert {(each.workgroups, each.resident, each.footprint) for each in found.phases} == {
        (found.workgroups, found.resident, found.footprint)
    }


def test_a_program_of_one_phase_has_no_others() -> None:
    assert work("y[g] = x[g];").phases == ()


@pytest.mark.parametrize(("kept", "resident"), [(10, 32), (40, 18), (100, 9)])
def test_registers_limit_the_workgroups_of_a_core(kept: int, resident: int) -> None:
    """Of 65,536 registers, 64 invocations of 32, 56 and 112 registers take 2,048, 3,584 and 7,168."""
    made = "".join(f"var a{k} = x[g + {k}u]; " for k in range(kept))
    changed = "".join(f"a{k} += x[m]; " for k in range(kept))
    stored = "".join(f"y[g + {k}u] = a{k}; " for k in range(kept))
    body = f"{made} for (var m = 0u; m < 3u; m++) {{ {changed} }} {stored}"
    text = HEAD.replace("var<workgroup> t: array<f32, 2048>;", "") + body + "}"
    data = np.ones(4096, np.float32)
    found = bankshot.simulate(text.replace("@group(0) @binding(2) var<storage, read_write> n: array<atomic<u32>>;", ""),
                              grid=GRID, bindings={"x": data, "y": data.copy()}, probes="counters").work  # fmt: skip
    assert found.resident == resident


def test_one_subgroup_waits_for_no_barrier() -> None:
    body = "t[i] = x[g]; workgroupBarrier(); y[g] = t[31u - i];"
    small = HEAD.replace("@workgroup_size(64)", "@workgroup_size(32)").replace("64u", "32u") + body + "}"
    data = np.ones(4096, np.float32)
    found = bankshot.simulate(small, grid=GRID, bindings={"x": data, "y": data.copy()}).work
    assert "barrier" not in found.chain
    assert "barrier" not in found.issued
    assert (found.chain["storage_load"], found.chain["workgroup_load"]) == (1, 1)  # these it does wait for
    assert work(body.replace("31u", "63u")).issued["barrier"] == GRID * 2


def test_the_longest_workgroup_is_told_from_the_others() -> None:
    found = work("for (var k = 0u; k < w.x * w.x; k++) { t[i] = f32(k); workgroupBarrier(); } y[g] = t[63u - i];")
    assert found.chain["barrier"] == pytest.approx((0 + 1 + 4 + 9 + 16 + 25) / 6)
    assert found.longest["barrier"] == 25


def test_partly_stored_granules_of_distinct_lines_move_twice() -> None:
    found = work("if (i < 4u) { y[(w.x * 4u + i) * 32u] = 1.0; }")
    assert found.footprint == 24 * 128
    assert found.moved == 24 * 64 * 2


def test_sectors_that_a_workgroup_stores_part_by_part_move_once() -> None:
    found = work("for (var k = 0u; k < 4u; k++) { y[g * 4u + k] = 1.0; }", grid=16)
    assert found.store_sectors == 16 * 2 * 16 * 4
    assert found.moved == 16 * 64 * 16


def test_what_workgroups_far_apart_store_moves_again_as_what_they_load() -> None:
    found = work("y[w.x % 4u * 1024u + i * 16u + w.x / 4u] = 1.0;", grid=64)
    assert found.moved == 256 * 64 * 2  # in parts
    assert found.moved_again == (16 - 1) * 256 * 64


@pytest.mark.parametrize(
    ("stores", "share"),
    [
        ("y[a] = 1.0; y[a + 1u] = 2.0;", 1),
        ("y[a] = 1.0; y[a + 1u] = 2.0; y[a + 2u] = 3.0;", 0.5),
        ("y[a + 2u] = 3.0; y[a] = x[g]; y[a + 3u] = 4.0; y[a + 1u] = x[g + 1u];", 0.5),
        ("y[a] = 1.0; y[a + 1u] = 2.0; y[a + 3u] = 4.0;", 1),  # one is missing
        ("y[a] = 1.0; y[a + 1u] = 2.0; workgroupBarrier(); y[a + 2u] = 3.0; y[a + 3u] = 4.0;", 1),
        ("y[a] = 1.0; if g > 3u { y[a + 1u] = 2.0; } y[a + 2u] = 3.0;", 1),
        ("for (var k = 0u; k < 4u; k++) { y[a + k] = 1.0; }", 1),
        (" ".join(f"y[a + {k}u] = 1.0;" for k in range(7)), 0.5),
        (" ".join(f"y[a + {k}u] = 1.0;" for k in range(8)), 1),  # a whole sector
    ],
)
def test_three_stores_to_less_than_a_sector_reach_the_cache_in_half_as_many(stores: str, share: float) -> None:
    found = work(f"let a = g * 8u; {stores}")
    assert found.stored_lines == share * found.store_lines > 0
    assert found.store_sectors == 4 * found.stored_lines  # 32 lanes store to a sector each, in 8 lines


def test_what_neighbours_share_is_not_moved_again() -> None:
    found = work("y[g] = x[i];")
    assert (found.moved_again, found.reach) == (0, 0)


@pytest.mark.parametrize(("lines", "kept"), [(1024, True), (16, False)])
def test_a_core_loads_what_stays_in_its_cache_once(lines: int, kept: bool) -> None:
    """Each of 2,048 workgroups loads one of the 8 parts of x, the next one another: 64 of 512 sectors, in 128 lines. So
    each of the 4 cores loads the 512 sectors once if its cache keeps them, as many as a workgroup each time if not."""
    costs = MeasuredCosts({"cache_bytes": Cost(lines * 128.0, None, "by hand")})
    found = work("y[i] = x[w.x % 8u * 512u + i * 8u];", grid=2048, device=get("nvidia").with_(cores=4, costs=costs))
    assert found.load_lines == 2048 * 16
    assert found.load_sectors == pytest.approx(4 * 512 if kept else 2048 * 64, rel=0.001)
    assert found.load_wavefronts == 2048 * 2 * 8  # each subgroup has 8 lanes on each bank that it uses


def test_what_workgroups_far_apart_share_is_moved_again() -> None:
    # 4 neighbours load one word of each of the 256 granules of x, the next 4 another word of each, and so on
    found = work("y[g] = x[w.x % 4u * 1024u + i * 16u + w.x / 4u];", grid=64)
    assert found.moved == 256 * 64 + 64 * 64 * 4
    assert found.moved_again == (16 - 1) * 256 * 64
    assert found.reach == 256 * 64 + 4 * 64 * 4  # what 4 workgroups load and store


def test_the_chain_waits_for_each_wavefront() -> None:
    found = work("t[i] = x[i * 32u]; workgroupBarrier(); y[g] = t[i * 32u];")
    assert found.chain["storage_wavefront"] == 31
    assert found.chain["wavefront"] == 31


def test_the_chain_is_that_of_the_busiest_subgroup() -> None:
    found = work("if (i < 32u) { var v = i; for (var k = 0u; k < 10u; k++) { v = u32(x[v]); } y[v] = 1.0; }")
    assert found.chain["storage_load"] == 10  # half of the subgroups do it, and the workgroup waits for them
    assert found.issued["storage_load"] == 6 * 10


def test_conflicts_and_their_ideal_are_told_apart() -> None:
    found = work("t[i * 32u] = 1.0; workgroupBarrier(); y[g] = t[(63u - i) * 32u];")
    assert found.wavefronts == 6 * 2 * (32 + 32)
    assert found.ideal_wavefronts == 6 * 2 * 2
    assert found.without_conflicts().wavefronts == found.ideal_wavefronts


def test_scattered_accesses_and_their_ideal_are_told_apart() -> None:
    found = work("y[(g * 32u) % 4096u] = 1.0;")
    assert found.store_lines == 6 * 64
    assert found.coalesced().store_lines == 6 * 2


def test_additions_to_one_word_are_summed_up_before() -> None:
    found = work("atomicAdd(&n[0], 1u);")
    assert found.atomic_turns == 6 * 2


def test_exchanges_on_one_word_take_turns() -> None:
    found = work("let old = atomicExchange(&n[0], i); if (old == 99999u) { y[0] = 1.0; }")
    assert found.atomic_turns == 6 * 64
    assert found.atomic_word_turns == 6 * 64


def test_operations_on_words_of_one_line_do_not_wait_for_one_word() -> None:
    found = work("atomicExchange(&n[i % 32u], i);")
    assert found.atomic_turns == 6 * 2 * 4
    assert found.atomic_word_turns < found.atomic_turns / 16


def test_maxima_on_one_word_take_turns_if_something_needs_their_results() -> None:
    assert work("atomicMax(&n[0], i);").atomic_turns == 6 * 2
    assert work("let old = atomicMax(&n[0], i); if (old == 99999u) { y[0] = 1.0; }").atomic_turns == 6 * 64
    assert work("let old = atomicAdd(&n[0], i); if (old == 99999u) { y[0] = 1.0; }").atomic_turns == 6 * 2


def test_additions_to_words_of_their_own_spread_over_the_parts_of_the_cache() -> None:
    alone = 2 * 4  # each workgroup has a chunk of its own: passes of its sectors
    assert work("atomicAdd(&n[g], 1u);").atomic_turns == pytest.approx(alone, rel=0.01)
    passes = 64 * alone  # on 16 KiB, or 32 stripes
    turns = passes / 96 + math.sqrt(2 * math.log(96) * passes**2 / 32 / 96)
    assert work("atomicAdd(&n[g], 1u);", grid=64, n=4096).atomic_turns == pytest.approx(turns, rel=0.01)


def test_a_compare_exchange_passes_its_sectors_twice() -> None:
    once = work("atomicExchange(&n[g], 1u);")
    twice = work("atomicCompareExchangeWeak(&n[g], 0u, 1u);")
    assert once.atomic_sectors == 6 * 2 * 4
    assert twice.atomic_sectors == 2 * once.atomic_sectors
    assert twice.atomic_turns == 2 * once.atomic_turns


def test_operations_of_a_single_workgroup_are_not_spread_over_the_others() -> None:
    found = work("if (w.x == 3u) { atomicAdd(&n[i % 32u], i); }")
    assert found.atomic_sectors == 8
    assert found.atomic_turns == pytest.approx(8, rel=0.3)


def test_operations_that_no_lane_executes_take_no_turns() -> None:
    found = work("if (w.x > 99u) { atomicAdd(&n[g], 1u); }")
    assert (found.atomic_sectors, found.atomic_turns, found.atomic_word_turns) == (0, 0, 0)


def test_a_compare_exchange_that_waits_for_its_word_takes_one_turn() -> None:
    once = work("atomicExchange(&n[0], i);")
    twice = work("atomicCompareExchangeWeak(&n[0], 0u, i);")
    assert once.atomic_turns == twice.atomic_turns == once.atomic_word_turns == twice.atomic_word_turns == 6 * 64


@pytest.mark.parametrize(
    ("size", "share"), [(256, 1), (512, 1 / 2), (768, 2 / 3), (1024, 1 / 2), (1056, 512 / 1056), (4096, 1 / 8)]
)
def test_two_parts_of_the_cache_serve_each_kib_in_turn(size: int, share: float) -> None:
    assert atomic_contention.largest_stripe(size) == pytest.approx(share)


def test_workgroups_that_change_random_words_of_one_table_share_them() -> None:
    """A quarter of all operations is on the first 256 bytes of 16 KiB; each workgroup changes other words of them."""
    pcg = "h = h * 747796405u + 2891336453u; h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u; h ^= h >> 22u;"
    change = "let at = h % 4096u; atomicAdd(&n[select(at, at % 64u, i % 4u == 0u)], 1u);"
    found = work(f"var h = g; for (var k = 0u; k < 16u; k++) {{ {pcg} {change} }}", grid=64, n=4096)
    assert 0.22 <= found.atomic_turns / found.atomic_sectors < 0.35


def test_workgroups_that_share_the_ends_of_their_own_words_are_apart() -> None:
    """Each changes 66 words, of which its neighbours change two; together the busiest stripe has an eighth of them."""
    found = work("atomicAdd(&n[g], 1u); if (i < 2u) { atomicAdd(&n[g + 64u], 1u); }", grid=15)
    assert found.atomic_turns / found.atomic_sectors < 0.3


@pytest.mark.parametrize(("words", "lost"), [(100, 0), (768, 0), (1152, 0.5), (1536, 1), (4000, 1)])
def test_arrays_of_function_space_leave_the_cache_if_they_are_large(words: int, lost: float) -> None:
    """Of six workgroups of two subgroups on 132 cores, each has a cache with room for 1,536 lines."""
    found = work(f"var own: array<f32, {words}>; own[u32(x[i])] = 1.0; y[g] = own[u32(x[0])];")
    assert found.issued["local_fill"] == 6 * 2 * words
    scattered = 6 * 2 * 32  # the store at indices of the lanes' own: a sector each
    assert found.local_lines == 6 * 2 * words + scattered / 4
    assert found.missed_local_sectors == pytest.approx(lost * 6 * 2 * 4)  # of the load at an index that lanes share


def test_a_sample_stands_for_all_workgroups() -> None:
    assert work("y[g] = x[g];", grid=60, workgroups=6).load_lines == work("y[g] = x[g];", grid=60).load_lines


def test_workgroups_that_do_the_work_are_sampled() -> None:
    """The first of six loads a line word by word: it misses the sectors of it, and the others load nothing."""
    body = "if (w.x == 0u) { var sum = 0.0; for (var k = 0u; k < 32u; k++) { sum += x[k]; } y[g] = sum; }"
    found = work(body)
    assert found.delayed == pytest.approx(4 / 32)


def test_a_program_is_analysed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all grids, data and probes, and for devices that run it alike."""
    made: list[object] = []
    draft = program_work.draft
    monkeypatch.setattr(program_work, "draft", lambda *given, **how: made.append(given) or draft(*given, **how))
    module = bankshot.check(HEAD + "y[g] = x[g] + f32(atomicAdd(&n[i], 1u));}")
    few_cores = get("nvidia").with_(cores=2)
    for grid, options in ((2, {}), (6, {}), (6, {"probes": "counters"}), (6, {"device": few_cores})):
        given = {"x": np.full(4096, grid, np.float32), "y": np.zeros(4096, np.float32), "n": np.zeros(64, np.uint32)}
        found = bankshot.simulate(module, grid=grid, bindings=given, **options).work
        assert (found.workgroups, found.load_sectors) == (grid, grid * 8)
        assert len(made) == 1


GUARDED = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: vec2u;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3u) {
  if (g.x >= size.x || g.y >= size.y) { return; }
  var sum = 0.0;
  for (var k = 0u; k < 32u; k++) { sum += x[32u * g.x + k]; }
  y[g.y * size.x + g.x] = sum;
}
"""


@pytest.mark.parametrize("grid", [(8, 4), (129, 64)])
def test_the_work_by_classes_is_that_of_a_run_of_all_workgroups(grid: tuple[int, int]) -> None:
    """Most workgroups return at once. Those that do not are one class, and the work is theirs alone."""
    bindings = {"x": np.ones(8192, np.float32), "y": np.zeros(512, np.float32), "size": np.array([160, 3], np.uint32)}
    whole, classes = (
        bankshot.simulate(GUARDED, grid=grid, bindings=bindings, device="nvidia-h200", workgroups=workgroups)
        for workgroups in ("all", "classes")
    )
    assert classes.coverage.how == "classes"
    assert classes.work == whole.work
    assert classes.work.unevenness > 1
    assert classes.predicted_time == whole.predicted_time


def test_a_workgroup_counts_by_its_instructions_not_by_its_blocks() -> None:
    """A loop has few instructions in each of its many blocks, and what comes after it has many in one."""
    text = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<uniform> rounds: u32;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) g: vec3u, @builtin(workgroup_id) w: vec3u) {
  var sum = f32(g.x);
  if (w.x == 0u) { for (var k = 0u; k < rounds; k++) { sum += 0.5; } }
  y[g.x] = SUM;
}
""".replace("SUM", " + ".join(["sum"] * 40))
    device = get("nvidia").with_(cores=2)

    def run(rounds: int) -> bankshot.Run:
        return bankshot.simulate(
            text, grid=2, bindings={"y": np.zeros(64, np.float32), "rounds": np.uint32(rounds)}, device=device
        )

    short, long = run(0), run(100)
    every = [sum(row.executions for row in each.instructions) for each in (short, long)]
    alike, first = every[0] / 2, every[1] - every[0] / 2  # nearly: the first workgroup enters its branch in both runs
    assert long.work.unevenness == pytest.approx(2 * first / (alike + first), rel=0.05)
    assert long.work.unevenness == pytest.approx(1.8, abs=0.1)


def test_workgroups_that_return_early_issue_nothing_of_what_follows() -> None:
    found = work("if (w.x > 0u) { return; } y[g] = exp(x[g]);")
    assert found.issued["special"] == 2  # one workgroup of two subgroups
    assert found.issued["storage_store"] == 2
    assert found.longest["special"] == 1
    assert found.chain["special"] == pytest.approx(1 / GRID)
