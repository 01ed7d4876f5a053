"""`bankshot corpus`: run every shader in some folders in the simulator and on wgpu.

Worker processes run the shaders, since any of them may make a process hang or crash. Such a process is replaced, the
entry point that it was running gets the verdict, and the survey continues.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from ... import sim
from ...sim.fast_dataclass import entity, frozen
from .. import wgpu_client
from ..errors import Died, TookTooLong, UsageError
from ..workers.pool import Report, TaskError, TaskProgress, TaskResult, Work, WorkerPool
from .embedded import Shader, files, filled, shaders
from .trial import VERDICTS, Trial, trials


@frozen
class Options:
    """How to run a survey. `limit`: seconds for one stage of one entry point. `budget`: that of `bankshot.simulate`."""

    jobs: int = 2
    limit: float = 60.0
    adapter: str | None = None
    budget: int | None = None


@frozen
class Collection:
    """The shaders in one of the given folders, and their trials."""

    folder: Path
    shaders: tuple[Shader, ...]
    trials: list[Trial] = field(default_factory=list[Trial])

    @property
    def counts(self) -> Counter[str]:
        """The number of trials by verdict."""
        return Counter(trial.verdict for trial in self.trials)


def collect(folders: Sequence[Path], embedded: bool, fill: Mapping[str, str] | None = None) -> list[Collection]:
    """Find the shaders under each of `folders`, and replace the names in their templates by the values in `fill`.

    Raises `UsageError` if there are no shaders at all.
    """
    for folder in folders:
        if not folder.exists():
            raise UsageError(f"{folder}: no such file or folder")
    found = [
        Collection(folder, tuple(filled(s, fill or {}) for file in files(folder, embedded) for s in shaders(file)))
        for folder in folders
    ]
    if not any(collection.shaders for collection in found):
        hint = "" if embedded else "; --embedded also searches the string literals of other languages"
        raise UsageError(f"{', '.join(map(str, folders))}: no WGSL found{hint}")
    return found


def corpus(
    found: Sequence[Collection],
    options: Options,
    done: Callable[[Shader], None] = lambda shader: None,
    work: Work | None = None,
) -> None:
    """Try every shader of `found`, and append the results to its `trials`, in the order of the shaders.

    `done` is called with each finished shader. `work` is the function that worker processes call with an `Attempt`, by
    default `attempt`. Raises `NoAdapter`.
    """
    wgpu_client.require_adapter(options.adapter)
    tasks = [(collection, shader) for collection in found for shader in collection.shaders]
    results: dict[int, list[Trial]] = {}
    for state in _try_all([shader for _, shader in tasks], options, work or attempt):
        results[state.number] = state.trials
        done(state.shader)
    for number, (collection, _) in enumerate(tasks):
        collection.trials.extend(results[number])


def good(trial: Trial) -> bool:
    return VERDICTS[trial.verdict].good


# ---- processes -------------------------------------------------------------------------------------------


@frozen
class Attempt:
    """A task: the entry points of a shader, without the first `skip`. `number` identifies the attempt."""

    number: int
    shader: Shader
    skip: int
    adapter: str | None
    budget: int | None = None


@entity
class _State:
    """The progress of a shader. `at`: the entry point (None: the module) and the stage that a worker reported last."""

    number: int
    shader: Shader
    trials: list[Trial] = field(default_factory=list[Trial])
    at: tuple[str | None, str] = (None, "check")


def attempt(task: Attempt, report: Report) -> None:
    """Try a shader, and report each entry point and stage as it begins, and each trial."""
    for trial in trials(task.shader, task.adapter, task.skip, lambda entry, stage: report((entry, stage)), task.budget):
        report(trial)


_WARM_UP = """
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@compute @workgroup_size(1) fn main() { a[0] = 1; }
"""


@frozen
class _WarmUp:
    """A trial that loads what all trials need, so that this does not count against the first one's time limit."""

    adapter: str | None

    def __call__(self) -> None:
        list(trials(Shader(Path("warm-up.wgsl"), 1, _WARM_UP), self.adapter))
        sim.simulate(_WARM_UP, grid=1, bindings={"a": b"1234"}, probes=("races",))


def _try_all(shaders: Sequence[Shader], options: Options, work: Work) -> Iterator[_State]:
    """Yield each shader once all of its entry points have been tried."""
    waiting = [_State(number, shader) for number, shader in reversed(list(enumerate(shaders)))]
    running: dict[int, _State] = {}  # by the number of the attempt
    numbers = itertools.count()
    count = max(1, min(options.jobs, len(shaders)))
    with WorkerPool(count, work, prepare=_WarmUp(options.adapter), limit=options.limit, keep_stderr=True) as pool:
        while waiting or running:
            for worker in pool.idle[: len(waiting)]:
                state = waiting.pop()
                state.at = (None, "check")
                attempt = next(numbers)
                running[attempt] = state
                worker.give(Attempt(attempt, state.shader, len(state.trials), options.adapter, options.budget))
            for task, heard in pool.hear():
                state = running[task.number]
                match heard:
                    case TaskProgress(words=Trial() as trial):
                        state.trials.append(trial)
                        continue
                    case TaskProgress():
                        state.at = heard.words
                        continue
                    case TaskError():
                        state.trials.append(_lost(state, heard.error, options.limit))
                        if state.at[0] is not None:  # later entry points remain
                            waiting.append(state)
                    case TaskResult():
                        pass
                del running[task.number]
                if state not in waiting:
                    yield state


def _lost(state: _State, error: Exception, limit: float) -> Trial:
    """Return the verdict on the entry point that a worker was running when it died, took too long or failed."""
    entry, stage = state.at
    match error:
        case TookTooLong():
            how, verdict = f"took longer than {limit:g} s; --limit SECONDS gives it longer", "too-slow"
            if stage == "wgpu":
                how += ", as some drivers compile for minutes"
        case Died():
            how, verdict = f"the process died: {_reason(error)}", "crash"
            if stage == "wgpu":
                how = f"the driver crashed: {_reason(error)}; --adapter NAME chooses another"
        case _:
            how, verdict = f"the process died: {type(error).__name__}: {error}", "crash"
    verdict = "wgpu-died" if stage == "wgpu" else verdict
    return Trial(state.shader.name, state.shader.text.count("\n") + 1, entry, verdict, f"{stage}: {how}")


_PANIC = re.compile(r"panicked at (?:[^\n]*/)?([^/\n]*):\n([^\n]*)")


def _reason(error: Died) -> str:
    """Return the message of a panic, or else the last line that the process wrote."""
    if panic := _PANIC.search(error.stderr_tail):
        return f"panic, {panic[2]} ({panic[1]})"
    return (error.stderr_tail.splitlines() or [str(error)])[-1]
