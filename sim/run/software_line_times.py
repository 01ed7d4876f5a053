"""What lines ask of each unit of a software adapter, for `line_times`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..models.costs import MeasuredCosts

if TYPE_CHECKING:
    from .result import Run
    from .site import Site

Line = tuple[str, int]  # file and 1-based line

# Classes of instructions as written -> the cost that stands for them.
_CHARGED_AS = {"special": "exp", "fp16": "fp32", "control": "branch"}


def _instructions(run: Run, costs: MeasuredCosts) -> dict[Line, float]:
    """Divide the unit by what instructions cost; lines of arithmetic also wait for its results."""
    known = {name.removesuffix("_ns"): cost.value for name, cost in costs.costs.items() if name.endswith("_ns")}
    found: dict[Line, float] = defaultdict(float)
    for row in run.instructions:
        kind = _CHARGED_AS.get(row.kind, row.kind)
        if row.kind in ("fp32", "fp16", "special", "integer", "conversion", "control", "subgroup"):
            wait = known["wait"] + (known["wait_fp32"] if kind == "fp32" else 0.0)
            found[row.span.place.file, row.span.line] += row.executions * (known[kind] + wait)
    return found


def _accesses(*kinds: str) -> Callable[[Run, MeasuredCosts], dict[Line, float]]:
    """Divide a unit by the words that subgroups and lanes access."""

    def weights(run: Run, costs: MeasuredCosts) -> dict[Line, float]:
        found: dict[Line, float] = defaultdict(float)
        for site in run.sites:
            kind = f"{site.space}_{site.kind}"
            if kind in kinds:
                found[site.span.place.file, site.line] += _access(site, kind, costs)
        return found

    return weights


def _access(site: Site, kind: str, costs: MeasuredCosts) -> float:
    words = max(1, -(-site.bytes_per_lane // 4))
    each = site.executions * costs.value(f"{kind}_ns") + site.active_lanes * costs.value(f"{kind}_lane_ns")
    lines = {"storage_load": "missed_line_ns", "storage_store": "store_line_ns"}.get(kind)
    return words * each + (site.global_lines * costs.value(lines) if lines else 0.0)


def _barriers(run: Run, costs: MeasuredCosts) -> dict[Line, float]:
    del costs  # one kind alone
    found: dict[Line, float] = defaultdict(float)
    for site in run.sites:
        found[site.span.place.file, site.line] += site.barriers
    return found


SOFTWARE_WEIGHTS: Mapping[str, Callable[[Run, MeasuredCosts], dict[Line, float]]] = {
    "instructions": _instructions,
    "storage": _accesses("storage_load", "storage_store", "uniform_load"),
    "workgroup memory": _accesses("workgroup_load", "workgroup_store"),
    "barriers": _barriers,
    "atomics": _accesses("storage_atomic", "workgroup_atomic"),
}
