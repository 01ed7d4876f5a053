"""The predicted time of a run, where the costs of its device are known: as text, and as JSON."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .source_listing import compact

if TYPE_CHECKING:
    from ...sim import Run
    from ...sim.models.time_model import Prediction
    from ...sim.run.line_times import LineTime
    from ..judge.time_check import TimeCheck

MOST_LINES = 5  # of a report
_LEAST_SHARE = 0.02  # of the time, for a line to be listed
_FAR = 100  # times the lowest roof: a higher one is not named
_SHOWN = 0.05  # of the time: a smaller part is not named


def time_check_words(check: TimeCheck) -> str:
    """A predicted time against the manifest's bound: the prediction, its interval, and what limits."""
    found = check.prediction
    most = "as the manifest allows" if check.ok else f"the manifest allows {shown_us(check.most_us)}"
    return f"{claimed_us(found)}, limited by {found.limiter}, {most}"


def claimed_us(found: Prediction) -> str:
    """A predicted time with its interval."""
    return f"{shown_us(found.us)}, 90% within {shown_us(found.low)} to {shown_us(found.high)}"


def time_check_entry(check: TimeCheck | None) -> dict[str, Any] | None:
    """The check of a predicted time as JSON-like values."""
    if check is None:
        return None
    found = check.prediction
    return {
        "most_us": check.most_us,
        "us": found.us,
        "low": found.low,
        "high": found.high,
        "limiter": found.limiter,
        "ok": check.ok,
    }


def prediction_words(run: Run) -> list[str]:
    """Lines about the predicted time; none where the costs of the device are not known."""
    found = _prediction(run)
    if found is None:
        return []
    if not found.calibrated:
        return ["predicted time: for ranking only, its device was not calibrated", _parts(found)]
    words = f"predicted time {claimed_us(found)}"
    saved = [f"{name} would save {shown_us(each)}" for name, each in run.time_savings.items()]
    return [words, _parts(found), *_roofline(run), *saved]


def _roofline(run: Run) -> list[str]:
    """The roofs over a kernel in one line, the lowest first, without those far above it; none without FLOPs."""
    roofs = run.roofs
    words = [
        f"{compact(roof.attainable)} by {roof.name}"
        + (f" ({roof.intensity:.3g} FLOP per byte)" if isfinite(roof.intensity) else "")
        for roof in roofs
        if roof.attainable <= _FAR * roofs[0].attainable
    ]
    return [f"roofline, FLOP per second: at most {', '.join(words)}"] if words else []


def prediction_entry(run: Run) -> dict[str, Any]:
    """The entry `predicted_time`: microseconds with bounds, parts by unit, and savings; no entry without costs.

    Of a device that was not calibrated: a number without a unit, to rank runs on the same device, and shares of it.
    """
    found = _prediction(run)
    if found is None:
        return {}
    if not found.calibrated:
        ranked = {
            "relative": found.us,
            "limiter": found.limiter,
            "shares": {unit: us / found.us for unit, us in found.parts.items()},
            "savings": {change: us / found.us for change, us in run.time_savings.items()},
            "lines": [
                {"file": line.file, "line": line.line, "share": line.share, "limiter": line.limiter}
                for line in run.line_times
            ],
            "calibrated": False,
        }
        return {"predicted_time": ranked}
    entry = {
        "us": found.us,
        "low": found.low,
        "high": found.high,
        "limiter": found.limiter,
        "parts": dict(found.parts),
        "savings": run.time_savings,
        "roofline": [
            {
                "name": roof.name,
                "flop_per_byte": roof.intensity if isfinite(roof.intensity) else None,
                "flop_per_second": roof.attainable,
            }
            for roof in run.roofs
        ],
        "lines": [_line_entry(line) for line in run.line_times],
        "calibrated": found.calibrated,
    }
    return {"predicted_time": entry}


def _line_entry(line: LineTime) -> dict[str, Any]:
    return {
        "file": line.file,
        "line": line.line,
        "us": line.us,
        "share": line.share,
        "limiter": line.limiter,
        "parts": dict(line.parts),
    }


def longest_lines(run: Run) -> list[LineTime]:
    """The lines that take most of the predicted time, the longest first; none without costs."""
    if _prediction(run) is None:
        return []
    return [line for line in run.line_times[:MOST_LINES] if line.share >= _LEAST_SHARE]


def line_words(line: LineTime) -> str:
    """The share of a line, and what limits it."""
    return f"{line.share:.0%}  {Path(line.file).name}:{line.line}  {line.limiter}"


def _prediction(run: Run) -> Prediction | None:
    return run.predicted_time if run.predicts_time else None


def _parts(found: Prediction) -> str:
    """The units that take the time, the busiest first."""
    parts = sorted(found.parts.items(), key=lambda part: -part[1])
    return "by unit: " + ", ".join(f"{us / found.us:.0%} {unit}" for unit, us in parts if us >= _SHOWN * found.us)


def shown_us(us: float) -> str:
    """A time as text."""
    return f"{us:,.3g} us" if us < 1000 else f"{us:,.0f} us"
