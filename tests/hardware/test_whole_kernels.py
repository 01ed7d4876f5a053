"""Whole kernels against the counters of a real GPU, in all and line by line, with no mismatch allowed.

`h200_kernels.csv` is what `measure_kernels.py` measured of `kernels.cu`: the same kernels in CUDA, access for access.
"""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.oracle.manifests import cases

HERE = Path(__file__).parent
SHADERS = HERE.parents[1] / "shaders"
COLUMNS = ("active_lanes", "wavefronts", "requests", "sectors")

with (HERE / "h200_kernels.csv").open() as opened:
    ROWS = list(csv.DictReader(opened))
RUNS = sorted({(row["kernel"], row["sizes"]) for row in ROWS})


def simulated(kernel, sizes):
    if kernel == "reduction":
        bindings = {"x": np.ones(sizes["N"], np.float32), "y": np.zeros(sizes["N"] // 1024, np.float32)}
        return bankshot.simulate(HERE / "reduction.wgsl", grid=sizes["N"] // 1024, bindings=bindings)
    (plan,) = cases.plans([SHADERS / f"{kernel}.toml"], cases.Request(dims=sizes, kernel=kernel))
    (case,) = plan.cases()
    module = bankshot.check(case.kernel.source, defines=case.kernel.defines)
    return bankshot.simulate(module, entry=case.kernel.entry, grid=case.grid, bindings=case.bindings)


def counted(run):
    """Counters by line of WGSL (empty: of all) and kind of access."""
    found = {}
    for site in run.sites:
        place = {"workgroup": "shared", "storage": "global"}.get(site.space)
        if place and site.kind in ("load", "store"):
            line = site.span.source.line_text(site.span.source.line_index(site.span.start)).strip()
            for where in ("", line):
                row = found.setdefault((where, f"{place} {site.kind}"), Counter())
                row["active_lanes"] += site.active_lanes
                row["wavefronts"] += site.shared_wavefronts
                row["requests"] += site.global_requests
                row["sectors"] += site.global_sectors
    return found


@pytest.mark.parametrize(("kernel", "sizes"), RUNS, ids=[" ".join(run) for run in RUNS])
def test_the_simulator_counts_what_the_gpu_counted(kernel, sizes):
    measured = [row for row in ROWS if (row["kernel"], row["sizes"]) == (kernel, sizes)]
    ours = counted(simulated(kernel, {name: int(n) for name, n in (size.split("=") for size in sizes.split())}))
    wrong = [
        (row["line"] or "in all", row["access"], column, f"GPU {row[column]}", f"simulated {found}")
        for row in measured
        for column in COLUMNS
        if row[column] and (found := ours.get((row["line"], row["access"]), Counter())[column]) != int(row[column])
    ]
    assert not wrong
    assert {(row["line"], row["access"]) for row in measured} == ours.keys()


def test_the_table_has_three_kernels_and_both_memories():
    assert {row["kernel"] for row in ROWS} == {"matmul", "matmul_at", "reduction"}
    assert {row["access"] for row in ROWS if row["line"]} >= {
        "shared load",
        "shared store",
        "global load",
        "global store",
    }
    assert len(ROWS) > 90
