"""Runs a case every way there is and gathers the verdicts: simulator, reference, GPU, expected counters, findings.

The counters come from one simulated run with all probes. Bits are compared with the GPU under the device profile that
rounds as that adapter does, so where profiles differ the simulator runs a second time, without probes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from ...sim.fast_dataclass import frozen
from ...sim.models import Exceeded, check_dispatch
from ...sim.models.device import near_miss
from ...sim.run.counters import derived
from ...sim.wgsl.check.pipeline import GRANTED
from ...sim.wgsl.diagnostics import WgslError
from .. import references
from .. import wgpu_client as gpu
from ..comparison.compare import Comparison, compare, rejected
from ..comparison.rules import BOUND, DERIVED, EXACT
from ..diagnosis.causes import OF_FINDINGS, diagnose
from ..diagnosis.mismatch import Diagnosis, Mismatch
from ..errors import DriverDied, GpuError, Lacking, NoAdapter, TooLarge, UsageError
from ..goldens import golden_files
from ..goldens import golden_store as goldens
from ..manifests.binding_checks import fit
from ..manifests.cases import expected_counters
from ..manifests.manifest import Case, Kernel, Shape
from ..manifests.reflection import check_module, floats_as_bits, recomposed
from .device_comparison import Charged, charge
from .golden_changes import golden_cause
from .grid_cap import cut, words

Say = Callable[[str], None]
Truth = dict[str, references.Expected]

EVERYTHING = ("all", "touched", "redundant")  # probes
ENDLESS = "not compared with wgpu: a loop does not end, which may hang a GPU"
_ON_GPU = "wgpu on "
SOON = 1.0  # seconds; who waits longer is told how far it is


@frozen
class Options:
    """`gpu`: compare with wgpu as well; `adapter`: on which, see `gpu.parse_adapters`; `device`: the profile that is
    charged for; `also`: more of them, to set beside it.

    `workgroups`: which run, as `bankshot.simulate` takes it; of a sample neither outputs nor counters are judged.
    `golden`: hold the run against its golden, where the manifest wants one; `update`: write it; `how`: how people ask
    for that.
    """

    device: str = "nvidia"
    also: tuple[str, ...] = field(default=(), kw_only=True)
    gpu: bool = True
    adapter: str | None = None
    require_gpu: bool = field(default_factory=lambda: os.environ.get("BANKSHOT_REQUIRE_GPU") == "1")
    workgroups: str | int = "classes"
    golden: bool = True
    update: bool = False
    how: str = "bankshot audit --update-golden"

    @property
    def insists(self) -> bool:
        """Whether it is an error not to be compared with wgpu."""
        return self.require_gpu or self.adapter is not None


@frozen
class OutputCheck:
    """One output against one source of truth. `doubts`: findings of branches and conversions that a rounding decides,
    where bounds were derived. `likely`: why it differs, where it does. `held_elsewhere`: another check holds it.
    `bits`: it is floats that the shader keeps as bits of whole numbers, of which nothing is derived."""

    output: str
    against: str
    comparison: Comparison
    doubts: tuple[Any, ...] = ()
    likely: Diagnosis | None = None
    held_elsewhere: bool = False
    bits: bool = False

    @property
    def ok(self) -> bool:
        """A check that no value could have failed says nothing: the output passes only if another one holds it."""
        return self.comparison.ok and not (self.comparison.vacuous and not self.held_elsewhere)

    @property
    def advice(self) -> str:
        """What to do about a check that could not fail, where it counts as one that did; else nothing."""
        if self.ok or not self.comparison.vacuous:
            return ""
        rule = f'{self.output} = {{ rule = "close", rtol = 1e-3, atol = 1e-3 }}'
        alone = self.against.startswith(_ON_GPU)
        key = f"gpu = {{ {rule} }}" if alone else rule
        if self.bits:
            instead = "" if alone else ", or let the reference give a bound"
            return f"of floats kept as bits nothing is derived; give a tolerance in [expect]: {key}{instead}"
        return f"where no finding says why, give a tolerance in [expect]: {key}"

    @property
    def by_gpu(self) -> bool:
        """Whether a GPU has left it; else the simulator has."""
        return _ON_GPU in self.against


@frozen
class CounterCheck:
    """One counter against the manifest's figure."""

    counter: str
    expected: float
    actual: float

    @property
    def ok(self) -> bool:
        return self.actual == self.expected


@frozen
class FindingCheck:
    """A finding of the run, and whether the manifest accepts it. Information is never held against a kernel."""

    finding: Any
    allowed: bool

    @property
    def ok(self) -> bool:
        return self.allowed or self.finding.severity == "info"


@frozen
class LimitCheck:
    """A WebGPU limit that the dispatch goes beyond: of the device that is charged for, or only the default one."""

    exceeded: Exceeded
    device: bool

    @property
    def ok(self) -> bool:
        """Beyond the default a program can ask for more; beyond the device's own it cannot."""
        return not self.device


@frozen
class Audit:
    """All that is known of one case after running it. `adapters`: those that wgpu was to run it on. `seconds` by what
    was run. `devices`: several side by side."""

    case: Case
    device: str
    run: Any  # bankshot.Run
    outputs: tuple[OutputCheck, ...]
    counters: tuple[CounterCheck, ...]
    limits: tuple[LimitCheck, ...]
    findings: tuple[FindingCheck, ...]
    adapters: tuple[gpu.AdapterInfo, ...]
    notes: tuple[str, ...]
    seconds: dict[str, float]
    devices: tuple[Charged, ...] = ()
    golden: goldens.Verdict | None = None

    @property
    def subgroup_size(self) -> int:
        return self.run.device.subgroup_size

    @property
    def adapter(self) -> gpu.AdapterInfo | None:
        """The first of them."""
        return self.adapters[0] if self.adapters else None

    @property
    def likely(self) -> tuple[str, ...]:
        """The classes of what is wrong: first those of outputs, then of findings, then what the golden shows."""
        causes = [check.likely.name for check in self.outputs if check.likely]
        causes += [str(OF_FINDINGS.get(code, code)) for code in (f.finding.code for f in self.findings if not f.ok)]
        causes += [self.golden.likely.name] if self.golden and self.golden.likely else []
        return tuple(dict.fromkeys(causes))

    def noting(self, notes: Iterable[str]) -> Audit:
        """The same, with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    @property
    def ok(self) -> bool:
        checks = (*self.outputs, *self.counters, *self.limits, *self.findings, *([self.golden] if self.golden else []))
        return all(check.ok for check in checks)


def audit(case: Case, options: Options, say: Say = lambda stage: None) -> Audit:
    """Run `case` and judge it. Raises `WgslError`, `UsageError`."""
    if case.kernel.reference is not None:
        _reference(case)  # before the run, which may be long
    preparing = prepare_on_gpu(case, options.adapter) if options.gpu else None
    try:
        return _audited(case, options, say)
    finally:
        if preparing is not None:
            preparing.join()  # nothing of an audit outlives it


def _audited(case: Case, options: Options, say: Say) -> Audit:
    seconds: dict[str, float] = {}
    notes: list[str] = []
    how = {"workgroups": options.workgroups}
    run = timed(seconds, "simulator, all probes", lambda: simulate(case, options.device, EVERYTHING, say, **how))
    checks, truth = [], {}
    if case.unset:
        notes.append(f"0, as the manifest gives no value: {', '.join(case.unset)}")
    if not run.coverage.exact:
        notes.append("of a sample neither outputs nor expected counters are judged")
        options = replace(options, gpu=False, golden=False)
    elif case.kernel.reference is not None:
        say("computing the reference")
        truth = timed(seconds, "reference", lambda: expected_outputs(case))
        checks += [_against_reference(case, truth, name, run, run, "") for name in truth]
    else:
        where = ": the manifest names none" if case.kernel.path.suffix == ".toml" else ""
        notes.append(f"no reference to compare with{where}")
    if options.gpu and endless(run):
        notes.append(ENDLESS)
        options = replace(options, gpu=False)
    adapters = _adapters(options, notes) if options.gpu else {}
    for name in adapters:
        checks += _against_gpu(case, run, truth, options, name, say, seconds, notes)
    held = {check.output for check in checks if not (check.by_gpu or check.comparison.vacuous)}
    checks = [replace(check, held_elsewhere=check.by_gpu and check.output in held) for check in checks]
    devices = ()
    if options.also:
        devices = timed(seconds, "other devices", lambda: side_by_side(case, run, options.also, say, **how))
    verdict = Audit(
        case=case,
        device=options.device,
        run=run,
        outputs=tuple(checks),
        counters=_counter_checks(case, run.counters) if run.coverage.exact else (),
        limits=_limit_checks(case, run.pipeline, run.device),
        findings=tuple(FindingCheck(f, f.code in case.kernel.allow) for f in run.findings),
        adapters=tuple(adapters.values()),
        notes=tuple(notes),
        seconds=seconds,
        devices=devices,
    )
    return replace(verdict, golden=_golden_check(verdict, options)) if options.golden and case.shape.golden else verdict


def simulate(
    case: Case,
    device: str,
    probes: str | Sequence[str],
    say: Say = lambda stage: None,
    trace: Any = None,
    workgroups: str | int = "all",
) -> Any:
    """`bankshot.simulate` on a case. Tells how far it is in words such as `simulating as nvidia, 40%`."""
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
        progress=_tenths(lambda percent: say(f"{what}, {percent}%")),
    )


def endless(run: Any) -> bool:
    """Whether a loop used up its budget."""
    return any(finding.code == "endless-loop" for finding in (*run.findings, *run.silenced))


def side_by_side(
    case: Case, run: Any, others: tuple[str, ...], say: Say, workgroups: str | int = "all"
) -> tuple[Charged, ...]:
    """What a run with all probes was charged, and what it would be on other devices."""
    return charge(run, others, lambda device, probes: simulate(case, device, probes, say, workgroups=workgroups))


def _tenths(tell: Callable[[int], None]) -> Callable[[int, int], None]:
    """Progress of workgroups as percentages, each tenth once, and only in runs that last."""
    start, told = time.perf_counter(), 0

    def progress(done: int, of: int) -> None:
        nonlocal told
        tenth = 10 * done // of
        if told < tenth < 10 and time.perf_counter() - start > SOON:
            told = tenth
            tell(10 * tenth)

    return progress


def run_on_gpu(case: Case, adapter: str | None, repeats: int = 1, text: str | None = None) -> gpu.GpuRun:
    """`begin_on_gpu`, and wait for it."""
    return begin_on_gpu(case, adapter, repeats=repeats, text=text).done()


def begin_on_gpu(case: Case, adapter: str | None, repeats: int = 1, text: str | None = None) -> gpu.Begun:
    """The case's text, as the front end preprocessed it, through wgpu; or another `text` with the same bindings."""
    module = check_module(case.kernel)
    kernel = case.kernel
    pipeline = module.pipeline(kernel.entry, case.overrides, GRANTED)
    return gpu.begin(
        text or module.source.text,
        pipeline.entry.name,
        case.grid,
        case.bindings,
        slots=gpu.slots_of(pipeline.entry),
        overrides=case.overrides,
        adapter=adapter,
        repeats=repeats,
        module=None if text else module,
    )


def expected_outputs(case: Case) -> Truth:
    """What the kernel's reference gives for this case, by the manifest's names."""
    expected = _reference(case)(case.arrays, case.shape.dims)
    for name in case.kernel.rules.keys() - expected.keys():
        known = f"reference {case.kernel.reference} gives {', '.join(expected)}"
        raise UsageError(f"{case.kernel.path}: [expect] has a rule for {name}, and {known}")
    return expected


def _reference(case: Case) -> references.Reference:
    try:
        return references.find(case.kernel.reference or "", case.kernel.path.parent)
    except UsageError as error:
        raise UsageError(f"{case.kernel.path}: {error}") from None


def gpu_checks(
    case: Case,
    run: Any,
    on_gpu: gpu.GpuRun,
    truth: Truth | None,
    worst: int = 5,
    adapter: str | None = None,
    unordered: Container[Any] = (),
) -> list[OutputCheck]:
    """Every output bit for bit or by the manifest's rule. Where the kernel computes what no two implementations compute
    alike, or its bits differ and it computes what some do not, within derived bounds; and those whose bits are free
    against the reference, as the simulator's are, unless there is none of what was run (`truth` is None).

    What the simulator says of the writers goes with the differences. Of variables that are `unordered` only agreement
    says something: those that differ, and have no rule of their own, are left out.
    """
    checks, kernel = [], case.kernel
    for var, theirs in on_gpu.outputs.items():
        name, where = case.name_of(var), f"{_ON_GPU}{on_gpu.adapter.name}"
        if name in kernel.free and truth is not None:
            checks.append(_against_reference(case, truth, name, on_gpu, run, f" by {where}"))
            continue
        derived = run.loose or name in kernel.free or kernel.rules.get(name) == DERIVED
        rule = kernel.gpu_rules.get(name)
        if rule is None:
            rule = DERIVED if derived or _recomposed(run, run.outputs[var], theirs) else EXACT
        if var in unordered and name not in kernel.gpu_rules and rejected(run.outputs[var], theirs, EXACT).any():
            continue
        bound, doubts = _derived(run, var) if rule == DERIVED else (None, ())
        same = compare(run.outputs[var], theirs, rule, bound=bound, owner=_owner(run, var), worst=worst)
        again = partial(_again_on_gpu, case, var, adapter)
        likely = None if same.ok else diagnose(Mismatch(case, run, name, theirs, rule, bound, on_gpu=again))
        checks.append(OutputCheck(name, where, same, doubts, likely, bits=_keeps_bits(run, var)))
    return checks


def _keeps_bits(run: Any, var: Any) -> bool:
    """Whether an output is floats, and the shader's variable of that name whole numbers."""
    output = run.outputs[var]
    types = (v.type for v in run.pipeline.globals if v.name == var)
    return isinstance(output, np.ndarray) and any(floats_as_bits(type_, output.dtype) for type_ in types)


def _derived(run: Any, var: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
    """The bounds that the simulator derives for an output, and what it doubts. Through the bits of whole numbers it
    does not follow what rounding does."""
    if _keeps_bits(run, var):
        return np.full(run.outputs[var].shape, np.inf), ()
    return run.bounds[var], run.bounds.findings


def _recomposed(run: Any, ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether bits differ, and the kernel computes what some implementations compute by other expressions."""
    return bool(rejected(ours, theirs, EXACT).any()) and recomposed(run.pipeline.entry)


def _again_on_gpu(case: Case, var: Any, adapter: str | None, text: str | None) -> np.ndarray:
    return run_on_gpu(case, adapter, text=text).outputs[var]


def _owner(run: Any, name: Any) -> Callable[[tuple[int, ...]], str | None] | None:
    """Who wrote an element last, where the run can tell."""
    writer = getattr(run, "writer", None)
    if writer is None:
        return None
    shape = run.outputs[name].shape

    def tell(index: tuple[int, ...]) -> str | None:
        place = writer(name, int(np.ravel_multi_index(index, shape)))
        return "nobody" if place is None else str(place)

    return tell


def _against_reference(case: Case, truth: Truth, name: str, done: Any, run: Any, by: str) -> OutputCheck:
    """Output `name` of what was done, on a GPU or by the simulator, by the manifest's rule; by default, by the bound of
    the reference, or that of the simulated run. `by` says whose output it is."""
    variables = {binding.name: binding.var for binding in case.kernel.bindings}
    if name not in variables:
        known = f"reference {case.kernel.reference} gives {name}"
        raise UsageError(f"{case.kernel.path}: {known}, which is no binding of the manifest")
    if variables[name] not in run.outputs:
        known = f"reference {case.kernel.reference} gives {name}"
        raise UsageError(f"{case.kernel.path}: {known}, which the kernel does not write")
    if name not in truth:
        raise UsageError(f"{case.kernel.path}: `free` names {name}, which reference {case.kernel.reference} lacks")
    var = variables[name]
    ours = done.outputs[var]
    expected = truth[name].shaped(ours.shape)
    if expected is None:
        sizes = f"an array of {truth[name].value.shape} for {name}, which is {ours.shape}"
        raise UsageError(f"{case.kernel.path}: reference {case.kernel.reference} gives {sizes}")
    rule = case.kernel.rules.get(name, DERIVED if expected.bound is None else BOUND)
    bound, doubts = _derived(run, var) if rule == DERIVED else (expected.bound, ())
    bound = None if bound is None else bound.reshape(ours.shape)
    comparison = compare(ours, expected.value, rule, bound=bound, owner=_owner(done, var))
    likely = None
    if not comparison.ok and done is run:
        likely = diagnose(Mismatch(case, run, name, expected.value, rule, bound, _reference(case), truth=True))
    against = f"reference {case.kernel.reference}{by}"
    return OutputCheck(name, against, comparison, doubts, likely, bits=_keeps_bits(run, var))


def prepare_on_gpu(case: Case, adapter: str | None) -> Thread | None:
    """Have drivers compile what `run_on_gpu` is to run, while other things are done."""
    with suppress(WgslError):  # the simulator says so, too
        module = check_module(case.kernel)
        entry = module.pipeline(case.kernel.entry, case.overrides, GRANTED).entry
        return gpu.prepare(module, entry.name, overrides=case.overrides, adapter=adapter)
    return None


def _adapters(options: Options, notes: list[str]) -> dict[str | None, gpu.AdapterInfo]:
    """The adapters to run on, by the names that they are asked for by."""
    try:
        return {name: gpu.require_adapter(name) for name in gpu.parse_adapters(options.adapter)}
    except NoAdapter as error:
        if options.insists:
            raise
        notes.append(f"not compared with wgpu: {error}")
        return {}


def _against_gpu(
    case: Case,
    run: Any,
    truth: Truth,
    options: Options,
    name: str | None,
    say: Say,
    seconds: dict[str, float],
    notes: list[str],
) -> list[OutputCheck]:
    """A case, of which this is the run as the first device, against the adapter of that name."""
    adapter, device = gpu.require_adapter(name), options.device
    if adapter.profile is None:
        notes.append(f"no device profile is known to round as {adapter.name} does; bits are compared under {device}")
    profile = adapter.profile or device
    part = cut(case, run, adapter)
    if part is not case:
        notes.append(words(case, part, adapter))
    say(f"running on {adapter.name}")
    spent: dict[str, float] = {}

    def as_adapter() -> Any:
        if profile == device and part is case:
            return run
        return timed(spent, f"simulator as {profile}", lambda: simulate(part, profile, "none", say))

    try:
        on_gpu, ours = _on_both(part, name, as_adapter)
    except GpuError as error:
        if isinstance(error, DriverDied) or (options.insists and not isinstance(error, Lacking | TooLarge)):
            raise
        notes.append(f"not compared with wgpu: {error}")
        return []
    seconds |= {f"wgpu on {adapter.name}": on_gpu.took, **on_gpu.clocked, **spent}
    unordered = {name for f in (*run.findings, *run.silenced) if f.code == "atomic-order" for name in f.outputs}
    checks = gpu_checks(part, ours, on_gpu, truth if part is case else None, adapter=name, unordered=unordered)
    for left_out in sorted({case.name_of(var) for var in unordered} - {check.output for check in checks}):
        notes.append(f"{left_out} is not held against wgpu on {adapter.name}: it depends on the order of invocations")
    return checks


def _on_both(case: Case, adapter: str | None, simulated: Callable[[], Any]) -> tuple[gpu.GpuRun, Any]:
    """A case on the adapter of that name, and what is simulated meanwhile."""
    begun = begin_on_gpu(case, adapter)
    try:
        run = simulated()
    except WgslError:
        begun.done()  # what wgpu has against it comes first
        raise
    return begun.done(), run


def _golden_check(audit: Audit, options: Options) -> goldens.Verdict:
    """Of a run that is wrong in another way no golden is written."""
    case, kernel = audit.case, audit.case.kernel
    new = goldens.of_run(
        audit.run,
        folder=kernel.path.parent,
        owner=kernel.path.name,
        title=f"{kernel.name} {case.shape}".strip(),
        adapter=audit.adapter,
        arrays=case.shape.golden == "outputs",
        source=kernel.source,
        free=[binding.var for binding in kernel.bindings if binding.name in kernel.free],
    )
    verdict = goldens.check(golden_place(kernel, case.shape), new, options.update and audit.ok, options.how)
    if verdict.state != goldens.CHANGED:
        return verdict
    wrong = {check.output for check in audit.outputs if not check.ok}
    reference = None if kernel.reference is None else _reference(case)
    return replace(verdict, likely=golden_cause(case, audit.run, reference, wrong, verdict))


def golden_place(kernel: Kernel, shape: Shape) -> Path:
    return golden_files.place(kernel.path.parent, kernel.name, str(shape))


def judged_as(audit: Audit, charged: Charged) -> Audit:
    """The same run as another device is charged for it: held against its own limits, and its counters against the
    manifest's."""
    case, pipeline = audit.case, audit.run.pipeline
    return replace(
        audit,
        device=charged.device.name,
        counters=_counter_checks(case, charged.counters),
        limits=_limit_checks(case, pipeline, charged.device),
    )


def _counter_checks(case: Case, counters: Mapping[str, float]) -> tuple[CounterCheck, ...]:
    checks = []
    for name, expected in expected_counters(case).items():
        totals = with_derived(counters)
        if name not in totals:
            close = near_miss(name, [*totals, *(binding.name for binding in case.kernel.bindings)])
            raise UsageError(f"{case.kernel.path}: [expect] names {name}, which is no output and no counter{close}")
        checks.append(CounterCheck(name, expected, totals[name]))
    return tuple(checks)


def _limit_checks(case: Case, pipeline: Any, device: Any) -> tuple[LimitCheck, ...]:
    sizes: dict[str, dict[str, int]] = {"storage": {}, "uniform": {}}
    for variable in pipeline.globals:
        if variable.space in sizes:
            sizes[variable.space][variable.name] = case.bindings[variable.name].nbytes
    asked = (case.grid, pipeline.workgroup_size, pipeline.workgroup_bytes, sizes["storage"], sizes["uniform"])
    return tuple(_limit_check(exceeded, device) for exceeded in check_dispatch(*asked))


def _limit_check(exceeded: Exceeded, device: Any) -> LimitCheck:
    """Of a device's own maxima, profiles know that of workgroup memory."""
    most = device.workgroup_bytes_max
    beyond = exceeded.limit == "maxComputeWorkgroupStorageSize" and exceeded.value > most
    return LimitCheck(replace(exceeded, maximum=most) if beyond else exceeded, beyond)


def with_derived(counters: Any) -> dict[str, float]:
    """Return the totals of a run, with `bank_conflicts` and `intensity`."""
    return {**counters, **derived(counters, ("bank_conflicts", "intensity"))}


def timed(seconds: dict[str, float], what: str, function: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    result = function()
    seconds[what] = time.perf_counter() - start
    return result
