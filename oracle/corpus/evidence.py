"""Why outputs of the simulator and of wgpu may differ: each reason with a run, or a fact of the text, that shows it.

`EVIDENCE` are the reasons in the order in which they are looked for. Each gives words, or None where it does not hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.texel_formats import is_depth
from ..diagnosis.adapter_reruns import RERUNS, zeroing
from ..diagnosis.simulator_reruns import ORDERS, place
from ..errors import GpuError
from ..manifests.reflection import builtin_names, has_float_arithmetic, inexact_builtins
from . import invented_inputs
from .difference import Difference, bounds_of
from .invented_inputs import HALF, SINGLE, STEP, Recipe

# Largest error / largest magnitude in the binding (of normalized formats: steps) that is put down to rounding. WGSL
# lets implementations reassociate and fuse any arithmetic; its builtins may be as far off as it allows `sin` and `cos`.
ARITHMETIC = {SINGLE: 2.0**-18, HALF: 2.0**-8, STEP: 1.0}
BUILTINS = {SINGLE: 2.0**-11, HALF: 2.0**-7, STEP: 1.0}

NUDGE = 2.0**-18  # relative change of floating point inputs that tells how much they are amplified
LIKE = 16.0  # an amplified nudge this many times smaller than the difference still explains it


@frozen
class Run:
    """One run here: on what, and what it left."""

    recipe: Recipe
    given: Mapping[Any, Any]
    result: Any  # bankshot.Run

    def findings(self, code: str) -> list[Any]:
        return [f for f in self.result.findings if f.code == code]

    @property
    def clean(self) -> bool:
        return not (self.findings("out-of-bounds") or self.findings("endless-loop"))

    @property
    def busy(self) -> bool:
        """Whether an output changed."""
        return any(after.tobytes() != self.given[name].tobytes() for name, after in self.result.outputs.items())


class Tried(Protocol):
    """An entry point that can be run again."""

    function: typed.Function

    @property
    def text(self) -> str: ...

    @property
    def pipeline(self) -> typed.Pipeline: ...

    def simulate(self, given: Mapping[Any, Any], **options: Any) -> Any: ...

    def on_wgpu(self, given: Mapping[Any, Any], text: str | None = None) -> dict[str, np.ndarray]: ...

    def differences(self, recipe: Recipe, ours: Any, theirs: Any) -> list[Difference]: ...


Outputs = dict[str, np.ndarray]
Found = Sequence[Difference]


def _finding(code: str) -> Callable[[Tried, Run, Outputs, Found], str | None]:
    """The run had such a finding."""

    def look(entry: Tried, ours: Run, theirs: Outputs, found: Found) -> str | None:
        reasons = ours.findings(code)
        return place(reasons[0]) if reasons else None

    return look


def _rounding(entry: Tried, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """All differences are small, and what computes them may round as it likes."""
    open_ = inexact_builtins(entry.function)
    if open_ and _within(found, BUILTINS):
        return f"uses {', '.join(open_)}"
    if has_float_arithmetic(entry.function) and _within(found, ARITHMETIC):
        return "arithmetic may be reassociated and fused"
    if (normalized := _normalized_textures(entry)) and _within(found, ARITHMETIC):
        return f"the channels of {', '.join(normalized)} are normalized integers"
    return None


def _normalized_textures(entry: Tried) -> list[str]:
    """Textures whose texels are divided when they are read: those that are sampled are made up so, see `invented`."""
    return [
        v.name
        for v, type_ in entry.pipeline.store_types.items()
        if isinstance(type_, t.Texture)
        and (type_.sampled == t.F32 or is_depth(type_) or (type_.format or "").endswith("norm"))
    ]


def _within(found: Found, tolerance: dict[int, float]) -> bool:
    return all(d.error <= tolerance.get(d.code, 0.0) for d in found)


def _unsteady(entry: Tried, ours: Run, theirs: Outputs, found: Found) -> str | None:
    for _ in range(RERUNS):
        if entry.differences(ours.recipe, entry.on_wgpu(ours.given), theirs):
            return "wgpu does not agree with itself from run to run (a race)"
    return None


def _races(entry: Tried, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """Invocations reach for the same place, and nothing orders them."""
    races = [f for f in entry.simulate(ours.given, probes=("races",)).findings if f.code == "race"]
    return place(races[0]) if races else None


def _order(entry: Tried, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """Another order of invocations gives other outputs here, too."""
    for schedule in ORDERS:
        if entry.differences(ours.recipe, entry.simulate(ours.given, schedule=schedule).outputs, ours.result.outputs):
            return f"the order of invocations decides: {schedule} gives other outputs here, too"
    return None


# Builtins that read another invocation of the subgroup.
_READS_OTHERS = re.compile(r"subgroup(Broadcast|Shuffle\w*)|quad\w+")


def _absent_lanes(entry: Tried, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """Subgroups are not full, and invocations are read that may not be there: what comes of that is open."""
    used = sorted(name for name in builtin_names(entry.function) if _READS_OTHERS.fullmatch(name))
    lanes, size = math.prod(entry.pipeline.workgroup_size), ours.result.device.subgroup_size
    if not used or lanes % size == 0:
        return None
    return f"{', '.join(used)} may read invocations that are not there: {lanes} do not fill subgroups of {size}"


def _not_zeroed(entry: Tried, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """wgpu agrees once the shader zeroes its workgroup memory itself, as WGSL says an implementation does."""
    text = zeroing(entry.text, entry.pipeline)
    if text is None:
        return None
    try:
        mended = entry.on_wgpu(ours.given, text)
    except GpuError:
        return None
    if entry.differences(ours.recipe, ours.result.outputs, mended):
        return None
    return "wgpu left workgroup memory as it was; it agrees where the shader zeroes it"


def _reciprocal(entry: Tried, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """wgpu agrees with us where 8-bit texels are multiplied by the rounded 1 / 255, which is up to 1 ULP off."""
    scaled = {
        v.name: [level.astype(np.float32) * np.float32(1 / 255) for level in _levels(ours.given[v.name])]
        for v in entry.pipeline.globals
        if isinstance(v.type, t.Texture) and v.type.sampled == t.F32
    }
    if not scaled:
        return None
    again = entry.simulate({**ours.given, **scaled}).outputs
    if not _within(entry.differences(ours.recipe, again, theirs), ARITHMETIC):
        return None
    return f"wgpu takes texels of {', '.join(scaled)} as n * (1 / 255), not n / 255"


def _levels(texture: Any) -> list[np.ndarray]:
    return texture if isinstance(texture, list) else [texture]


def _amplified(entry: Tried, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """Rounding grows on the way: inputs that are hardly different give outputs that differ as much."""
    if not (inexact_builtins(entry.function) or has_float_arithmetic(entry.function)):
        return None
    nudged = entry.simulate(_nudged(entry, ours)).outputs
    moved = {(d.binding, d.code): d for d in entry.differences(ours.recipe, ours.result.outputs, nudged)}
    for difference in found:
        own = moved.get((difference.binding, difference.code))
        if own is None or own.error * LIKE < difference.error or own.count * LIKE < difference.count:
            return None
    return f"rounding grows: inputs changed by {NUDGE:.1g} of themselves change the outputs here as much"


def _nudged(entry: Tried, run: Run) -> dict[str, np.ndarray]:
    types = {v.name: type_ for v, type_ in entry.pipeline.store_types.items()}
    rng = np.random.default_rng(0)
    made = {}
    for name, bytes_ in run.given.items():
        if isinstance(types[name], t.Texture | t.Sampler):
            made[name] = bytes_
            continue
        halves = bytes_.view(np.uint16).copy()
        chosen = invented_inputs.layout(types[name], run.recipe) == SINGLE
        numbers = halves[chosen].view(np.float32)
        factors = 1 + NUDGE * rng.choice(np.array([-1, 1], np.float32), numbers.size)
        halves[chosen] = (numbers * factors.astype(np.float32)).view(np.uint16)
        made[name] = halves.view(np.uint8)
    return made


def _bounded(finite: bool) -> Callable[[Tried, Run, Outputs, Found], str | None]:
    """All differences are within the bounds that follow from WGSL's accuracy table, which are finite there, or not all
    of them."""

    def look(entry: Tried, ours: Run, theirs: Outputs, found: Found) -> str | None:
        types = {v.name: type_ for v, type_ in entry.pipeline.store_types.items()}
        if any(isinstance(types[d.binding], t.Texture) for d in found):
            return None
        bounds = [
            bounds_of(invented_inputs.layout(types[name], ours.recipe), ours.result.outputs[name], theirs[name], bound)
            for name, bound in ours.result.bounds.items()
        ]
        if any(each is None for each in bounds):
            return None
        endless = sum(int(np.isinf(each).sum()) for each in bounds if each is not None)
        if finite:
            return None if endless else "the error bounds of what it computes allow it"
        return f"WGSL does not say how far off {endless:,} of the elements that differ may be"

    return look


EVIDENCE: tuple[tuple[str, Callable[[Tried, Run, Outputs, Found], str | None]], ...] = (
    ("explained", _finding("out-of-bounds")),
    ("explained", _finding("barrier-divergence")),
    ("within", _rounding),
    ("within", _reciprocal),
    ("explained", _absent_lanes),
    ("explained", _not_zeroed),
    ("explained", _unsteady),
    ("explained", _races),
    ("explained", _order),
    ("explained", _amplified),
    ("within", _bounded(finite=True)),
    ("explained", _bounded(finite=False)),
)
