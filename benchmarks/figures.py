"""The arithmetic of a benchmark: rates and ratios from seconds, each as minimum, median and maximum over the rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

# Pairs of ways to compare if both were timed. The ratio says how many times as fast the first one is.
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
    ("simulator, all probes", "simulator, all probes, one processor"),
    ("a loop, every processor", "a loop, one processor"),
    ("simulator, plain", "simulator, all counters"),
    ("simulator, plain", "simulator, all probes"),
    ("BLAS", "simulator, plain"),
)


@dataclass(frozen=True, slots=True)
class Summary:
    """The minimum, median and maximum of a figure over the rounds."""

    least: float
    median: float
    most: float

    @staticmethod
    def of(values: Iterable[float]) -> Summary:
        values = list(values)
        return Summary(min(values), statistics.median(values), max(values))


def rates(seconds: Mapping[str, Sequence[float]], flops: Mapping[str, float]) -> dict[str, list[float]]:
    """Return the floating-point operations per second of each way in each round. `flops`: the work of each way."""
    return {name: [flops[name] / each for each in taken] for name, taken in seconds.items()}


def ratios(rates: Mapping[str, Sequence[float]]) -> dict[tuple[str, str], Summary]:
    """Return the `RATIOS`, each computed within rounds, where the two ways were timed shortly after each other."""
    timed = (pair for pair in RATIOS if rates.keys() >= set(pair))
    return {(a, b): Summary.of(x / y for x, y in zip(rates[a], rates[b], strict=True)) for a, b in timed}
