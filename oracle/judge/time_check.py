"""Check the predicted time of a case against the manifest's `predicted_us_max`.

Only a device whose costs were measured claims a time: on any other, the check is an error that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...sim.device_files import find
from ...sim.fast_dataclass import frozen
from ...sim.models import Device
from ...sim.models.costs import MissingCost
from ...sim.models.time_model import Prediction
from ..errors import UsageError
from ..manifests.dimension_arithmetic import fraction
from ..manifests.manifest import PREDICTED_US_MAX, Case

if TYPE_CHECKING:
    from ...sim import Run

HINT = "name a calibrated profile with --device, such as nvidia-h200, or write one with `bankshot calibrate`"


@frozen
class TimeCheck:
    """The comparison of a predicted time with the most microseconds that the manifest allows."""

    most_us: float
    prediction: Prediction

    @property
    def ok(self) -> bool:
        return self.prediction.us <= self.most_us


def most_us(case: Case) -> float | None:
    """Return the most microseconds at the case's sizes; None where the manifest gives none. Raises `UsageError`."""
    most = case.kernel.predicted_us_max
    if most is None:
        return None
    try:
        value = most.us if isinstance(most.us, float) else float(fraction(most.us, case.shape.dims))
    except UsageError as error:
        raise UsageError(f"{most.at}: at {case.shape}: {error}") from None
    if value <= 0:
        raise UsageError(f"{most.at}: at {case.shape}: `{PREDICTED_US_MAX}` is {value:g}, and must be above 0")
    return value


def require_times(case: Case, device: str) -> None:
    """Raise `UsageError` where the manifest bounds the predicted time and the device claims none."""
    most = case.kernel.predicted_us_max
    if most is None:
        return
    most_us(case)  # raises an error for a bad value
    if why := no_time(find(device)):
        raise UsageError(f"{most.at}: `{PREDICTED_US_MAX}` needs a predicted time, and {why}; {HINT}")


def no_time(device: Device) -> str:
    """Say why a device claims no time; empty where it does."""
    if device.costs is None:
        return f"the profile {device.name} has no costs"
    if not device.calibrated:
        return f"the profile {device.name} was not calibrated, so that its times only rank kernels"
    return f"the profile {device.name} has no number of cores" if device.cores is None else ""


def time_check(case: Case, run: Run) -> TimeCheck | None:
    """Check the predicted time of a run; None where the manifest does not bound it."""
    most = most_us(case)
    if most is None:
        return None
    try:
        return TimeCheck(most, run.predicted_time)
    except MissingCost as error:
        raise UsageError(str(error)) from None
