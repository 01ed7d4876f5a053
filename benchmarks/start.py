"""`python -m benchmarks.start`: the startup cost of imports, simulations and audits, each in a new process.

The time is from the start of the process to the end of an import, of the first `simulate`, or of an audit at
256 x 256 x 256. Before each audit, a comment and a constant of the shader change, so that no cache has the text. A
first round, which does not count, compiles the machine and writes Python's bytecode. Rounds are interleaved. Figures
are seconds of processor time (all threads) and of elapsed time, which differ if other programs use the machine. The
processor time of the worker process that runs wgpu is not included. For a `watched` audit, only the elapsed time from
an edit to the end of the audit that `--watch` starts is known; the edit comes at least a second after the previous one.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click

from bankshot.oracle import wgpu_client
from bankshot.oracle.cli.main import Guarded
from bankshot.oracle.exit_codes import CLEAN, FOUND

from .cases import ROOT

FIRST = "import bankshot; bankshot.simulate('@compute @workgroup_size(64) fn main() {}', grid=1)"
SHADERS = Path(tempfile.gettempdir()) / f"bankshot-{os.getpid()}"  # a copy to edit
EDITED = SHADERS / "shared" / "tiles.wgsl"
AUDIT = ("-m", "bankshot", "audit", str(SHADERS / "matmul.toml"), "--kernel", "matmul")
SIZES = ("--set", "M=256", "--set", "K=256", "--set", "N=256")

# The arguments of Python for each command, by name.
COMMANDS: dict[str, tuple[str, ...]] = {
    "python": ("-c", "pass"),
    "import numpy": ("-c", "import numpy"),
    "import numba": ("-c", "import numba"),
    "import bankshot": ("-c", "import bankshot"),
    "bankshot --help": ("-m", "bankshot", "--help"),
    "first simulate": ("-c", FIRST),
    "audit, without wgpu": (*AUDIT, *SIZES, "--no-gpu"),
}
WATCH = "--watch"
COMMANDS["watched, without wgpu"] = (*COMMANDS["audit, without wgpu"], WATCH)
ASK = "from bankshot.oracle.wgpu_worker import worker_process as process; process.ask('abilities', 0)"
ON_GPU: dict[str, tuple[str, ...]] = {"a device of wgpu": ("-c", ASK), "audit, with wgpu": (*AUDIT, *SIZES)}
ON_GPU["watched, with wgpu"] = (*ON_GPU["audit, with wgpu"], WATCH)


@click.group(cls=Guarded, invoke_without_command=True)
@click.option("--rounds", default=5, show_default=True)
def main(rounds: int) -> None:
    """Time the startup of simulations and audits."""
    commands = COMMANDS | (ON_GPU if wgpu_client.adapters() else {})
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as bytecode:
        shutil.copytree(ROOT / "shaders", SHADERS)
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(rounds + 1):
            for name, arguments in commands.items():
                click.echo(f"round {number} of {rounds}: {name}", err=True)
                _edit(number)
                seconds = (_watched if WATCH in arguments else _seconds)(arguments, environment)
                if number:
                    taken[name].append(seconds)
        shutil.rmtree(SHADERS)
    click.echo(f"{'':24}{'processor, s':>20}{'clock, s':>20}")
    click.echo(f"{'':24}" + 2 * f"{'min':>10}{'median':>10}")
    for name, pairs in taken.items():
        processor, clock = zip(*pairs, strict=True)
        figures = (min(processor), statistics.median(processor), min(clock), statistics.median(clock))
        cells = ("-" if math.isnan(figure) else f"{figure:.3f}" for figure in figures)
        click.echo(f"{name:24}" + "".join(f"{cell:>10}" for cell in cells))


def _edit(number: int) -> None:
    """Change a comment and the row pitch of a tile, which changes every address and the audit's verdict."""
    text = EDITED.read_text(encoding="utf-8")
    text = re.sub(r"(TK_PAD: u32 = )\d+", rf"\g<1>{17 + number % 8}", text)
    EDITED.write_text(f"// edit {number}, {time.perf_counter()}\n{text}", encoding="utf-8")


def _seconds(arguments: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return the processor time and the elapsed time of one process. Raises `CalledProcessError` if it fails."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True)
    if done.returncode not in (CLEAN, FOUND):
        done.check_returncode()
    after, end = os.times(), time.perf_counter()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used, end - start


def _watched(arguments: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return NaN and the elapsed time of the audit after an edit, for an audit with --watch."""
    command = [sys.executable, *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        _wait(process)
        time.sleep(1)
        _edit(int(1e9 * time.perf_counter()))
        start = time.perf_counter()
        _wait(process)
        end = time.perf_counter()
        process.send_signal(signal.SIGINT)
    return math.nan, end - start


def _wait(process: subprocess.Popen[str]) -> None:
    """Wait until an audit is done and watches for changes."""
    assert process.stderr is not None
    if not any(line.startswith("watching ") for line in process.stderr):
        raise SystemExit("an audit with --watch exited")


if __name__ == "__main__":
    main()
