"""The predicted time of a run, where the costs of its device are known: as text, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...sim import Run
    from ...sim.models.time_model import Prediction

_SHOWN = 0.05  # of the time: a smaller part is not named


def prediction_words(run: Run) -> list[str]:
    """Lines about the predicted time; none where the costs of the device are not known."""
    found = _prediction(run)
    if found is None:
        return []
    if not found.calibrated:
        return ["predicted time: for ranking only, its device was not calibrated", _parts(found)]
    words = f"predicted time {shown_us(found.us)}, 90% within {shown_us(found.low)} to {shown_us(found.high)}"
    saved = [f"{name} would save {shown_us(each)}" for name, each in found.savings.items()]
    return [words, _parts(found), *saved]


def prediction_entry(run: Run) -> dict[str, Any]:
    """The entry `predicted_time`: microseconds with bounds, parts by unit, and savings; no entry without costs."""
    found = _prediction(run)
    if found is None:
        return {}
    entry = {
        "us": found.us,
        "low": found.low,
        "high": found.high,
        "limiter": found.limiter,
        "parts": dict(found.parts),
        "savings": dict(found.savings),
        "calibrated": found.calibrated,
    }
    return {"predicted_time": entry}


def _prediction(run: Run) -> Prediction | None:
    return None if run.device.costs is None or run.device.cores is None else run.predicted_time


def _parts(found: Prediction) -> str:
    """The units that take the time, the busiest first."""
    parts = sorted(found.parts.items(), key=lambda part: -part[1])
    return "by unit: " + ", ".join(f"{us / found.us:.0%} {unit}" for unit, us in parts if us >= _SHOWN * found.us)


def shown_us(us: float) -> str:
    """A time as text."""
    return f"{us:,.3g} us" if us < 1000 else f"{us:,.0f} us"
