"""The profile `nvidia-h200` against the times of an H200."""

import csv
import re
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.oracle.calibration.measure import PROBES
from bankshot.oracle.manifests.manifest import Case
from bankshot.oracle.manifests.reflection import check_module
from bankshot.sim.device_files import find
from bankshot.sim.models.time_model import COSTS, predicted_us
from benchmarks.cases import SHADERS, case, size
from tests.hardware.measure_times import CORES, Item
from tests.hardware.predict_times import pairs, points, table
from tests.hardware.timed.chains import workgroup_strides
from tests.hardware.timed.transposes import transposes
from tools.claims import bench

PRODUCT = "M=2048 N=4096 K=1024"
PAGE = Path(__file__).parents[2] / "docs" / "time-model.md"
ROW = re.compile(
    r"^\| ([\w ]+) \| (\d+) \| (\d+) of (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE
)


def rows() -> dict[str, tuple[float, ...]]:
    """The rows of the page's table by family: dispatches, pairs in order, pairs, and the errors."""
    table = PAGE.read_text(encoding="utf-8").partition("<!-- families -->")[2].partition("<!-- end of families -->")[0]
    return {name: tuple(map(float, figures)) for name, *figures in ROW.findall(table)}


def test_the_page_has_what_the_shipped_profile_predicts() -> None:
    costs = find("nvidia-h200").costs
    assert costs is not None
    values = {name: costs.value(name) for name in COSTS}
    timed = [*transposes(1), *workgroup_strides(1)]
    items = (
        Item("families", t.family, t.kernel, t.shape, t.wgsl, t.entry, t.grid, dict(t.bindings), {}) for t in timed
    )
    found = list(points("families", items))
    predicted = [float(predicted_us(point.work, values, CORES)[0]) for _, point in found]
    ordered = pairs(found, predicted)
    for family in {point.kind for _, point in found}:
        mine = [i for i, (_, point) in enumerate(found) if point.kind == family]
        off = np.exp(np.abs(np.log([predicted[i] / found[i][1].us for i in mine])))
        right = [ok for its, ok, _ in ordered if its == family]
        ratio = np.exp(np.median([each for its, _, each in ordered if its == family]))
        known = rows()[family]
        assert known[:3] == (len(mine), sum(right), len(right))
        assert np.allclose(known[3:6], [ratio, np.median(off), np.quantile(off, 0.9)], atol=0.006)


def test_the_costs_name_the_adapter_of_the_times() -> None:
    costs = find("nvidia-h200").costs
    assert costs is not None
    header = table("calibration")[0]
    assert costs.adapter in header
    assert costs.driver in header
    assert costs.date in header


def test_a_measured_rate_is_what_the_fit_found() -> None:
    # one wavefront a clock: 0.995 by the micro-benchmark alone
    costs = find("nvidia-h200").costs
    assert costs is not None
    assert abs(costs.value("wavefront") - 1) < 0.1


@pytest.mark.parametrize("pad", [16, 18, 20, 32, 33])
def test_rows_of_other_lengths_take_the_times_that_an_h200_takes(pad: int) -> None:
    """Against rows of 17 words. With 33, a core holds one workgroup."""
    measured = measured_matmuls()
    assert matmul_us(pad) / matmul_us(17) == pytest.approx(measured[pad] / measured[17], rel=0.05)


@pytest.mark.parametrize(
    ("kernels", "sizes"),
    [
        ("q4_fused", "N=1152 K=6912"),  # M = 1: counts of instructions and wavefronts have another order
        ("ladder", "M=252 K=252 N=252"),
        ("ladder", "M=4092 K=4092 N=4092"),
    ],
)
def test_variants_of_a_kernel_are_in_the_order_that_an_h200_measures(kernels: str, sizes: str) -> None:
    measured = {kernel: us for (kernel, case), us in measured_us().items() if case == sizes and kernels in kernel}
    assert len(measured) >= 5
    predicted = {kernel: predicted_case(kernel, sizes) for kernel in measured}
    pairs = [pair for pair in permutations(measured, 2) if measured[pair[0]] > 1.05 * measured[pair[1]]]
    assert [(slow, fast) for slow, fast in pairs if predicted[slow] <= predicted[fast]] == []


def measured_us() -> dict[tuple[str, str], float]:
    """The microseconds of kernels of `shaders/`, by kernel and case."""
    found: dict[tuple[str, str], float] = {}
    for name in ("times_h200.csv", "variants_h200.csv"):  # those of claims, and others that the same program took
        with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as file:
            found |= {(row["kernel"], row["case"]): float(row["median_us"]) for row in csv.DictReader(file)}
    return found


def predicted_case(kernel: str, sizes: str) -> float:
    """The microseconds that are predicted for a kernel of `shaders/`, with sizes as tables have them."""
    return predicted_us_of(bench.case(kernel, dict(size(kernel, each) for each in sizes.split())))


def measured_matmuls() -> dict[int, float]:
    """The microseconds of `PRODUCT` by the length of rows."""
    found = [(case.rpartition(" TK_PAD="), us) for (_, case), us in measured_us().items()]
    return {int(pad): us for (sizes, _, pad), us in found if sizes == PRODUCT}


@cache
def matmul_us(pad: int) -> float:
    return predicted_us_of(case(f"{SHADERS}/matmul.toml:matmul:{PRODUCT.replace(' ', ',')}"), TK_PAD=pad)


def predicted_us_of(product: Case, **overrides: int) -> float:
    run = bankshot.simulate(
        check_module(product.kernel),
        entry=product.kernel.entry,
        grid=product.grid,
        bindings=product.bindings,
        overrides={**product.overrides, **overrides},
        device="nvidia-h200",
        probes=PROBES,
        workgroups="classes",
        replay=False,
    )
    return run.predicted_time.us
