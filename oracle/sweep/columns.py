"""What a row of a sweep holds: who it is of, what was counted and what follows from it, and the verdict.

One row of a table is one column. The sizes of a case have columns of their own, `dims.M`, which depend on the kernels.
Of a case that could not be run, a row has no figures, and `why` says what is wrong. Every figure is what its device is
charged; ratios are of 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ...sim.fast_dataclass import frozen
from ...sim.run.counters import NAMES
from ..judge.counter_checks import with_derived
from ..judge.device_comparison import Charged
from ..judge.verdict import Audit
from ..reports.remarks import ERROR, entry_of, figures_of
from .work import SweepCase, version

Row = dict[str, Any]  # str, int, float or None by the name of the column

CLEAN, FOUND, FAILED = "clean", "found", "error"  # verdicts, as the exit codes 0, 1 and 2
DIMS = "dims."


@frozen
class Judged:
    """A case that was run, as its device is charged for it."""

    audit: Audit
    charged: Charged

    @property
    def counters(self) -> dict[str, float]:
        return with_derived(self.charged.counters)

    @property
    def why(self) -> str:
        remarks = (remark for remark in entry_of(self.audit).remarks if remark.level == ERROR)
        return "; ".join(f"{remark.code}: {remark.message}" for remark in remarks)


class Column(NamedTuple):
    type: type
    value: Callable[[Any], Any]


def _counter(name: str) -> Column:
    return Column(int, lambda judged: int(judged.counters[name]))


def _share(name: str) -> Column:
    return Column(float, lambda judged: float(judged.counters[name]))


def _excess(name: str) -> Column:
    return Column(int, lambda judged: int(figures_of(judged.charged.counters)[name]))


# Of a case, whether it could be run or not.
IDENTITY = {
    "key": Column(str, lambda case: case.key),
    "kernel": Column(str, lambda case: case.plan.kernel.name),
    "source": Column(str, lambda case: str(case.plan.kernel.source)),
    "device": Column(str, lambda case: case.device),
}

# Of a case that was run.
FIGURES = {
    "grid": Column(str, lambda judged: "x".join(map(str, judged.audit.case.grid))),
    "subgroup_size": Column(int, lambda judged: judged.charged.device.subgroup_size),
    **{name: _counter(name) for name in ("workgroups", "invocations", "workgroup_memory_bytes", *NAMES)},
    "simt_efficiency": _share("simt_efficiency"),
    "thread_utilization": _share("thread_utilization"),
    "excess_wavefronts": _excess("excess_wavefronts"),
    "excess_sectors": _excess("excess_sectors"),
    "sector_bytes": Column(int, lambda judged: judged.charged.sector_bytes),
    "intensity": _share("intensity"),  # floating-point operations per byte that lanes ask of global memory
    "occupancy": Column(float, lambda judged: float(judged.charged.occupancy.fraction)),
    # What is held against the case, and what the manifest accepts; not what is said for information.
    "findings": Column(int, lambda judged: sum(not check.ok for check in judged.audit.findings)),
    "accepted": Column(int, lambda judged: sum(check.allowed for check in judged.audit.findings)),
    "verdict": Column(str, lambda judged: CLEAN if judged.audit.ok else FOUND),
    "why": Column(str, lambda judged: judged.why),
}

# `seconds` are those of the cases that were run together, by their number; `version`: of Bankshot.
COLUMNS: dict[str, type] = {
    **{name: column.type for name, column in (IDENTITY | FIGURES).items()},
    "seconds": float,
    "version": str,
}


def row(case: SweepCase, judged: Judged, seconds: float) -> Row:
    return _row(case, {name: column.value(judged) for name, column in FIGURES.items()}, seconds)


def failed(case: SweepCase, why: str, seconds: float = 0.0) -> Row:
    return _row(case, {**dict.fromkeys(FIGURES), "verdict": FAILED, "why": why}, seconds)


def _row(case: SweepCase, figures: Row, seconds: float) -> Row:
    sizes = {f"{DIMS}{name}": size for name, size in case.shape.dims.items()}
    identity = {name: column.value(case) for name, column in IDENTITY.items()}
    return {**identity, **sizes, **figures, "seconds": seconds, "version": version()}


def columns(rows: Iterable[Row]) -> dict[str, type]:
    """Every column that rows have: name and type. Sizes come after what says whom a row is of, in the order in which
    kernels name them."""
    sizes = {name: int for row in rows for name in row if name.startswith(DIMS)}
    names: Sequence[str] = (*IDENTITY, *sizes, *(name for name in COLUMNS if name not in IDENTITY))
    return {name: {**COLUMNS, **sizes}[name] for name in names}
