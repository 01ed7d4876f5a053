"""What is going on, on stderr: a bar where that is a terminal, one plain line per stage where it is not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

# say(case, stage); done() after each case
Meter = tuple[Callable[[str, str], None], Callable[[], None]]


@contextmanager
def meter(total: int, quiet: bool = False) -> Iterator[Meter]:
    """Count `total` cases."""
    if quiet:
        yield (lambda case, stage: None), (lambda: None)
    elif sys.stderr.isatty():
        with _bar(total) as parts:
            yield parts
    else:
        finished = 0

        def say(case: str, stage: str) -> None:
            print(f"[{finished + 1}/{total}] {case}: {stage}", file=sys.stderr, flush=True)

        def done() -> None:
            nonlocal finished
            finished += 1

        yield say, done


@contextmanager
def _bar(total: int) -> Iterator[Meter]:
    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield (
            lambda case, stage: progress.update(task, description=f"{case}: {stage}"),
            lambda: progress.advance(task),
        )
