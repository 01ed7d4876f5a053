"""`python -m benchmarks`: time kernels in several ways on one machine, and print the ratios.

    python -m benchmarks [MANIFEST[:KERNEL[:NAME=SIZE,...]] ...]

The ways are those of `ways` and, with --peers, other programs (`peers`). Rounds are interleaved, so that load from
other processes affects all ways alike; the first round (compilation, caches) does not count. Rates are in
floating-point operations as the simulator counts them. The figures are also saved to benchmarks/output as JSON; --page
writes a page for the first kernel, and measures how cost grows with the work (`growth`).
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bankshot.oracle import wgpu_client
from bankshot.oracle.cli.main import Guarded
from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.manifest import Case

from . import page as pages
from .cases import ROOT, SHADERS, case
from .control import control
from .figures import Summary, rates, ratios
from .growth import growth, save
from .peers import peers
from .ways import measure, ways

OUTPUT = ROOT / "benchmarks" / "output"
MATMUL = f"{SHADERS / 'matmul.toml'}:matmul:M=512,K=768,N=768"


@click.group(cls=Guarded, invoke_without_command=True, context_settings={"allow_interspersed_args": True})
@click.argument("kernels", nargs=-1, metavar="[MANIFEST[:KERNEL[:NAME=SIZE,...]]]...")
@click.option("--rounds", default=5, show_default=True)
@click.option("--adapter", default="llvmpipe", show_default=True, help="Part of the wgpu adapter's name.")
@click.option("--peers", "with_peers", is_flag=True, help="Time other programs, too: Oclgrind, SwiftShader, ...")
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.md", help="Write a page, too.")
def main(kernels: tuple[str, ...], rounds: int, adapter: str, with_peers: bool, page: Path | None) -> None:
    """Time kernels: by default a matmul of 512x768x768."""
    info = wgpu_client.require_adapter(adapter)
    if page is not None and not page.parent.is_dir():
        raise UsageError(f"--page: {page} cannot be written: there is no folder {page.parent}")
    done = [_benchmark(case(text), info, rounds, with_peers) for text in kernels or (MATMUL,)]
    if page is not None:
        grown = growth(info.profile or wgpu_client.FALLBACK, rounds)
        save(grown, OUTPUT)
        pages.write(page, done[0], grown)
        click.echo(f"written to {page}")


def _benchmark(case: Case, info: wgpu_client.AdapterInfo, rounds: int, with_peers: bool) -> pages.Document:
    others, absent = peers(case) if with_peers else ([], [])
    timed = [*ways(case, info), *control(), *others]
    conditions = machine()
    seconds = measure(timed, rounds)
    per_second = rates(seconds, {way.name: way.flops for way in timed})
    document = pages.Document(
        kernel=case.kernel.name,
        shape=str(case.shape),
        machine=conditions,
        rounds=rounds,
        ways=tuple(timed),
        seconds={name: Summary.of(taken) for name, taken in seconds.items()},
        rates={name: Summary.of(each) for name, each in per_second.items()},
        ratios=ratios(per_second),
        absent=tuple(absent),
    )
    _show(document)
    _save(document, case)
    return document


def _show(document: pages.Document) -> None:
    click.echo(f"\n{document.kernel} {document.shape}\n")
    click.echo(f"{'':26}{'min s':>10}{'median s':>10}{'max s':>10}{'GFLOP/s':>10}")
    for name, taken in document.seconds.items():
        numbers = f"{taken.least:10.4f}{taken.median:10.4f}{taken.most:10.4f}"
        click.echo(f"{name:26}{numbers}{document.rates[name].median / 1e9:10.4g}")
    click.echo(f"\n{'times as fast':54}{'min':>9}{'median':>9}{'max':>9}")
    for (a, b), ratio in document.ratios.items():
        click.echo(f"{f'{a} / {b}':54}{ratio.least:9.2f}{ratio.median:9.2f}{ratio.most:9.2f}")
    for why in document.absent:
        click.echo(f"not here: {why}")


def machine() -> dict[str, Any]:
    """Describe the machine and its load average of the last minute."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


def _processor() -> str:
    """Return the model name of the processor, or its architecture if the system does not report one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def _save(document: pages.Document, case: Case) -> None:
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / f"{document.kernel}_{'x'.join(map(str, case.shape.dims.values()))}.json"
    data = {
        "kernel": document.kernel,
        "dims": case.shape.dims,
        "machine": document.machine,
        "rounds": document.rounds,
        "what": {way.name: way.what for way in document.ways},
        "seconds": {name: asdict(taken) for name, taken in document.seconds.items()},
        "flops_per_second": {name: asdict(rate) for name, rate in document.rates.items()},
        "speed_ratios": {f"{a} / {b}": asdict(ratio) for (a, b), ratio in document.ratios.items()},
        "absent": document.absent,
    }
    path.write_text(json.dumps(data, indent=2) + "\n")
    click.echo(f"\nwritten to {path}")


if __name__ == "__main__":
    main()
