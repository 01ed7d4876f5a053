"""Sweeps over shapes, kernels and devices: one row of figures for each case, from any `concurrent.futures` executor.

    from bankshot.oracle.sweep import cases, sweep

    wanted = cases(["shaders/matmul.toml"], dims={"M": range(64, 513, 64), "N": [768]}, devices=["nvidia", "amd"])
    rows = list(sweep(wanted, journal=Journal(Path("results.rows"))))

`work` enumerates the cases, `sweep_run` runs them, `columns` defines the rows, `journal` keeps rows between runs, and
`table_files` writes them to a file.
"""

from .columns import COLUMNS, Row
from .journal import Journal
from .sweep_run import processes, sweep
from .work import SweepCase, cases, parse_dims

__all__ = ["COLUMNS", "Journal", "Row", "SweepCase", "cases", "parse_dims", "processes", "sweep"]
