"""Measures the costs of a device: times the micro-benchmarks on an adapter, and fits the model of time to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from statistics import median

from ... import sim
from ...sim.fast_dataclass import frozen
from ...sim.models import Device
from ...sim.models.costs import Cost, MeasuredCosts
from ...sim.models.time_model import GPU, SOFTWARE, TimeModel
from ...sim.models.work import Work
from .. import wgpu_client
from ..errors import UsageError
from ..kernel_timing import groups
from .fit import Fit, Point, bound_of, fit, left_out
from .kernel_text import MicroBenchmark
from .micro_benchmarks import micro_benchmarks

_ASSUMED = "not fitted: the value that a fit begins with"
PROBES = ("lanes", "banks", "sectors", "barriers")


@frozen
class Plan:
    """What to measure. `scale` shortens loops and buffers; `rounds`: of all micro-benchmarks of a group."""

    adapter: str | None
    device: Device  # the profile to start from; it has a number of cores
    scale: float
    rounds: int
    command: str


@frozen
class Calibration:
    """The measured costs, the points that they were fitted to, and predicted / measured of each point: as fitted, and
    by a fit without its theme. `refused`: micro-benchmarks that the adapter refused, by kind."""

    costs: MeasuredCosts
    points: list[Point]
    fitted: Fit
    left_out: list[float]
    refused: list[str]

    @property
    def error_90(self) -> float:
        """The factor that 90% of predictions are within, by fits without the theme of each."""
        return self.costs.value("error_90")


def calibrate(plan: Plan, progress: Callable[[int], None] = lambda done: None) -> Calibration:
    """Time the micro-benchmarks on an adapter, and fit the costs. `progress` gets how many are timed.

    Raises `NoAdapter`, `NoSciPy`, and ValueError where fewer than two micro-benchmarks could be timed.
    """
    info = wgpu_client.require_adapter(plan.adapter)
    cores = plan.device.cores or 1
    refused: list[str] = []
    model = SOFTWARE if info.kind == "CPU" else GPU
    points = list(_points(plan, cores, model, progress, refused))
    if len(points) < 2:
        raise ValueError("fewer than two micro-benchmarks took long enough to be timed; use a larger --scale")
    begin = {"clock_mhz": _clock(points, cores)} if model is GPU else None
    fitted = fit(points, cores, begin, model)
    errors = left_out(points, cores, begin=begin, model=model)
    source = f"fitted to {len(points)} micro-benchmarks"
    costs = costs_of(fitted, bound_of(errors), source, plan.command, model)
    today = datetime.now(UTC).date().isoformat()
    measured = MeasuredCosts(costs, adapter=info.name, driver=info.driver, date=today, command=plan.command)
    return Calibration(measured, points, fitted, errors.tolist(), refused)


def costs_of(fitted: Fit, error_90: float, source: str, command: str, model: TimeModel = GPU) -> dict[str, Cost]:
    """Return the costs of a fit as a device file has them."""
    values = {**fitted.costs, "error_90": error_90}

    def cost(name: str) -> Cost:
        spread = None if name in model.unfitted else fitted.spreads[name]
        return Cost(values[name], spread, _ASSUMED if name in model.assumed else source, command)

    return {name: cost(name) for name in model.costs}


def _points(
    plan: Plan, cores: int, model: TimeModel, progress: Callable[[int], None], refused: list[str]
) -> Iterator[Point]:
    """Time the micro-benchmarks. Other programs take a processor's time, and threads start late: of a software adapter,
    the least time counts, if it is longer than a launch."""
    done, software = 0, model is SOFTWARE
    for group in groups(micro_benchmarks(cores, plan.scale, software=software), _bytes):
        for each, its in _timed(plan, group, refused):
            seconds = its.least if software else its.median
            if seconds > (its.launch if software else 0):
                yield Point(each.constant, timed_work(_run(each, plan.device)), 1e6 * seconds)
        done += len(group)
        progress(done)


def _timed(
    plan: Plan, group: Sequence[MicroBenchmark], refused: list[str]
) -> Iterator[tuple[MicroBenchmark, wgpu_client.KernelTimes]]:
    """Time a group; where the adapter refuses a dispatch, each alone, and add the kinds of those refused."""
    requests = [
        wgpu_client.dispatch_request(each.wgsl, each.entry, each.grid, each.bindings, adapter=plan.adapter)
        for each in group
    ]
    try:
        yield from zip(group, wgpu_client.time_dispatches(requests, rounds=plan.rounds), strict=True)
        return
    except UsageError:
        if len(group) == 1:
            refused.append(group[0].constant)
            return
    for each in group:
        yield from _timed(plan, [each], refused)


def timed_work(run: sim.Run) -> Work:
    """Return the work of a dispatch as it is timed: before each pass, the device copies the contents of writable
    buffers back, and the L2 cache holds these copies, too."""
    copied = sum(len(bound.data) for bound in run.dispatch.bound if bound.writable)
    return run.work.in_each_phase(lambda work: replace(work, footprint=work.footprint + copied))


def _run(each: MicroBenchmark, device: Device) -> sim.Run:
    return sim.simulate(
        each.wgsl,
        entry=each.entry,
        grid=each.grid,
        bindings=each.bindings,
        device=device,
        probes=PROBES,
        workgroups="classes",
        replay=False,
    )


def _bytes(each: MicroBenchmark) -> int:
    return sum(data.nbytes for data in each.bindings.values())


def _clock(points: list[Point], cores: int) -> float:
    """Return the clock at which the costs that a fit begins with are right for half of the points."""
    begin = GPU.begin
    ratios = [GPU.predicted_us(point.work, begin, cores)[0] / point.us for point in points]
    return begin["clock_mhz"] * median(ratios)
