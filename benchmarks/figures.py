"""The arithmetic of a benchmark: from seconds to rates and ratios, each as least, median and most over the rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

# What is held against what, where both were timed: how many times as fast the first is.
RATIOS = (
    ("simulator, plain", "wgpu"),
    ("simulator, all counters", "wgpu"),
    ("simulator, all probes", "wgpu"),
    ("simulator, plain", "wgpu on SwiftShader"),
    ("simulator, plain", "Oclgrind"),
    ("simulator, races", "Oclgrind, races"),
    ("simulator, all probes", "Oclgrind, races"),
    ("simulator, plain", "Numba's CUDA simulator"),
    ("simulator, plain", "simulator, one processor"),
    ("a loop, every processor", "a loop, one processor"),
    ("simulator, plain", "simulator, all counters"),
    ("simulator, plain", "simulator, all probes"),
    ("BLAS", "simulator, plain"),
)


@dataclass(frozen=True, slots=True)
class MismatchMap:
    least: float
    median: float
    most: float

    @staticmethod
    def of(values: Iterable[float]) -> MismatchMap:
        values = list(values)
        return MismatchMap(min(values), statistics.median(values), max(values))


def rates(seconds: Mapping[str, Sequence[float]], flops: Mapping[str, float]) -> dict[str, list[float]]:
    """Per way, what it did in each round: floating-point operations per second, of the work that it was given."""
    return {name: [flops[name] / each for each in taken] for name, taken in seconds.items()}


def ratios(rates: Mapping[str, Sequence[float]]) -> dict[tuple[str, str], MismatchMap]:
    """`RATIOS`, round by round: the two of a ratio were timed within moments of each other."""
    timed = (pair for pair in RATIOS if rates.keys() >= set(pair))
    return {(a, b): MismatchMap.of(x / y for x, y in zip(rates[a], rates[b], strict=True)) for a, b in timed}
