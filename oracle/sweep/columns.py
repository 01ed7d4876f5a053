"""The columns of a sweep's table: the identity of a case, its counters and derived figures, and its verdict.

Each entry of `IDENTITY` and `FIGURES` is one column. Sizes have columns such as `dims.M`, which depend on the kernels.
If a case could not run, its row has no figures, and `why` gives the reason. Costs follow the rules of the row's device;
ratios are fractions, not percentages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from ...sim.device_files import find
from ...sim.fast_dataclass import frozen
from ...sim.run.counters import NAMES
from ..judge.counter_checks import with_derived
from ..judge.coverage import CaseOutcome
from ..judge.device_comparison import Charged
from ..judge.verdict import Audit
from ..reports.remarks import ERROR, entry_of, figures_of
from ..wgpu_client import Timing
from .work import SweepCase, version

Row = dict[str, Any]  # values of type str, int, float or None by column name

CLEAN, UNCHECKED, FOUND, FAILED = (  # verdicts
    str(each) for each in (CaseOutcome.CLEAN, CaseOutcome.UNCHECKED, CaseOutcome.FAILED, CaseOutcome.ERROR)
)
DIMS = "dims."
_MICROSECONDS = 1e6


@frozen
class Judged:
    """A case that ran, with its costs on its device."""

    audit: Audit
    charged: Charged

    @property
    def counters(self) -> dict[str, float]:
        """The counters, and figures derived from them."""
        return with_derived(self.charged.counters)

    @property
    def why(self) -> str:
        """The reasons why the case is not clean; empty if it is."""
        remarks = (remark for remark in entry_of(self.audit).remarks if remark.level == ERROR)
        return "; ".join(f"{remark.code}: {remark.message}" for remark in remarks)


T = TypeVar("T")


@frozen
class Column(Generic[T]):
    """The type of a column's values, and how to compute them from a `SweepCase` or a `Judged`."""

    kind: type
    value: Callable[[T], str | int | float]


def _counter(name: str) -> Column[Judged]:
    return Column(int, lambda judged: int(judged.counters[name]))


def _share(name: str) -> Column[Judged]:
    return Column(float, lambda judged: float(judged.counters[name]))


def _excess(name: str) -> Column[Judged]:
    return Column(int, lambda judged: int(figures_of(judged.charged.counters)[name]))


# Columns of every case.
IDENTITY: dict[str, Column[SweepCase]] = {
    "key": Column(str, lambda case: case.key),
    "kernel": Column(str, lambda case: case.plan.kernel.name),
    "source": Column(str, lambda case: str(case.plan.kernel.source)),
    "device": Column(str, lambda case: find(case.device).name),
}

# Columns of a case that ran.
FIGURES: dict[str, Column[Judged]] = {
    "grid": Column(str, lambda judged: "x".join(map(str, judged.audit.case.grid))),
    "subgroup_size": Column(int, lambda judged: judged.charged.device.subgroup_size),
    **{name: _counter(name) for name in ("workgroups", "invocations", "workgroup_memory_bytes", *NAMES)},
    "simt_efficiency": _share("simt_efficiency"),
    "working_invocations": _share("working_invocations"),
    "excess_wavefronts": _excess("excess_wavefronts"),
    "excess_sectors": _excess("excess_sectors"),
    "sector_bytes": Column(int, lambda judged: judged.charged.sector_bytes),
    "intensity": _share("intensity"),  # floating-point operations per requested global byte
    "occupancy": Column(float, lambda judged: float(judged.charged.occupancy.fraction)),
    # Findings that make the case fail, and those that the manifest accepts; informational ones count as neither.
    "findings": Column(int, lambda judged: sum(not check.ok for check in judged.audit.findings)),
    "accepted": Column(int, lambda judged: sum(check.allowed for check in judged.audit.findings)),
    "verdict": Column(str, lambda judged: str(judged.audit.outcome)),
    "compared": Column(str, lambda judged: ", ".join(judged.audit.coverage.truths)),
    "why": Column(str, lambda judged: judged.why),
}

# Columns of a sweep that is timed: the median on an adapter and its quartiles, and why there are none.
TIMES: dict[str, type] = {
    "time_us": float,
    "time_q1_us": float,
    "time_q3_us": float,
    "time_adapter": str,
    "not_timed": str,
}

# All columns but the sizes and times. `seconds` is the time of one run divided by the number of cases that shared it;
# `version` is that of Bankshot.
COLUMNS: dict[str, type] = {
    **{name: column.kind for name, column in IDENTITY.items()},
    **{name: column.kind for name, column in FIGURES.items()},
    "seconds": float,
    "version": str,
}


def row(case: SweepCase, judged: Judged, seconds: float) -> Row:
    """Make the row of a case that ran."""
    return _row(case, {name: column.value(judged) for name, column in FIGURES.items()}, seconds)


def failed(case: SweepCase, why: str, seconds: float = 0.0) -> Row:
    """Make the row of a case that could not run."""
    return _row(case, {**dict.fromkeys(FIGURES), "verdict": FAILED, "why": why}, seconds)


def _row(case: SweepCase, figures: Row, seconds: float) -> Row:
    sizes = {f"{DIMS}{name}": size for name, size in case.shape.dims.items()}
    identity = {name: column.value(case) for name, column in IDENTITY.items()}
    return {**identity, **sizes, **figures, "seconds": seconds, "version": version()}


def with_time(row: Row, timing: Timing) -> Row:
    """Return a row with the columns of its time."""
    times = timing.times
    seconds = (None, None, None) if times is None else (times.median, *times.quartiles)
    values = [None if each is None else each * _MICROSECONDS for each in seconds]
    adapter = None if timing.adapter is None else timing.adapter.name
    return {**row, **dict(zip(TIMES, (*values, adapter, timing.not_timed), strict=True))}


def columns(rows: Sequence[Row]) -> dict[str, type]:
    """Return the name and type of every column in these rows. Sizes follow the identity, in the kernels' order; times
    come last, if any row has one."""
    sizes = {name: int for row in rows for name in row if name.startswith(DIMS)}
    times = TIMES if any(TIMES.keys() & row for row in rows) else {}
    kinds = {**COLUMNS, **sizes, **times}
    return {name: kinds[name] for name in (*IDENTITY, *sizes, *COLUMNS, *times)}
