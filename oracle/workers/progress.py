"""Progress on stderr: a bar if it is a terminal, otherwise one plain line per stage."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from ...sim.fast_dataclass import entity
from ..errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Meter(Protocol):
    """A display of progress through cases.

    `stage` reports a stage of the next case, or of the one with that number, from 1. `finish` ends a case; the body of
    its context may print to stdout.
    """

    def stage(self, case: str, what: str, number: int | None = None) -> None: ...

    @contextmanager
    def finish(self) -> Generator[None]: ...


@contextmanager
def meter(total: int) -> Generator[Meter]:
    """Create a meter for `total` cases, which is removed from a terminal afterwards."""
    if not sys.stderr.isatty():
        yield _Lines(total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    console = Console(file=getattr(sys.stderr, "unescaped", sys.stderr))
    # Reports are printed while the bar is away; rich must not take stdout, which may be a file.
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as progress:
        yield _Bar(progress, progress.add_task("", total=total))


@entity
class _Lines:
    total: int
    finished: int = 0

    def stage(self, case: str, what: str, number: int | None = None) -> None:
        print(f"[{number or self.finished + 1}/{self.total}] {case}: {what}", file=sys.stderr, flush=True)

    @contextmanager
    def finish(self) -> Generator[None]:
        self.finished += 1
        yield


@entity
class _Bar:
    progress: Progress
    task: TaskID

    def stage(self, case: str, what: str, number: int | None = None) -> None:
        self.progress.update(self.task, description=printable(f"{case}: {what}"))

    @contextmanager
    def finish(self) -> Generator[None]:
        self.progress.advance(self.task)
        self.progress.stop()
        yield
        self.progress.start()
