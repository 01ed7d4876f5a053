"""The ways in which this process itself runs a kernel: the simulator, wgpu, BLAS. Others are `peers`.

The shader is read, or compiled, before the clock starts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from bankshot.oracle import wgpu_client
from bankshot.oracle.judge.case_run import run_on_gpu
from bankshot.oracle.manifests.manifest import Case
from bankshot.oracle.manifests.reflection import check_module

import bankshot

PAUSE = 0.1  # seconds between two ways: OpenBLAS' threads go on spinning for a while, and take a core from what follows

COUNTERS = ("lanes", "banks", "sectors", "barriers", "flops")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to do some work. `flops`: how much of it; `seconds`: does it, and tells what that took. `what`: said of
    it on the page."""

    name: str
    flops: float
    seconds: Callable[[], float]
    what: str = ""


@dataclass(frozen=True, slots=True)
class Simulator:
    """The simulator on one case, charged as `device`, its shader read once."""

    case: Case
    device: str
    module: Any

    @staticmethod
    def of(case: Case, device: str) -> Simulator:
        return Simulator(case, device, check_module(case.kernel))

    def run(self, probes: str | Sequence[str]) -> bankshot.Run:
        kernel = self.case.kernel
        given = {"entry": kernel.entry, "grid": self.case.grid, "overrides": self.case.overrides}
        return bankshot.simulate(self.module, **given, bindings=self.case.bindings, device=self.device, probes=probes)

    def seconds(self, probes: str | Sequence[str]) -> float:
        return timed(lambda: self.run(probes))

    def alone(self, probes: str | Sequence[str]) -> float:
        """The same on one processor."""
        with _one_processor():
            return self.seconds(probes)

    @property
    def flops(self) -> float:
        return self.run("flops").counters["flops"]


def ways(case: Case, adapter: wgpu_client.AdapterInfo) -> list[Way]:
    """Every way, each on the whole of the case."""
    simulator = Simulator.of(case, adapter.profile or wgpu_client.FALLBACK)
    flops = simulator.flops
    rows = [
        ("simulator, plain", lambda: simulator.seconds("none"), "outputs only"),
        ("simulator, one processor", lambda: simulator.alone("none"), "outputs only"),
        ("simulator, all counters", lambda: simulator.seconds(COUNTERS), "lanes, banks, sectors, barriers, flops"),
        ("simulator, races", lambda: simulator.seconds("races"), "races alone"),
        ("simulator, all probes", lambda: simulator.seconds("all"), "counters, races, bounds, unwritten memory, NaN"),
    ]
    if factors := _factors(case):
        rows.append(("BLAS", lambda: timed(lambda: np.matmul(*factors)), f"NumPy {np.__version__}, float32"))
    return [Way(name, flops, seconds, what) for name, seconds, what in rows] + [on_wgpu("wgpu", case, adapter)]


def on_wgpu(name: str, case: Case, adapter: wgpu_client.AdapterInfo) -> Way:
    """The same WGSL on an adapter; of two runs the second, for the driver compiles in the first."""
    flops = Simulator.of(case, adapter.profile or wgpu_client.FALLBACK).flops
    return Way(name, flops, lambda: run_on_gpu(case, adapter.name, repeats=2).seconds[1], str(adapter))


def measure(ways: Sequence[Way], rounds: int) -> dict[str, list[float]]:
    """The seconds of every way, by name, in each round but the first."""
    seconds: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(rounds + 1):
        for way in ways:
            click.echo(f"round {number} of {rounds}: {way.name}", err=True)
            time.sleep(PAUSE)
            taken = way.seconds()
            if number:
                seconds[way.name].append(taken)
    return seconds


def timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _factors(case: Case) -> tuple[np.ndarray, np.ndarray] | None:
    """The two f32 matrices that a case is given, where they can be multiplied."""
    found = [a for a in case.arrays.values() if isinstance(a, np.ndarray) and a.ndim == 2 and a.dtype == np.float32]
    pairs = ((a, b) for a in found for b in found if a is not b and a.shape[1] == b.shape[0])
    sizes = [a.shape for a in found]
    return next(((a, b) for a, b in pairs if (a.shape[0], b.shape[1]) in sizes), None)


@contextmanager
def _one_processor() -> Iterator[None]:
    """Leave this process a single processor, where the system lets it choose."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_of_them)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)
