"""A calibration as text and as JSON: the costs, and the errors of predictions by theme."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from .measure import Calibration


def calibration_lines(found: Calibration) -> Iterator[str]:
    """Yield the costs with their spread, then the errors by kind of micro-benchmark, as fitted and left out."""
    costs = found.costs
    yield f"{costs.adapter} ({costs.driver}), {len(found.points)} micro-benchmarks"
    if found.refused:
        kinds = ", ".join(dict.fromkeys(found.refused))
        yield f"the adapter refused {len(found.refused)} more: {kinds}"
    width = max(map(len, costs.costs))
    for name, cost in costs.costs.items():
        spread = "given" if cost.spread is None else f"within a factor of {cost.spread:.2f}"
        yield f"  {name:{width}}  {cost.value:12.5g}  {spread}"
    yield "predicted / measured, median by kind: as fitted, and by a fit without the kind"
    for kind in dict.fromkeys(point.kind for point in found.points):
        at = [i for i, point in enumerate(found.points) if point.kind == kind]
        fitted, blind = (median(float(errors[i]) for i in at) for errors in (found.fitted.errors, found.left_out))
        yield f"  {kind:36}  {fitted:6.2f}  {blind:6.2f}"
    yield f"90% of predictions without the kind are within a factor of {found.error_90:.2f}"


def calibration_entry(found: Calibration, file: Path) -> dict[str, Any]:
    """The costs by name, and predicted / measured of each micro-benchmark: as fitted, and by a fit without its kind."""
    return {
        "tool": "bankshot",
        "schema": 1,
        "verb": "calibrate",
        "file": str(file),
        "adapter": found.costs.adapter,
        "driver": found.costs.driver,
        "refused": found.refused,
        "costs": {name: asdict(cost) for name, cost in found.costs.costs.items()},
        "points": [
            {"kind": point.kind, "us": point.us, "fitted": float(fitted), "left_out": blind}
            for point, fitted, blind in zip(found.points, found.fitted.errors, found.left_out, strict=True)
        ],
    }
