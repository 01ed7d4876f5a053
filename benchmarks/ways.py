"""The ways in which this process runs a kernel: the simulator, wgpu, BLAS. For other programs, see `peers`.

Times do not include reading or compiling the shader.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import bankshot
from bankshot.oracle import wgpu_client
from bankshot.oracle.judge.case_run import run_on_gpu
from bankshot.oracle.manifests.manifest import Case
from bankshot.oracle.manifests.reflection import check_module

PAUSE = 0.1  # seconds between two ways, since OpenBLAS' threads spin for a while and slow down the next one

COUNTERS = ("lanes", "banks", "sectors", "barriers", "flops")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to do some work of `flops` operations.

    `seconds()` does the work and returns the time that it took. `what` describes it on the page.
    """

    name: str
    flops: float
    seconds: Callable[[], float]
    what: str = ""


@dataclass(frozen=True, slots=True)
class Simulator:
    """The simulator on one case, with the costs of `device`. `module` is the checked shader."""

    case: Case
    device: str
    module: bankshot.Module

    @staticmethod
    def of(case: Case, device: str) -> Simulator:
        return Simulator(case, device, check_module(case.kernel))

    def run(self, probes: str | Sequence[str]) -> bankshot.Run:
        """Run the case."""
        return bankshot.simulate(
            self.module,
            entry=self.case.kernel.entry,
            grid=self.case.grid,
            bindings=self.case.bindings,
            overrides=self.case.overrides,
            device=self.device,
            probes=probes,
        )

    def seconds(self, probes: str | Sequence[str]) -> float:
        """Time a run."""
        return timed(lambda: self.run(probes))

    def alone(self, probes: str | Sequence[str]) -> float:
        """Time a run on one processor."""
        with on_processor():
            return self.seconds(probes)

    @property
    def flops(self) -> float:
        """The floating-point operations of a run."""
        return self.run("flops").counters["flops"]


def ways(case: Case, adapter: wgpu_client.AdapterInfo) -> list[Way]:
    """Return all ways of this process, each on the whole case."""
    simulator = Simulator.of(case, adapter.profile or wgpu_client.FALLBACK)
    flops = simulator.flops
    rows = [
        ("simulator, plain", lambda: simulator.seconds("none"), "outputs only"),
        ("simulator, one processor", lambda: simulator.alone("none"), "outputs only"),
        ("simulator, all counters", lambda: simulator.seconds(COUNTERS), "lanes, banks, sectors, barriers, flops"),
        ("simulator, races", lambda: simulator.seconds("races"), "races only"),
        ("simulator, all probes", lambda: simulator.seconds("all"), "counters, races, bounds, unwritten memory, NaN"),
        ("simulator, all probes, one processor", lambda: simulator.alone("all"), "the same"),
    ]
    if factors := _factors(case):
        rows.append(("BLAS", lambda: timed(lambda: np.matmul(*factors)), f"NumPy {np.__version__}, float32"))
    return [Way(name, flops, seconds, what) for name, seconds, what in rows] + [on_wgpu("wgpu", case, adapter)]


def on_wgpu(name: str, case: Case, adapter: wgpu_client.AdapterInfo) -> Way:
    """Return the way that runs the WGSL on an adapter. It times the second of two runs: the first one compiles."""
    flops = Simulator.of(case, adapter.profile or wgpu_client.FALLBACK).flops
    return Way(name, flops, lambda: run_on_gpu(case, adapter.name, repeats=2).seconds[1], str(adapter))


def measure(ways: Sequence[Way], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of every way, by name, in each round but the first."""
    seconds: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(rounds + 1):
        for way in ways:
            click.echo(f"round {number} of {rounds}: {way.name}", err=True)
            time.sleep(PAUSE)
            taken = way.seconds()
            if number:
                seconds[way.name].append(taken)
    return seconds


def timed(function: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _factors(case: Case) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
    """Return the two f32 matrices among the inputs of a case, None if there are no two that can be multiplied."""
    arrays: list[NDArray[Any]] = [a for a in case.arrays.values() if isinstance(a, np.ndarray)]
    found = [a for a in arrays if a.ndim == 2 and a.dtype == np.float32]
    pairs = ((a, b) for a in found for b in found if a is not b and a.shape[1] == b.shape[0])
    sizes = [a.shape for a in found]
    return next(((a, b) for a, b in pairs if (a.shape[0], b.shape[1]) in sizes), None)


@contextmanager
def on_processor(processor: int | None = None) -> Generator[None]:
    """Restrict this process to a processor, by default the first, if the system supports that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_of_them) if processor is None else processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)
