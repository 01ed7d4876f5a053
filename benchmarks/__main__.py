"""`python -m benchmarks`: times kernels, in one run on one machine, in several ways, and prints their ratios.

    python -m benchmarks [MANIFEST[:KERNEL[:NAME=SIZE,...]] ...]

The simulator without probes, on all processors and on one; with all counters; with all sanitizers too; and the same
WGSL through wgpu. Where a kernel is given two f32 matrices that fit, NumPy's BLAS multiplies them as well. The shader
is read, or compiled, before the clock starts. Rounds are interleaved, so that a busy moment hits all alike; the first
round (jitting, caches) is not counted. GFLOP/s are of the operations that the counters count. The figures also go to
benchmarks/output, as JSON.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

import sim
from oracle import gpu
from oracle.audit import run_on_gpu
from oracle.cli import Guarded
from oracle.errors import UsageError
from oracle.kernels.cases import Request, plans
from oracle.kernels.manifest import Case
from oracle.kernels.reflect import check_module

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "benchmarks" / "output"
MATMUL = f"{ROOT / 'shaders' / 'matmul.toml'}:matmul:M=512,K=768,N=768"
PAUSE = 0.1  # seconds between two ways: OpenBLAS' threads go on spinning for a while, and take a core from what follows

# What is held against what, where both were timed: the first is `ratio` times as fast as the second.
COUNTERS = ("lanes", "banks", "sectors", "barriers", "flops")
RATIOS = (
    ("simulator, plain", "wgpu"),
    ("simulator, all counters", "wgpu"),
    ("simulator, all probes", "wgpu"),
    ("simulator, plain", "simulator, one processor"),
    ("simulator, plain", "simulator, all counters"),
    ("simulator, plain", "simulator, all probes"),
    ("BLAS", "simulator, plain"),
)


@click.group(cls=Guarded, invoke_without_command=True, context_settings={"allow_interspersed_args": True})
@click.argument("kernels", nargs=-1, metavar="[MANIFEST[:KERNEL[:NAME=SIZE,...]]]...")
@click.option("--rounds", default=5, show_default=True)
@click.option("--adapter", default="llvmpipe", show_default=True, help="Part of the wgpu adapter's name.")
def main(kernels: tuple[str, ...], rounds: int, adapter: str) -> None:
    """Time kernels: by default a matmul of 512x768x768."""
    info = gpu.require_adapter(adapter)
    for text in kernels or (MATMUL,):
        _benchmark(_case(text), info, adapter, rounds)


def _case(text: str) -> Case:
    """The case that a command line names."""
    path, kernel, sizes = (*text.split(":"), "", "")[:3]
    dims = dict(_size(text, each) for each in sizes.split(",") if each)
    plan = plans([Path(path)], Request(kernel=kernel or None, dims=dims, sweep=False))[0]
    return plan.case(plan.shapes[0])


def _size(text: str, each: str) -> tuple[str, int]:
    name, _, size = each.partition("=")
    if not size.isdecimal():
        raise UsageError(f"`{each}` in `{text}` is to be NAME=SIZE")
    return name, int(size)


def _benchmark(case: Case, info: gpu.AdapterInfo, adapter: str, rounds: int) -> None:
    profile = info.profile or "lavapipe"
    kernel = case.kernel
    module = check_module(kernel)  # read once, as the driver compiles once
    given = {"entry": kernel.entry, "grid": case.grid, "bindings": case.bindings, "overrides": kernel.overrides}

    def simulated(probes: str | Sequence[str]) -> sim.Run:
        return sim.simulate(module, **given, device=profile, probes=probes)

    def on_one() -> sim.Run:
        with _one_processor():
            return simulated("none")

    ways: dict[str, Callable[[], float]] = {
        "simulator, plain": lambda: _timed(lambda: simulated("none")),
        "simulator, one processor": lambda: _timed(on_one),
        "simulator, all counters": lambda: _timed(lambda: simulated(COUNTERS)),
        "simulator, all probes": lambda: _timed(lambda: simulated("all")),
        "wgpu": lambda: run_on_gpu(case, adapter, repeats=2).seconds[1],  # the driver compiles in the first
    }
    factors = _factors(case)
    if factors:
        ways["BLAS"] = lambda: _timed(lambda: np.matmul(*factors))
    figures = _figures(_measure(ways, rounds), simulated("flops").counters["flops"])
    _show(kernel.name, str(case.shape), info, figures)
    _save({"kernel": kernel.name, "dims": case.shape.dims, "adapter": str(info), "machine": _machine(), **figures})


def _factors(case: Case) -> tuple[np.ndarray, np.ndarray] | None:
    """The two f32 matrices that a case is given, where they can be multiplied."""
    found = [a for a in case.arrays.values() if isinstance(a, np.ndarray) and a.ndim == 2 and a.dtype == np.float32]
    if len(found) < 2 or found[0].shape[1] != found[1].shape[0]:
        return None
    return found[0], found[1]


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


def _measure(ways: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            click.echo(f"round {number} of {rounds}: {name}", err=True)
            time.sleep(PAUSE)
            taken = way()
            if number:
                seconds[name].append(taken)
    return seconds


def _timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _figures(seconds: dict[str, list[float]], flops: float) -> dict[str, Any]:
    """Per way the extremes and the median in seconds, and GFLOP/s of the median; ratios of medians."""
    ways = {
        name: {
            "min": min(taken),
            "median": statistics.median(taken),
            "max": max(taken),
            "gflops": flops / statistics.median(taken) / 1e9,
        }
        for name, taken in seconds.items()
    }
    ratios = {f"{a} / {b}": ways[b]["median"] / ways[a]["median"] for a, b in RATIOS if a in ways and b in ways}
    return {"seconds": ways, "speed_ratios": ratios}


def _show(kernel: str, shape: str, info: gpu.AdapterInfo, figures: dict[str, Any]) -> None:
    click.echo(f"\n{kernel} {shape}\nwgpu is {info}\n")
    click.echo(f"{'':24}{'min s':>10}{'median s':>10}{'max s':>10}{'GFLOP/s':>10}")
    for name, way in figures["seconds"].items():
        click.echo(f"{name:24}{way['min']:10.4f}{way['median']:10.4f}{way['max']:10.4f}{way['gflops']:10.1f}")
    click.echo("\nspeed ratios")
    for name, ratio in figures["speed_ratios"].items():
        click.echo(f"{name:48}{ratio:8.2f}")


def _machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()}


def _save(document: dict[str, Any]) -> None:
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / f"{document['kernel']}_{'x'.join(map(str, document['dims'].values()))}.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    click.echo(f"\nwritten to {path}")


if __name__ == "__main__":
    main()
