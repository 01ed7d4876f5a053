"""A mismatched output, and the means to find its cause: rerun the case here or on a GPU, or call the reference again,
with one thing changed.

Each rerun answers one of two questions. `agrees`: are all elements as expected? Then the change is the cause.
`explained`: are these the wrong elements that the kernel left? Then the kernel did what was tried.
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
    """The class of a mismatch, and the evidence in words; `UNKNOWN` where nothing that was tried explains it."""

    name: str
    evidence: str

    def __str__(self) -> str:
        return self.evidence if self.name == UNKNOWN else f"likely {self.name}: {self.evidence}"

    def but(self, late: Collection[str], seconds: float) -> Diagnosis:
        """Name the classes that time ran out for."""
        words = f"{self.evidence}; not tried within {seconds:g} s: {', '.join(late)}"
        return Diagnosis(self.name, words) if late else self


UNKNOWN = "unknown"


@frozen(eq=False)
class Mismatch:
    """Output `output` (the manifest's name) of `run`, and what it is compared with.

    `expected` has the shape of the output; `bound` goes with `rule`. `truth`: it is what the reference gives; `golden`:
    another text made it. `same`: where only a digest is left of it, whether an output has that; `expected` is then the
    output itself. `on_gpu`: where it is a GPU's, the output of a text of WGSL there, or of the case's own.

    Every rerun raises `OutOfTime` once `time_limit` is over.
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
        return as_array(self.run.outputs[self.var]).reshape(self.expected.shape)

    @cached_property
    def wrong(self) -> Array:
        """True for the elements that the rule rejects; for all, where only a digest differs."""
        if self.same is not None:
            return np.ones(self.ours.shape, bool)
        return rejected(self.ours, self.expected, self.rule, self.bound)

    @cached_property
    def matrix(self) -> tuple[int, int]:
        """The output as a matrix, whose columns are its last axis."""
        columns = self.expected.shape[-1] if self.expected.ndim else 1
        return self.expected.size // max(columns, 1), columns

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings of the run, or of another with probes, where this one has none."""
        return self.run.findings or self.again(probes=WATCHED, replay=True).findings

    def found(self, code: str) -> Finding | None:
        return next((f for f in self.findings if f.code == code), None)

    @cached_property
    def kept(self) -> bool:
        """Whether the wrong elements hold what they held before the run."""
        before = self.case.arrays[self.output]
        if not is_array(before) or before.nbytes != self.ours.nbytes:
            return False
        return bool((bits_of(before).reshape(self.ours.shape) == bits_of(self.ours))[self.wrong].all())

    # ---- running again ----

    def again(self, case: Case | None = None, module: Module | None = None, **options: Unpack[Options]) -> Run:
        """Run again without probes, on another case or another text, or with other options of `bankshot.simulate`.
        Raises `WgslError`."""
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

    def values(self, case: Case | None = None, module: Module | None = None, **options: Unpack[Options]) -> Array:
        """Return the output of another run; see `again`."""
        return as_array(self.again(case, module, **options).outputs[self.var]).reshape(self.expected.shape)

    def there(self, text: str | None = None) -> Array:
        """The output of another run on the GPU, of a text or of the case's own. Raises `GpuError`."""
        assert self.on_gpu is not None
        self.time_limit.check()
        return self.on_gpu(text).reshape(self.expected.shape)

    def agrees(self, values: Array) -> bool:
        if self.same is not None:
            return self.same(values)
        return not rejected(values, self.expected, self.rule, self.bound).any()

    def moved(self, values: Array) -> int:
        """How many of the wrong elements have other bits in `values`."""
        return int(np.count_nonzero(rejected(values, self.ours, EXACT) & self.wrong))

    @property
    def all_agree(self) -> str:
        return "the only element agrees" if self.expected.size == 1 else f"all {self.expected.size:,} elements agree"

    @property
    def those(self) -> str:
        count = int(np.count_nonzero(self.wrong))
        return "the element that differs" if count == 1 else f"the {count:,} elements that differ"

    # ---- asking again ----

    def asked(self, arrays: Mapping[str, Array], case: Case | None = None) -> Expected | None:
        """Call the reference with some other arrays; None where it has no such output, or one of another size."""
        if self.reference is None:
            return None
        self.time_limit.check()
        case = case or self.case
        try:
            with np.errstate(all="ignore"):
                expected = self.reference({**case.arrays, **arrays}, case.shape.dims).get(self.output)
        except UsageError:  # one of the user's own, for which such arrays were too much
            return None
        return None if expected is None else expected.shaped(np.shape(case.arrays[self.output]))

    def explained(self, value: Array, bound: Array | None = None) -> bool:
        """Whether the wrong elements hold `value`, within the bound that comes with it, or by the rule."""
        bound = self.bound if bound is None or self.rule == DERIVED else bound
        if value.shape != self.ours.shape:
            return False
        right = self.wrong & ~rejected(self.ours, value, self.rule, bound)
        return bool(np.count_nonzero(right) >= MOST * np.count_nonzero(self.wrong))

    def equal_to(self, source: Array) -> Array:
        """Flat: whether each element is, by the rule, what is expected at the flat place `source`; -1 is the last."""
        bound = None if self.bound is None else self.bound.reshape(-1)[source]
        return ~rejected(self.ours.reshape(-1), self.expected.reshape(-1)[source], self.rule, bound)

    def right_at(self, dims: Mapping[str, int]) -> bool:
        """Whether the kernel gives what the reference does in another shape."""
        from ...sim.wgsl.diagnostics import WgslError

        try:
            case = self.case.kernel.case(self.case.kernel.shape(dims))
            expected = self.asked({}, case)
            run = self.again(case=case)
        except (UsageError, WgslError):
            return False
        if expected is None:
            return False
        value, bound = expected.value, run.bounds[self.var] if self.rule == DERIVED else expected.bound
        bound = None if bound is None else bound.reshape(value.shape)
        return not rejected(as_array(run.outputs[self.var]), value, self.rule, bound).any()
