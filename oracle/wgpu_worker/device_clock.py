"""The adapter's clock: timestamps at the start and the end of passes. Spec: WebGPU, "Timestamp Query"."""

from __future__ import annotations

import struct
from typing import Any

from .wgpu_library import tick

_STAMP = 8  # bytes


class Clock:
    """Times up to `passes` compute passes of one submission."""

    def __init__(self, device: Any, passes: int) -> None:
        self.passes = passes
        self._queue, self._tick, self._stamps = device.queue, tick(device), 2 * passes
        self._set = device.create_query_set(type="timestamp", count=self._stamps)
        self._buffer = device.create_buffer(size=_STAMP * self._stamps, usage="QUERY_RESOLVE|COPY_SRC")

    def writes(self, number: int) -> dict[str, Any]:
        """Return the timestamp writes of a pass, counted from 0."""
        return {
            "query_set": self._set,
            "beginning_of_pass_write_index": 2 * number,
            "end_of_pass_write_index": 2 * number + 1,
        }

    def resolve(self, encoder: Any) -> None:
        """Copy the timestamps where `seconds` reads them, after the last pass."""
        encoder.resolve_query_set(self._set, 0, self._stamps, self._buffer, 0)

    def seconds(self) -> list[float]:
        """Wait for the submission, and return the duration of each pass."""
        stamps = struct.unpack(f"{self._stamps}Q", self._queue.read_buffer(self._buffer))
        return [(end - begin) * self._tick for begin, end in zip(stamps[::2], stamps[1::2], strict=True)]

    def destroy(self) -> None:
        self._set.destroy()
        self._buffer.destroy()
