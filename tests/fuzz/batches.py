"""Many programs, on several processes, and a file of their results, so that a run can be stopped and resumed.

A process has a judge of its own, hence another process that asks the adapter, and takes one number after the other. The
order of results is not that of the numbers.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from .judging import AGREED, Judge
from .known import answer_for
from .opinions import Opinion
from .searching import program_of

COUNTED = 20  # of so many programs one is counted, too


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a program: a verdict's `word` and `why`, and the name of the `known` fault that is the reason."""

    number: int
    word: str
    why: str = ""
    known: str = ""

    @property
    def explained(self) -> bool:
        return self.word in AGREED or bool(self.known)

    @property
    def title(self) -> str:
        return f"known: {self.known}" if self.known else self.word


class Log:
    """A file of results, one a line, that is complete after each. What is at the end of it in parts is left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def results(self) -> list[Result]:
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True) if self.path.exists() else []
        return [Result(**json.loads(line)) for line in lines if line.endswith("\n")]

    def write(self, results: Sequence[Result]) -> None:
        """These, in place of all."""
        self.path.write_text("".join(map(_line, results)), encoding="utf-8")

    def add(self, result: Result) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(result))


def _line(result: Result) -> str:
    return json.dumps(asdict(result)) + "\n"


def is_counted(number: int) -> bool:
    return number % COUNTED == 0


def judged(judge: Judge, number: int) -> Result:
    """The result of program `number`."""
    program = program_of(number)
    verdict = judge.judge(program, is_counted(number))
    known = None if verdict.agreed else answer_for(judge, program, verdict)
    return Result(number, verdict.word, verdict.why, known.name if known else "")


def search(profile: str, numbers: Sequence[int], jobs: int, seconds: float) -> Iterator[Result]:
    """Results as they come, on so many processes; of no more programs once these seconds are over."""
    end = time.monotonic() + seconds
    if jobs > 1:
        yield from _on_processes(profile, numbers, jobs, end)
        return
    with Opinion(profile) as opinion:
        for number in numbers:
            if time.monotonic() >= end:
                return
            yield judged(Judge(opinion), number)


_judge: Judge  # of a process


def _start(profile: str) -> None:
    global _judge
    _judge = Judge(Opinion(profile))


def _result(number: int) -> Result:
    return judged(_judge, number)


def _on_processes(profile: str, numbers: Sequence[int], jobs: int, end: float) -> Iterator[Result]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _start, (profile,)) as pool:
        waiting: list[Future[Result]] = [pool.submit(_result, number) for number in numbers]
        try:
            for done in as_completed(waiting, end - time.monotonic()):
                yield done.result()
        except TimeoutError:
            pass
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
