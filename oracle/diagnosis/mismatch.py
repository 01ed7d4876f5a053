"""A mismatched output, and the operations that find its cause: rerun the case in the simulator or on a GPU, or call the
reference again, with one thing changed.

Each rerun answers one of two questions. `agrees`: does the changed run give the expected elements? Then the change
removes the cause. `explained`: does the changed reference give the wrong elements of the kernel? Then the kernel
computes what the changed reference does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from ...sim.bindings.binding import is_array
from ...sim.fast_dataclass import frozen
from ..comparison.bits import Array, as_array, bits_of
from ..comparison.compare import rejected
from ..comparison.rules import DERIVED, EXACT, Rule
from ..errors import UsageError
from ..manifests.manifest import Case, Launch
from ..references import Expected, Reference
from .time_limit import TimeLimit

if TYPE_CHECKING:
    from ...sim import Device, Finding, Module, Run
    from ...sim.bindings.binding import Value


class Options(TypedDict, total=False):
    """The options of `bankshot.simulate` that a rerun may change."""

    bindings: dict[str, Value]
    device: Device
    probes: str | tuple[str, ...]
    replay: bool
    schedule: str
    out_of_bounds: str


class _Arguments(Launch, total=False):
    device: Device
    probes: str | tuple[str, ...]
    progress: Callable[[int, int], None]
    replay: bool
    schedule: str
    out_of_bounds: str


MOST = 0.9  # share of the wrong elements that an explanation must cover: the rest may be wrong as a consequence
WATCHED = ("races", "uninit", "bounds", "nan")


@frozen
class Diagnosis:
    """The class of a mismatch, and the evidence in words; `UNKNOWN` where no class explains it."""

    name: str
    evidence: str

    def __str__(self) -> str:
        return self.evidence if self.name == UNKNOWN else f"likely {self.name}: {self.evidence}"

    def with_skipped(self, late: Collection[str], seconds: float) -> Diagnosis:
        """Return a copy that names the classes skipped because the time limit was over."""
        words = f"{self.evidence}; not tried within {seconds:g} s: {', '.join(late)}"
        return Diagnosis(self.name, words) if late else self


UNKNOWN = "unknown"


@frozen(eq=False)
class Mismatch:
    """Output `output` (the manifest's name) of `run`, and what it is compared with.

    `expected` has the shape of the output; `bound` belongs to `rule`. `truth`: `expected` comes from the reference;
    `golden`: it comes from an earlier version of the kernel. `same`: set where only a digest of the expected output is
    known; tells whether an output has that digest, and `expected` is then the output itself. `on_gpu`: set where
    `expected` comes from a GPU; runs a WGSL text there (None: the case's own) and returns the output.

    Every rerun raises `OutOfTime` once the `time_limit` is over.
    """

    case: Case
    run: Run
    output: str
    expected: Array
    rule: Rule = EXACT
    bound: Array | None = None
    reference: Reference | None = None
    truth: bool = False
    golden: bool = False
    same: Callable[[Array], bool] | None = None
    on_gpu: Callable[[str | None], Array] | None = None
    time_limit: TimeLimit = field(default_factory=TimeLimit)

    @property
    def var(self) -> str:
        """The WGSL variable; without a manifest it has the output's name."""
        return next((b.var for b in self.case.kernel.bindings if b.name == self.output), self.output)

    @cached_property
    def ours(self) -> Array:
        """The output of the run, in the shape of `expected`."""
        return as_array(self.run.outputs[self.var]).reshape(self.expected.shape)

    @cached_property
    def wrong(self) -> Array:
        """True for each element that the rule rejects; all True where only digests are compared."""
        if self.same is not None:
            return np.ones(self.ours.shape, bool)
        return rejected(self.ours, self.expected, self.rule, self.bound)

    @cached_property
    def errors(self) -> tuple[Array, Array]:
        """The error of each element, and the bound that the simulator derives for it."""
        bound = self.run.bounds[self.var].reshape(self.ours.shape) * (2 if self.golden else 1)
        with np.errstate(invalid="ignore"):
            return np.abs(self.ours.astype(np.float64) - self.expected.astype(np.float64)), bound

    @cached_property
    def within_bounds(self) -> bool:
        """Whether the error of each wrong element is within the finite bound that the simulator derives for it."""
        if self.same is not None or self.ours.dtype.kind != "f":
            return False
        error, bound = self.errors
        return bool((error <= np.where(np.isfinite(bound), bound, -1))[self.wrong].all())

    @cached_property
    def matrix(self) -> tuple[int, int]:
        """The output's shape as a matrix whose columns are the last axis: (rows, columns)."""
        columns = self.expected.shape[-1] if self.expected.ndim else 1
        return self.expected.size // max(columns, 1), columns

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings of the run; those of a rerun with probes where it has none."""
        return self.run.findings or self.rerun(probes=WATCHED, replay=True).findings

    def find(self, code: str) -> Finding | None:
        return next((f for f in self.findings if f.code == code), None)

    @cached_property
    def left_unchanged(self) -> bool:
        """Whether the wrong elements hold the same bits as before the run."""
        before = self.case.arrays[self.output]
        if not is_array(before) or before.nbytes != self.ours.nbytes:
            return False
        return bool((bits_of(before).reshape(self.ours.shape) == bits_of(self.ours))[self.wrong].all())

    # ---- reruns ----

    def rerun(self, case: Case | None = None, module: Module | None = None, **options: Unpack[Options]) -> Run:
        """Rerun without probes, on another case or module, or with other options. Raises `WgslError`."""
        from ... import sim

        self.time_limit.check()
        arguments: _Arguments = {
            "probes": "none",
            "replay": False,
            "device": self.run.device,
            "progress": self.time_limit.check,
            **(case or self.case).launch,
            **options,
        }
        return sim.simulate(module or self.run.pipeline.module, **arguments)

    def rerun_output(self, case: Case | None = None, module: Module | None = None, **options: Unpack[Options]) -> Array:
        """Return the output of another run; see `rerun`."""
        return as_array(self.rerun(case, module, **options).outputs[self.var]).reshape(self.expected.shape)

    def run_on_gpu(self, text: str | None = None) -> Array:
        """Return the output of another run on the GPU, of `text` or the case's own. Raises `GpuError`."""
        assert self.on_gpu is not None
        self.time_limit.check()
        return self.on_gpu(text).reshape(self.expected.shape)

    def agrees(self, values: Array) -> bool:
        """Whether `values` are the expected output, by the rule or the digest."""
        if self.same is not None:
            return self.same(values)
        return not rejected(values, self.expected, self.rule, self.bound).any()

    def count_changed(self, values: Array) -> int:
        """Count the wrong elements whose bits differ in `values`."""
        return int(np.count_nonzero(rejected(values, self.ours, EXACT) & self.wrong))

    @property
    def all_elements_agree(self) -> str:
        return "the only element agrees" if self.expected.size == 1 else f"all {self.expected.size:,} elements agree"

    @property
    def wrong_elements(self) -> str:
        count = int(np.count_nonzero(self.wrong))
        return "the element that differs" if count == 1 else f"the {count:,} elements that differ"

    # ---- the reference ----

    def reference_output(self, arrays: Mapping[str, Array], case: Case | None = None) -> Expected | None:
        """Call the reference with some arrays replaced; None where it lacks the output, or its size differs."""
        if self.reference is None:
            return None
        self.time_limit.check()
        case = case or self.case
        try:
            with np.errstate(all="ignore"):
                expected = self.reference({**case.arrays, **arrays}, case.shape.dims).get(self.output)
        except UsageError:  # a user-defined reference that fails on such arrays
            return None
        return None if expected is None else expected.shaped(np.shape(case.arrays[self.output]))

    def explained(self, value: Array, bound: Array | None = None) -> bool:
        """Whether most of the wrong elements hold `value`, within its own bound, or by the rule."""
        bound = self.bound if bound is None or self.rule == DERIVED else bound
        if value.shape != self.ours.shape:
            return False
        right = self.wrong & ~rejected(self.ours, value, self.rule, bound)
        return bool(np.count_nonzero(right) >= MOST * np.count_nonzero(self.wrong))

    def equals_element(self, source: Array) -> Array:
        """Return for each element, flat, whether it is the expected one at the flat index `source`, by the rule."""
        bound = None if self.bound is None else self.bound.ravel()[source]
        return ~rejected(self.ours.ravel(), self.expected.ravel()[source], self.rule, bound)

    def agrees_at(self, dims: Mapping[str, int]) -> bool:
        """Whether the kernel agrees with the reference at other sizes."""
        from ...sim.wgsl.diagnostics import WgslError

        try:
            case = self.case.kernel.case(self.case.kernel.shape(dims))
            expected = self.reference_output({}, case)
            run = self.rerun(case=case)
        except (UsageError, WgslError):
            return False
        if expected is None:
            return False
        value, bound = expected.value, run.bounds[self.var] if self.rule == DERIVED else expected.bound
        bound = None if bound is None else bound.reshape(value.shape)
        return not rejected(as_array(run.outputs[self.var]), value, self.rule, bound).any()
