"""`python -m benchmarks.threads [KERNEL...]`: what the threads of a run gain, beside what processes gain.

Each round times a kernel three times: on all processors, on one, and on one while other processes do the same, one on
each of the other processors. Where processes that share nothing slow each other down, threads cannot do better: the
machine is as fast as that. The gain of threads is the time on one processor divided by that on all. The gain of
processes is the number of processors times the time of one alone, divided by that of the slowest beside others.
Both are computed within rounds.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

import click

from bankshot.oracle.cli.main import Guarded
from bankshot.oracle.errors import UsageError

from .cases import SHADERS, case
from .figures import Summary
from .ways import Simulator, on_processor

KERNELS = (
    f"{SHADERS}/matmul.toml:matmul:M=512,K=768,N=768",
    f"{SHADERS}/gemv/gemv.toml:gemv_subgroup:N=39321,K=256",
    f"{SHADERS}/ffn/ffn.toml:ffn_project:M=1024,D=256,F=1536",
    f"{SHADERS}/ffn/silu.toml:silu:N=4194304",
)
PROBES = {"plain": "none", "counters": "counters", "all probes": "all"}
DEVICE = "nvidia"
WARM = 3  # runs before the first round: the machine has learned by then which way is fast


@dataclass(frozen=True, slots=True)
class Round:
    """The seconds of a run on all processors, on one, and of the slowest of several on one each."""

    threads: float
    alone: float
    beside: float


@dataclass(frozen=True, slots=True)
class Gains:
    """Times as fast as one processor: by threads, and by processes."""

    threads: Summary
    processes: Summary

    @staticmethod
    def of(rounds: Sequence[Round], processors: int) -> Gains:
        """Compute the gains of these rounds on so many processors."""
        return Gains(
            Summary.of([each.alone / each.threads for each in rounds]),
            Summary.of([processors * each.alone / each.beside for each in rounds]),
        )


@click.group(cls=Guarded, invoke_without_command=True, context_settings={"allow_interspersed_args": True})
@click.argument("kernels", nargs=-1, metavar="[MANIFEST:KERNEL:NAME=SIZE,...]...")
@click.option("--rounds", type=click.IntRange(1), default=30, show_default=True)
def main(kernels: tuple[str, ...], rounds: int) -> None:
    """Compare what threads gain with what processes gain: medians, with the least and the most in brackets."""
    if not hasattr(os, "sched_setaffinity"):
        raise UsageError("this system does not say on which processor a process runs")
    processors = sorted(os.sched_getaffinity(0))
    click.echo(f"{'kernel':24}{'probes':12}{'ms alone':>10}  {'threads':22}{'processes':22}")
    for kernel in kernels or KERNELS:
        with beside(kernel, processors[1:]) as others:
            simulator = Simulator.of(case(kernel), DEVICE)
            for name, probes in PROBES.items():
                found = measure(simulator, probes, processors, others, rounds)
                gains, alone = Gains.of(found, len(processors)), Summary.of([each.alone for each in found])
                shown = "".join(f"{_words(gain):22}" for gain in (gains.threads, gains.processes))
                click.echo(f"{simulator.case.kernel.name:24}{name:12}{1e3 * alone.median:>10.1f}  {shown}")


def _words(gain: Summary) -> str:
    return f"{gain.median:.2f} ({gain.least:.2f} to {gain.most:.2f})"


def measure(
    simulator: Simulator, probes: str, processors: Sequence[int], others: Sequence[Connection], rounds: int
) -> list[Round]:
    """Time the rounds. `others`: processes that run the same."""

    def on_all() -> float:
        return simulator.seconds(probes)

    def on_one() -> float:
        return simulator.alone(probes)

    def together() -> float:
        for other in others:
            other.send(probes)
        mine = on_one()
        return max([mine, *(other.recv() for other in others)])

    for _ in range(WARM):
        on_all()
        together()
    return [Round(on_all(), on_one(), together()) for _ in range(rounds)]


@contextmanager
def beside(kernel: str, processors: Sequence[int]) -> Generator[list[Connection]]:
    """Start a process on each of these processors that runs a kernel with the probes it is sent."""
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        found: list[Connection] = []
        for processor in processors:
            mine, its = context.Pipe()
            process = context.Process(target=_serve, args=(kernel, processor, its), daemon=True)
            process.start()
            stack.callback(process.join)
            stack.callback(mine.send, None)
            found.append(mine)
        yield found


def _serve(kernel: str, processor: int, connection: Connection) -> None:
    """Run a kernel on a processor with each of the probes that arrive, and send the seconds, until None arrives."""
    simulator = Simulator.of(case(kernel), DEVICE)
    receive: Callable[[], str | None] = connection.recv
    with on_processor(processor):
        while (probes := receive()) is not None:
            connection.send(simulator.seconds(probes))


if __name__ == "__main__":
    main()
