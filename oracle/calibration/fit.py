"""Fits the costs of the model of time to measured times.

The sum over all dispatches of a robust loss of log(predicted / measured) is minimal, so that a dispatch of 2 us counts
as much as one of 2 ms. Each kind of dispatch has the same weight, however many points it has. A cost that the times do
not determine stays near where it began: its logarithm is pulled there, as by a
measurement with a spread of a factor of 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from ...sim.models.time_model import GPU, TimeModel
from ...sim.models.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable

_PULL = 0.3  # of a cost to where it began, against a deviation of log(predicted / measured)
_USUAL = 0.15  # a deviation beyond which the loss grows as its size and not as its square
_EVALUATIONS = 40


@frozen
class Point:
    """A dispatch of some kind that took `us` microseconds."""

    kind: str
    work: Work
    us: float


@frozen
class Fit:
    """Fitted costs by name. `spreads`: one standard deviation as a factor, of each that was fitted. `errors`: predicted
    / measured of each point."""

    costs: Mapping[str, float] = field(hash=False)
    spreads: Mapping[str, float] = field(hash=False)
    errors: NDArray[np.float64] = field(hash=False)


class NoSciPy(Exception):
    """SciPy is not installed. The message says how to install it."""


def fit(points: Sequence[Point], cores: int, begin: Mapping[str, float] | None = None, model: TimeModel = GPU) -> Fit:
    """Fit the costs of a model to points. `begin`: where they start, if not as its table says. Raises NoSciPy, and
    ValueError for fewer than two points."""
    if len(points) < 2:
        raise ValueError("a fit needs at least two dispatches")
    least_squares = _least_squares()
    start = model.begin | dict(begin or {})
    names = [name for name in model.costs if name not in model.unfitted]
    origin = np.log([start[name] for name in names])
    weights, times = _weights(points), np.log([point.us for point in points])
    work = _stacked([point.work for point in points])

    def costs(logs: NDArray[np.float64]) -> dict[str, float]:
        return {**start, **dict(zip(names, np.exp(logs).tolist(), strict=True))}

    def deviations(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        predicted = _predicted(work, costs(logs), cores, model)
        return np.concatenate([weights * (np.log(predicted) - times), _PULL * (logs - origin)])

    found = least_squares(deviations, origin, loss="soft_l1", f_scale=_USUAL, max_nfev=_EVALUATIONS)
    fitted = costs(found.x)
    errors = _predicted(work, fitted, cores, model) / np.exp(times)
    return Fit(fitted, dict(zip(names, _spreads(found), strict=True)), errors)


def left_out(
    points: Sequence[Point],
    cores: int,
    parts: int = 6,
    begin: Mapping[str, float] | None = None,
    model: TimeModel = GPU,
) -> NDArray[np.float64]:
    """Return predicted / measured of each point, by costs fitted without any point of its kind.

    The kinds are dealt to `parts` parts in order; each part is left out once.
    """
    kinds = {kind: number % parts for number, kind in enumerate(dict.fromkeys(point.kind for point in points))}
    part = np.array([kinds[point.kind] for point in points])
    errors = np.ones(len(points))
    for number in sorted(set(part.tolist())):
        known = [point for point, its in zip(points, part.tolist(), strict=True) if its != number]
        others = [point for point, its in zip(points, part.tolist(), strict=True) if its == number]
        costs = fit(known, cores, begin, model).costs
        errors[part == number] = _predicted(_stacked([point.work for point in others]), costs, cores, model) / [
            point.us for point in others
        ]
    return errors


def bound_of(errors: NDArray[np.float64], share: float = 0.9) -> float:
    """Return the factor that `share` of the predictions are within of the measured times."""
    return float(np.exp(np.quantile(np.abs(np.log(errors)), share)))


def _predicted(work: Work, costs: Mapping[str, float], cores: int, model: TimeModel) -> NDArray[np.float64]:
    return np.asarray(model.predicted_us(work, costs, cores)[0])


def _stacked(works: Sequence[Work]) -> Work:
    """Return one work whose figures are arrays, one element for each work."""
    most = max(len(work.phases) for work in works)
    phases = [_stacked([_phase(work, number) for work in works]) for number in range(most)]

    def column(name: str) -> Any:
        values = [getattr(work, name) for work in works]
        if isinstance(values[0], Mapping):
            keys = dict.fromkeys(key for value in values for key in value)
            return {key: np.array([value.get(key, 0.0) for value in values]) for key in keys}
        return np.array(values, np.float64)

    columns = {each.name: column(each.name) for each in fields(Work) if each.name != "phases"}
    return Work(**columns, phases=tuple(phases))


def _phase(work: Work, number: int) -> Work:
    """Return a phase of a work; after its last, one that uses no unit."""
    phases = work.phases or (work,)
    return phases[number] if number < len(phases) else work.idle()


def _weights(points: Sequence[Point]) -> NDArray[np.float64]:
    kinds = [point.kind for point in points]
    weights = np.array([1 / np.sqrt(kinds.count(kind)) for kind in kinds])
    return weights * np.sqrt(len(points) / np.sum(weights**2))


def _spreads(found: Any) -> list[float]:
    """Return one standard deviation of each cost, as a factor, from the curvature of the loss at the minimum."""
    curvature = found.jac.T @ found.jac
    variances = np.diagonal(np.linalg.pinv(np.asarray(curvature, np.float64)))
    variance = 2 * found.cost / max(1, len(found.fun) - len(found.x))
    return np.exp(np.sqrt(np.maximum(0, variances) * variance)).tolist()


def _least_squares() -> Callable[..., Any]:
    try:
        from scipy.optimize import least_squares  # pyright: ignore
    except ImportError:
        raise NoSciPy("calibrating needs SciPy: pip install 'bankshot[calibrate]'") from None
    return cast("Callable[..., Any]", least_squares)
