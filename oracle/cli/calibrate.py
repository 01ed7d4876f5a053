"""`bankshot calibrate`: measure what a device charges, and write it as a device file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from .options import JSON


@click.command()
@click.option("--adapter", help="Number or part of the name of a wgpu adapter; the first one by default.")
@click.option("--base", default="nvidia", show_default=True, help="Device profile with the structure of the device.")
@click.option("--cores", type=click.IntRange(1, 100_000), help="Cores of the device; those of the base by default.")
@click.option("--name", help="Name of the new profile; that of the file by default.")
@click.option("--scale", type=click.FloatRange(0.001, 10), default=1.0, show_default=True,
              help="Length of the micro-benchmarks; 1 suits a GPU of 132 cores, 0.15 a software adapter.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(1, 1000), default=5, show_default=True, help="Rounds of timing.")
@JSON
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def calibrate(
    file: Path,
    adapter: str | None,
    base: str,
    cores: int | None,
    name: str | None,
    scale: float,
    rounds: int,
    as_json: bool,
) -> None:
    """Measure the costs of a device, and write them to FILE, a device profile for `--device FILE`.

    Times some 250 micro-benchmarks on a wgpu adapter, and fits the model of time to them. Prints each cost with its
    spread, and how far predictions of micro-benchmarks are off by fits that have not seen their theme. Needs SciPy.
    """
    from ...sim.device_files import find, write_profile
    from ..calibration.fit import NoSciPy
    from ..calibration.measure import Plan
    from ..calibration.measure import calibrate as measure
    from ..calibration.report import calibration_entry, calibration_lines
    from ..errors import UsageError

    try:
        device = find(base)
    except ValueError as error:
        raise UsageError(str(error)) from None
    count = cores or device.cores or os.cpu_count() or 1
    made = device.with_(cores=count, name=name or file.stem)
    chosen = f"--adapter {adapter} " if adapter else ""
    command = f"bankshot calibrate {chosen}--base {base} --cores {count} --scale {scale:g} --rounds {rounds}"
    try:
        found = measure(Plan(adapter, made, scale, rounds, command))
    except (NoSciPy, ValueError) as error:
        raise UsageError(str(error)) from None
    try:
        write_profile(file, made, found.costs)
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    if as_json:
        click.echo(json.dumps(calibration_entry(found, file), indent=2))
        return
    for line in calibration_lines(found):
        click.echo(line)
    click.echo(f"wrote {file}")
