"""Lowering of buffer views: a byte offset into a buffer becomes an index in units of the alignment of what is viewed.

The bits of an offset below the alignment are ignored, as the spec says. An offset is kept in bounds, and checked, like
any other index.
"""

from __future__ import annotations

from dataclasses import replace

from ..wgsl import typed
from ..wgsl import types as t
from ..wgsl.diagnostics import WgslError, fail, first_words
from .context import Lowering
from .views import Step, View


def buffer_view(lowering: Lowering, call: typed.BuiltinCall) -> View:
    """Return the view of a `bufferView` or `bufferArrayView`. Raises `WgslError` for what the simulator cannot run."""
    base = lowering.view(call.args[0])
    buffer, viewed = base.type, call.type.store if isinstance(call.type, t.Pointer) else call.type
    assert isinstance(buffer, t.Buffer)
    offset = lowering.builder.reinterpret("u32", lowering.value(call.args[1])[0])
    align = t.align_of(viewed)
    if len(call.args) == 3:
        viewed = _sized(viewed, lowering.value(call.args[2])[0], call)
    elif not t.has_fixed_footprint(viewed):
        if offset.op != "const":
            raise _unsupported("a runtime-sized view whose offset is known only when the shader runs", call)
        return _to_the_end(base, buffer, viewed, offset.imm // align * align, call)
    index = lowering.builder.op("shr_u32", offset, lowering.builder.const("u32", align.bit_length() - 1))
    size, span = t.size_of(viewed), call.span
    count = None if buffer.size is None else (buffer.size - size) // align + 1
    of = f"{first_words(call.args[0].span.text).removeprefix('&')} (in steps of {align} bytes)"
    if count is not None and index.op == "const" and index.imm < count:
        return replace(base, type=viewed, offset=index.imm * align)
    step = Step(index, align, count, span, of, (size - align, align))
    return replace(base, type=viewed, steps=(step,))


def narrowed(view: View, parameter: t.Type) -> View:
    """Return a view as a parameter of this type has it: a pointer to a smaller buffer makes the buffer smaller."""
    store = parameter.store if isinstance(parameter, t.Pointer) else None
    if not isinstance(store, t.Buffer) or store.size is None:
        return view
    return replace(view, type=store)


def _sized(viewed: t.Type, size: object, call: typed.BuiltinCall) -> t.Type:
    """Return the array that a `bufferArrayView` of a known size views."""
    known = getattr(size, "imm", None) if getattr(size, "op", "") == "const" else None
    if known is None or not isinstance(viewed, t.Array):
        raise _unsupported("a view of a struct, or whose size is known only when the shader runs,", call)
    return t.Array(viewed.elem, max(1, known // t.stride_of(viewed)))


def _to_the_end(base: View, buffer: t.Buffer, viewed: t.Type, offset: int, call: typed.BuiltinCall) -> View:
    """Return the view of a runtime-sized array that reaches to the end of the buffer."""
    before, stride = t.tail_of(viewed) or (0, 1)
    if buffer.size is None:
        return replace(base, type=viewed, offset=offset, tail=(offset + before, stride))
    if not isinstance(viewed, t.Array):
        raise _unsupported("a runtime-sized struct in a buffer of fixed size", call)
    return replace(base, type=t.Array(viewed.elem, (buffer.size - offset) // stride), offset=offset)


def _unsupported(what: str, call: typed.BuiltinCall) -> WgslError:
    hint = "give bufferArrayView a constant size" if call.builtin.name == "bufferView" else None
    return fail("unsupported", f"the simulator cannot run {what} yet", call.span, hint=hint)
