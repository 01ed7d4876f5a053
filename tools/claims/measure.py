"""`python -m tools.claims.measure`: time what the claims about time need on an adapter, and keep it as data.

It dispatches each case by the adapter's clock, in several rounds so that a slow minute hits every kernel alike, and
writes `tests/hardware/times_NAME.csv`, whose columns `timing` describes. Rows of other cases and adapters stay.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import numpy as np

from bankshot.oracle.cli.main import Guarded
from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.reflection import check_module
from bankshot.oracle.wgpu_client import gpu_run
from bankshot.oracle.wgpu_client.adapter_choice import require_adapter

from . import bench, ledger, timing
from .timing import COLUMNS, TABLES, Timing

WARM_UP = 3  # dispatches of each round that are not counted: clocks rise, caches fill


@click.group(cls=Guarded, invoke_without_command=True)
@click.option("--claim", "id", metavar="ID", help="Only what one claim needs, such as 000.6d.")
@click.option("--adapter", metavar="NAME", help="Part of the adapter's name, as `bankshot adapters` prints it.")
@click.option("--table", type=click.Path(path_type=Path, dir_okay=False), help="The table, by default by adapter.")
@click.option("--rounds", default=3, show_default=True, help="How often to go through all cases.")
@click.option("--repeats", default=15, show_default=True, help="Dispatches of a case in a round.")
@click.option("--list", "only_list", is_flag=True, help="Print the cases and measure nothing.")
def main(id: str | None, adapter: str | None, table: Path | None, rounds: int, repeats: int, only_list: bool) -> None:
    """Measure the times that the claims need, and write them into a table."""
    wanted = cases(id)
    if only_list:
        for each in wanted:
            click.echo(f"{each.kernel}  {each.case}")
        return
    info = require_adapter(adapter)
    path = table or TABLES / f"times_{'_'.join(info.name.lower().split())}.csv"
    seconds: dict[Timing, list[float]] = {each: [] for each in wanted}
    refused: dict[Timing, str] = {}
    for _ in range(rounds):
        for each in wanted:
            if each in refused:
                continue
            try:
                seconds[each] += clocked(each, adapter, repeats)
            except UsageError as error:
                refused[each] = str(error).splitlines()[0]
    asked = f"python -m tools.claims.measure --rounds {rounds} --repeats {repeats}"
    facts = {
        "device": info.name,
        "kind": info.kind,
        "driver": f"{info.driver} {info.version}".strip(),
        "date": datetime.now(UTC).date().isoformat(),
        "command": asked + (f" --claim {id}" if id else ""),
    }
    write(path, [row(each, taken, facts) for each, taken in seconds.items() if taken])
    for each, why in refused.items():
        click.echo(f"not measured: {each.kernel}  {each.case}: {why}", err=True)
    click.echo(f"{path}: {len(wanted) - len(refused)} of {len(wanted)} cases on {info}")


def cases(id: str | None = None) -> list[Timing]:
    """What the claims need, each once. Raises `UsageError` for a claim that is not about time."""
    wanted = list({each: None for claim in ledger.claims(None, id) for each in claim.times})
    if not wanted:
        raise UsageError(f"--claim: {id} is not decided by time")
    return wanted


def clocked(each: Timing, adapter: str | None, repeats: int) -> list[float]:
    """The time of each dispatch in seconds, by the adapter's clock. Raises `GpuError`, `UsageError`."""
    made = bench.case(each.kernel, dict(each.sizes))
    module = check_module(made.kernel)
    text = bench.edited(module.source.text, each.edits) if each.edits else module.source.text
    done = gpu_run.run(
        text,
        made.kernel.entry,
        made.grid,
        made.bindings,
        overrides={**made.overrides, **dict(each.overrides)},
        adapter=adapter,
        repeats=WARM_UP + repeats,
    )
    if not done.kernel_seconds:
        raise UsageError(f"{done.adapter.name} has no clock: it lacks timestamp queries")
    return list(done.kernel_seconds[WARM_UP:])


def row(each: Timing, seconds: Sequence[float], facts: dict[str, str]) -> dict[str, Any]:
    """A row of a table."""
    median, low, high = (f"{float(np.percentile(seconds, at)) * 1e6:.2f}" for at in (50, 10, 90))
    times = {"repeats": str(len(seconds)), "median_us": median, "p10_us": low, "p90_us": high}
    return {**facts, "kernel": each.kernel, "case": each.case, **times}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
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
