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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import IO, Any

from ... import sim
from ...sim.fast_dataclass import frozen
from .. import wgpu_client
from ..errors import UsageError
from .embedded import Shader, files, filled, shaders
from .trial import VERDICTS, Trial, trials

STARTING = 900.0  # seconds until a worker is ready: the first one ever compiles the machine


@frozen
class Options:
    """`limit`: seconds for one stage of one entry point."""

    jobs: int = 2
    limit: float = 60.0
    adapter: str | None = None


@frozen
class Collection:
    """What one of the given folders holds, and what came of it."""

    folder: Path
    shaders: tuple[Shader, ...]
    trials: list[Trial] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """Trials by verdict."""
        return Counter(trial.verdict for trial in self.trials)


def collect(folders: Sequence[Path], embedded: bool, fill: Mapping[str, str] | None = None) -> list[Collection]:
    """The shaders under each of `folders`, with `fill` for the names in templates. Raises `UsageError` where there are
    none at all."""
    for folder in folders:
        if not folder.exists():
            raise UsageError(f"{folder}: there is no such file or folder")
    found = [
        Collection(folder, tuple(filled(s, fill or {}) for file in files(folder, embedded) for s in shaders(file)))
        for folder in folders
    ]
    if not any(collection.shaders for collection in found):
        hint = "" if embedded else "; --embedded looks into string literals of other languages as well"
        raise UsageError(f"{', '.join(map(str, folders))}: no WGSL found{hint}")
    return found


def corpus(
    found: Sequence[Collection],
    options: Options,
    done: Callable[[Shader], None] = lambda shader: None,
    serve: Serve | None = None,
) -> None:
    """Try every shader of `found` and put what comes of it into its `trials`, in their order.

    `done` is told of each shader; `serve` is what worker processes run. Raises `NoAdapter`.
    """
    wgpu_client.require_adapter(options.adapter)
    tasks = [(collection, shader) for collection in found for shader in collection.shaders]
    results: dict[int, list[Trial]] = {}
    for number, made in _Pool([shader for _, shader in tasks], options, serve or _serve).run():
        results[number] = made
        done(tasks[number][1])
    for number, (collection, _) in enumerate(tasks):
        collection.trials.extend(results[number])


def good(trial: Trial) -> bool:
    return VERDICTS[trial.verdict].good


# ---- processes -------------------------------------------------------------------------------------------


@dataclass
class _Worker:
    """A process and what it is at. `task`: the number of a shader; None: idle, or (before `ready`) starting."""

    process: Any
    pipe: Connection
    words: IO[bytes]  # what the process says on stderr
    ready: bool = False
    task: int | None = None
    at: tuple[str | None, str] = (None, "start")
    since: float = field(default_factory=time.monotonic)
    made: list[Trial] = field(default_factory=list)

    def lost(self, limit: float) -> bool:
        """Whether it died, or has not been heard of for too long."""
        busy = self.task is not None or not self.ready
        late = busy and time.monotonic() - self.since > (limit if self.ready else STARTING)
        return late or not self.process.is_alive()

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()
        self.words.close()


Serve = Callable[[Connection, str, str | None], None]


class _Pool:
    """Workers, and the numbers of the shaders that they have yet to try, with the trials made of them so far."""

    def __init__(self, work: Sequence[Shader], options: Options, serve: Serve) -> None:
        self.work = work
        self.options = options
        self.serve = serve
        self.waiting = [(number, list[Trial]()) for number in reversed(range(len(work)))]
        self.workers = [self._start()]  # the others when it is ready, so that it alone compiles the machine

    def run(self) -> Iterator[tuple[int, list[Trial]]]:
        """The number of each shader with its trials, as they are finished."""
        try:
            while self.waiting or any(worker.task is not None for worker in self.workers):
                if self.workers[0].ready and len(self.workers) < min(self.options.jobs, len(self.work)):
                    self.workers.append(self._start())
                for worker in list(self.workers):
                    if worker.lost(self.options.limit):
                        yield from self._replace(worker)
                    elif worker.ready and worker.task is None and self.waiting:
                        self._assign(worker)
                for pipe in wait([worker.pipe for worker in self.workers], timeout=0.2):
                    yield from _hear(next(worker for worker in self.workers if worker.pipe is pipe))
        finally:
            for worker in self.workers:
                worker.end()

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        words = tempfile.NamedTemporaryFile(prefix="bankshot-")  # noqa: SIM115
        process = context.Process(target=self.serve, args=(there, words.name, self.options.adapter), daemon=True)
        process.start()
        there.close()
        return _Worker(process, here, words)

    def _assign(self, worker: _Worker) -> None:
        worker.task, worker.made = self.waiting.pop()
        worker.at, worker.since = (None, "check"), time.monotonic()
        with suppress(OSError):  # a worker that is no more is found out in the next round
            worker.pipe.send((self.work[worker.task], len(worker.made)))

    def _replace(self, worker: _Worker) -> Iterator[tuple[int, list[Trial]]]:
        """End a worker, and put what it was at down as lost; of the entry points after that a new one takes care."""
        if not worker.ready:
            raise UsageError(f"a worker process could not be started: {_last_words(worker)}")
        if worker.task is not None:
            worker.made.append(_lost(self.work[worker.task], worker))
            if worker.at[0] is None:  # the module itself: nothing is after that
                yield worker.task, worker.made
            else:
                self.waiting.append((worker.task, worker.made))
        worker.end()
        self.workers[self.workers.index(worker)] = self._start()


def _hear(worker: _Worker) -> Iterator[tuple[int, list[Trial]]]:
    """Take in one message; gives the finished task, if it was that."""
    try:
        message = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join(1.0)  # the next round finds it dead
        return
    worker.since = time.monotonic()
    match message:
        case "ready":
            worker.ready = True
        case ("stage", entry, stage):
            worker.at = (entry, stage)
        case Trial():
            worker.made.append(message)
        case "done" if worker.task is not None:
            yield worker.task, worker.made
            worker.task = None


def _lost(shader: Shader, worker: _Worker) -> Trial:
    """The verdict on what a worker was at when it died or has to be ended."""
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


_WARM_UP = """
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@compute @workgroup_size(1) fn main() { a[0] = 1; }
"""


def _serve(pipe: Connection, words: str, adapter: str | None) -> None:
    """A worker: tries the shaders that it is sent, and tells what it is at. `words`: the file that takes its stderr."""
    os.dup2(os.open(words, os.O_WRONLY), 2)
    list(trials(Shader(Path("warm-up.wgsl"), 1, _WARM_UP), adapter))
    sim.simulate(_WARM_UP, grid=1, bindings={"a": b"1234"}, probes=("races",))
    pipe.send("ready")
    while True:
        try:
            shader, skip = pipe.recv()
        except EOFError:
            return
        for trial in trials(shader, adapter, skip, lambda entry, stage: pipe.send(("stage", entry, stage))):
            pipe.send(trial)
        pipe.send("done")
