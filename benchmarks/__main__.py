"""`python -m benchmarks`: times, in one run on one machine, five ways to the same product, and prints their ratios.

The simulator without probes, with all counters, and with all sanitizers too; the same WGSL through wgpu; and NumPy's
BLAS in float32. The shader is read, or compiled, before the clock starts. Rounds are interleaved, so that a busy moment
hits all alike; the first round (jitting, caches) is not counted. The figures also go to benchmarks/output, as JSON.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
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
from oracle.kernels.inputs import parse_ints
from oracle.kernels.reflect import check_module

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "benchmarks" / "output"

# What is held against what: the first is `ratio` times as fast as the second.
COUNTERS = ("lanes", "banks", "sectors", "barriers", "flops")
RATIOS = (
    ("simulator, plain", "wgpu"),
    ("simulator, all counters", "wgpu"),
    ("simulator, all probes", "wgpu"),
    ("simulator, plain", "simulator, all counters"),
    ("simulator, plain", "simulator, all probes"),
    ("BLAS", "simulator, plain"),
)


@click.group(cls=Guarded, invoke_without_command=True)
@click.option(
    "--manifest", type=click.Path(path_type=Path), default=ROOT / "shaders" / "matmul.toml", show_default=True
)
@click.option("--kernel", default="matmul", show_default=True, metavar="NAME", help="Which kernel of the manifest.")
@click.option("--shape", default="512,768,768", show_default=True, metavar="M,K,N")
@click.option("--rounds", default=5, show_default=True)
@click.option("--adapter", default="llvmpipe", show_default=True, help="Part of the wgpu adapter's name.")
def main(manifest: Path, kernel: str, shape: str, rounds: int, adapter: str) -> None:
    """Time a matmul kernel."""
    sizes = parse_ints("--shape", shape)
    if len(sizes) != 3:
        raise UsageError(f"--shape: `{shape}` is to be three sizes, M,K,N")
    m, k, n = sizes
    (plan,) = plans([manifest], Request(kernel=kernel, dims={"M": m, "K": k, "N": n}))
    case = plan.case(plan.shapes[0])
    info = gpu.require_adapter(adapter)
    profile = info.profile or "lavapipe"
    x, w = case.arrays["X"], case.arrays["W"]
    module = check_module(case.kernel)  # read once, as the driver compiles once

    def simulated(probes: str | Sequence[str]) -> float:
        kernel = case.kernel
        given = {"entry": kernel.entry, "grid": case.grid, "bindings": case.bindings, "overrides": kernel.overrides}
        return _timed(lambda: sim.simulate(module, **given, device=profile, probes=probes))

    ways: dict[str, Callable[[], float]] = {
        "simulator, plain": lambda: simulated("none"),
        "simulator, all counters": lambda: simulated(COUNTERS),
        "simulator, all probes": lambda: simulated("all"),
        "wgpu": lambda: run_on_gpu(case, adapter, repeats=2).seconds[1],  # the driver compiles in the first
        "BLAS": lambda: _timed(lambda: np.matmul(x, w)),
    }
    seconds = _measure(ways, rounds)
    figures = _figures(seconds, 2.0 * m * k * n)
    _show(plan.kernel.name, str(case.shape), info, figures)
    _save({"kernel": plan.kernel.name, "dims": case.shape.dims, "adapter": str(info), "machine": _machine(), **figures})


def _measure(ways: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            click.echo(f"round {number} of {rounds}: {name}", err=True)
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
    ratios = {f"{a} / {b}": ways[b]["median"] / ways[a]["median"] for a, b in RATIOS}
    return {"seconds": ways, "speed_ratios": ratios}


def _show(kernel: str, shape: str, info: gpu.AdapterInfo, figures: dict[str, Any]) -> None:
    click.echo(f"{kernel} {shape}\nwgpu is {info}\n")
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
