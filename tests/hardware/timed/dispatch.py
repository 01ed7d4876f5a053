"""One dispatch to time, and what the modules of families share: text for declarations, and seeded data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

LONGEST_SIDE = 65535
LARGEST_BUFFER = 64 << 20
LARGEST_SUM = 200 << 20


@dataclass(frozen=True)
class Timed:
    """A dispatch of `grid` workgroups of `entry`. `bindings` has arrays by variable name.

    Dispatches of one family and shape do the same job by different kernels, or the same kernel on different data.
    Raises `ValueError` where a dispatch has a side of over 65,535 workgroups, a buffer of over 64 MiB, or over 200 MiB
    in all.
    """

    family: str
    kernel: str
    shape: str
    wgsl: str
    grid: tuple[int, int, int]
    bindings: dict[str, NDArray[Any]]
    entry: str = "main"

    def __post_init__(self) -> None:
        sizes = [array.nbytes for array in self.bindings.values()]
        if max(self.grid) > LONGEST_SIDE or max(sizes) > LARGEST_BUFFER or sum(sizes) > LARGEST_SUM:
            raise ValueError(f"{self.family}, {self.kernel}, {self.shape}: grid {self.grid}, buffers of {sizes} bytes")


def constants(**values: int) -> str:
    """Declare u32 constants, one a line."""
    return "".join(f"const {name} = {value}u;\n" for name, value in values.items())


def buffers(read: Mapping[str, str], write: Mapping[str, str]) -> str:
    """Declare storage buffers in group 0: arrays by name, with the types of their elements."""
    access = {name: "read" for name in read} | {name: "read_write" for name in write}
    types = {**read, **write}
    lines = [
        f"@group(0) @binding({number}) var<storage, {mode}> {name}: array<{types[name]}>;\n"
        for number, (name, mode) in enumerate(access.items())
    ]
    return "".join(lines) + "\n"


def shrink(size: int, scale: int, least: int) -> int:
    """Divide a size by `scale`, down to `least`. Powers of two stay powers of two."""
    return max(least, size // scale)


def seeded(*names: object) -> np.random.Generator:
    """A generator of the same numbers for the same names."""
    return np.random.default_rng(crc32(repr(names).encode()))


def eighths(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    """Multiples of 1/8 between -1 and 1: sums of their products are exact in f32, in any order."""
    return rng.integers(-8, 9, shape, dtype=np.int8).astype(np.float32) / np.float32(8)


def words(rng: np.random.Generator, *shape: int) -> NDArray[np.uint32]:
    """Random 32-bit words."""
    return rng.integers(0, 1 << 32, shape, dtype=np.uint32)


def zeros(*shape: int) -> NDArray[np.float32]:
    """An output of f32."""
    return np.zeros(shape, np.float32)


def counts(*shape: int) -> NDArray[np.uint32]:
    """An output of u32."""
    return np.zeros(shape, np.uint32)
