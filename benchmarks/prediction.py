"""`python -m benchmarks.prediction FOLDER...`: what predicting a kernel's time costs on top of counting it.

Shaders are found, and their inputs generated, as `benchmarks.real` does; by default the grid is the one of that
benchmark. `python -m benchmarks.prediction --every N` takes every Nth of the dispatches that were timed on an H200
(`tests.hardware.timed_families`), at the sizes at which they were. Each entry point is simulated with the probes that a
prediction needs, its counters are read, and then it is predicted. The ratio is the time of the prediction divided by
that of the simulation and its counters. Programs are built before the clock starts. Each of the two times is the least
of its rounds, in which they alternate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import click

import bankshot
from bankshot.oracle.cli.main import Guarded
from bankshot.oracle.corpus.corpus_survey import collect
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.corpus.working_run import NoInputs
from bankshot.oracle.errors import UsageError
from bankshot.sim.wgsl.diagnostics import WgslError
from tests.hardware.timed_families import dispatches

from .real import WORKGROUPS, LeftOut, Timed, inputs, some, spread

PROBES = ("lanes", "banks", "sectors", "barriers")
LEAST, MOST = 5, 40  # rounds
SECONDS = 1.0  # of rounds, unless fewer than `LEAST` take longer


@dataclass(frozen=True, slots=True)
class Row:
    """The least seconds of an entry point's simulation and prediction, and the predicted microseconds."""

    name: str
    simulated: float
    predicted: float
    us: float

    @property
    def ratio(self) -> float:
        """The time of the prediction divided by that of the simulation."""
        return self.predicted / self.simulated


@click.group(cls=Guarded, invoke_without_command=True, context_settings={"allow_interspersed_args": True})
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--embedded", is_flag=True, help="Also search the string literals of other languages.")
@click.option("--device", default="nvidia-h200", show_default=True, help="A device with costs.")
@click.option("--workgroups", default=WORKGROUPS, show_default=True, help="Of each dispatch: a power of two.")
@click.option("--every", type=click.IntRange(1), help="Every Nth of the dispatches that were timed on an H200.")
@click.option("--most", type=click.IntRange(1), help="At most so many shaders of each folder, evenly spaced.")
def main(
    folders: tuple[Path, ...], embedded: bool, device: str, workgroups: int, every: int | None, most: int | None
) -> None:
    """Time predictions for the compute shaders in folders."""
    if bool(folders) == bool(every):
        raise UsageError("name folders, or dispatches that were timed with --every")
    if every and (embedded or most):
        raise UsageError("--embedded and --most select shaders of folders; --every takes none")
    if workgroups.bit_count() != 1:
        raise UsageError(f"--workgroups must be a power of two, not {workgroups}")
    if every:
        found = _of_families(device, every)
    else:
        shaders = (each for collection in collect(folders, embedded) for each in some(collection.shaders, most))
        found = (row for shader in shaders for row in _rows(shader, device, workgroups))
    rows: list[Row] = []
    for row in found:
        rows.append(row)
        click.echo(f"{1e3 * row.simulated:>9.3f} ms{row.ratio:>8.1%}{row.us:>24.17g} us  {row.name}")
    if not rows:
        raise UsageError("no entry point could be timed")
    click.echo(summary(rows))


def _rows(shader: Shader, device: str, workgroups: int) -> Iterator[Row]:
    """Yield the row of each entry point that has inputs with which it stays in bounds and ends."""
    try:
        module = bankshot.check(shader.text, uniformity="warning")
    except WgslError:
        return
    for function in module.compute_entry_points:
        try:
            case = inputs(module, function, device, workgroups=workgroups)
            yield timed(f"{shader.name}:{function.name}", case)
        except (LeftOut, NoInputs, UsageError, WgslError) as reason:
            click.echo(f"{shader.name}:{function.name}: left out: {reason}", err=True)


def _of_families(device: str, every: int) -> Iterator[Row]:
    """Yield the row of every so many of the dispatches that were timed."""
    for each in islice(dispatches(), 0, None, every):
        module = bankshot.check(each.wgsl, uniformity="warning")
        (function,) = (entry for entry in module.compute_entry_points if entry.name == each.entry)
        case = Timed(module, function, each.grid, {}, each.bindings, device)
        yield timed(f"{each.family}: {each.kernel}, {each.shape}", case)


def timed(name: str, case: Timed) -> Row:
    """Time the simulations and predictions of an entry point, after one of each that does not count."""
    simulated: list[float] = []
    predicted: list[float] = []
    us = 0.0
    end = math.inf
    while len(simulated) <= LEAST or (len(simulated) <= MOST and time.perf_counter() < end):
        start = time.perf_counter()
        run = bankshot.simulate(
            case.module,
            entry=case.function.name,
            grid=case.grid,
            bindings=case.given,
            overrides=case.overrides,
            device=case.device,
            probes=PROBES,
        )
        assert run.counters
        between = time.perf_counter()
        if not run.predicts_time:
            raise LeftOut("not ended within the default budget")
        us = run.predicted_time.us
        after = time.perf_counter()
        end = min(end, after + SECONDS)
        simulated.append(between - start)
        predicted.append(after - between)
    return Row(name, min(simulated[1:]), min(predicted[1:]), us)


def summary(rows: Sequence[Row]) -> str:
    """Return the line that sums up the rows."""
    median, high, worst = spread(row.ratio for row in rows)
    whole = sum(row.predicted for row in rows) / sum(row.simulated for row in rows)
    count = "1 dispatch" if len(rows) == 1 else f"{len(rows)} dispatches"
    return (
        f"{count}; predicting / simulating: median {median:.1%}, 90th {high:.1%}, worst {worst:.1%}; "
        f"all together {whole:.1%}"
    )


if __name__ == "__main__":
    main()
