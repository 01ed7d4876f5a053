"""Reasons why outputs of the simulator and of wgpu differ, each proved by another run or by a fact of the text.

`EVIDENCE` lists the checks in the order in which they are tried. Each returns a sentence, or None if its reason does
not apply.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

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
from .difference import Array, Difference, bounds_of
from .invented_inputs import HALF, SINGLE, STEP, Recipe

if TYPE_CHECKING:
    from ...sim.findings.finding import Finding
    from ...sim.run import simulate

# The largest error attributed to rounding, divided by the largest magnitude in the binding (for normalized formats, in
# steps). WGSL lets implementations reassociate and fuse any arithmetic; for builtins, the error allowed is that of
# `sin` and `cos`.
ARITHMETIC = {SINGLE: 2.0**-18, HALF: 2.0**-8, STEP: 1.0}
BUILTINS = {SINGLE: 2.0**-11, HALF: 2.0**-7, STEP: 1.0}

NUDGE = 2.0**-18  # the relative change of floating-point inputs that measures how much errors are amplified
LIKE = 16.0  # an amplified nudge explains differences up to this many times as large


Outputs = Mapping[str, Array]


def outputs_of(run: simulate.Run) -> Outputs:
    """Return the outputs of a run on generated inputs, which are given by name and as arrays."""
    return cast(Outputs, run.outputs)


@frozen
class Run:
    """A run of the simulator: the recipe for its inputs, the inputs, and the result."""

    recipe: Recipe
    given: Mapping[str, Any]
    result: simulate.Run

    def findings(self, code: str) -> list[Finding]:
        """Return the findings with a code."""
        return [f for f in self.result.findings if f.code == code]

    @property
    def clean(self) -> bool:
        """Whether every access was in bounds and every loop ended."""
        return not (self.findings("out-of-bounds") or self.findings("endless-loop"))

    @property
    def busy(self) -> bool:
        """Whether an output changed."""
        return any(after.tobytes() != self.given[name].tobytes() for name, after in self.outputs.items())

    @property
    def outputs(self) -> Outputs:
        """The outputs by name; those of generated inputs are all arrays."""
        return outputs_of(self.result)


class Candidate(Protocol):
    """An entry point that can run again."""

    function: typed.Function

    @property
    def text(self) -> str: ...

    @property
    def pipeline(self) -> typed.Pipeline: ...

    def simulate(self, given: Mapping[str, Any], **options: Any) -> simulate.Run:
        """Run in the simulator; `options` are those of `bankshot.simulate`."""
        ...

    def on_wgpu(self, given: Mapping[str, Any], text: str | None = None) -> dict[str, Array]:
        """Run on wgpu, optionally with another text. Raises `GpuError`."""
        ...

    def differences(self, recipe: Recipe, ours: Outputs, theirs: Outputs) -> list[Difference]:
        """Compare the outputs of two runs on inputs made by `recipe`."""
        ...


Found = Sequence[Difference]


def _finding(code: str) -> Callable[[Candidate, Run, Outputs, Found], str | None]:
    """Make a check that the run has a finding with this code."""

    def look(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
        reasons = ours.findings(code)
        return place(reasons[0]) if reasons else None

    return look


def _rounding(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """All differences are small, and implementations may round the operations that compute them differently."""
    open_ = inexact_builtins(entry.function)
    if open_ and _within(found, BUILTINS):
        return f"uses {', '.join(open_)}"
    if has_float_arithmetic(entry.function) and _within(found, ARITHMETIC):
        return "arithmetic may be reassociated and fused"
    if (normalized := _normalized_textures(entry)) and _within(found, ARITHMETIC):
        return f"the channels of {', '.join(normalized)} are normalized integers"
    return None


def _normalized_textures(entry: Candidate) -> list[str]:
    """Return the textures whose texels are normalized; `invented_inputs` makes all sampled ones so."""
    return [
        v.name
        for v, type_ in entry.pipeline.store_types.items()
        if isinstance(type_, t.Texture)
        and (type_.sampled == t.F32 or is_depth(type_) or (type_.format or "").endswith("norm"))
    ]


def _within(found: Found, tolerance: dict[int, float]) -> bool:
    return all(d.error <= tolerance.get(d.code, 0.0) for d in found)


def _unsteady(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    for _ in range(RERUNS):
        if entry.differences(ours.recipe, entry.on_wgpu(ours.given), theirs):
            return "wgpu's outputs differ from run to run (a race)"
    return None


def _races(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """The simulator finds a race."""
    races = [f for f in entry.simulate(ours.given, probes=("races",)).findings if f.code == "race"]
    return place(races[0]) if races else None


def _order(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """Another order of invocations changes the simulator's outputs, too."""
    for schedule in ORDERS:
        other = outputs_of(entry.simulate(ours.given, schedule=schedule))
        if entry.differences(ours.recipe, other, ours.outputs):
            return f"the order of invocations matters: {schedule} changes the simulator's outputs, too"
    return None


# Builtins that read another invocation of the subgroup.
_READS_OTHERS = re.compile(r"subgroup(Broadcast|Shuffle\w*)|quad\w+")


def _absent_lanes(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """Subgroups are not full, and the shader may read invocations that do not exist, which WGSL leaves undefined."""
    used = sorted(name for name in builtin_names(entry.function) if _READS_OTHERS.fullmatch(name))
    lanes, size = math.prod(entry.pipeline.workgroup_size), ours.result.device.subgroup_size
    if not used or lanes % size == 0:
        return None
    return f"{', '.join(used)} may read invocations that do not exist: {lanes} do not fill subgroups of {size}"


def _not_zeroed(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """wgpu agrees once the shader zeroes its workgroup memory itself, which WGSL requires of implementations."""
    text = zeroing(entry.text, entry.pipeline)
    if text is None:
        return None
    try:
        mended = entry.on_wgpu(ours.given, text)
    except GpuError:
        return None
    if entry.differences(ours.recipe, ours.outputs, mended):
        return None
    return "wgpu did not zero workgroup memory; it agrees if the shader does"


def _reciprocal(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """wgpu agrees if 8-bit texels are multiplied by the rounded 1 / 255, which is up to 1 ULP off."""
    scaled = {
        v.name: [level.astype(np.float32) * np.float32(1 / 255) for level in _levels(ours.given[v.name])]
        for v in entry.pipeline.globals
        if isinstance(v.type, t.Texture) and v.type.sampled == t.F32
    }
    if not scaled:
        return None
    again = outputs_of(entry.simulate({**ours.given, **scaled}))
    if not _within(entry.differences(ours.recipe, again, theirs), ARITHMETIC):
        return None
    return f"wgpu computes texels of {', '.join(scaled)} as n * (1 / 255), not n / 255"


def _levels(texture: Array | list[Array]) -> list[Array]:
    return texture if isinstance(texture, list) else [texture]


def _amplified(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """The shader amplifies rounding errors: tiny changes of the inputs change the outputs as much."""
    if not (inexact_builtins(entry.function) or has_float_arithmetic(entry.function)):
        return None
    nudged = outputs_of(entry.simulate(_nudged(entry, ours)))
    moved = {(d.binding, d.code): d for d in entry.differences(ours.recipe, ours.outputs, nudged)}
    for difference in found:
        own = moved.get((difference.binding, difference.code))
        if own is None or own.error * LIKE < difference.error or own.count * LIKE < difference.count:
            return None
    return f"rounding errors grow: a relative change of {NUDGE:.1g} in the inputs changes the outputs here as much"


def _nudged(entry: Candidate, run: Run) -> dict[str, Any]:
    """Return the inputs of a run with every f32 of a buffer changed by `NUDGE`, up or down at random."""
    types = {v.name: type_ for v, type_ in entry.pipeline.store_types.items()}
    rng = np.random.default_rng(0)
    made: dict[str, Any] = {}
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


def _bounded(finite: bool) -> Callable[[Candidate, Run, Outputs, Found], str | None]:
    """Make a check that all differences are within the error bounds derived from WGSL's accuracy table.

    With `finite`, the bounds of all elements that differ must be finite; otherwise, some are infinite.
    """

    def look(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
        types = {v.name: type_ for v, type_ in entry.pipeline.store_types.items()}
        if any(isinstance(types[d.binding], t.Texture) for d in found):
            return None
        bounds = [
            bounds_of(invented_inputs.layout(types[name], ours.recipe), ours.outputs[name], theirs[name], bound)
            for name, bound in cast(Outputs, ours.result.bounds).items()
        ]
        if any(each is None for each in bounds):
            return None
        endless = sum(int(np.isinf(each).sum()) for each in bounds if each is not None)
        if finite:
            return None if endless else "the error bounds of what it computes allow it"
        return f"WGSL does not bound the error of {endless:,} of the elements that differ"

    return look


EVIDENCE: tuple[tuple[str, Callable[[Candidate, Run, Outputs, Found], str | None]], ...] = (
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
