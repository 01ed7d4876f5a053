"""`bankshot corpus`: every shader in some folders, tried here and on wgpu.

Shaders are a stranger's, so workers try them: a process that hangs, or that wgpu takes down, is replaced, and the entry
point that it was at gets the verdict. Nothing stops the run.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import IO, Any

from .embedded import Shader, files, shaders
from .errors import UsageError
from .trial import VERDICTS, Trial, trials

STARTING = 300.0  # seconds until a worker is ready: the first one ever compiles the machine


@dataclass(frozen=True, slots=True)
class Options:
    """`limit`: seconds for one stage of one entry point."""

    jobs: int = 2
    limit: float = 60.0
    adapter: str | None = None


@dataclass(frozen=True, slots=True)
class Collection:
    """What one of the given folders holds, and what came of it."""

    folder: Path
    shaders: tuple[Shader, ...]
    trials: list[Trial] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """Trials by verdict."""
        return Counter(trial.verdict for trial in self.trials)


def collect(folders: Sequence[Path], embedded: bool) -> list[Collection]:
    """The shaders under each of `folders`. Raises `UsageError` where there are none at all."""
    for folder in folders:
        if not folder.exists():
            raise UsageError(f"{folder}: there is no such file or folder")
    found = [
        Collection(folder, tuple(s for file in files(folder, embedded) for s in shaders(file))) for folder in folders
    ]
    if not any(collection.shaders for collection in found):
        hint = "" if embedded else "; --embedded looks into string literals of other languages as well"
        raise UsageError(f"{', '.join(map(str, folders))}: no WGSL found{hint}")
    return found


def corpus(found: Sequence[Collection], options: Options, done: Callable[[Shader], None] = lambda shader: None) -> None:
    """Try every shader of `found` and put what comes of it into its `trials`, in their order."""
    tasks = [(collection, shader) for collection in found for shader in collection.shaders]
    results: dict[int, list[Trial]] = {}
    for number, made in _pool([shader for _, shader in tasks], options):
        results[number] = made
        done(tasks[number][1])
    for number, (collection, _) in enumerate(tasks):
        collection.trials.extend(results[number])


def good(trial: Trial) -> bool:
    return VERDICTS[trial.verdict].good


# ---- processes -------------------------------------------------------------------------------------------


@dataclass
class _Worker:
    """A process and what it is at. `task` None: idle, or (before `ready`) starting."""

    process: Any
    pipe: Connection
    words: IO[bytes]  # what the process says on stderr
    ready: bool = False
    task: int | None = None
    at: tuple[str | None, str] = (None, "start")
    since: float = 0.0
    made: list[Trial] = field(default_factory=list)


def _pool(work: Sequence[Shader], options: Options) -> Iterator[tuple[int, list[Trial]]]:
    """The number of each shader with its trials, as they are finished."""
    context = multiprocessing.get_context("spawn")
    waiting = list(range(len(work)))[::-1]
    begun: dict[int, list[Trial]] = {}

    def start() -> _Worker:
        here, there = context.Pipe()
        words = tempfile.NamedTemporaryFile(prefix="bankshot-")  # noqa: SIM115
        process = context.Process(target=_serve, args=(there, words.name, options.adapter), daemon=True)
        process.start()
        there.close()
        return _Worker(process, here, words, since=time.monotonic())

    workers = [start() for _ in range(max(1, min(options.jobs, len(work))))]
    try:
        while waiting or any(w.task is not None for w in workers):
            for index, worker in enumerate(workers):
                if worker.ready and worker.task is None and waiting:
                    number = waiting.pop()
                    worker.task, worker.made, worker.since = number, begun.pop(number, []), time.monotonic()
                    worker.at = (None, "check")
                    worker.pipe.send((work[number], len(worker.made)))
                if _overdue(worker, options.limit) or not worker.process.is_alive():
                    workers[index] = start()
                    if worker.task is not None:
                        worker.made.append(_lost(work[worker.task], worker))
                        if worker.at[0] is None:  # the module itself
                            yield worker.task, worker.made
                        else:
                            begun[worker.task] = worker.made
                            waiting.append(worker.task)
                    elif not worker.ready:
                        raise UsageError("a worker process could not be started")
                    _end(worker)
            for pipe in wait([w.pipe for w in workers], timeout=0.2):
                worker = next(w for w in workers if w.pipe is pipe)
                if (finished := _hear(worker)) is not None:
                    yield finished
    finally:
        for worker in workers:
            _end(worker)


def _overdue(worker: _Worker, limit: float) -> bool:
    busy = worker.task is not None or not worker.ready
    return busy and time.monotonic() - worker.since > (limit if worker.ready else STARTING)


def _end(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.kill()
    worker.process.join()
    worker.words.close()


def _lost(shader: Shader, worker: _Worker) -> Trial:
    """The verdict on what a worker was at when it died or had to be ended."""
    entry, stage = worker.at
    died = not worker.process.is_alive()
    how = f"the process died: {_last_words(worker)}" if died else "did not come back"
    verdict = "wgpu-died" if stage == "wgpu" else "crash" if died else "too-slow"
    return Trial(shader.name, shader.text.count("\n") + 1, entry, verdict, f"{stage}: {how}")


_PANIC = re.compile(r"panicked at (?:[^\n]*/)?([^/\n]*):\n([^\n]*)")


def _last_words(worker: _Worker) -> str:
    """What a process said when it died: the message of a panic, else its last line."""
    text = worker.words.read().decode("utf-8", errors="replace")
    if panic := _PANIC.search(text):
        return f"panic, {panic[2]} ({panic[1]})"
    return (text.strip().splitlines() or [f"exit code {worker.process.exitcode}"])[-1]


def _hear(worker: _Worker) -> tuple[int, list[Trial]] | None:
    """Take in one message; the finished task, if it was that."""
    try:
        message = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join(1.0)  # is seen to be dead in the next round
        return None
    worker.since = time.monotonic()
    match message:
        case "ready":
            worker.ready = True
        case ("stage", entry, stage):
            worker.at = (entry, stage)
        case Trial():
            worker.made.append(message)
        case "done":
            assert worker.task is not None
            finished, worker.task = (worker.task, worker.made), None
            return finished
    return None


_WARM_UP = Shader(
    Path("warm-up.wgsl"),
    1,
    """
    @group(0) @binding(0) var<storage, read_write> a: array<f32>;
    @compute @workgroup_size(1) fn main() { a[0] = 1; }
    """,
)


def _serve(pipe: Connection, words: str, adapter: str | None) -> None:
    """A worker: tries the shaders that it is sent, and tells what it is at. `words`: the file that takes its stderr."""
    os.dup2(os.open(words, os.O_WRONLY), 2)
    list(trials(_WARM_UP, adapter))
    pipe.send("ready")
    while True:
        try:
            shader, skip = pipe.recv()
        except EOFError:
            return
        for trial in trials(shader, adapter, skip, lambda entry, stage: pipe.send(("stage", entry, stage))):
            pipe.send(trial)
        pipe.send("done")
