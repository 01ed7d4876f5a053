"""Other implementations' opinions of programs: wgpu in a process of its own, which a shader may take down or hang.

`Opinion("…")` starts a process on one adapter. `ask` sends it a program, `answer` waits for what it says: an `Answer`,
also where the process died or did not come back; then the next question goes to a new process. A device that is lost
is lost to all later programs, whichever lost it: a new process is asked again, once.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .programs import Program

SECONDS = 300.0  # to wait for an answer, of a process that may only just have been started
LOST = "device is lost"  # in wgpu's words
PROFILES = ("lavapipe", "swiftshader")  # device profiles with which their adapters can be held to every bit


@dataclass(frozen=True, slots=True)
class Answer:
    """`word` is ran, lacking (the adapter has not what the program enables), refused, lost (its device, and in a new
    process again), died or hung; `why` in wgpu's words. `outputs` by name, as bytes. Of a question that asks to count,
    `counters` are those that differ from the simulator's, `probed` outputs that counting changed, as it left them."""

    word: str
    why: str = ""
    outputs: dict[str, NDArray[np.uint8]] = field(default_factory=dict)
    counters: tuple[str, ...] = ()
    probed: dict[str, NDArray[np.uint8]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """`count`: count on the adapter, too, what the simulator counts."""

    program: Program
    given: dict[str, NDArray[np.uint8]]
    count: bool = False


class Opinion:
    """What the adapter of a device profile has to say."""

    def __init__(self, profile: str) -> None:
        self.profile = profile
        self._process: Any = None

    def ask(self, question: Question) -> None:
        if self._process is None:
            self._start()
        self._asked = question
        self._there.send(question)

    def answer(self) -> Answer:
        """To the question that was asked last."""
        answer = self._answer()
        if answer.word == "lost":
            self.close()
            self.ask(self._asked)
            answer = self._answer()
        if answer.word == "lost":
            self.close()
        return answer

    def _answer(self) -> Answer:
        try:
            if self._there.poll(SECONDS):
                answer: Answer = self._there.recv()
                return answer
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode
            self.close()
            return Answer("died", f"exit code {code}")
        self.close()
        return Answer("hung", f"no answer in {SECONDS:.0f} s")

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._there, here = context.Pipe()
        self._process = context.Process(target=_work, args=(here, self.profile), daemon=True)
        self._process.start()
        here.close()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._there.close()
            self._process = None

    def __enter__(self) -> Opinion:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# ---- in the process ----------------------------------------------------------------------------------


def _work(there: Connection, profile: str) -> None:
    while True:
        try:
            question = there.recv()
        except EOFError:
            return
        there.send(_answer(question, profile))


def _answer(question: Question, profile: str) -> Answer:
    import bankshot
    from bankshot.oracle import wgpu_client
    from bankshot.oracle.errors import DriverDied, GpuError, Lacking

    program = question.program
    module = bankshot.check(program.text)
    how = {"overrides": program.overrides, "adapter": profile, "module": module}
    try:
        run = wgpu_client.run(program.text, "main", program.grid, question.given, **how)
        counted = _counted(question, profile) if question.count else ((), {})
    except Lacking as error:
        return Answer("lacking", str(error))
    except DriverDied as error:
        return Answer("died", str(error))
    except GpuError as error:
        return Answer("lost" if LOST in str(error) else "refused", str(error))
    return Answer("ran", "", run.outputs, *counted)


def _counted(question: Question, profile: str) -> tuple[tuple[str, ...], dict[str, NDArray[np.uint8]]]:
    """What the adapter counts otherwise than the simulator, and outputs that counting changed."""
    from bankshot.oracle.judge.counter_diff import diff_counters
    from bankshot.oracle.manifests import cases

    program = question.program
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.wgsl"
        path.write_text(program.text, encoding="utf-8")
        request = cases.Request(arrays=question.given, grid=program.grid, overrides=program.overrides, entry="main")
        (plan,) = cases.plans([path], request)
        (case,) = plan.cases()
        diff = diff_counters(case, profile, profile)
    told = [f"line {d.site.line}: {d.counter} {d.simulated} here, {d.counted} there" for d in diff.differences]
    return tuple(told), diff.changed
