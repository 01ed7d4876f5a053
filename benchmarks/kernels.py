"""`python -m benchmarks.kernels`: kernels, plain, against the same WGSL on a software GPU, and where the time goes.

    python -m benchmarks.kernels [MANIFEST[:KERNEL[:NAME=SIZE,...]] ...]

For each kernel and shape: seconds of the simulator, whose shader has been read, and of the dispatch on wgpu, whose
pipeline has been made: the least of several rounds, in which the two have their turns. Of the processor time that the
simulator takes, the part that is not the machine's is Python's: bindings, tables, threads. --page writes a page.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from oracle import gpu
from oracle.audit import run_on_gpu
from oracle.cli import Guarded
from oracle.errors import TooLarge
from oracle.kernels.cases import Request, plans
from oracle.kernels.manifest import Case
from sim.launch import launch
from sim.machine.native import Machine

from .__main__ import ROOT, _machine, _size
from .ways import Simulator, timed

SHADERS = ROOT / "shaders"
# The kernels that are no matmuls: as small as their manifests run them, and as large as the documents do.
KERNELS = (
    *("swiglu.toml::M=65,K=1028", "swiglu.toml::M=512,K=3072"),
    *("gemv/gemv.toml::N=256", "gemv/gemv.toml::N=58254"),
    *("q4_k/q4_fused.toml::N=64,K=1152", "q4_k/q4_fused.toml::N=6912,K=1152", "q4_k/q4_fused.toml::N=1152,K=6912"),
    *("q4_k/dequant_q4k.toml::N=64", "q4_k/dequant_q4k.toml::N=6912"),
    *("rwkv/vec.toml::M=1,N=64,K=1024", "rwkv/vec.toml::N=2048,K=2048"),
    *("ffn/ffn.toml::M=1,D=96,F=160", "ffn/ffn.toml::M=1,D=1152,F=6912"),
    *("ffn/rmsnorm.toml", "ffn/silu.toml"),
)
HEAD = """\
# Kernels that are no matmuls

Written by `python -m benchmarks.kernels --page docs/kernels.md` on {cores} cores of {processor}, Python {python}, where
the load was {load} the minute before: the least of {rounds} rounds, against {adapter}. "Python" is the part of the
simulator's processor time that is not spent in the machine.

What is slower than wgpu is one of three things. A dispatch of a millisecond or two is mostly Python's: bindings are
checked, tables made. Where few invocations of a workgroup have something to do, the machine computes them in vectors of
16, up to the last that is active, and to read an instruction takes longer than to carry it out; a driver has compiled
it. And what reads each number once takes as long to copy into the simulator's memory as to compute; wgpu's uploads are
not in its time.

| kernel | shape | simulator, ms | wgpu, ms | times as fast | Python |
| --- | --- | ---: | ---: | ---: | ---: |
"""


@dataclass(frozen=True, slots=True)
class Row:
    """`seconds` by the clock; `python`: part of the simulator's processor time."""

    kernel: str
    shape: str
    seconds: float
    on_gpu: float
    python: float

    @property
    def ratio(self) -> float:
        return self.on_gpu / self.seconds

    def __str__(self) -> str:
        words = f"{1e3 * self.seconds:.3g} | {1e3 * self.on_gpu:.3g} | {self.ratio:.2f} | {self.python:.0%}"
        return f"| {self.kernel} | {self.shape} | {words} |"


@click.group(cls=Guarded, invoke_without_command=True, context_settings={"allow_interspersed_args": True})
@click.argument("kernels", nargs=-1, metavar="[MANIFEST[:KERNEL[:NAME=SIZE,...]]]...")
@click.option("--rounds", default=5, show_default=True)
@click.option("--adapter", default="llvmpipe", show_default=True, help="Part of the wgpu adapter's name.")
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.md", help="Write a page, too.")
def main(kernels: tuple[str, ...], rounds: int, adapter: str, page: Path | None) -> None:
    """Time kernels, plain, against wgpu: by default those that are no matmuls."""
    info = gpu.require_adapter(adapter)
    head = HEAD.format(**_machine() | {"cores": launch.processors()}, rounds=rounds, adapter=info.name)
    rows = []
    for case in _cases(kernels or tuple(str(SHADERS / text) for text in KERNELS)):
        try:
            rows.append(_row(case, info, rounds))
        except TooLarge as error:
            click.echo(f"not on {info.name}: {case.kernel.name} {case.shape}: {error}", err=True)
        else:
            click.echo(rows[-1])
    if page is not None:
        page.write_text(head + "\n".join(map(str, rows)) + "\n", encoding="utf-8")


def _cases(texts: tuple[str, ...]) -> Iterator[Case]:
    """The cases that a command line names: of a manifest, every kernel that it has."""
    for text in texts:
        path, kernel, sizes = (*text.split(":"), "", "")[:3]
        dims = dict(_size(text, each) for each in sizes.split(",") if each)
        for plan in plans([Path(path)], Request(kernel=kernel or None, dims=dims, sweep=False)):
            yield plan.case(plan.shapes[0])


def _row(case: Case, info: gpu.AdapterInfo, rounds: int) -> Row:
    simulator = Simulator.of(case, info.profile or gpu.FALLBACK)
    seconds, python, on_gpu = [], [], []
    for number in range(rounds + 1):
        with _machine_seconds() as machine:
            before = time.process_time()
            taken = timed(lambda: simulator.run("none").outputs)
            used = time.process_time() - before
        dispatch = run_on_gpu(case, info.name, repeats=2).seconds[1]
        if number:  # in the first, programs and pipelines are made
            seconds.append(taken)
            python.append(1 - sum(machine) / used)
            on_gpu.append(dispatch)
    return Row(case.kernel.name, str(case.shape), min(seconds), min(on_gpu), python[seconds.index(min(seconds))])


@contextmanager
def _machine_seconds() -> Iterator[list[float]]:
    """The processor time of every call of the machine meanwhile."""
    ready, seconds = Machine.ready, []

    def clocked(self: Machine, *arguments: Any) -> Callable[[], int]:
        run = ready(self, *arguments)

        def run_and_note() -> int:
            start = time.thread_time()
            try:
                return run()
            finally:
                seconds.append(time.thread_time() - start)

        return run_and_note

    Machine.ready = clocked
    try:
        yield seconds
    finally:
        Machine.ready = ready


if __name__ == "__main__":
    main()
