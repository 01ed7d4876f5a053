"""Reasons why outputs of the simulator and of wgpu differ, each proved by a rerun for the outputs that differ.

`EVIDENCE` lists the checks in the order in which they are tried: derived bounds first. Each returns a sentence, or None
if its reason does not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import types as t
from ...sim.wgsl.diagnostics import WgslError
from ..diagnosis.adapter_reruns import filling, zeroing
from ..diagnosis.kept_floats import DATA, ZERO, kept
from ..diagnosis.loop_limit import NEVER, limited
from ..diagnosis.simulator_reruns import OPEN, place
from ..errors import GpuError, UsageError
from .candidate import Array, Candidate, Outputs, Run, outputs_of
from .cover import WAYS, count, explained_by, within_bounds, without, without_bounds

FILLED = 2048  # workgroups of the kernel that fills workgroup memory: enough that each thread of a driver runs some
TRIES = 4  # as a busy machine may leave a thread out

Look = Callable[[Candidate, Run, Outputs], str | None]


def _agree(entry: Candidate, ours: Run, theirs: Outputs) -> bool:
    """Whether wgpu's outputs equal the simulator's, or are within the derived bounds."""
    return _left(entry, ours, theirs) == 0


def _left(entry: Candidate, ours: Run, theirs: Outputs) -> int:
    """Count the elements that differ by more than their derived bounds."""
    return count(without(entry.differing(ours.recipe, ours.outputs, theirs), within_bounds(entry, ours, theirs)))


def _bounded(entry: Candidate, ours: Run, theirs: Outputs) -> str | None:
    return "the error bounds of what it computes allow it" if _agree(entry, ours, theirs) else None


def _unbounded(entry: Candidate, ours: Run, theirs: Outputs) -> str | None:
    """Every element that differs is within its bound, or has none."""
    open_ = without_bounds(entry, ours, theirs)
    differ = without(entry.differing(ours.recipe, ours.outputs, theirs), within_bounds(entry, ours, theirs))
    if count(without(differ, open_)):
        return None
    return f"WGSL bounds no error of {count(open_):,} of the elements that differ, so that they show nothing"


def _out_of_bounds(entry: Candidate, ours: Run, theirs: Outputs) -> str | None:
    """wgpu agrees with the simulator where accesses out of bounds do something else than on the device."""
    reasons = ours.findings("out-of-bounds")
    for words, options in OPEN["out-of-bounds"].items() if reasons else ():
        if not entry.differences(ours.recipe, outputs_of(entry.simulate(ours.given, **options)), theirs):
            return f"{words}, all outputs agree; {place(reasons[0])}"
    return None


def _reordered(entry: Candidate, ours: Run, theirs: Outputs) -> str | None:
    """wgpu agrees bit for bit where each float operation keeps its own result."""
    text = kept(entry.pipeline)
    if text is None:
        return None
    given, device = ours.given, ours.result.device
    same = device.fma != "contracted"
    plain = ours.outputs if same else outputs_of(entry.simulate(given, device=device.with_(fma="fused")))
    if entry.differences(ours.recipe, plain, entry.on_wgpu(given, text)):
        return None
    if entry.differences(ours.recipe, entry.on_wgpu(given), theirs):
        return None  # outputs vary from run to run
    return "the driver reorders floats; wgpu agrees bit for bit where each operation keeps its own result"


def _loops_left(entry: Candidate, ours: Run, theirs: Outputs) -> str | None:
    """The simulator agrees under the driver's limit of loops, and not with the same text without a limit."""
    limit = ours.result.device.loop_turns
    if limit is None:
        return None

    def agrees(text: str) -> bool:
        return not entry.differences(ours.recipe, outputs_of(entry.simulate(ours.given, text=text)), theirs)

    for text, control in zip(limited(entry.pipeline, limit), limited(entry.pipeline, NEVER), strict=True):
        try:
            limited_ = agrees(text) and not agrees(control)
        except WgslError:
            continue
        if limited_:
            return f"the driver leaves loops after {limit:,} turns; under that limit, all outputs agree"
    return None


def _not_zeroed(entry: Candidate, ours: Run, theirs: Outputs) -> str | None:
    """wgpu agrees once the shader zeroes its workgroup memory itself, which WGSL requires of implementations.

    That may also be due to the barrier after it, which cures races. So outputs must also differ with the barrier alone,
    or repeat what another kernel left in that memory. Memory that is not zeroed may hold zeros by chance, so that a
    kernel fills it first. What still differs from the simulator must be covered by the order of invocations.
    """
    text = zeroing(entry.text, entry.pipeline)
    if text is None:
        return None
    mended = entry.on_wgpu(ours.given, text)
    rest = ""
    if _left(entry, ours, mended):
        order = explained_by(WAYS[0])(entry, ours, mended)
        if order is None:
            return None
        rest = f", but for what other orders of invocations change: {order}"
    if not (_shows_fillings(entry, ours) or _differs_with_barrier(entry, ours, mended)):
        return None
    return f"wgpu did not zero workgroup memory; it agrees if the shader does{rest}"


def _differs_with_barrier(entry: Candidate, ours: Run, mended: Outputs) -> bool:
    """Whether outputs differ from `mended` where the shader has the barrier, but does not zero."""
    _fill(entry, ours, 0)
    alone = entry.on_wgpu(ours.given, zeroing(entry.text, entry.pipeline, zero=False))
    return count(entry.differing(ours.recipe, mended, alone)) > 0


def _shows_fillings(entry: Candidate, ours: Run) -> bool:
    """Whether outputs depend on what another kernel left in workgroup memory, and on nothing else."""

    def after(value: int) -> Outputs:
        _fill(entry, ours, value)
        return entry.on_wgpu(ours.given)

    for _ in range(TRIES):
        one, other, again = after(0), after(0x1234567), after(0)
        differ, vary = (count(entry.differing(ours.recipe, one, each)) for each in (other, again))
        if differ and not vary:
            return True
    return False


def _fill(entry: Candidate, ours: Run, value: int) -> None:
    """Leave numbers that depend on `value` in workgroup memory, that of each thread of the driver."""
    data = {**ours.given, ZERO: np.full(4, value, np.uint32)}
    entry.on_wgpu(data, filling(entry.function.name), (FILLED, 1, 1))


def _reciprocal(entry: Candidate, ours: Run, theirs: Outputs) -> str | None:
    """wgpu agrees if 8-bit texels are multiplied by the rounded 1 / 255, which is up to 1 ULP off."""
    scaled = {
        v.name: [level.astype(np.float32) * np.float32(1 / 255) for level in _levels(ours.given[v.name])]
        for v in entry.pipeline.globals
        if isinstance(v.type, t.Texture) and v.type.sampled == t.F32
    }
    if not scaled:
        return None
    given = {**ours.given, **scaled}
    if not _agree(entry, Run(ours.recipe, given, entry.simulate(given)), theirs):
        return None
    return f"wgpu computes texels of {', '.join(scaled)} as n * (1 / 255), not n / 255"


def _levels(texture: Array | list[Array]) -> list[Array]:
    return texture if isinstance(texture, list) else [texture]


@frozen
class Evidence:
    """A reason why outputs may differ. `rerun`: what shows it, in words. `look` returns the reason, or None. `bounds`:
    the reason is that values are near enough, rather than that they agree."""

    verdict: str
    rerun: str
    look: Look
    bounds: bool = False


_ORDER, _LANES, _VARYING, _ROUNDING = (Evidence("explained", way.rerun, explained_by(way)) for way in WAYS)

# What makes outputs agree. The order of invocations comes first: another text changes who wins a race, so that reruns
# of one would agree by chance.
_CAUSES = (
    _ORDER,
    Evidence("explained", "wgpu, with a text that keeps the result of each float operation", _reordered),
    Evidence("explained", "the simulator, with other accesses out of bounds", _out_of_bounds),
    Evidence("explained", "the simulator, with loops that end after the driver's limit", _loops_left),
    Evidence("explained", "wgpu, with a text that zeroes workgroup memory", _not_zeroed),
)
EVIDENCE = (
    Evidence("within", "the simulator, with error bounds", _bounded, bounds=True),
    *_CAUSES,
    Evidence("within", "the simulator, with texels multiplied by 1 / 255", _reciprocal),
    _LANES,
    _VARYING,
    replace(_ROUNDING, bounds=True),
    Evidence("explained", "; ".join(way.rerun for way in WAYS), explained_by(*WAYS)),
    Evidence("unchecked", "the simulator, with error bounds", _unbounded, bounds=True),
)
_EXACT = (*_CAUSES, _LANES, _VARYING, Evidence("explained", "", explained_by(*WAYS[:3])))


@frozen
class ExactComparison:
    """A comparison with exact arithmetic in place of the functions `names`. `agree`: bit for bit. `differ`: how outputs
    differ, where no cause that a rerun proves explains it."""

    names: list[str]
    agree: bool = False
    differ: str = ""

    @property
    def words(self) -> str:
        """What it adds to a verdict that rests on bounds."""
        how = f"with exact arithmetic in place of {', '.join(self.names)}" if self.names else "without reordering"
        if self.differ:
            return f"{how}, outputs differ, too: {self.differ}"
        return f"{how}, all outputs agree bit for bit" if self.agree else ""


def compare_exactly(entry: Candidate, ours: Run) -> ExactComparison | None:
    """Run both sides with exact arithmetic. None where there is no such text, or it does not end."""
    made = entry.with_exact_arithmetic()
    if made is None:
        return None
    other, names = made
    given = {**ours.given, **DATA}
    again = Run(ours.recipe, given, other.simulate(given))
    if again.findings("endless-loop"):
        return None
    theirs = other.on_wgpu(given)
    found = other.differences(ours.recipe, again.outputs, theirs)
    if not found:
        return ExactComparison(names, agree=True)
    for row in _EXACT:
        with suppress(GpuError, UsageError, WgslError):  # a rerun that cannot be made shows nothing
            if row.look(other, again, theirs):
                return ExactComparison(names)
    return ExactComparison(names, differ="; ".join(map(str, found[:2])))
