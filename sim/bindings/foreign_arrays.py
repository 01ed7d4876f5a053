"""Arrays of other libraries as NumPy arrays: what has `__array__`, the buffer protocol, or DLPack."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..wgsl.diagnostics import fail
from ..wgsl.typed import Variable


def as_numpy(variable: Variable, value: Any) -> Any:
    """Return the array that a value holds, without a copy where possible; what is no array is returned unchanged.

    Raises `WgslError` where the array cannot be read from here, as on another device.
    """
    known = np.ndarray, np.generic, bytes, bytearray, memoryview, bool, int, float, list, tuple
    if isinstance(value, known):
        return cast("Any", value)
    if not any(hasattr(value, name) for name in ("__array__", "__dlpack__")) and not _is_buffer(value):
        return value
    try:
        if hasattr(value, "__array__") or not hasattr(value, "__dlpack__"):
            return np.asarray(value)
        return np.from_dlpack(value)
    except Exception as error:  # of the other library
        kind = type(value).__name__
        hint = "copy it to the CPU first, as by .cpu() or .get()"
        raise fail(
            "binding-dtype", f"{variable.name} is a {kind} that cannot be read: {error}", variable.span, hint=hint
        ) from None


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True
