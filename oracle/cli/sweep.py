"""`bankshot sweep`: a table of counters over shapes and devices."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from ..errors import UsageError
from ..exit_codes import CLEAN, FOUND, INTERRUPTED, WRONG_USE
from .options import JSON, PATHS, RequestOptions, device_option, once, request_of, request_options

if TYPE_CHECKING:
    from ..sweep.sweep_command import Timed


@click.command()
@PATHS
@request_options
@click.option(
    "--dims",
    "sizes",
    multiple=True,
    metavar="DIM=SIZES,...",
    help="Sizes to sweep: M=64:512:64,N=1,768. By default the shapes of the manifests.",
)
@click.option("--heavy", is_flag=True, help="Include the shapes that manifests mark as heavy.")
@device_option("Device profiles, separated by commas.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    required=True,
    help="The table to write, .csv or .parquet. Finished rows are kept in FILE.rows; run the command again to resume.",
)
@click.option("--jobs", type=click.IntRange(1), help="Processes; by default one for each processor.")
@click.option("--dask", metavar="ADDRESS", help="Run on the workers of a Dask scheduler, such as tcp://host:8786.")
@click.option("--time", "timed", is_flag=True, help="Also time each row on a wgpu adapter, as `bankshot time` does.")
@click.option("--rounds", type=click.IntRange(1, 1000), help="Rounds of --time; by default 10.")
@click.option("--adapter", metavar="NAME", help="Part of the name of the adapter of --time, its kind or its driver.")
@JSON
def sweep(
    paths: tuple[Path, ...],
    sizes: tuple[str, ...],
    heavy: bool,
    device: str,
    out: Path,
    jobs: int | None,
    dask: str | None,
    timed: bool,
    rounds: int | None,
    adapter: str | None,
    as_json: bool,
    **request: Unpack[RequestOptions],
) -> None:
    """Run kernels in many shapes and for many devices, and write a table with one row of counters for each."""
    from ..judge.device_comparison import parse_devices
    from ..reports.json_document import document
    from ..sweep import cases, parse_dims, sweep_command

    how = _timed(timed, rounds, adapter)
    dims = once("--dims", [pair for text in sizes for pair in parse_dims(text).items()])
    skipped: list[str] = []
    asked = request_of(request, quick=not heavy)
    wanted = cases(paths, dims=dims, devices=parse_devices(device), request=asked, skipped=skipped)
    for words in skipped:
        click.echo(words, err=True)
    swept = sweep_command.run(wanted, out, jobs, dask, how)
    click.echo(document("sweep", swept.rows, swept.ok) if as_json else sweep_command.summary(swept, out))
    sys.exit(INTERRUPTED if swept.stopped else CLEAN if swept.ok else FOUND if swept.ran else WRONG_USE)


def _timed(timed: bool, rounds: int | None, adapter: str | None) -> Timed | None:
    """How rows are timed, if they are. Raises `UsageError`."""
    from ..sweep.sweep_command import Timed
    from ..wgpu_client import ROUNDS, parse_adapters
    from ..wgpu_client.adapter_choice import gpu_required

    given = {"--rounds": rounds, "--adapter": adapter}
    if not timed:
        if option := next((name for name, value in given.items() if value is not None), None):
            raise UsageError(f"{option} is for --time: give both, or neither")
        return None
    if adapter is not None and len(parse_adapters(adapter)) > 1:
        raise UsageError(f"--adapter {adapter}: a sweep is timed on one adapter")
    return Timed(adapter, rounds or ROUNDS, gpu_required() or adapter is not None)
