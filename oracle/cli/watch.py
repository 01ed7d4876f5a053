"""`audit --watch`: audit again whenever a file that the audit read changes, until an interrupt.

Each audit is a process of its own, forked from one that has imported everything and loaded the machine: it starts in a
few milliseconds, reads every file afresh, and leaves nothing behind. Where processes cannot be forked, each audit
starts a new one.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp

import click

from ...sim.wgsl.diagnostics import WgslError
from ..errors import UsageError
from ..manifests.cases import Broken, Plan, Request, plans
from ..manifests.reflection import source_of
from ..workers.fork import in_fork

OPTION = "--watch"
PERIOD = 0.03  # seconds between two checks of the files
NAMED = 3  # changed files to name, at most
SUFFIXES = (".toml", ".wgsl", ".py")

# A kernel that uses what most kernels use.
_SHADER = """
@group(0) @binding(0) var<storage, read_write> y: array<f32, 32>;
var<workgroup> tile: array<f32, 32>;
@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
    for (var k = 0u; k < 2u; k++) {
        tile[i] = fma(y[i], 2.0, vec2<f32>(1.0, f32(k)).y);
        workgroupBarrier();
        if i < 31u { y[i] += tile[i + 1u]; }
        workgroupBarrier();
    }
}
"""

State = dict[Path, tuple[int, int] | None]


def rounds(paths: Sequence[Path], request: Request, gpu: bool) -> Path:
    """Return in one process after another, each of which does one audit: at once, and after every change of a manifest
    of `paths`, its shaders, the files they include, and Python files beside it.

    Returns a file in which each round keeps its results for the next one. An interrupt ends it, as any command. Raises
    `UsageError` for missing paths.
    """
    before = _state(paths, request)
    _warm_up()
    folder = mkdtemp()
    try:
        while in_fork(gpu, [argument for argument in sys.argv[1:] if argument != OPTION]) is not None:
            click.echo(f"watching {len(before)} files; press Ctrl-C to stop", err=True)
            changed = _changes(before)
            click.echo(f"\n{_names(changed)} changed, {time.strftime('%H:%M:%S')}", err=True)
            with suppress(UsageError):  # the audit reports it
                before = _state(paths, request)
    except BaseException:  # raised in this process alone, while it watches
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Path(folder) / "results.json"


# ---- files ----


def _state(paths: Sequence[Path], request: Request) -> State:
    """The modification time and size of each file; None for a missing file."""
    return {file: _stamp(file) for file in dict.fromkeys(_files(paths, request))}


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _files(paths: Sequence[Path], request: Request) -> Iterator[Path]:
    broken: list[Broken] = []
    found = plans(paths, request, broken)
    for each in broken:
        yield from _around(each.path)
    for plan in found:
        yield from _of_plan(plan)


def _of_plan(plan: Plan) -> Iterator[Path]:
    kernel = plan.kernel
    yield from (kernel.path, kernel.source, *sorted(kernel.path.parent.glob("*.py")))
    try:
        plan.refuse_code()
        source = source_of(kernel)
    except (WgslError, UsageError, OSError):
        yield from (*_around(kernel.source), *kernel.include_dirs)
    else:
        yield from (Path(name) for name in dict.fromkeys(name for name, _ in source.origin or ()))


def _around(file: Path) -> Iterator[Path]:
    """The files beside a broken file, any of which may be the cause, and its folder, for a missing file."""
    yield file.parent
    with suppress(OSError):
        yield from sorted(each for each in file.parent.iterdir() if each.suffix in SUFFIXES)


def _changes(before: State) -> list[Path]:
    """Wait until files have changed and stay unchanged for a period, as saving may empty a file first. Return them."""
    seen = before
    while True:
        time.sleep(PERIOD)
        now = {file: _stamp(file) for file in before}
        if now == seen != before:
            return [file for file, stamp in now.items() if stamp != before[file]]
        seen = now


def _names(files: list[Path]) -> str:
    more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    here = Path.cwd()
    return ", ".join(str(f.relative_to(here) if f.is_relative_to(here) else f) for f in files[:NAMED]) + more


# ---- processes ----


def _warm_up() -> None:
    """Import and load what every audit needs, but nothing that has threads or depends on a file."""
    from ... import sim
    from ..judge.case_run import EVERYTHING

    for module in ("...reports.audit_text", "...reports.audited", "..audit_cases"):
        import_module(module, __name__)
    sim.simulate(_SHADER, grid=1, bindings={"y": bytes(128)}, probes=EVERYTHING, workgroups="classes")
