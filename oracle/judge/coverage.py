"""What a case was compared with: for each output, how many elements, by which truths, and what no rule checked.

A *truth* is what results are compared with: the reference, an adapter, the golden. It checks an element if its rule
could have rejected it (see `comparison.counterexamples`). A case is clean only if each element of each output is
checked by a truth, or the manifest gives a reason for leaving the output unchecked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, cast

import numpy as np

from ...sim.fast_dataclass import entity, frozen
from ..comparison.bits import Mask, as_array
from ..manifests.manifest import Case
from ..manifests.reflection import declared_writable, may_write

if TYPE_CHECKING:
    from ...sim.wgsl.typed import Pipeline
    from .output_checks import OutputCheck

REFERENCE, WGPU, GOLDEN, COUNTERS = "reference", "wgpu", "golden", "expected counters"  # truths in summaries

NO_OUTPUT = "the kernel has no output, and no counter is compared"
_ADVICE = "compare them by a rule that can fail, or give the reason in [expect] unchecked"
_LOST = "the kernel never stores to it: declare it `read`, or give the reason in [expect] unchecked"
_IDLE = "no output is expected to change, so that a kernel that stores nothing would pass"
_EMPTY = ("unwritten", "zeros")  # how outputs start


class CaseOutcome(StrEnum):
    """The outcome of a case. `UNCHECKED`: nothing differs, and something declared was compared with nothing that could
    have failed. `ERROR`: the case could not be run."""

    CLEAN = "clean"
    FAILED = "failed"
    UNCHECKED = "unchecked"
    ERROR = "error"

    @property
    def style(self) -> str:
        """The colour on a terminal."""
        return _STYLES[self]

    @property
    def ok(self) -> bool:
        return self is CaseOutcome.CLEAN


_STYLES = {
    CaseOutcome.CLEAN: "green",
    CaseOutcome.FAILED: "bold red",
    CaseOutcome.UNCHECKED: "bold yellow",
    CaseOutcome.ERROR: "bold magenta",
}


@frozen
class OutputCoverage:
    """How much of an output was checked. `truths`: by the name of each, how many elements it checked. `unchecked`: the
    elements that none did. `reason`: why the manifest leaves the output unchecked; else empty. `lost`: it is declared
    writable and used as an output, and the kernel never stores to it."""

    output: str
    elements: int
    truths: Mapping[str, int]
    unchecked: int
    reason: str = ""
    lost: bool = False

    @property
    def advice(self) -> str:
        """What to do about unchecked elements."""
        return _LOST if self.lost else _ADVICE

    @property
    def left(self) -> bool:
        """Whether elements are unchecked without a reason."""
        return self.unchecked > 0 and not self.reason

    def __str__(self) -> str:
        said = ", ".join(f"{truth} checks {count:,}" for truth, count in self.truths.items()) or "nothing compared"
        if not self.unchecked:
            return f"{self.output}: {said} of {self.elements:,} elements"
        why = f", as the manifest says: {self.reason}" if self.reason else ""
        return f"{self.output}: {self.unchecked:,} of {self.elements:,} elements unchecked ({said}){why}"


@frozen
class Coverage:
    """The coverage of a case's outputs. `counters`: how many expected counters were compared. `idle`: a kernel that
    stores nothing would pass, since no truth expects an output to change."""

    outputs: tuple[OutputCoverage, ...] = ()
    counters: int = 0
    idle: bool = False

    @property
    def left(self) -> tuple[OutputCoverage, ...]:
        """The outputs with unchecked elements for which the manifest gives no reason."""
        return tuple(each for each in self.outputs if each.left)

    @property
    def left_words(self) -> tuple[str, ...]:
        """`left` in words, with what to do."""
        return (*(f"{each}; {each.advice}" for each in self.left), *([_IDLE] if self.idle else []))

    @property
    def truths(self) -> tuple[str, ...]:
        """The kinds of truth that checked something."""
        used = [kind_of(truth) for each in self.outputs for truth, count in each.truths.items() if count]
        return tuple(dict.fromkeys([*used, *([COUNTERS] if self.counters else [])]))


@frozen
class Compared:
    """What a case was compared with, for the last line of a command. `truths`: their kinds. `not_compared`: what was
    not, with the reason: `with wgpu: no f16`. `unchecked`: outputs that the manifest gives a reason for. `bare`: there
    is no manifest, so that nothing is declared."""

    truths: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    excused: int = 0
    bare: bool = False


def kind_of(truth: str) -> str:
    """The kind of a truth: an adapter is `wgpu`."""
    return truth.partition(" on ")[0]


def is_bare(case: Case) -> bool:
    """Whether the case has no manifest."""
    return case.kernel.path.suffix != ".toml"


def coverage_of(
    case: Case,
    pipeline: Pipeline,
    checks: Iterable[OutputCheck],
    golden: Iterable[str] = (),
    counters: int = 0,
) -> Coverage:
    """Unite what `checks` could have rejected. `golden`: the variables whose bits a golden holds.

    Comparisons of what the kernel never stores to do not count: they find the buffer as it was.
    """
    ledgers = {case.name_of(var): _Ledger(size) for var, size in output_sizes(case, pipeline).items()}
    checks, stored = tuple(checks), {case.name_of(var) for var in may_write(pipeline)}
    lost = {*ledgers, *(check.output for check in checks if check.truth == REFERENCE)} - stored
    for check in checks:
        ledger = ledgers.setdefault(check.output, _Ledger(check.comparison.elements))
        if check.output not in lost:
            ledger.add(check.truth, check.comparison.unchecked)
    for var in golden:
        name = case.name_of(var.partition(".")[0])  # levels of a texture are dotted
        if name in ledgers and name not in lost:
            ledgers[name].add(GOLDEN, None)
    reasons = case.kernel.unchecked
    return Coverage(
        tuple(
            OutputCoverage(name, each.elements, each.truths, each.unchecked, reasons.get(name, ""), name in lost)
            for name, each in ledgers.items()
        ),
        counters,
        any(checks) and not any(check.comparison.expects_change or not check.comparison.elements for check in checks),
    )


@entity
class _Ledger:
    """The elements of one output that no truth has checked so far; None: all of them."""

    elements: int
    truths: Counter[str] = field(default_factory=Counter[str])
    left: Mask | None = None

    def add(self, truth: str, unchecked: Mask | None) -> None:
        mask = np.zeros(0, bool) if unchecked is None else unchecked.ravel()
        count = self.elements - int(np.count_nonzero(mask))
        self.truths[truth] = max(count, self.truths[truth])
        self.left = mask if self.left is None or not mask.size else self.left & mask if self.left.size else self.left

    @property
    def unchecked(self) -> int:
        return self.elements if self.left is None else int(np.count_nonzero(self.left))


def output_sizes(case: Case, pipeline: Pipeline) -> dict[str, int]:
    """Return the number of elements of each output, by variable: what the pipeline may write, and what a manifest uses
    as an output, because a kernel may have lost its store."""
    data = case.bindings
    names = dict.fromkeys((*may_write(pipeline), *_used_as_outputs(case, pipeline)))
    return {name: _size(data[name]) for name in names if name in data}


def _used_as_outputs(case: Case, pipeline: Pipeline) -> list[str]:
    """The writable variables that have a rule in the manifest, or hold nothing at the start."""
    if is_bare(case):
        return []
    kernel, writable = case.kernel, set(declared_writable(pipeline.module))
    named = {*kernel.rules, *kernel.gpu_rules, *kernel.free}
    return [b.var for b in kernel.bindings if b.var in writable and (b.name in named or b.init in _EMPTY)]


def _size(data: object) -> int:
    if isinstance(data, list):
        return sum(map(_size, cast("list[object]", data)))
    if isinstance(data, bytes):
        return len(data)
    return as_array(np.asarray(data)).size


def covered(checks: Iterable[OutputCheck], coverage: Coverage) -> tuple[OutputCheck, ...]:
    """Mark the checks of outputs of which nothing is left unchecked without a reason."""
    left = {each.output for each in coverage.left}
    return tuple(replace(check, checked_elsewhere=check.output not in left) for check in checks)
