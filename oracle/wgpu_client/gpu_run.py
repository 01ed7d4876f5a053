"""The same WGSL on a real WebGPU implementation: `run` takes text, an entry point, a grid and the contents of the
bindings, and gives back what the bindings hold afterwards. Whatever wgpu refuses becomes a `GpuError` in naga's words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from threading import Thread
from typing import Any

from ...sim.fast_dataclass import frozen
from ...sim.models import DEFAULT_LIMITS, check_dispatch
from ...sim.wgsl import types as t
from ...sim.wgsl.analysis.portability import FATAL, notes
from ...sim.wgsl.check.pipeline import GRANTED
from ...sim.wgsl.diagnostics import WgslError
from ...sim.wgsl.typed import Module, Pipeline
from ..errors import GpuError, Lacking, TooLarge, UsageError
from ..manifests.reflection import entry_point
from ..wgpu_worker import worker_process
from ..wgpu_worker.messages import Abilities, AdapterInfo, Done, Order
from .adapter_choice import abilities, dashed, number_of, parse_adapters, require_adapter
from .binding_resources import Data, Slot, as_given, as_texels, describe
from .directives import without_directives

Key = str | tuple[int, int]

# What a device has to have for what a shader enables.
NEEDS = {"f16": "shader-f16", "subgroups": "subgroup"}


@frozen
class GpuRun:
    """`outputs` has the keys, dtypes and shapes of the bindings that the shader can write, as they went in.

    `seconds` are the times from submission to completion, one per repetition; `kernel_seconds` those of the dispatch
    alone, by the adapter's own clock, where it has one. `took`: all that wgpu did for it.
    """

    outputs: dict[Any, Any]
    adapter: AdapterInfo
    seconds: tuple[float, ...]
    kernel_seconds: tuple[float, ...] = ()
    took: float = 0.0

    @property
    def clocked(self) -> dict[str, float]:
        """The shortest dispatch, in words and seconds; nothing where the adapter has no clock."""
        return {f"kernel on {self.adapter.name}": min(self.kernel_seconds)} if self.kernel_seconds else {}


class Begun:
    """A run on a GPU, which does not keep the caller from doing other things meanwhile."""

    def __init__(self, asked: worker_process.Asked, info: AdapterInfo, contents: list[tuple[Slot, Key, Data]]) -> None:
        self._asked, self._info, self._contents = asked, info, contents

    def done(self) -> GpuRun:
        """Wait for it. Raises `GpuError` where wgpu refuses."""
        done: Done = self._asked.answer()
        pairs = zip(done.contents, self._contents, strict=True)
        outputs = {key: _output(slot, content, data) for content, (slot, key, data) in pairs if content is not None}
        return GpuRun(outputs, self._info, done.seconds, done.kernel_seconds, done.took)


def _output(slot: Slot, content: Any, data: Data) -> Data:
    if slot.kind != "handle":
        return as_given(content, data)
    assert slot.variable is not None
    return as_texels(content, slot.variable, data)


def run(wgsl: str, entry: str | None, grid: Sequence[int], bindings: Mapping[Any, Data], **how: Any) -> GpuRun:
    """`begin`, and wait for it."""
    return begin(wgsl, entry, grid, bindings, **how).done()


def begin(
    wgsl: str,
    entry: str | None,
    grid: Sequence[int],
    bindings: Mapping[Any, Data],
    *,
    slots: Sequence[Slot] | None = None,
    overrides: Mapping[str, Any] | None = None,
    adapter: str | None = None,
    repeats: int = 1,
    module: Module | None = None,
) -> Begun:
    """Dispatch `grid` workgroups of `entry`, `repeats` times over, each time on fresh contents of the bindings.

    `slots` are the shader's declarations, `module` the checked text; what is left out, the simulator's front end makes.
    Raises `GpuError` where wgpu refuses, `Lacking` where the adapter lacks what the shader enables, `TooLarge` where a
    binding or workgroup is, `NoAdapter` where there is nothing to run on, `UsageError` on data that does not fit.
    """
    if slots is None:
        slots = read_slots(wgsl, entry) if module is None else slots_of(entry_point(module, entry))
    contents, info = _match(slots, bindings), require_adapter(adapter)
    order = _order(wgsl, entry, grid, contents, overrides, adapter, repeats, module)
    return Begun(worker_process.put("dispatch", order), info, contents)


def _order(
    wgsl: str,
    entry: str | None,
    grid: Sequence[int],
    contents: list[tuple[Slot, Key, Data]],
    overrides: Mapping[str, Any] | None,
    adapter: str | None,
    repeats: int,
    module: Module | None,
) -> Order:
    """What wgpu is asked, once it is known that it may be."""
    number, info = number_of(adapter), require_adapter(adapter)
    has = abilities(number)
    _refuse(wgsl, module, info, has)
    if module is not None:
        with suppress(WgslError):  # wgpu has its own words for it
            fixed: dict[str | int, Any] = {**overrides} if overrides else {}
            _refuse_size(module.pipeline(entry, fixed, GRANTED), grid, info, has)
    text = for_wgpu(wgsl)
    resources = [describe(slot, data, info, has) for slot, _, data in contents]
    constants = tuple((str(name), float(value)) for name, value in (overrides or {}).items())
    return Order(number, text, entry, tuple(grid), resources, constants, repeats)


def prepare(module: Module, entry: str, *, overrides: Mapping[str, Any] | None, adapter: str | None) -> Thread:
    """Have devices made, and drivers compile, while the caller does other things. `adapter`: see `parse_adapters`. Who
    calls `run` waits for it, and is told what is wrong; here nobody is."""

    def work() -> None:
        slots = slots_of(entry_point(module, entry))
        with suppress(Exception):
            for name in parse_adapters(adapter):
                if all(slot.kind != "handle" for slot in slots):  # drivers compile at a dispatch, of no workgroups too
                    least = _match(slots, {slot.name: bytes(_least(slot)) for slot in slots})
                    order = _order(module.source.text, entry, (0, 0, 0), least, overrides, name, 1, module)
                    worker_process.tell("dispatch", order)

    thread = Thread(target=work, name="bankshot-prepare")
    thread.start()
    return thread


def _least(slot: Slot) -> int:
    """Bytes that a buffer has at least."""
    assert slot.variable is not None
    return t.round_up(4, t.min_binding_size(slot.variable.type))


def refusal(
    wgsl: str, adapter: str | None = None, *, pipeline: bool = False, default_limits: bool = False
) -> str | None:
    """What wgpu has against the text of a module, as it stands; None where it takes it. Raises `NoAdapter`.

    `pipeline`: against that of its only entry point, too. `default_limits`: on a device that was asked for nothing,
    neither features nor limits.
    """
    limits = tuple((dashed(name), most) for name, most in DEFAULT_LIMITS.items()) if default_limits else None
    return worker_process.ask("refusal", number_of(adapter), wgsl, pipeline, limits)


def read_slots(wgsl: str, entry: str | None) -> list[Slot]:
    """The bindings that entry point `entry` (None: the only one) uses, as the simulator's front end sees them."""
    from ... import sim

    return slots_of(entry_point(sim.check(wgsl), entry))


def slots_of(function: Any) -> list[Slot]:
    """The bindings of a checked entry point (`bankshot.sim.wgsl.typed.Function`)."""
    return [
        Slot(v.name, *v.binding, kind=_kind(v.space, v.access), variable=v)
        for v in function.globals
        if v.binding is not None
    ]


def _kind(space: str | None, access: str | None) -> str:
    if space == "storage":
        return "storage-read" if access == "read" else "storage-write"
    return space or "uniform"


def for_wgpu(wgsl: str) -> str:
    """The text without the directives that this wgpu refuses although it offers what they name; lines stay in place."""
    return without_directives(wgsl, lambda kind, name: not _takes(f"{kind} {name};"))


@cache
def _takes(wgsl: str) -> bool:
    return refusal(wgsl, None) is None


def _refuse(wgsl: str, module: Module | None, info: AdapterInfo, has: Abilities) -> None:
    """What the adapter cannot run is not tried; nor is what wgpu would abort the whole process on."""
    from ... import sim

    try:
        module = module or sim.check(wgsl, uniformity="off")
        fatal = notes(module, DEFAULT_LIMITS, FATAL)
    except sim.WgslError:
        return  # wgpu has its own words for it
    for enabled in sorted(module.enables & NEEDS.keys()):
        if NEEDS[enabled] not in has.features:
            raise Lacking(f"the shader enables {enabled}, and {info.name} has no {NEEDS[enabled]}")
    for note in fatal:
        raise GpuError(f"wgpu {info.wgpu} would not survive this shader:\n{note.render()}")


def _refuse_size(pipeline: Pipeline, grid: Sequence[int], info: AdapterInfo, has: Abilities) -> None:
    """Nor is a workgroup larger than the adapter has them."""
    limits = {name: has.limits.get(dashed(name), least) for name, least in DEFAULT_LIMITS.items()}
    for beyond in check_dispatch(grid, pipeline.workgroup_size, pipeline.workgroup_bytes, limits=limits):
        raise TooLarge(f"{beyond} on {info.name}")


def _match(slots: Sequence[Slot], bindings: Mapping[Any, Data]) -> list[tuple[Slot, Key, Data]]:
    """Each slot with the key it was given under, and its data."""
    found = []
    for slot in slots:
        key = next((k for k in (slot.name, slot.key) if k in bindings), None)
        if key is None:
            raise UsageError(f"binding {slot.name} (group {slot.group}, binding {slot.binding}) is not given")
        found.append((slot, key, bindings[key]))
    return found
