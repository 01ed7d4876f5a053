"""All micro-benchmarks, from the smallest launch to the largest buffers."""

from __future__ import annotations

from collections.abc import Iterator

from .atomic_rates import atomic_rates
from .control_flow import control_flow
from .global_memory import global_memory
from .issue_rates import issue_rates
from .kernel_text import MicroBenchmark
from .launch_costs import launch_costs
from .mixed_work import mixed_work
from .private_arrays import private_arrays
from .small_kernels import small_kernels
from .software_adapters import software_adapters
from .waits import waits
from .workgroup_memory import workgroup_memory

THEMES = (
    *(launch_costs, issue_rates, workgroup_memory, control_flow, private_arrays, atomic_rates, waits),
    *(global_memory, mixed_work, small_kernels),
)


def micro_benchmarks(cores: int, scale: float = 1.0, *, software: bool = False) -> Iterator[MicroBenchmark]:
    """Make the micro-benchmarks for a GPU of `cores` cores, or for a software adapter, which has some more.

    Loops are sized for about 20 us to 2 ms each on a GPU of 132 cores at 2 GHz, by estimates of its rates; launches
    without work are shorter. Smaller scales shorten loops and buffers. Buffers take up to 256 MiB.
    Raises `ValueError` unless both are positive.
    """
    if cores < 1 or scale <= 0:
        raise ValueError(f"cores and scale must be positive, not {cores} and {scale}")
    for theme in (*THEMES, software_adapters) if software else THEMES:
        yield from theme(cores, scale)
