"""Check the outputs of a case: against its reference, and against a run through wgpu.

Bits are compared with a GPU under the device profile that rounds as that adapter does.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...sim.bindings.binding import is_array
from ...sim.fast_dataclass import frozen
from ...sim.wgsl import types as t
from .. import wgpu_client as gpu
from ..comparison.bits import Array, as_array
from ..comparison.compare import Comparison, changed, compare, rejected
from ..comparison.rules import BOUND, DERIVED, EXACT, Rule
from ..diagnosis.adapter_reruns import reordering_within_bounds
from ..diagnosis.causes import diagnose
from ..diagnosis.mismatch import Diagnosis, Mismatch
from ..diagnosis.texel_bounds import texel_bounds
from ..errors import UsageError
from ..manifests.manifest import Case, Launch
from ..manifests.reflection import floats_as_bits, recomposed
from ..references import Expected
from .case_run import Truth, find_reference, run_on_gpu
from .coverage import REFERENCE, CaseOutcome

if TYPE_CHECKING:
    from ...sim import Finding, Run
    from ...sim.run.result import Writer
    from ...sim.wgsl.source import Span

ON_GPU = "wgpu on "  # an adapter's name, in what an output is checked against


@frozen
class OutputCheck:
    """The comparison of one output with one source of truth.

    `against`: that source, in words, and `truth` its name in the coverage of the case. `doubts`: findings of branches
    and conversions that rounding may decide, where bounds were derived. `likely`: the likely cause of a difference.
    `checked_elsewhere`: other checks cover what this one leaves unchecked, or the manifest gives a reason. `bits`: the
    output holds floats that the shader stores as the bits of integers, for which no bounds are derived. `allowed`: why
    the bits may differ, proved by a rerun; empty where none has to. `written`: the place that stored the element that
    differs most, if one did and it is known.
    """

    output: str
    against: str
    comparison: Comparison
    doubts: tuple[Finding, ...] = ()
    likely: Diagnosis | None = None
    checked_elsewhere: bool = False
    bits: bool = False
    allowed: str = ""
    truth: str = ""
    written: Span | None = None

    @property
    def ok(self) -> bool:
        return self.outcome.ok

    @property
    def outcome(self) -> CaseOutcome:
        """Unchecked if the rule could not have failed for some elements, and nothing else checks them."""
        if not self.comparison.ok:
            return CaseOutcome.FAILED
        checked = self.comparison.unchecked is None or self.checked_elsewhere
        return CaseOutcome.CLEAN if checked else CaseOutcome.UNCHECKED

    @property
    def hint(self) -> str:
        """A hint for a reference that expects what the output's dtype lacks; else empty."""
        lacking = next((each for each in self.comparison.worst if each.expected_bits == "none"), None)
        if lacking is None:
            return ""
        signed = float(lacking.expected).is_integer() and lacking.expected < 0
        how = "convert it with .astype(np.uint32)" if signed else "round it as the kernel does"
        return f"{self.output} cannot hold {lacking.numbers[1]}; if the reference means the same bits, {how}"

    @property
    def advice(self) -> str:
        """Advice for a check that does not count because it could not fail; else empty."""
        if self.ok or not self.comparison.vacuous:
            return self.hint
        if not self.comparison.unbounded:
            return f"the rule accepts each element off by its own size; give {self.output} a smaller tolerance"
        rule = f'{self.output} = {{ rule = "close", rtol = 1e-3, atol = 1e-3 }}'
        alone = self.against.startswith(ON_GPU)
        key = f"gpu = {{ {rule} }}" if alone else rule
        if self.bits:
            instead = "" if alone else ", or let the reference give a bound"
            return f"no bound is derived for floats kept as bits; give a tolerance in [expect]: {key}{instead}"
        return f"where no finding says why, give a tolerance in [expect]: {key}"

    @property
    def by_gpu(self) -> bool:
        """Whether a GPU computed the output, or is compared with the simulator's."""
        return ON_GPU in self.against


# ---- against the reference -----------------------------------------------------------------------------


def reference_check(case: Case, truth: Truth, name: str, done: Run | gpu.GpuRun, run: Run, by: str = "") -> OutputCheck:
    """Check output `name` of `done`, the simulated `run` or one on a GPU, by the manifest's rule; by default, by the
    bound of the reference, or of the simulated run. `by`: the adapter that computed it."""
    var = _checked_variable(case, truth, name, run)
    ours = as_array(done.outputs[var])
    expected = truth[name].shaped(ours.shape)
    if expected is None:
        sizes = f"an array of {list(truth[name].value.shape)} for {name}, which is {list(ours.shape)}"
        raise UsageError(f"{case.kernel.path}: reference {case.kernel.reference} gives {sizes}; reshape it there")
    rule = case.kernel.rules.get(name, DERIVED if expected.bound is None else BOUND)
    bound, doubts = _derived(run, var) if rule == DERIVED else (expected.bound, ())
    bound = None if bound is None else bound.reshape(ours.shape)
    comparison = compare(ours, expected.value, rule, bound=bound, initial=_initial(case, var), owner=_owner(done, var))
    diagnosable = not comparison.ok and done is run and _rejects(ours, expected.value, rule, bound)
    likely = None if not diagnosable else _why_not_expected(case, run, name, expected, rule, bound)
    against = f"reference {case.kernel.reference}{f' by {by}' if by else ''}"
    written = _written(done, var, comparison)
    bits = _keeps_bits(run, var)
    return OutputCheck(name, against, comparison, doubts, likely, bits=bits, truth=by or REFERENCE, written=written)


def _checked_variable(case: Case, truth: Truth, name: str, run: Run) -> str:
    """The WGSL variable of an output. Raises `UsageError` where manifest, shader and reference do not fit together."""
    path, reference = case.kernel.path, case.kernel.reference
    variables = {binding.name: binding.var for binding in case.kernel.bindings}
    if name not in variables:
        raise UsageError(f"{path}: reference {reference} gives {name}, which is no binding of the manifest")
    if variables[name] not in run.outputs:
        raise UsageError(f"{path}: reference {reference} gives {name}, which the kernel does not write")
    if name not in truth:
        raise UsageError(f"{path}: `free` names {name}, which reference {reference} lacks")
    return variables[name]


def _why_not_expected(
    case: Case, run: Run, name: str, expected: Expected, rule: Rule, bound: NDArray[np.float64] | None
) -> Diagnosis:
    return diagnose(Mismatch(case, run, name, expected.value, rule, bound, find_reference(case), truth=True))


def _rejects(ours: Array, theirs: Array, rule: Rule, bound: Array | None) -> bool:
    """Whether the rule itself rejects something, which has a cause; else a NaN has not stayed as it was."""
    return bool(rejected(ours, theirs, rule, bound).any())


# ---- against wgpu --------------------------------------------------------------------------------------


def gpu_checks(
    case: Case,
    run: Run,
    on_gpu: gpu.GpuRun,
    truth: Truth | None,
    worst: int = 5,
    adapter: str | None = None,
    unordered: Container[str] = (),
    whole: Run | None = None,
) -> list[OutputCheck]:
    """Check every output of a run through wgpu.

    An output is compared with the simulator's bit for bit, or by the manifest's rule. Derived bounds apply where the
    kernel uses operations whose results WGSL leaves open, or where bits differ and some implementations compute such a
    builtin by another expression, or reruns prove that the driver reorders floats. Outputs whose bits the manifest
    calls free are compared with the reference instead, as the simulator's are, unless `truth` is None: no reference
    covers what was run. For variables that are `unordered` only agreement is meaningful: where they differ and the
    manifest has no rule for them, they get no check. `whole`: the run of the whole grid, where an adapter ran a part;
    elements that only other workgroups change are unchecked.
    """
    checks: list[OutputCheck] = []
    kernel = case.kernel
    for var, theirs in on_gpu.outputs.items():
        name, where = case.name_of(var), f"{ON_GPU}{on_gpu.adapter.name}"
        if name in kernel.free and truth is not None:
            checks.append(reference_check(case, truth, name, on_gpu, run, where))
            continue
        ours, theirs, initial = as_array(run.outputs[var]), as_array(theirs), _initial(case, var)
        if var in unordered and name not in kernel.gpu_rules and rejected(ours, theirs, EXACT).any():
            continue
        rule = _rule_for_gpu(case, run, var, theirs)
        again = partial(_again_on_gpu, case, var, adapter)
        allowed = ""
        texels = None
        differ = name not in kernel.gpu_rules and bool(rejected(ours, theirs, EXACT).any())
        if (differ or rule == DERIVED) and _is_texture(run, var):
            texels = _texel_bounds(case, run, var)
            rule = rule if texels is None else DERIVED
        elif differ and rule == EXACT:
            allowed = reordering_within_bounds(Mismatch(case, run, name, theirs, on_gpu=again)) or ""
            rule = DERIVED if allowed else rule
        bound, doubts = _derived(run, var) if rule == DERIVED else (None, ())
        bound = bound if texels is None or rule != DERIVED else texels
        same = compare(ours, theirs, rule, bound=bound, initial=initial, owner=_owner(run, var), worst=worst)
        if whole is not None and initial is not None:
            same = same.without(changed(as_array(whole.outputs[var]), initial) & ~changed(ours, initial))
        diagnosable = not same.ok and _rejects(ours, theirs, rule, bound)
        likely = None if not diagnosable else diagnose(Mismatch(case, run, name, theirs, rule, bound, on_gpu=again))
        bits = _keeps_bits(run, var)
        written = _written(run, var, same)
        checks.append(OutputCheck(name, where, same, doubts, likely, False, bits, allowed, where, written))
    return checks


def _rule_for_gpu(case: Case, run: Run, var: str, theirs: Array) -> Rule:
    kernel, name = case.kernel, case.name_of(var)
    if name in kernel.gpu_rules:
        return kernel.gpu_rules[name]
    derived = run.loose or name in kernel.free or kernel.rules.get(name) == DERIVED
    return DERIVED if derived or _recomposed(run, as_array(run.outputs[var]), theirs) else EXACT


def _recomposed(run: Run, ours: Array, theirs: Array) -> bool:
    """Whether bits differ, and the kernel computes what some implementations compute by other expressions."""
    return bool(rejected(ours, theirs, EXACT).any()) and recomposed(run.pipeline.entry)


def _again_on_gpu(case: Case, var: str, adapter: str | None, text: str | None) -> Array:
    return as_array(run_on_gpu(case, adapter, text=text).outputs[var])


# ---- bounds and writers --------------------------------------------------------------------------------


def _initial(case: Case, var: str) -> Array | None:
    """What an output held before the run; None where it is no array."""
    data = case.bindings[var]
    return as_array(data) if is_array(data) or isinstance(data, bytes) else None


def _keeps_bits(run: Run, var: str) -> bool:
    """Whether an output is floats, and the shader's variable of that name integers; or words of structs."""
    output = run.outputs[var]
    if is_array(output) and output.dtype.names:
        return True
    types = (v.type for v in run.pipeline.globals if v.name == var)
    return is_array(output) and any(floats_as_bits(type_, output.dtype) for type_ in types)


def _derived(run: Run, var: str) -> tuple[NDArray[np.float64], tuple[Finding, ...]]:
    """Return the bounds that the simulator derives for an output, and findings of decisions that rounding may change.
    Rounding errors are not tracked through the bits of integers, so floats stored as such get infinite bounds."""
    if _keeps_bits(run, var):
        return np.full(as_array(run.outputs[var]).shape, np.inf), ()
    return run.bounds[var], run.bounds.findings


def _is_texture(run: Run, var: str) -> bool:
    return any(v.name == var and isinstance(v.type, t.Texture) for v in run.pipeline.globals)


def _texel_bounds(case: Case, run: Run, var: str) -> NDArray[np.float64] | None:
    """Derive the bounds of a storage texture by a rerun; None where its stores are not followed."""
    from ... import sim

    def rerun(text: str, extra: dict[str, Array]) -> Run:
        launch: Launch = {**case.launch, "bindings": {**case.bindings, **extra}}
        return sim.simulate(sim.check(text, uniformity="off"), **launch, device=run.device, probes="none")

    (variable,) = (v for v in run.pipeline.globals if v.name == var)
    return texel_bounds(run.pipeline, variable, as_array(run.outputs[var]), rerun)


def _owner(run: Run | gpu.GpuRun, var: str) -> Callable[[tuple[int, ...]], str | None] | None:
    """Return a function that names the invocation that last wrote an element; None for a run on a GPU."""
    if isinstance(run, gpu.GpuRun):
        return None

    def owner(index: tuple[int, ...]) -> str:
        writer = _writer(run, var, index)
        return "never written" if writer is None else str(writer)

    return owner


def _written(run: Run | gpu.GpuRun, var: str, comparison: Comparison) -> Span | None:
    """The place that stored the element that differs most."""
    if isinstance(run, gpu.GpuRun) or not comparison.worst:
        return None
    writer = _writer(run, var, comparison.worst[0].index)
    return None if writer is None else writer.span


def _writer(run: Run, var: str, index: tuple[int, ...]) -> Writer | None:
    return run.writer(var, int(np.ravel_multi_index(index, as_array(run.outputs[var]).shape)))
