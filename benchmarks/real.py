"""`python -m benchmarks.real FOLDER...`: time any folder of shaders in the simulator and on wgpu.

Shaders are found as `bankshot corpus` finds them; both sides get the same generated inputs. Modules and pipelines are
made before the clock starts, on both sides, and uploads do not count on wgpu. The simulator is timed from bindings to
outputs: `plain` computes outputs only, `counters` all counters, and `all` every probe with the reruns that judge
findings. Rounds of both sides are interleaved, and each figure is the least of them. A row per entry point that stays
in bounds and ends; the others are counted by the reason why they were left out.

The figures are also saved to benchmarks/output/real.json; --page writes a page that explains the slowest ten, without
the shaders' texts. --sources names the repositories there: a line `FOLDER OWNER/NAME COMMIT` for each.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

import bankshot
from bankshot.oracle import wgpu_client
from bankshot.oracle.cli.main import Guarded
from bankshot.oracle.corpus.corpus_survey import collect
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.corpus.working_run import NoInputs, working_run
from bankshot.oracle.errors import LIMIT, DriverDied, GpuError, UsageError
from bankshot.oracle.guesses import invented_inputs
from bankshot.sim.wgsl import typed
from bankshot.sim.wgsl.diagnostics import WgslError

from .__main__ import OUTPUT, machine
from .real_page import EXPLAINED, Source, explained, page, read_sources
from .ways import COUNTERS, timed

PROBES: dict[str, str | Sequence[str]] = {"plain": "none", "counters": COUNTERS, "all": "all"}
WORKGROUPS = 128
REPEATS = 3, 20  # runs of one side in a row, at least and at most: the first ones find cold caches
WARM = 0.02  # seconds of runs in a row that suffice
_T = TypeVar("_T")


class LeftOut(Exception):
    """The reason why an entry point cannot be timed."""


@dataclass(frozen=True, slots=True)
class Row:
    """The least seconds of an entry point: on wgpu, and in the simulator by the names of `PROBES`."""

    shader: str
    entry: str
    wgpu: float
    simulator: dict[str, float]

    def ratio(self, name: str) -> float:
        """Return the simulator's time divided by wgpu's: less than 1 if the simulator is faster."""
        return self.simulator[name] / self.wgpu


@dataclass(frozen=True, slots=True)
class Timed:
    """An entry point and its inputs, the device profile that is simulated, and the name of the adapter that runs it."""

    module: bankshot.Module
    function: typed.Function
    grid: tuple[int, int, int]
    overrides: dict[Any, Any]
    given: Mapping[str, Any]
    device: str
    adapter: str = ""

    def prepare(self, probes: str | Sequence[str], **options: Any) -> bankshot.Prepared:
        """Prepare runs in the simulator."""
        return bankshot.prepare(
            self.module,
            entry=self.function.name,
            grid=self.grid,
            overrides=self.overrides,
            device=self.device,
            probes=probes,
            **options,
        )

    def seconds(self, probes: str | Sequence[str], repeats: int, **options: Any) -> float:
        """Return the least seconds of so many runs in the simulator, after one that does not count."""
        runs = self.prepare(probes, **options)
        return min([timed(lambda: runs.run(self.given)) for _ in range(1 + repeats)][1:])

    def on_wgpu(self, repeats: int) -> float:
        """Run on wgpu so many times, and return the least seconds from submission to completion."""
        run = wgpu_client.run(
            self.module.source.text,
            self.function.name,
            self.grid,
            self.given,
            slots=wgpu_client.slots_of(self.function),
            overrides=self.overrides,
            adapter=self.adapter,
            repeats=repeats,
        )
        return min(run.seconds)


@click.group(cls=Guarded, invoke_without_command=True, context_settings={"allow_interspersed_args": True})
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--embedded", is_flag=True, help="Also search the string literals of other languages.")
@click.option("--adapter", default="llvmpipe", show_default=True, help="Part of the wgpu adapter's name.")
@click.option("--rounds", default=5, show_default=True)
@click.option("--limit", default=20.0, show_default=True, help="Seconds of rounds for one entry point.")
@click.option("--patience", default=60, show_default=True, help="Seconds of wgpu before an entry point is left out.")
@click.option("--every", default=1, show_default=True, help="Time only every N-th shader.")
@click.option("--most", type=click.IntRange(1), help="At most so many shaders of each folder, evenly spaced.")
@click.option("--sources", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Repositories.")
@click.option("--page", "into", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.md", help="Also a page.")
def main(
    folders: tuple[Path, ...],
    embedded: bool,
    adapter: str,
    rounds: int,
    limit: float,
    patience: int,
    every: int,
    most: int | None,
    sources: Path | None,
    into: Path | None,
) -> None:
    """Time the compute shaders in folders."""
    os.environ[LIMIT] = str(patience)  # for the process that runs wgpu, which compiles some shaders for minutes
    info = wgpu_client.require_adapter(adapter)
    repositories = [] if sources is None else read_sources(sources, folders)
    chosen = "all shaders" if most is None else f"at most {most} shaders of each, evenly spaced"
    conditions = machine() | {"adapter": info.name, "workgroups": WORKGROUPS, "chosen": chosen}
    rows: list[Row] = []
    slowest: list[tuple[Row, Timed]] = []
    left_out: Counter[str] = Counter()
    found = [shader for collection in collect(folders, embedded) for shader in some(collection.shaders, most)]
    for shader in found[::every]:
        for name, found in _rows(shader, info, rounds, limit):
            if isinstance(found, str):
                left_out[found] += 1
                click.echo(f"{name}: left out: {found}", err=True)
                continue
            rows.append(found[0])
            slowest = sorted([*slowest, found], key=lambda each: -each[0].ratio("all"))[:EXPLAINED]
            click.echo(_line(found[0]))
    if not rows:
        raise UsageError("no entry point could be timed")
    for line in summary(rows, left_out):
        click.echo(line)
    OUTPUT.mkdir(exist_ok=True)
    (OUTPUT / "real.json").write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    if into is not None:
        _write(into, rows, left_out, slowest, repositories, conditions)


def some(shaders: Sequence[_T], most: int | None) -> Sequence[_T]:
    """Return at most so many shaders, evenly spaced; all if there is no limit."""
    return shaders if most is None else shaders[:: -(-len(shaders) // most) or 1]


def _write(
    into: Path,
    rows: list[Row],
    left_out: Counter[str],
    slowest: list[tuple[Row, Timed]],
    sources: list[Source],
    conditions: dict[str, Any],
) -> None:
    """Write the page."""
    reasons = [explained(row, case) for row, case in slowest]
    lines = page(rows, summary(rows, left_out), reasons, sources, conditions)
    into.write_text("\n".join(lines) + "\n", encoding="utf-8")
    click.echo(f"written to {into}")


def _rows(
    shader: Shader, info: wgpu_client.AdapterInfo, rounds: int, limit: float
) -> Iterator[tuple[str, tuple[Row, Timed] | str]]:
    """Yield the row of each compute entry point and its inputs, or why it is left out, with its name."""
    try:
        module = bankshot.check(shader.text, uniformity="warning")
    except WgslError:
        yield shader.name, "not valid"
        return
    for function in module.compute_entry_points:
        name = f"{shader.name}:{function.name}"
        try:
            case = inputs(module, function, info.profile or wgpu_client.FALLBACK, info.name)
            yield name, (_row(shader, case, rounds, limit), case)
        except (NoInputs, LeftOut) as reason:
            yield name, str(reason)
        except DriverDied:
            yield name, "wgpu takes too long, or its driver dies"
        except GpuError:
            yield name, "wgpu refuses it"
        except UsageError:
            yield name, "no inputs can be generated"
        except WgslError as error:
            yield name, error.diagnostics[0].code


def grids(workgroups: int) -> dict[int, tuple[int, ...]]:
    """Return grids of a power of two of workgroups, by the number of axes that a shader reads."""
    bits = workgroups.bit_length() - 1
    return {axes: tuple(1 << (bits + axes - 1 - axis) // axes for axis in range(axes)) for axes in range(4)}


def inputs(
    module: bankshot.Module, function: typed.Function, device: str, adapter: str = "", workgroups: int = WORKGROUPS
) -> Timed:
    """Generate inputs with which the entry point stays in bounds, ends and changes an output. Raises `NoInputs`.

    `workgroups`: a power of two. Runtime-sized arrays grow with it.
    """
    grid, overrides = invented_inputs.grid(function, grids(workgroups)), invented_inputs.override_values(module)
    recipes = [replace(each, tail=each.tail * workgroups // WORKGROUPS) for each in invented_inputs.RECIPES]
    given = working_run(module, function, grid, overrides, device, recipes).given
    return Timed(module, function, grid, overrides, given, device, adapter)


def _row(shader: Shader, case: Timed, rounds: int, limit: float) -> Row:
    """Time an entry point until its rounds or its time are used up. The first round, of single runs, does not count
    unless it takes all the time.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ("wgpu", *PROBES)}
    prepared = {name: case.prepare(probes) for name, probes in PROBES.items()}
    if any(finding.code == "endless-loop" for finding in prepared["plain"].run(case.given).findings):
        raise LeftOut("not ended within the default budget")
    end, repeats, (fewest, most) = time.perf_counter() + limit, 1, REPEATS
    for number in range(rounds + 1):
        taken = {"wgpu": case.on_wgpu(repeats)} | {
            name: min(timed(lambda runs=runs: runs.run(case.given)) for _ in range(repeats))
            for name, runs in prepared.items()
        }
        repeats = max(repeats, fewest, min(most, int(WARM / max(taken["wgpu"], taken["plain"]))))
        if number or time.perf_counter() > end:
            for name, each in taken.items():
                seconds[name].append(each)
        if time.perf_counter() > end:
            break
    least = {name: min(values) for name, values in seconds.items()}
    return Row(shader.name, case.function.name, least.pop("wgpu"), least)


def summary(rows: Sequence[Row], left_out: Counter[str]) -> list[str]:
    """Return the lines that sum up the rows: ratios of times by `PROBES`, then what was left out."""
    lines = [f"{len(rows)} entry points; simulator's time / wgpu's", f"{'':10}{'median':>10}{'90th':>10}{'worst':>10}"]
    for name in PROBES:
        figures = spread(row.ratio(name) for row in rows)
        lines.append(f"{name:10}" + "".join(f"{figure:>10.2f}" for figure in figures))
    return lines + [f"left out: {count} {reason}" for reason, count in left_out.most_common()]


def spread(ratios: Iterable[float]) -> tuple[float, float, float]:
    """Return the median, the 90th percentile and the largest of some ratios."""
    ordered = sorted(ratios)
    return statistics.median(ordered), ordered[math.ceil(0.9 * len(ordered)) - 1], ordered[-1]


def _line(row: Row) -> str:
    ratios = "".join(f"{row.ratio(name):>9.2f}" for name in PROBES)
    return f"{1e3 * row.wgpu:>9.2f} ms{ratios}  {row.shader}:{row.entry}"


if __name__ == "__main__":
    main()
