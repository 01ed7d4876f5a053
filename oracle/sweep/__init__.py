"""Many shapes, kernels and devices in one go: a row of figures for each, made by any `concurrent.futures` executor.

    from bankshot.oracle.sweep import cases, sweep

    wanted = cases(["shaders/matmul.toml"], dims={"M": range(64, 513, 64), "N": [768]}, devices=["nvidia", "amd"])
    rows = list(sweep(wanted, journal=Journal(Path("results.rows"))))

`work` says what is to be run, `running` runs it, `columns` what a row holds, `journal` keeps rows from one run to the
next, `tables` writes them for others.
"""

from .columns import COLUMNS, Row
from .journal import Journal
from .sweep_run import processes, sweep
from .work import SweepCase, cases, parse_dims

__all__ = ["COLUMNS", "Journal", "Row", "SweepCase", "cases", "parse_dims", "processes", "sweep"]
