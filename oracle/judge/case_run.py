"""Run a case in the simulator, through wgpu, and by its reference."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...sim.wgsl.check.pipeline import GRANTED
from ...sim.wgsl.diagnostics import WgslError
from .. import references
from .. import wgpu_client as gpu
from ..diagnosis import kept_floats
from ..errors import UsageError
from ..manifests.binding_checks import fit
from ..manifests.manifest import Case
from ..manifests.reflection import check_module
from ..manifests.strict_toml import place_of
from ..wgpu_worker.messages import DispatchRequest
from .device_comparison import Charged, charge
from .schedule_options import ScheduleOptions

if TYPE_CHECKING:
    from ...sim import Run, Trace

T = TypeVar("T")
Say = Callable[[str], None]  # takes a description of the step that begins
Truth = dict[str, references.Expected]  # by the manifest's names

EVERYTHING = ("all", "touched", "redundant")  # probes
MAY_HANG = "a loop spent its budget, and one that does not end may hang a GPU"
PROGRESS_AFTER = 1.0  # seconds from which a simulation reports its progress


def silent(stage: str) -> None:
    """Report no step."""


def simulate(
    case: Case,
    device: str,
    probes: str | Sequence[str],
    say: Say = silent,
    trace: Trace | None = None,
    workgroups: str | int = "all",
    *,
    schedule: str = "lockstep",
    schedules: ScheduleOptions | None = None,
    thorough: bool = False,
) -> Run:
    """Call `bankshot.simulate` on a case, with progress in words such as `simulating as nvidia, 40%`."""
    from ... import sim

    what = f"simulating as {device}{' with all counters' if 'all' in probes else ''}"
    say(what)
    module = check_module(case.kernel)
    fit(case, module)
    return sim.simulate(
        module,
        **case.launch,
        device=device,
        probes=probes,
        trace=trace,
        workgroups=workgroups,
        schedule=schedule,
        schedules=1 if schedules is None else schedules.of(case, device),
        replay="thorough" if thorough else True,
        progress=_tenths(lambda percent: say(f"{what}, {percent}%")),
    )


def _tenths(report: Callable[[int], None]) -> Callable[[int, int], None]:
    """Report progress in percent, each tenth once, from `PROGRESS_AFTER` on."""
    start, reported = time.perf_counter(), 0

    def progress(done: int, of: int) -> None:
        nonlocal reported
        tenth = 10 * done // of
        if reported < tenth < 10 and time.perf_counter() - start > PROGRESS_AFTER:
            reported = tenth
            report(10 * tenth)

    return progress


def endless(run: Run) -> bool:
    """Whether a loop used up its budget."""
    return any(finding.code == "endless-loop" for finding in (*run.findings, *run.silenced))


def side_by_side(
    case: Case, run: Run, others: tuple[str, ...], say: Say, workgroups: str | int = "all"
) -> tuple[Charged, ...]:
    """Charge a run with all probes for its own device and for `others`."""
    return charge(run, others, lambda device, probes: simulate(case, device, probes, say, workgroups=workgroups))


def find_reference(case: Case) -> references.Reference:
    """Look up the kernel's reference. Raises `UsageError` with its place in the manifest, also where its names are not
    those of the manifest."""
    name = case.kernel.reference or ""
    try:
        found = references.find(name, case.kernel.path.parent)
    except UsageError as error:
        raise UsageError(f"{case.kernel.path}: {error}") from None
    expected = references.expected_names().get(name)
    if expected is None:
        return found
    place = place_of(case.kernel.path, "reference", name)
    if wrong := expected.mismatch(case.arrays, case.shape.dims):
        raise UsageError(f"{place}: reference {name} {wrong}")

    def checked(arrays: references.Arrays, dims: Mapping[str, int]) -> Truth:
        try:
            return found(arrays, dims)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise UsageError(f"{place}: reference {name} cannot compute with these arrays: {error}") from None

    return checked


def expected_outputs(case: Case) -> Truth:
    """Compute what the kernel's reference expects."""
    expected = find_reference(case)(case.arrays, case.shape.dims)
    for name, each in expected.items():
        if each.bound is not None and not np.all(each.bound >= 0):
            place = np.argwhere(~(each.bound >= 0))[0].tolist()
            what = f"a bound of {each.bound[tuple(place)]:g} for {name}{place}, and bounds are 0 or more"
            raise UsageError(f"{case.kernel.path}: reference {case.kernel.reference} gives {what}")
    for name in sorted(case.kernel.rules.keys() - expected.keys()) if expected else ():
        known = f"reference {case.kernel.reference} gives {', '.join(expected)}"
        raise UsageError(f"{case.kernel.path}: [expect] has a rule for {name}, and {known}")
    return expected


def prepare_on_gpu(case: Case, adapter: str | None) -> Thread | None:
    """Let drivers compile the shader in the background, for `run_on_gpu`."""
    with suppress(WgslError):  # the simulator reports it, too
        module = check_module(case.kernel)
        entry = module.pipeline(case.kernel.entry, {**case.overrides}, GRANTED).entry
        return gpu.prepare(module, entry.name, overrides=case.overrides, adapter=adapter)
    return None


def begin_on_gpu(case: Case, adapter: str | None, repeats: int = 1, text: str | None = None) -> gpu.PendingRun:
    """Start the case's preprocessed text through wgpu, or another `text`, which may use `kept_floats.DATA`."""
    plain, entry, how = _dispatch_of(case, adapter)
    if text is None:
        return gpu.begin(plain, entry, case.grid, case.bindings, repeats=repeats, **how)
    how |= {"slots": None, "module": None}
    return gpu.begin(text, entry, case.grid, {**case.bindings, **kept_floats.DATA}, repeats=repeats, **how)


def request_on_gpu(case: Case, adapter: str | None) -> DispatchRequest:
    """Describe the dispatch that `begin_on_gpu` starts, without starting it."""
    plain, entry, how = _dispatch_of(case, adapter)
    return gpu.dispatch_request(plain, entry, case.grid, case.bindings, **how)


def _dispatch_of(case: Case, adapter: str | None) -> tuple[str, str, dict[str, Any]]:
    """Return a case's preprocessed text, its entry point, and the keyword arguments of a dispatch."""
    module = check_module(case.kernel)
    entry = module.pipeline(case.kernel.entry, {**case.overrides}, GRANTED).entry
    how = {"slots": gpu.slots_of(entry), "overrides": case.overrides, "adapter": adapter, "module": module}
    return module.source.text, entry.name, how


def run_on_gpu(case: Case, adapter: str | None, repeats: int = 1, text: str | None = None) -> gpu.GpuRun:
    """Run the case's text through wgpu and wait for it; see `begin_on_gpu`."""
    return begin_on_gpu(case, adapter, repeats=repeats, text=text).done()


def run_on_both(case: Case, adapter: str | None, simulated: Callable[[], Run]) -> tuple[gpu.GpuRun, Run]:
    """Run a case on an adapter while `simulated` runs here."""
    begun = begin_on_gpu(case, adapter)
    try:
        run = simulated()
    except WgslError:
        begun.done()  # an error of wgpu comes first
        raise
    return begun.done(), run


def timed(seconds: dict[str, float], step: str, function: Callable[[], T]) -> T:
    """Call `function` and record its seconds under the name of the step."""
    start = time.perf_counter()
    result = function()
    seconds[step] = time.perf_counter() - start
    return result
