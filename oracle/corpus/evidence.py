"""Reasons why outputs of the simulator and of wgpu differ, each proved by a rerun for the outputs that differ.

`EVIDENCE` lists the checks in the order in which they are tried: derived bounds first. Each returns a sentence, or None
if its reason does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.diagnostics import WgslError
from ...sim.wgsl.texel_formats import is_depth
from ..comparison.bits import bits_of
from ..diagnosis.adapter_reruns import RERUNS, zeroing
from ..diagnosis.kept_floats import kept
from ..diagnosis.loop_limit import NEVER, limited
from ..diagnosis.mismatch import MOST
from ..diagnosis.simulator_reruns import OPEN, ORDERS, harmful_words, place
from ..diagnosis.texel_bounds import texel_bounds
from ..errors import GpuError, UsageError
from ..guesses import invented_inputs
from ..guesses.invented_inputs import HALF, SINGLE, STEP, Recipe
from ..manifests.reflection import has_float_arithmetic, inexact_builtins
from .difference import Array, Difference, bounds_of

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

    def simulate(self, given: Mapping[str, Any], text: str | None = None, **options: Any) -> simulate.Run:
        """Run in the simulator, optionally another text; `options` are those of `bankshot.simulate`."""
        ...

    def on_wgpu(self, given: Mapping[str, Any], text: str | None = None) -> dict[str, Array]:
        """Run on wgpu, optionally with another text. Raises `GpuError`."""
        ...

    def differences(self, recipe: Recipe, ours: Outputs, theirs: Outputs) -> list[Difference]:
        """Compare the outputs of two runs on inputs made by `recipe`."""
        ...


Found = Sequence[Difference]


def _rounding(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """All differences are in textures, whose error bounds are not derived, and are small."""
    types = {v.name: type_ for v, type_ in entry.pipeline.store_types.items()}
    if not all(isinstance(types[d.binding], t.Texture) for d in found):
        return None
    open_ = inexact_builtins(entry.function)
    if open_ and _within(found, BUILTINS):
        return f"small differences in texels; the shader uses {', '.join(open_)}"
    if has_float_arithmetic(entry.function) and _within(found, ARITHMETIC):
        return "small differences in texels; arithmetic may be reassociated and fused"
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


def _order(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """Another order of invocations changes most of what differs."""
    for schedule in ORDERS:
        other = outputs_of(entry.simulate(ours.given, schedule=schedule))
        if _covers(ours.outputs, other, theirs):
            races = [f for f in entry.simulate(ours.given, probes=("races",)).findings if f.code == "race"]
            where = f"; {place(races[0])}" if races else ""
            return f"the order of invocations matters: {schedule} changes the simulator's outputs, too{where}"
    return None


def _covers(ours: Outputs, changed: Outputs, theirs: Outputs) -> bool:
    """Whether a rerun changed most of the words in which the outputs differ."""
    differ = changes = 0
    for name, mine in ours.items():
        a, b, c = (_words(each) for each in (mine, changed[name], theirs[name]))
        differ += int(np.count_nonzero(a != c))
        changes += int(np.count_nonzero((a != c) & (a != b)))
    return changes >= MOST * differ


def _words(output: Array) -> Array:
    """Return the bits of an output, in words of its elements; bytes in words of 4."""
    flat = np.ascontiguousarray(output).reshape(-1)
    return flat.view(np.uint32) if flat.dtype == np.uint8 and flat.size % 4 == 0 else bits_of(flat)


def _out_of_bounds(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """wgpu agrees with the simulator where accesses out of bounds do something else than on the device."""
    reasons = ours.findings("out-of-bounds")
    for words, options in OPEN["out-of-bounds"].items() if reasons else ():
        if not entry.differences(ours.recipe, outputs_of(entry.simulate(ours.given, **options)), theirs):
            return f"{words}, all outputs agree; {place(reasons[0])}"
    return None


def _reordered(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """wgpu agrees bit for bit where each float operation keeps its own result."""
    text = kept(entry.pipeline)
    if text is None:
        return None
    given, device = ours.given, ours.result.device
    same = device.fma != "contracted"
    plain = ours.outputs if same else outputs_of(entry.simulate(given, device=device.with_(fma="fused")))
    try:
        if entry.differences(ours.recipe, plain, entry.on_wgpu(given, text)):
            return None
        if entry.differences(ours.recipe, entry.on_wgpu(given), theirs):
            return None  # outputs vary from run to run
    except (GpuError, WgslError, UsageError):
        return None
    return "the driver reorders floats; wgpu agrees bit for bit where each operation keeps its own result"


def _loops_left(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
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


def _absent_lanes(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """Shuffles read lanes that are inactive or absent, and other values there change the outputs that differ."""
    findings = entry.simulate(ours.given, replay=True, probes=("bounds",)).findings
    harmful = next((f for f in findings if f.code == "inactive-lane"), None)
    words = harmful_words(harmful)
    if words is None or not all(f" of {d.binding} differ" in words for d in found):
        return None
    return words


def _not_zeroed(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
    """wgpu agrees once the shader zeroes its workgroup memory itself, which WGSL requires of implementations, and not
    with another barrier alone."""
    text = zeroing(entry.text, entry.pipeline)
    if text is None:
        return None
    try:
        mended = entry.on_wgpu(ours.given, text)
        if not _agree(entry, ours, mended):
            return None
        alone = entry.on_wgpu(ours.given, zeroing(entry.text, entry.pipeline, zero=False))
    except GpuError:
        return None
    if _agree(entry, ours, alone):
        return None
    return "wgpu did not zero workgroup memory; it agrees if the shader does"


def _agree(entry: Candidate, ours: Run, theirs: Outputs) -> bool:
    """Whether wgpu's outputs equal the simulator's, or are within the derived bounds."""
    found = entry.differences(ours.recipe, ours.outputs, theirs)
    return not found or _bounded(finite=True)(entry, ours, theirs, found) is not None


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


def _texels_within(entry: Candidate, ours: Run, theirs: Outputs, name: str) -> bool:
    """Whether all texels of a storage texture are within their derived bounds."""
    (variable,) = (v for v in entry.pipeline.globals if v.name == name)
    bound = texel_bounds(
        entry.pipeline,
        variable,
        ours.outputs[name],
        lambda text, extra: entry.simulate({**ours.given, **extra}, text=text),
    )
    if bound is None:
        return False
    a, b = (each[name].astype(np.float64) for each in (ours.outputs, theirs))
    with np.errstate(invalid="ignore"):
        return bool(((np.abs(a - b) <= bound) & np.isfinite(bound) | (a == b) | (np.isnan(a) & np.isnan(b))).all())


def _bounded(finite: bool) -> Callable[[Candidate, Run, Outputs, Found], str | None]:
    """Make a check that all differences are within the error bounds derived from WGSL's accuracy table.

    With `finite`, the bounds of all elements that differ must be finite; otherwise, some are infinite.
    """

    def look(entry: Candidate, ours: Run, theirs: Outputs, found: Found) -> str | None:
        types = {v.name: type_ for v, type_ in entry.pipeline.store_types.items()}
        textures = {d.binding for d in found if isinstance(types[d.binding], t.Texture)}
        if not all(_texels_within(entry, ours, theirs, name) for name in textures):
            return None
        bounds = [
            bounds_of(invented_inputs.layout(types[name], ours.recipe), ours.outputs[name], theirs[name], bound)
            for name, bound in cast(Outputs, ours.result.bounds).items()
            if not isinstance(types[name], t.Texture)
        ]
        if any(each is None for each in bounds):
            return None
        endless = sum(int(np.isinf(each).sum()) for each in bounds if each is not None)
        if finite:
            return None if endless else "the error bounds of what it computes allow it"
        return f"WGSL does not bound the error of {endless:,} of the elements that differ"

    return look


@frozen
class Evidence:
    """A reason why outputs may differ. `rerun`: what shows it, in words. `look` returns the reason, or None."""

    verdict: str
    rerun: str
    look: Callable[[Candidate, Run, Outputs, Found], str | None]


# Races come first: another text changes who wins them, so that reruns of one would agree by chance.
EVIDENCE = (
    Evidence("within", "the simulator, with error bounds", _bounded(finite=True)),
    Evidence("explained", "the simulator, in other orders of invocations", _order),
    Evidence("explained", "wgpu, with a text that keeps the result of each float operation", _reordered),
    Evidence("explained", "the simulator, with other accesses out of bounds", _out_of_bounds),
    Evidence("explained", "the simulator, with loops that end after the driver's limit", _loops_left),
    Evidence("explained", "the simulator, with other values in lanes that are not active", _absent_lanes),
    Evidence("explained", "wgpu, with a text that zeroes workgroup memory", _not_zeroed),
    Evidence("explained", "wgpu, twice more", _unsteady),
    Evidence("within", "the simulator, with texels multiplied by 1 / 255", _reciprocal),
    Evidence("within", "none: the bounds of texels are not derived", _rounding),
    Evidence("explained", "the simulator, with inputs changed a little", _amplified),
    Evidence("explained", "the simulator, with error bounds", _bounded(finite=False)),
)
