"""The tables of times, and what the device profile says of the same GPU."""

from __future__ import annotations

import csv
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import bankshot
from bankshot.oracle.calibration.micro_benchmarks import micro_benchmarks
from bankshot.oracle.wgpu_client import KernelTimes
from bankshot.sim.models.devices import NVIDIA
from bankshot.sim.models.occupancy import occupancy
from tests.hardware import measure_times
from tests.hardware.measure_times import COLUMNS, CORES, Item, has_storage_atomics, placed
from tests.hardware.timed_families import FAMILIES

HERE = Path(__file__).parent
TABLES = sorted(HERE.glob("h200_times_*.csv"))


@cache
def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        assert file.readline().startswith("# NVIDIA H200 (DiscreteGPU, Vulkan), driver NVIDIA 580.159.04, wgpu 0.32.0;")
        return list(csv.DictReader(file))


def test_there_are_three_tables():
    assert [path.name for path in TABLES] == [
        "h200_times_calibration.csv",
        "h200_times_entries.csv",
        "h200_times_families.csv",
    ]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_rows_are_whole(path):
    names = [(row["family"], row["kernel"], row["shape"]) for row in rows(path)]
    assert len(names) == len(set(names))
    for row in rows(path):
        assert tuple(row) == COLUMNS
        least, low, median, high = (float(row[name]) for name in ("least_us", "q1_us", "median_us", "q3_us"))
        assert 0 < least <= low <= median <= high
        assert int(row["passes"]) >= 3


def test_the_micro_benchmarks_are_those_that_were_timed():
    made = {(each.constant, " ".join(f"{k}={v:g}" for k, v in each.parameters.items())): each.grid
            for each in micro_benchmarks(CORES)}  # fmt: skip
    timed = {(row["family"], row["shape"]): tuple(map(int, row["grid"].split())) for row in rows(TABLES[0])}
    assert timed == made


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_the_families_are_those_that_were_timed(family):
    """One dispatch of each family, so that not all data are generated."""
    timed = {(row["family"], row["kernel"], row["shape"]): row["grid"] for row in rows(TABLES[2])}
    first = next(family(1))
    assert timed[first.family, first.kernel, first.shape] == " ".join(map(str, first.grid))


def test_residency_changes_the_time_where_the_profile_says():
    """Workgroups that wait for memory: sizes with the same residency take the same time, within 2%, and no others."""
    found = [row for row in rows(TABLES[0]) if row["family"] == "residency_by_workgroup_memory"]
    assert len(found) == 16
    made = {f"bytes={each.parameters['bytes']:g}": each for each in micro_benchmarks(CORES)
            if each.constant == "residency_by_workgroup_memory"}  # fmt: skip
    times: dict[int, list[float]] = {}
    for row in found:
        each = made[row["shape"]]
        size = bankshot.check(each.wgsl).pipeline(each.entry, {}).workgroup_size
        resident = occupancy(NVIDIA, size, int(each.parameters["bytes"])).workgroups
        times.setdefault(resident, []).append(float(row["median_us"]))
    assert sorted(times) == [1, 2, 3, 4, 5, 6, 8, 12]
    for each in times.values():
        assert max(each) < 1.02 * min(each)
    means = [sum(times[resident]) / len(times[resident]) for resident in sorted(times)]
    assert all(more > 1.1 * less for more, less in pairwise(means))


def item(text: str) -> Item:
    return Item("families", "atomics", "add", "4 words", text, "main", (1,), {}, {})


def test_of_several_placements_the_middle_one_counts(monkeypatch):
    items, runs = [item("one"), item("other"), item("refused")], iter([3.0, 1.0, 2.0])
    seen = []

    def timed(group, adapter, rounds):
        us, kept = next(runs), [each for each in group if each.wgsl != "refused"]
        seen.append([each.wgsl for each in group])
        yield from ((each, KernelTimes((us * (1 + (each.wgsl == "other")),), 0.0)) for each in kept)

    monkeypatch.setattr(measure_times, "timed", timed)
    assert [(each.wgsl, times.median) for each, times in placed(items, "any", 5, 3)] == [("one", 2.0), ("other", 4.0)]
    assert len({tuple(order) for order in seen}) > 1


def test_atomics_of_workgroup_memory_lie_nowhere_else():
    text = "{} var<{}> n: atomic<u32>; @compute @workgroup_size(1) fn main() {{ atomicAdd(&n, 1u); }}"
    assert has_storage_atomics(item(text.format("@group(0) @binding(0)", "storage, read_write")))
    assert not has_storage_atomics(item(text.format("", "workgroup")))


def test_dispatches_with_atomics_were_timed_in_several_placements():
    for path in (TABLES[0], TABLES[2]):
        with path.open(encoding="utf-8") as file:
            assert "--placements 9" in file.readline()


def test_entries_name_their_repository_and_commit():
    for row in rows(TABLES[1]):
        owner, _, commit = row["family"].partition("@")
        assert owner.count("/") == 1
        assert len(commit) == 12
        assert int(commit, 16) >= 0
