"""`python -m benchmarks.kernels`: compare kernels without probes with wgpu on a software GPU, and profile them.

    python -m benchmarks.kernels [MANIFEST[:KERNEL[:NAME=SIZE,...]] ...]

For each kernel and shape, the result has the seconds of the simulator, without reading the shader, and of the dispatch
on wgpu, without creating the pipeline: the minimum of several interleaved rounds. A profile of the simulator's
processor time goes with them and, for kernels that are slower than on wgpu, the largest part of it. --page writes a
page.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from bankshot.oracle import wgpu_client
from bankshot.oracle.cli.main import Guarded
from bankshot.oracle.errors import TooLarge
from bankshot.oracle.judge.case_run import run_on_gpu
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.manifests.manifest import Case
from bankshot.sim.launch.threads import processors
from bankshot.sim.machine.compile.loader import Machine
from bankshot.sim.machine.layout import VECTOR_LANES
from bankshot.sim.run.executed_instructions import by_class

from .__main__ import machine
from .cases import SHADERS, size
from .ways import Simulator, timed

# All kernels but the matmuls, in the small shapes of their manifests and in the large ones of the documentation.
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
# Kernels other than matmuls

Written by `python -m benchmarks.kernels --page docs/kernels.md` on {cores} cores of {processor}, Python {python}, with
a load average of {load} in the minute before: the minimum of {rounds} rounds, compared with {adapter}.

The profile divides the simulator's processor time in that round. "Python" checks bindings, makes tables, and schedules
work. "Copies" is the time to copy every binding once: the simulator computes in separate memory, while wgpu's uploads
are not part of its time. "Machine" is the rest, and "ns" its time for one instruction of the text on {vector}
invocations, which are one vector of the machine. If few invocations have work, vectors are partly empty, and decoding
an instruction takes longer than executing it, which a driver avoids by compiling the shader. "At work" has the share of
invocations with work, and the share of active lanes in subgroups.

For kernels that are slower than on wgpu, the last column names the largest part: Python, copies, or the machine, which
is shown as *idle lanes* if less than half are at work, and as *instructions* otherwise.

| kernel | shape | simulator, ms | wgpu, ms | ratio | Python, ms | copies, ms | machine, ms | ns | at work | why |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
"""


@dataclass(frozen=True, slots=True)
class Profile:
    """The parts of a run's processor time in seconds, and its work.

    `lanes` is the sum of executing lanes over all instructions. `at_work` has the share of invocations with work, and
    the share of active lanes in subgroups.
    """

    python: float
    copies: float
    machine: float
    lanes: int
    at_work: tuple[float, float]

    @property
    def largest(self) -> str:
        """The label of the part that takes the most time."""
        parts = {"Python": self.python, "copies": self.copies, "machine": self.machine}
        (name, _), *_ = Counter(parts).most_common(1)
        if name != "machine":
            return name
        return "idle lanes" if min(self.at_work) < 0.5 else "instructions"

    def __str__(self) -> str:
        milliseconds = (f"{1e3 * part:.3g}" for part in (self.python, self.copies, self.machine))
        each = 1e9 * self.machine * VECTOR_LANES / max(1, self.lanes)
        return " | ".join((*milliseconds, f"{each:.2g}", ", ".join(f"{part:.0%}" for part in self.at_work)))


@dataclass(frozen=True, slots=True)
class Row:
    """The result for one kernel: elapsed seconds of the simulator and of wgpu, and the simulator's profile."""

    kernel: str
    shape: str
    seconds: float
    on_gpu: float
    profile: Profile

    @property
    def ratio(self) -> float:
        return self.on_gpu / self.seconds

    def __str__(self) -> str:
        words = f"{1e3 * self.seconds:.3g} | {1e3 * self.on_gpu:.3g} | {self.ratio:.2f} | {self.profile}"
        return f"| {self.kernel} | {self.shape} | {words} | {self.profile.largest if self.ratio < 1 else ''} |"


@click.group(cls=Guarded, invoke_without_command=True, context_settings={"allow_interspersed_args": True})
@click.argument("kernels", nargs=-1, metavar="[MANIFEST[:KERNEL[:NAME=SIZE,...]]]...")
@click.option("--rounds", default=5, show_default=True)
@click.option("--adapter", default="llvmpipe", show_default=True, help="Part of the wgpu adapter's name.")
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.md", help="Write a page, too.")
def main(kernels: tuple[str, ...], rounds: int, adapter: str, page: Path | None) -> None:
    """Compare kernels without probes with wgpu: by default all but the matmuls."""
    info = wgpu_client.require_adapter(adapter)
    head = HEAD.format(**machine() | {"cores": processors()}, rounds=rounds, adapter=info.name, vector=VECTOR_LANES)
    rows: list[Row] = []
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
    """Yield the cases that the arguments name; a manifest without a kernel stands for all of its kernels."""
    for text in texts:
        path, kernel, sizes = (*text.split(":"), "", "")[:3]
        dims = dict(size(text, each) for each in sizes.split(",") if each)
        for plan in plans([Path(path)], Request(kernel=kernel or None, dims=dims, sweep=False)):
            yield plan.case(plan.shapes[0])


def _row(case: Case, info: wgpu_client.AdapterInfo, rounds: int) -> Row:
    simulator = Simulator.of(case, info.profile or wgpu_client.FALLBACK)
    taken: list[tuple[float, float, float]] = []
    on_gpu: list[float] = []
    for number in range(rounds + 1):
        with _machine_seconds() as in_machine:
            before = time.process_time()
            seconds = timed(lambda: simulator.run("none").outputs)
            used = time.process_time() - before
        dispatch = run_on_gpu(case, info.name, repeats=2).seconds[1]
        if number:  # the first round creates programs and pipelines
            taken.append((seconds, used, sum(in_machine)))
            on_gpu.append(dispatch)
    seconds, used, spent = min(taken)
    return Row(case.kernel.name, str(case.shape), seconds, min(on_gpu), _profile(simulator, used, spent))


def _profile(simulator: Simulator, used: float, machine: float) -> Profile:
    """Profile a run that used this much processor time, and this much of it in the machine. In seconds."""
    arrays: list[NDArray[Any]] = [a for a in simulator.case.bindings.values() if isinstance(a, np.ndarray)]
    copies = min(used - machine, min(timed(lambda: [array.copy() for array in arrays]) for _ in range(3)))
    run = simulator.run("lanes")
    lanes = sum(lanes for _, lanes in by_class(run.instructions).values())
    at_work = (run.counters["working_invocations"], run.counters["simt_efficiency"])
    return Profile(used - machine - copies, copies, machine, lanes, at_work)


@contextmanager
def _machine_seconds() -> Generator[list[float]]:
    """Collect the processor time of every call of the machine while the context is active."""
    ready = Machine.ready
    seconds: list[float] = []

    def clocked(self: Machine, address: int) -> Callable[[], int]:
        run = ready(self, address)

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
