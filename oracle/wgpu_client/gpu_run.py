"""Run WGSL on a real WebGPU implementation.

`run` takes a module's text, an entry point, a grid and the contents of the bindings, and returns their contents after
the dispatch. If wgpu refuses the shader or its dispatch, `GpuError` carries naga's message.
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
from ...sim.wgsl.typed import Function, Module, Pipeline
from ..child_process import PendingAnswer
from ..errors import GpuError, Lacking, TooLarge, UsageError
from ..manifests.reflection import entry_point
from ..wgpu_worker import worker_process
from ..wgpu_worker.messages import Abilities, AdapterInfo, DispatchRequest, DispatchResult
from .adapter_choice import abilities, dashed, number_of, parse_adapters, require_adapter
from .binding_resources import Data, Slot, as_given, as_texels, describe
from .directives import without_directives

Key = str | tuple[int, int]

# The device feature behind each extension that a shader can enable.
NEEDS = {"f16": "shader-f16", "subgroups": "subgroup"}


@frozen
class GpuRun:
    """The result of a run on an adapter.

    `outputs` maps each binding that the shader can write, under the key it was given, to an array or bytes of the same
    dtype and shape. `seconds` has one time for each repetition, from submission to completion; `kernel_seconds` that of
    the dispatch alone, by the adapter's clock, if it has one. `took` is the time that the worker process spent, in
    seconds.
    """

    outputs: dict[Any, Any]
    adapter: AdapterInfo
    seconds: tuple[float, ...]
    kernel_seconds: tuple[float, ...] = ()
    took: float = 0.0

    @property
    def clocked(self) -> dict[str, float]:
        """The shortest dispatch in seconds, by a label for the user; empty if the adapter has no clock."""
        return {f"kernel on {self.adapter.name}": min(self.kernel_seconds)} if self.kernel_seconds else {}


class PendingRun:
    """A run in progress on an adapter."""

    def __init__(self, pending: PendingAnswer, info: AdapterInfo, contents: list[tuple[Slot, Key, Data]]) -> None:
        self._pending, self._info, self._contents = pending, info, contents

    def done(self) -> GpuRun:
        """Wait for the run and return its result. Raises `GpuError` if wgpu refuses the shader or its dispatch."""
        done: DispatchResult = self._pending.answer()
        pairs = zip(done.contents, self._contents, strict=True)
        outputs = {key: _output(slot, content, data) for content, (slot, key, data) in pairs if content is not None}
        return GpuRun(outputs, self._info, done.seconds, done.kernel_seconds, done.took)


def _output(slot: Slot, content: Any, data: Data) -> Data:
    if slot.kind != "handle":
        return as_given(content, data)
    assert slot.variable is not None
    return as_texels(content, slot.variable, data)


def run(wgsl: str, entry: str | None, grid: Sequence[int], bindings: Mapping[Any, Data], **how: Any) -> GpuRun:
    """Dispatch as `begin` does, and wait for the result."""
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
) -> PendingRun:
    """Start to dispatch `grid` workgroups of `entry`, `repeats` times, each time on fresh contents of the bindings.

    `slots` are the shader's declarations and `module` is the checked text; the simulator's front end makes either if it
    is left out. Raises `GpuError` if wgpu would abort on the shader, `Lacking` if the adapter lacks a feature that the
    shader enables, `TooLarge` if a binding or workgroup exceeds its limits, `NoAdapter` if no adapter matches, and
    `UsageError` if data do not fit their binding.
    """
    contents, info = _match(_slots(slots, wgsl, entry, module), bindings), require_adapter(adapter)
    request = _request(wgsl, entry, grid, contents, overrides, adapter, repeats, module)
    return PendingRun(worker_process.put("dispatch", request), info, contents)


def dispatch_request(
    wgsl: str,
    entry: str | None,
    grid: Sequence[int],
    bindings: Mapping[Any, Data],
    *,
    slots: Sequence[Slot] | None = None,
    overrides: Mapping[str, Any] | None = None,
    adapter: str | None = None,
    module: Module | None = None,
) -> DispatchRequest:
    """Describe a dispatch to the worker process without running it. Arguments and errors are those of `begin`."""
    contents = _match(_slots(slots, wgsl, entry, module), bindings)
    return _request(wgsl, entry, grid, contents, overrides, adapter, 1, module)


def _slots(slots: Sequence[Slot] | None, wgsl: str, entry: str | None, module: Module | None) -> Sequence[Slot]:
    if slots is not None:
        return slots
    return read_slots(wgsl, entry) if module is None else slots_of(entry_point(module, entry))


def _request(
    wgsl: str,
    entry: str | None,
    grid: Sequence[int],
    contents: list[tuple[Slot, Key, Data]],
    overrides: Mapping[str, Any] | None,
    adapter: str | None,
    repeats: int,
    module: Module | None,
) -> DispatchRequest:
    """Check that the adapter can run a dispatch, and describe it to the worker process."""
    number, info = number_of(adapter), require_adapter(adapter)
    has = abilities(number)
    _refuse(wgsl, module, info, has)
    if module is not None:
        with suppress(WgslError):  # wgpu reports it
            fixed: dict[str | int, Any] = {**overrides} if overrides else {}
            _refuse_size(module.pipeline(entry, fixed, GRANTED), grid, info, has)
    text = for_wgpu(wgsl)
    resources = [describe(slot, data, info, has) for slot, _, data in contents]
    constants = tuple((str(name), float(value)) for name, value in (overrides or {}).items())
    return DispatchRequest(number, text, entry, tuple(grid), resources, constants, repeats)


def prepare(module: Module, entry: str, *, overrides: Mapping[str, Any] | None, adapter: str | None) -> Thread:
    """Create devices and compile the shader in the background.

    A later `run` waits for this work and raises its errors, which are ignored here. `adapter`: see `parse_adapters`.
    """

    def work() -> None:
        slots = slots_of(entry_point(module, entry))
        with suppress(Exception):
            for name in parse_adapters(adapter):
                if all(slot.kind != "handle" for slot in slots):  # a dispatch of 0 workgroups makes drivers compile
                    least = _match(slots, {slot.name: bytes(_least(slot)) for slot in slots})
                    request = _request(module.source.text, entry, (0, 0, 0), least, overrides, name, 1, module)
                    worker_process.tell("dispatch", request)

    thread = Thread(target=work, name="bankshot-prepare")
    thread.start()
    return thread


def _least(slot: Slot) -> int:
    """Return the smallest size in bytes that a buffer may have."""
    assert slot.variable is not None
    return t.round_up(4, t.min_binding_size(slot.variable.type))


def refusal(
    wgsl: str, adapter: str | None = None, *, pipeline: bool = False, default_limits: bool = False
) -> str | None:
    """Return wgpu's error for the unchanged text of a module, None if wgpu accepts it. Raises `NoAdapter`.

    With `pipeline`, also create the pipeline of its only entry point. With `default_limits`, use a device without
    features and with WebGPU's default limits.
    """
    limits = tuple((dashed(name), most) for name, most in DEFAULT_LIMITS.items()) if default_limits else None
    return worker_process.ask("refusal", number_of(adapter), wgsl, pipeline, limits)


def read_slots(wgsl: str, entry: str | None) -> list[Slot]:
    """Return the bindings that entry point `entry` (None: the only one) uses. Raises `WgslError`, `UsageError`."""
    from ... import sim

    return slots_of(entry_point(sim.check(wgsl, uniformity="off"), entry))


def slots_of(function: Function) -> list[Slot]:
    """Return the bindings that a checked entry point uses."""
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
    """Remove the directives that this version of wgpu refuses although it offers their features; positions stay."""
    return without_directives(wgsl, lambda kind, name: not _accepts(f"{kind} {name};"))


@cache
def _accepts(wgsl: str) -> bool:
    return refusal(wgsl, None) is None


def _refuse(wgsl: str, module: Module | None, info: AdapterInfo, has: Abilities) -> None:
    """Raise `Lacking` if the adapter lacks a feature that the shader enables, `GpuError` if wgpu would abort on it."""
    from ... import sim

    try:
        module = module or sim.check(wgsl, uniformity="off")
        fatal = notes(module, DEFAULT_LIMITS, FATAL)
    except sim.WgslError:
        return  # wgpu reports it
    for enabled in sorted(module.enables & NEEDS.keys()):
        if NEEDS[enabled] not in has.features:
            raise Lacking(f"the shader enables {enabled}, and {info.name} has no {NEEDS[enabled]}")
    for note in fatal:
        raise GpuError(f"wgpu {info.wgpu} would crash on this shader:\n{note.render()}")


def _refuse_size(pipeline: Pipeline, grid: Sequence[int], info: AdapterInfo, has: Abilities) -> None:
    """Raise `TooLarge` if a grid or workgroup exceeds the limits of the adapter."""
    limits = {name: has.limits.get(dashed(name), least) for name, least in DEFAULT_LIMITS.items()}
    for beyond in check_dispatch(grid, pipeline.workgroup_size, pipeline.workgroup_bytes, limits=limits):
        raise TooLarge(f"{beyond} on {info.name}")


def _match(slots: Sequence[Slot], bindings: Mapping[Any, Data]) -> list[tuple[Slot, Key, Data]]:
    """Pair each slot with its key in `bindings` and its data. Raises `UsageError` if one is missing."""
    found: list[tuple[Slot, Key, Data]] = []
    for slot in slots:
        key = next((k for k in (slot.name, slot.key) if k in bindings), None)
        if key is None:
            raise UsageError(f"binding {slot.name} (group {slot.group}, binding {slot.binding}) is not given")
        found.append((slot, key, bindings[key]))
    return found
