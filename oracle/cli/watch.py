"""`audit --watch`: the audit again whenever what it was made of is saved, for as long as nobody interrupts.

Each audit is a process of its own, forked from one that has imported everything and has loaded the machine: it starts
in a few milliseconds, reads every file afresh, and takes nothing with it when it dies. Where a process cannot be forked
a new one is started.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import click

from ...sim.wgsl.diagnostics import WgslError
from ..errors import UsageError
from ..exit_codes import CLEAN
from ..manifests.cases import Broken, Plan, Request, plans
from ..manifests.reflection import source_of
from ..workers.fork import in_fork

OPTION = "--watch"
PERIOD = 0.03  # seconds between two looks at the files
NAMED = 3  # changed files, at most
SUFFIXES = (".toml", ".wgsl", ".py")

# A little of what kernels do.
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


def rounds(paths: Sequence[Path], request: Request, gpu: bool) -> None:
    """Return in one process after the other, each of which is to do one audit: at once, and after every change of a
    manifest of `paths`, its shaders, what they include, and Python files beside it. The process that calls is left,
    with the last audit's code, by an interrupt. Raises `UsageError` for paths that are not there."""
    before = _state(paths, request)
    _warm_up()
    code = CLEAN
    try:
        while True:
            ended = in_fork(gpu, [argument for argument in sys.argv[1:] if argument != OPTION])
            if ended is None:
                return
            code = ended
            click.echo(f"watching {len(before)} files; Ctrl-C ends it", err=True)
            changed = _changes(before)
            click.echo(f"\n{_names(changed)} changed, {time.strftime('%H:%M:%S')}", err=True)
            with suppress(UsageError):  # what is wrong now the audit says
                before = _state(paths, request)
    except KeyboardInterrupt:
        click.echo(err=True)
        sys.exit(code)


# ---- files ----


def _state(paths: Sequence[Path], request: Request) -> State:
    """Time and size of each file; None where there is none."""
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
        source = source_of(kernel)
    except (WgslError, OSError):
        yield from (*_around(kernel.source), *kernel.include_dirs)
    else:
        yield from (Path(name) for name in dict.fromkeys(name for name, _ in source.origin or ()))


def _around(file: Path) -> Iterator[Path]:
    """What the fault of a file may lie in: the files beside it, and its folder, for one that is missing."""
    yield file.parent
    with suppress(OSError):
        yield from sorted(each for each in file.parent.iterdir() if each.suffix in SUFFIXES)


def _changes(before: State) -> list[Path]:
    """Wait until some files are not what they were, and stay as they are now for a moment: whoever saves one may empty
    it first. Give those files."""
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
    """Import, load and make what every audit needs, and nothing that has threads or knows a file."""
    from ... import sim
    from ..judge.case_run import EVERYTHING
    from ..reports import audited, text  # noqa: F401
    from . import audit_cases  # noqa: F401

    sim.simulate(_SHADER, grid=1, bindings={"y": bytes(128)}, probes=EVERYTHING, workgroups="classes")
