"""`python -m tools.claims.measure`: time what the claims about time need on an adapter, and keep it as data.

It times the cases as `bankshot time` does (docs/times.md), by default with warm caches, and writes
`tests/hardware/times_NAME.csv`, whose columns `timing` describes. Rows of other cases and adapters stay.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from bankshot.oracle.cli.main import Guarded
from bankshot.oracle.errors import UsageError
from bankshot.oracle.kernel_timing import Options, time_cases
from bankshot.oracle.manifests.manifest import Case
from bankshot.oracle.notebook_runs import edited
from bankshot.oracle.wgpu_client import KernelTimes, require_adapter
from bankshot.oracle.workers.progress import meter
from benchmarks.cases import size

from . import bench, ledger, timing
from .timing import COLUMNS, TABLES, Timing


@click.group(cls=Guarded, invoke_without_command=True)
@click.option("--claim", "id", metavar="ID", help="Only what one claim needs, such as 000.6d.")
@click.option(
    "--case", "named", multiple=True, metavar="KERNEL:SIZES", help="Only this: ladder_flat:M=252,K=252,N=252."
)
@click.option("--adapter", metavar="NAME", help="Part of the adapter's name, as `bankshot adapters` prints it.")
@click.option("--table", type=click.Path(path_type=Path, dir_okay=False), help="The table, by default by adapter.")
@click.option("--rounds", type=click.IntRange(1, 1000), default=10, show_default=True, help="As of `bankshot time`.")
@click.option("--cold", is_flag=True, help="Caches hold nothing; by default they hold what the last pass left.")
@click.option("--list", "only_list", is_flag=True, help="Print the cases and measure nothing.")
def main(
    id: str | None,
    named: tuple[str, ...],
    adapter: str | None,
    table: Path | None,
    rounds: int,
    cold: bool,
    only_list: bool,
) -> None:
    """Measure the times that the claims need, and write them into a table."""
    wanted = [named_case(each) for each in named] or cases(id)
    if only_list:
        for each in wanted:
            click.echo(f"{each.kernel}  {each.case}")
        return
    info = require_adapter(adapter)
    path = table or TABLES / f"times_{'_'.join(info.name.partition('(')[0].lower().split())}.csv"
    facts = {
        "device": info.name,
        "kind": info.kind,
        "driver": f"{info.driver} {info.version}".strip(),
        "date": datetime.now(UTC).date().isoformat(),
        "command": f"python -m tools.claims.measure --rounds {rounds}{' --cold' * cold}",
    }
    done = 0
    with meter(len(wanted)) as progress:
        timed = time_cases(map(case_of, wanted), adapter, Options(rounds, cold), lambda step: progress.stage("", step))
        for each, found in zip(wanted, timed, strict=True):
            with progress.finish():
                if found.times is None or not found.times.median:
                    why = found.not_timed or "the clock does not tell it from its launch"
                    click.echo(f"not measured: {each.kernel}  {each.case}: {why}", err=True)
                    continue
                write(path, [row(each, found.times, facts)])
                done += 1
    click.echo(f"{path}: {done} of {len(wanted)} cases on {info}")


def cases(id: str | None = None) -> list[Timing]:
    """What the claims need, each once. Raises `UsageError` for a claim that is not about time."""
    wanted = list({each: None for claim in ledger.claims(None, id) for each in claim.times})
    if not wanted:
        raise UsageError(f"--claim: {id} is not decided by time")
    return wanted


def named_case(text: str) -> Timing:
    """The kernel and sizes that an argument names. Raises `UsageError`."""
    kernel, _, sizes = text.partition(":")
    return timing.at(kernel, dict(size(text, each) for each in sizes.split(",") if each))


def case_of(each: Timing) -> Case:
    """The case to dispatch, with its overrides, and its text changed."""
    made = bench.case(each.kernel, dict(each.sizes))
    kernel = replace(made.kernel, overrides={**made.kernel.overrides, **dict(each.overrides)})
    made = replace(made, kernel=kernel)
    return edited(made, each.edits) if each.edits else made


def row(each: Timing, times: KernelTimes, facts: dict[str, str]) -> dict[str, Any]:
    """A row of a table: percentiles of the passes, without the launch."""
    median, low, high = (f"{times.quantile(part) * 1e6:.2f}" for part in (0.5, 0.1, 0.9))
    found = {"repeats": str(len(times.passes)), "median_us": median, "p10_us": low, "p90_us": high}
    return {**facts, "kernel": each.kernel, "case": each.case, **found}


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Put rows into a table, in place of those of the same case and adapter."""

    def key(each: dict[str, str]) -> tuple[str, ...]:
        return each["device"], each["driver"], each["kernel"], each["case"]

    kept = {key(each): each for each in (timing.read(path) if path.exists() else [])}
    kept |= {key(each): each for each in rows}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept.values())


if __name__ == "__main__":
    main(prog_name="python -m tools.claims.measure")
