"""Micro-benchmarks: valid texts, distinct points, and work by hand that equals the simulator's counts."""

import math
from dataclasses import fields

import numpy as np
import pytest

import bankshot
from bankshot.oracle import wgpu_client
from bankshot.oracle.calibration import atomic_rates
from bankshot.oracle.calibration.kernel_text import FIELDS, NEVER, successors
from bankshot.oracle.calibration.micro_benchmarks import THEMES, micro_benchmarks
from bankshot.oracle.calibration.software_adapters import software_adapters
from bankshot.oracle.errors import TooLarge
from bankshot.sim.run.counters import Counters

COUNTERS = {field.name for field in fields(Counters)}
BY_HAND = {"operations", "chain", "subgroups_per_core", "private_loads", "private_stores"}
OF_RUN = {"workgroups", "invocations", "workgroup_memory_bytes"}
MEBIBYTE = 1 << 20


def point(each):
    return each.constant, tuple(sorted(each.parameters.items()))


@pytest.mark.parametrize(("cores", "scale"), [(1, 1 / 1024), (132, 1.0)])
def test_each_point_is_measured_once(cores, scale):
    points = [point(each) for each in micro_benchmarks(cores, scale, software=True)]
    assert len(set(points)) == len(points)
    assert len(points) >= 150


def test_texts_depend_on_neither_cores_nor_scale():
    small, large = (list(micro_benchmarks(cores, scale, software=True)) for cores, scale in ((2, 1 / 1024), (132, 1.0)))
    assert [a.wgsl for a in small] == [b.wgsl for b in large]


def test_buffers_stay_below_the_default_limit_of_a_binding():
    for each in micro_benchmarks(132):
        sizes = [array.nbytes for array in each.bindings.values()]
        assert max(sizes) <= 128 * MEBIBYTE, point(each)
        assert sum(sizes) <= 257 * MEBIBYTE, point(each)
        assert max(each.grid) <= 65535, point(each)


@pytest.mark.parametrize("theme", [*THEMES, software_adapters], ids=lambda theme: theme.__name__)
def test_work_equals_what_the_simulator_counts(theme):
    for each in theme(1, 1 / 1024):
        run = bankshot.simulate(each.wgsl, grid=each.grid, bindings=each.bindings, probes="all", replay=False)
        assert set(each.work) <= COUNTERS | BY_HAND | OF_RUN, point(each)
        counted = {key: getattr(run.total, key) for key in each.work if key in COUNTERS}
        assert counted == {key: each.work[key] for key in counted}, point(each)
        assert math.prod(each.grid) == each.work["workgroups"], point(each)
        assert run.counters["invocations"] == each.work["invocations"], point(each)
        assert not [finding for finding in run.findings if finding.code == "out-of-bounds"], point(each)
        assert run.outputs["sink"][0] == 0, point(each)


def test_trips_multiply_the_work():
    compared = 0
    for once, twice in zip(micro_benchmarks(1, 1 / 64), micro_benchmarks(1, 1 / 32), strict=True):
        if twice.bindings["params"][0] == 2 * once.bindings["params"][0] and once.grid == twice.grid:
            assert twice.work["operations"] == 2 * once.work["operations"], point(once)
            compared += 1
    assert compared >= 50


@pytest.mark.usefixtures("adapter")
def test_every_text_runs_on_an_adapter_and_stores_no_result():
    ran = 0
    for each in micro_benchmarks(1, 1 / 1024, software=True):
        try:
            run = wgpu_client.run(each.wgsl, each.entry, each.grid, each.bindings)
        except TooLarge:
            assert each.constant in ("residency_by_workgroup_memory", "residency_by_size", "barrier", "workgroup_start")
            continue
        ran += 1
        assert run.outputs["sink"][0] == 0, point(each)
    assert ran >= 150


def test_a_result_that_equals_never_is_stored():
    """So that no compiler may drop what computes it."""
    (each,) = (each for each in micro_benchmarks(1, 1 / 1024) if point(each) == ("launch", (("workgroups", 1),)))
    params = each.bindings["params"].copy()
    assert params[1] == NEVER
    params[1] = 0
    run = bankshot.simulate(each.wgsl, grid=each.grid, bindings=each.bindings | {"params": params})
    assert run.counters["global_requests"] == 1


@pytest.mark.parametrize(("cores", "scale"), [(0, 1.0), (1, 0.0), (1, -1.0)])
def test_sizes_must_be_positive(cores, scale):
    with pytest.raises(ValueError, match="cores and scale must be positive"):
        next(micro_benchmarks(cores, scale))


def test_atomics_that_are_spread_have_a_word_for_each_workgroup():
    words = {}
    for each in micro_benchmarks(2, 1 / 1024):
        if each.constant == "storage_atomic_add" and not each.parameters["uniform"]:
            run = bankshot.simulate(each.wgsl, grid=each.grid, bindings=each.bindings, probes="none", replay=False)
            key = each.parameters["spread"], each.parameters["sharing"] == 1
            words[key] = np.count_nonzero(run.outputs["words"]), math.prod(each.grid), each.work["invocations"]
    assert words.keys() == {(0, False), (0, True), (1, False), (1, True)}
    for (spread, own), (changed, workgroups, invocations) in words.items():
        groups = workgroups if spread else 1
        assert changed == groups * (invocations // workgroups if own else 1), (spread, own)


def test_a_chain_visits_the_elements_in_turn():
    assert successors(8, 3).tolist() == [3, 4, 5, 6, 7, 0, 1, 2]


def test_a_chase_visits_all_windows_and_no_neighbours_in_turn():
    """A window is what a load of a subgroup spans. Caches that fetch ahead would make the loads of neighbours fast."""
    chases = [
        each for each in micro_benchmarks(2, 1 / 1024) if "stride" in each.parameters and "at = first[at];" in each.wgsl
    ]
    assert len(chases) >= 10
    for each in chases:
        first, window = each.bindings["first"], 32 * int(each.parameters["stride"])
        windows = len(first) // window
        visited = [0]
        while len(visited) <= windows:
            visited.append(int(first[visited[-1]]))
        assert visited[-1] == 0, point(each)
        assert len({at // window for at in visited}) == windows, point(each)
        apart = np.abs(np.diff(visited)) // window
        assert windows < 4 or apart.min() >= windows // 4, point(each)


def test_chains_by_footprint_visit_each_line_of_the_buffer_once():
    found = [each for each in micro_benchmarks(132) if each.constant == "global_load_latency_by_footprint"]
    assert {each.parameters["footprint"] >> 20 for each in found} == {8, 16, 24, 32, 40, 64, 128}
    for each in found:
        (trips, *_), following = each.bindings["params"], each.bindings["first"]
        starts = each.bindings["starts"].astype(np.int64)
        at, visited = starts.copy(), [starts // 32]
        for _ in range(16 * int(trips) - 1):
            at = following[at].astype(np.int64)
            visited.append(at // 32)
        lines = len(following) // 32
        assert not (starts % 32).any()
        times = np.bincount(np.concatenate(visited), minlength=lines)
        assert (times == 1).mean() > 0.85, point(each)
        assert times.max() <= 2, point(each)


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_wide_loads_go_on_by_all_invocations_or_by_a_workgroup_where_that_is_around_the_buffer(cores):
    found = [each for each in micro_benchmarks(cores, 1 / 1024) if each.constant == "global_load_wide"]
    for each in found:
        params, elements = dict(zip(FIELDS, each.bindings["params"], strict=True)), len(each.bindings["first"])
        moved = each.work["invocations"] % elements
        assert params["advance"] == (moved if moved else 256), point(each)
        assert params["mask"] == elements - 1, point(each)
    assert len(found) == 4


def test_stores_that_are_not_repeated_store_once_to_each_word():
    """Of every `stride` words the first, each 4 bytes, by a lane."""
    once = [each for each in micro_benchmarks(2, 1 / 1024) if each.constant == "global_store_once"]
    assert once
    for each in once:
        assert each.work["operations"] * 4 * each.parameters["stride"] == each.parameters["footprint"]


def test_workgroup_memory_is_measured_by_loads_and_by_stores():
    points = {name: [each.parameters for each in micro_benchmarks(1, 1 / 1024) if each.constant == name]
              for name in ("workgroup_load", "workgroup_store")}  # fmt: skip
    assert points["workgroup_load"] == points["workgroup_store"]
    # Strides from 1 to as many as put all lanes of a subgroup into one bank.
    assert [len([p for p in points["workgroup_load"] if p["width"] == width]) for width in (1, 2, 3, 4)] == [6, 5, 4, 4]


@pytest.mark.parametrize(
    ("used", "sharing", "spread", "trips"),
    [
        (1, 1, 0, 32),  # a word for each lane
        (1, 1, 1, 64),
        (1, 32, 1, 16),  # a word for each workgroup
        (0, 32, 0, 8),  # a word for the grid, whose sums nothing uses
        (1, 32, 0, 2),
    ],
)
def test_the_more_lanes_share_a_word_the_fewer_iterations_are_timed(used, sharing, spread, trips):
    assert atomic_rates._storage_trips(atomic_rates._Case("add", used, sharing, spread, 0)) == trips


@pytest.mark.parametrize(
    ("kind", "used", "sharing", "serial"),
    [
        ("add", 1, 32, True),
        ("add", 0, 32, False),  # what nothing uses is summed up
        ("exchange", 0, 32, True),
        ("compare_exchange", 0, 32, True),
        ("add", 1, 1, False),  # each lane has a word of its own
        ("exchange", 1, 1, False),
    ],
)
def test_lanes_take_turns_at_a_word_that_they_share(kind, used, sharing, serial):
    assert atomic_rates._Case(kind, used, sharing, 0, 0).serial == serial
