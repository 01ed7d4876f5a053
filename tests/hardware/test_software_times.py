"""The tables of times on lavapipe, and the shipped profile of it against them."""

import csv
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bankshot.sim.device_files import find
from bankshot.sim.models.time_model import predict
from tests.hardware import predict_times
from tests.hardware.measure_times import COLUMNS, Item
from tests.hardware.predict_software_times import DEVICE, RUNS, RUNS_OF_ENTRIES, SCALE, pairs, points, slower, times
from tests.hardware.predict_times import Timed
from tests.hardware.timed.transposes import transposes
from tests.hardware.timed.vector_products import vector_products
from tests.hardware.timed_families import FAMILIES, dispatches

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "time-model.md"
HEADER = "# llvmpipe (LLVM 15.0.6, 256 bits) (CPU, Vulkan), driver llvmpipe Mesa 22.3.6 (LLVM 15.0.6), wgpu 0.32.0;"
ROW = re.compile(
    r"^\| ([^|]+) \| (\d+) \| ([\d,]+) of ([\d,]+) \| ([\d.]*) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE
)


def lines(run: int) -> list[dict[str, str]]:
    header, *rows = (HERE / f"llvmpipe_times_families_{run}.csv").read_text(encoding="utf-8").splitlines()
    assert header.startswith(HEADER)
    return [*csv.DictReader(rows)]


def rows() -> dict[str, tuple[str, ...]]:
    """The rows of the page's table by family."""
    page = PAGE.read_text(encoding="utf-8")
    table = page.partition("<!-- families on lavapipe -->")[2].partition("<!-- end of families on lavapipe -->")[0]
    return {name: tuple(each.replace(",", "") for each in figures) for name, *figures in ROW.findall(table)}


@pytest.mark.parametrize("run", RUNS)
def test_a_run_has_a_row_for_each_dispatch(run: int) -> None:
    found = lines(run)
    names = [(row["family"], row["kernel"], row["shape"]) for row in found]
    assert names == [(each.family, each.kernel, each.shape) for each in dispatches(SCALE)]
    for row in found:
        assert tuple(row) == COLUMNS
        least, low, median, high = (float(row[name]) for name in ("least_us", "q1_us", "median_us", "q3_us"))
        assert 0 <= least <= low <= median <= high


def test_a_pair_has_one_order_in_each_run() -> None:
    one, other = ("family", "one", "shape"), ("family", "other", "shape")
    for ratios, expected in (((1.1, 1.2), True), ((0.9, 0.8), False), ((1.1, 0.9), None), ((1.1, 1.04), None)):
        assert slower(one, other, [{one: ratio, other: 1.0} for ratio in ratios]) is expected


def test_the_page_has_what_the_shipped_profile_predicts() -> None:
    timed = [*transposes(SCALE), *vector_products(SCALE)]
    items = (
        Item("families", t.family, t.kernel, t.shape, t.wgsl, t.entry, t.grid, dict(t.bindings), {}) for t in timed
    )
    runs = [times(run) for run in RUNS]
    found = list({at: (at, point) for at, point in points(items, runs)}.values())
    predicted = [predict(point.work, find(DEVICE)).us for _, point in found]
    ordered = pairs(found, predicted, runs)
    families = {point.kind for _, point in found}
    assert len(families) == 2
    for family in families:
        off = [us / point.us for us, (_, point) in zip(predicted, found, strict=True) if point.kind == family]
        right = [ok for its, ok, _ in ordered if its == family]
        dispatched, in_order, all_, _, middle, most, _ = rows()[family]
        assert (int(dispatched), int(in_order), int(all_)) == (len(off), sum(right), len(right))
        logs = np.abs(np.log(off))
        expected = [np.exp(np.median(logs)), np.exp(np.quantile(logs, 0.9))]
        assert np.allclose([float(middle), float(most)], expected, atol=0.006)


def test_the_page_has_the_pairs_that_the_times_decide() -> None:
    runs = [times(run) for run in RUNS]
    known = set.intersection(*(set(each) for each in runs))
    least: list[tuple[Timed, Any]] = [
        (at, SimpleNamespace(kind=at[0], us=min(each[at] for each in runs))) for at in known
    ]
    decided = Counter(family for family, *_ in pairs(least, [1.0] * len(least), runs))
    table = {name: int(figures[2]) for name, figures in rows().items() if "families" not in name}
    assert table == {family: decided[family] for family in table}
    apart = len(predict_times.pairs(least, [1.0] * len(least)))
    said = rf"Of all {apart:,} pairs whose\s+least times are 5% apart, ([\d,]+) \((\d+)%\)"
    in_order = re.search(said, PAGE.read_text(encoding="utf-8"))
    assert in_order is not None
    assert round(100 * int(in_order[1].replace(",", "")) / apart) == int(in_order[2])


def test_the_page_has_the_pairs_of_entries() -> None:
    runs = [times(run, "entries") for run in RUNS_OF_ENTRIES]
    known = set.intersection(*(set(each) for each in runs))
    assert {at[0] for at in known} == {"clocksmith/doppler@b39bd5e123dd"}
    least: list[tuple[Timed, Any]] = [
        (at, SimpleNamespace(kind=at[0], us=min(run[at] for run in runs))) for at in known
    ]
    assert all(point.us < 0.5e6 for _, point in least)
    total = len(pairs(least, [1.0] * len(least), runs))
    whole, of_repository = re.findall(rf"\| {len(known)} \| (\d+) of {total} \|", PAGE.read_text(encoding="utf-8"))
    assert whole == of_repository
    assert int(whole) >= 0.9 * total


def test_nine_of_ten_pairs_are_in_order() -> None:
    (whole,) = [figures for name, figures in rows().items() if "families" in name]
    families = [figures for name, figures in rows().items() if "families" not in name]
    assert len(families) == len({each for family in FAMILIES for each in [t.family for t in family(SCALE)]})
    for column in range(3):
        assert int(whole[column]) == sum(int(each[column]) for each in families)
    assert int(whole[1]) >= 0.9 * int(whole[2])


def test_the_costs_name_the_adapter_of_the_times() -> None:
    costs = find(DEVICE).costs
    assert costs is not None
    assert costs.adapter in HEADER
    assert costs.command.startswith("bankshot calibrate --adapter llvmpipe")
