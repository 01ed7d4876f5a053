"""`explore`: every outcome of a small dispatch, each with a schedule that leads there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..bindings.binding import Key, Output
from ..device_files import DeviceChoice
from ..fast_dataclass import sealed
from ..run.dispatch import Dispatch
from ..run.prepared import dispatch_of
from ..wgsl.diagnostics import Diagnostic, counted, fail, limits_are_errors
from ..wgsl.typed import Module
from .barriers import Barrier, judge_barriers
from .deadlocks import dead_ends, deadlock
from .search import MODELS, SECONDS, STATES, Graph, search
from .verdicts import Progress, Verdict, known_model, starvation, verdicts
from .weak_orders import weak_orders
from .witness import Move, moves

if TYPE_CHECKING:
    from ..bindings.binding import Bindings
    from ..run.prepared import Overrides


@sealed
class Outcome:
    """One result that the dispatch may have. `outputs`: every writable binding, as `Run.outputs` has them.

    `witness`: steps that lead there. `weak`: no sequentially consistent execution does.
    """

    outputs: dict[Key, Output]
    witness: list[Move]
    weak: bool


@sealed
class Exploration:
    """What the executions of a dispatch have in common, and where they differ.

    `outcomes`: each once, those with the shortest witness first. `states`: how many states the search found;
    `complete`: it found all. `deadlocks`: steps that lead to a state from which the dispatch cannot end, whatever the
    order, one for each set of places where invocations then are.
    `progress`: the verdict of each progress model that was asked for.
    `barriers`: whether each barrier matters, if that was asked for.
    `findings`: accesses in an order that only weak memory allows, and that change an outcome, one for each pair of
    places; deadlocks; invocations that may starve under one of the progress models.
    """

    outcomes: list[Outcome]
    states: int
    complete: bool
    deadlocks: list[list[Move]]
    progress: list[Progress]
    barriers: list[Barrier]
    findings: list[Diagnostic]
    memory: str
    seconds: float
    _graph: Graph

    def __repr__(self) -> str:
        count, limit = len(self.outcomes), "all" if self.complete else "the first"
        outcomes = counted(count, count, "outcome")
        return f"<Exploration: {outcomes} in {limit} {self.states:,} states, memory {self.memory}>"


@limits_are_errors("explore")
def explore(
    wgsl: str | Path | Module,
    *,
    grid: int | Sequence[int],
    bindings: Bindings | None = None,
    entry: str | None = None,
    overrides: Overrides | None = None,
    device: DeviceChoice = "nvidia",
    out_of_bounds: str | None = None,
    memory: str = "weak",
    progress: str | Sequence[str] = (),
    within: str = "fair",
    barriers: bool = False,
    states: int = STATES,
    seconds: float | None = SECONDS,
) -> Exploration:
    """Find every outcome of a dispatch of few invocations, in every order that WGSL allows.

    Each invocation takes its steps in any order with those of the others, one access to memory at a time.

    `memory`: "weak" for WGSL's memory model, in which nothing but a barrier orders accesses to different words; "sc"
    (sequentially consistent) for one in which every load reads what was stored last.
    `progress`: progress models, which say what workgroups the scheduler must keep running: "fair", "hsa", "obe",
    "hsa+obe", "lobe" or "none", or several. The verdict on each is whether the dispatch then always ends. `within`: the
    model for the invocations of each workgroup. Where there are too many states with weak memory, the verdict is that
    of sequentially consistent memory, and says so.
    `barriers`: also explore the dispatch without each barrier, to say which barriers matter.
    `states`, `seconds`: limits of each search; `seconds` None: no limit. Where one ends it, `complete` is False.
    Other arguments are those of `simulate`.

    A compare-exchange fails only where values differ. Values do not come out of thin air: a store waits for the loads
    that its value depends on.

    Raises `WgslError` where the shader, or a value given for it, is wrong, or where the search cannot run it.
    """
    if memory not in MODELS:
        raise fail("unknown-option", f"memory must be one of {', '.join(MODELS)}, not {memory!r}", None)
    models = [known_model(each) for each in ([progress] if isinstance(progress, str) else progress)]
    known_model(within)
    dispatch = dispatch_of(
        wgsl,
        grid=grid,
        bindings=bindings,
        entry=entry,
        overrides=overrides,
        device=device,
        out_of_bounds=out_of_bounds,
    )
    graph = search(dispatch, memory, states=states, seconds=seconds, reduce=True)
    found = _distinct(graph)
    strong = None
    if memory == "weak" and found:
        strong = search(dispatch, "sc", states=states, seconds=seconds, reduce=True)
    known = {each: moves(graph, end) for each, end in found.items()}
    if strong is not None and strong.complete:
        known = {each: moves(strong, end) for each, end in _distinct(strong).items()}
    outcomes = [
        Outcome(_outputs(graph, each), known.get(each) or moves(graph, end), each not in known)
        for each, end in found.items()
    ]
    stuck = dead_ends(graph) if graph.complete else []
    findings = weak_orders(graph, [end for each, end in found.items() if each not in known])
    findings += [deadlock(graph, state) for state in stuck]
    deadlocks = [moves(graph, state) for state in stuck]
    judged = _judged(dispatch, memory, models, within, states, seconds) if models else []
    findings += starvation(judged)
    limits = (len(graph.states), graph.complete)
    asked = [verdict.progress for verdict in judged]
    needed = judge_barriers(dispatch, graph, found.keys(), states, seconds) if barriers else []
    return Exploration(outcomes, *limits, deadlocks, asked, needed, findings, memory, graph.seconds, graph)


def _distinct(graph: Graph) -> dict[tuple[bytes, ...], int]:
    """Return the contents of the writable bindings at each end, and the first state that has them."""
    found: dict[tuple[bytes, ...], int] = {}
    for end in graph.ends:
        found.setdefault(graph.contents(end), end)
    return found


def _outputs(graph: Graph, contents: tuple[bytes, ...]) -> dict[Key, Output]:
    pairs = zip(graph.system.outputs, contents, strict=True)
    return {bound.key: bound.output(np.frombuffer(data, np.uint8).copy()) for bound, data in pairs}


def _judged(
    dispatch: Dispatch, memory: str, models: list[str], within: str, states: int, seconds: float | None
) -> list[Verdict]:
    """Return the verdicts of progress models, which need the orders of all steps."""
    judged = verdicts(search(dispatch, memory, states=states, seconds=seconds), models, within)
    if memory == "sc" or all(verdict.ends is not None for verdict in judged):
        return judged
    strong = search(dispatch, "sc", states=states, seconds=seconds)
    return [verdict if verdict.stuck else verdicts(strong, [verdict.model], within)[0] for verdict in judged]
