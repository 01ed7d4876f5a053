"""Progress on stderr: a bar if it is a terminal, otherwise a plain line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field
from threading import Event, Thread
from typing import TYPE_CHECKING, Protocol

from ...sim.fast_dataclass import entity
from ..errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PERIOD = 10.0  # seconds before the first line on a stderr that is no terminal


class Meter(Protocol):
    """A display of progress through cases.

    `stage` reports a stage of the next case, or of the one with that number, from 1; one that is `urgent` is always
    seen. `finish` ends a case; the body of
    its context may print to stdout.
    """

    def stage(self, case: str, what: str, number: int | None = None, urgent: bool = False) -> None: ...

    @contextmanager
    def finish(self) -> Generator[None]: ...


@contextmanager
def meter(total: int) -> Generator[Meter]:
    """Create a meter for `total` cases, which is removed from a terminal afterwards."""
    if not sys.stderr.isatty():
        with _Lines(total).printing() as lines:
            yield lines
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
    """Prints the stage that goes on after `PERIOD` seconds, and then ever more rarely, so that logs stay short."""

    total: int
    finished: int = 0
    now: str = ""
    printed: float = field(default_factory=time.monotonic)
    wait: float = field(default_factory=lambda: PERIOD)

    @contextmanager
    def printing(self) -> Generator[_Lines]:
        """Print stages that take long, too, within this context."""
        ended = Event()
        thread = Thread(target=self._watch, args=(ended,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()

    def _watch(self, ended: Event) -> None:
        while not ended.wait(self.wait or 1):
            self._print()

    def _print(self, urgent: bool = False) -> None:
        if self.now and (urgent or time.monotonic() - self.printed >= self.wait):
            self.printed = time.monotonic()
            self.wait *= 2
            print(self.now, file=sys.stderr, flush=True)

    def stage(self, case: str, what: str, number: int | None = None, urgent: bool = False) -> None:
        self.now = f"[{number or self.finished + 1}/{self.total}] {case}: {what}"
        self._print(urgent)

    @contextmanager
    def finish(self) -> Generator[None]:
        self.finished += 1
        yield


@entity
class _Bar:
    progress: Progress
    task: TaskID

    def stage(self, case: str, what: str, number: int | None = None, urgent: bool = False) -> None:
        self.progress.update(self.task, description=printable(f"{case}: {what}"))

    @contextmanager
    def finish(self) -> Generator[None]:
        self.progress.advance(self.task)
        self.progress.stop()
        yield
        self.progress.start()
