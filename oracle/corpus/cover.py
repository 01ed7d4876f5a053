"""Which of the elements that differ can be otherwise without a fault, as a rerun shows for each of them.

A `Way` reruns with one thing changed that WGSL leaves open. It covers an element that such a rerun changes; of floats,
by as much as wgpu is off. An explanation covers every element that differs, so that a fault elsewhere is still seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import types as t
from ..diagnosis.absent_lanes import with_other_lanes
from ..diagnosis.adapter_reruns import zeroing
from ..diagnosis.kept_floats import ZERO, kept
from ..diagnosis.simulator_reruns import ORDERS, place
from ..diagnosis.texel_bounds import texel_bounds
from ..judge.case_run import endless
from .candidate import Candidate, Mask, Outputs, Run, outputs_of
from .difference import holds_floats

if TYPE_CHECKING:
    from ...sim.wgsl import typed

# Coarse orders first: most races show in them, and orders by invocation take longest.
_ORDERS = (
    *("mirrored", *ORDERS, "serial", "random(2)", "random(3)", "pct(1,3)", "pct(2,3)"),
    *("turns(1)", "turns(2)", "turns(3)"),
)
GPU_RERUNS = 4
ULPS = (1, 2, 3)  # what the bits of each float result are combined with, by exclusive or
ROUGH_ULPS = (16, 64)  # the same for functions whose error may be as large: `_ROUGHEST` below 1
_ROUGHEST = 64 * 2.0**-24

Masks = Mapping[str, Mask]  # by output: a word of a buffer, or a channel of a texture


@frozen
class Way:
    """Something that WGSL leaves open. `words`: the reason, with {} for the elements; `rerun`: what shows it.

    `masks` yields what each rerun covers; `more` adds to the reason.
    """

    words: str
    rerun: str
    masks: Callable[[Candidate, Run, Outputs], Iterator[Masks]]
    more: Callable[[Candidate, Run], str] = lambda entry, ours: ""


def explained_by(*ways: Way) -> Callable[[Candidate, Run, Outputs], str | None]:
    """Make a check that `ways` cover all elements that differ by more than their derived bounds."""

    def look(entry: Candidate, ours: Run, theirs: Outputs) -> str | None:
        left = without(entry.differing(ours.recipe, ours.outputs, theirs), within_bounds(entry, ours, theirs))
        total, reasons = count(left), list[str]()
        for way in ways:
            before = count(left)
            for mask in way.masks(entry, ours, theirs):
                left = without(left, mask)
                if not count(left):
                    break
            if covered := before - count(left):
                which = "the elements that differ" if covered == total else f"{covered:,} of the elements that differ"
                reasons.append(f"{way.words.format(which)}{way.more(entry, ours)}")
            if not count(left):
                return "; ".join(reasons)
        return None

    return look


def within_bounds(entry: Candidate, ours: Run, theirs: Outputs) -> Masks:
    """Cover the elements whose error is within a finite bound that the simulator derives."""
    if entry.exact:
        return {}
    errors = entry.errors(ours.recipe, ours.outputs, theirs)
    found = _bounds(entry, ours, [name for name, error in errors.items() if error.any()])
    return {name: (errors[name] <= bound) & np.isfinite(bound) for name, bound in found.items()}


def without_bounds(entry: Candidate, ours: Run, theirs: Outputs) -> Masks:
    """Cover the elements that differ and have no finite bound."""
    differ = entry.differing(ours.recipe, ours.outputs, theirs)
    found = _bounds(entry, ours, [name for name, mask in differ.items() if mask.any()])
    return {name: differ[name] & ~np.isfinite(bound) for name, bound in found.items()}


def _bounds(entry: Candidate, ours: Run, names: Collection[str]) -> Mapping[str, NDArray[np.float64]]:
    """Return the error bounds that the simulator derives for the words of buffers and the channels of textures.

    Infinite for textures of floats whose stores are not followed, 0 for those of integers.
    """
    types = {v: type_ for v, type_ in entry.pipeline.store_types.items() if v.name in names}
    of_buffers = cast(Mapping[str, NDArray[np.float64]], ours.result.bounds)
    return {
        v.name: _texel_bounds(entry, ours, v) if isinstance(type_, t.Texture) else of_buffers[v.name]
        for v, type_ in types.items()
    }


def _texel_bounds(entry: Candidate, ours: Run, variable: typed.Variable) -> NDArray[np.float64]:
    texels = ours.outputs[variable.name]
    bound = texel_bounds(
        entry.pipeline, variable, texels, lambda text, extra: entry.simulate({**ours.given, **extra}, text=text)
    )
    if bound is not None:
        return np.asarray(bound, np.float64).ravel()
    texture = cast(t.Texture, entry.pipeline.store_types[variable])
    return np.full(texels.size, np.inf if holds_floats(texture) else 0.0)


# ---- ways ------------------------------------------------------------------------------------------------


def _orders(entry: Candidate, ours: Run, theirs: Outputs) -> Iterator[Masks]:
    for schedule in _ORDERS:
        run = entry.simulate(ours.given, schedule=schedule)
        if not endless(run):
            yield entry.differing(ours.recipe, ours.outputs, outputs_of(run))


def _unordered(entry: Candidate, ours: Run) -> str:
    found = entry.simulate(ours.given, probes=("races",)).findings
    return f" ({place(found[0])})" if found else ""


def _varying(entry: Candidate, ours: Run, theirs: Outputs) -> Iterator[Masks]:
    """Workgroup memory that wgpu does not zero varies in most elements, so that the shader zeroes it."""
    text = zeroing(entry.text, entry.pipeline)
    first = entry.on_wgpu(ours.given, text)
    for _ in range(GPU_RERUNS):
        yield entry.differing(ours.recipe, entry.on_wgpu(ours.given, text), first)


def _other_lanes(entry: Candidate, ours: Run, theirs: Outputs) -> Iterator[Masks]:
    if text := with_other_lanes(entry.pipeline):
        yield entry.differing(ours.recipe, ours.outputs, outputs_of(entry.simulate(ours.given, text=text)))


def _shuffle(entry: Candidate, ours: Run) -> str:
    found = entry.simulate(ours.given, replay=True, probes=("bounds",)).findings
    return "".join(f" ({place(f)})" for f in found if f.code == "inactive-lane")


def _rounding(entry: Candidate, ours: Run, theirs: Outputs) -> Iterator[Masks]:
    """Change the last bits of each float result. Floats are covered that move as far; other values, where they become
    those of wgpu."""
    off = entry.errors(ours.recipe, ours.outputs, theirs)
    floats = entry.floats(ours.recipe)
    farthest = {name: np.zeros(error.shape) for name, error in off.items()}
    tries = [(kept(entry.pipeline), bits) for bits in ULPS]
    tries += [(kept(entry.pipeline, _is_rough), bits) for bits in ROUGH_ULPS]
    for text, bits in tries:
        if text is None:
            continue
        moved = outputs_of(entry.simulate({**ours.given, ZERO: np.full(4, bits, np.uint32)}, text=text))
        for name, error in entry.errors(ours.recipe, ours.outputs, moved).items():
            farthest[name] = np.maximum(farthest[name], error)
        same = entry.differing(ours.recipe, theirs, moved)
        yield {name: np.where(floats[name], off[name] <= farthest[name], ~same[name]) for name in off}


def _is_rough(call: typed.BuiltinCall) -> bool:
    """Whether WGSL lets the f32 result of a call be off by `_ROUGHEST`, as those of sin and tanh."""
    accuracy = call.builtin.accuracy
    return (
        t.element_of(call.type) == t.F32
        and accuracy is not None
        and any(bound.kind == "abs" and bound.amount >= _ROUGHEST for bound in accuracy.f32)
    )


WAYS = (
    Way(
        "the order of invocations decides {}",
        "the simulator, in other orders of invocations",
        _orders,
        _unordered,
    ),
    Way(
        "lanes that are inactive or absent decide {}",
        "the simulator, with other values in lanes that are not active",
        _other_lanes,
        _shuffle,
    ),
    Way(
        "wgpu gives other values from run to run in {}",
        f"wgpu, {GPU_RERUNS} times more",
        _varying,
    ),
    Way(
        f"rounding decides {{}}: they change as much where float results are off by {max(ULPS)} units in the last place"
        ", or what WGSL allows sin and tanh",
        "the simulator, with the last bits of float results changed",
        _rounding,
    ),
)


def without(masks: Masks, others: Masks) -> Masks:
    """Return the masks without what others have."""
    return {name: mask & ~others[name] if name in others else mask for name, mask in masks.items()}


def count(masks: Masks) -> int:
    """Count the elements of all outputs."""
    return sum(int(np.count_nonzero(mask)) for mask in masks.values())
