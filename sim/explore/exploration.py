"""`explore`: every outcome of a small dispatch, each with a schedule that leads there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..bindings.binding import Key, Output
from ..fast_dataclass import sealed
from ..models import Device
from ..run.simulate import prepare
from ..wgsl.diagnostics import Diagnostic, fail, limits_are_errors
from ..wgsl.typed import Module
from .deadlocks import dead_ends, deadlock
from .search import MODELS, SECONDS, STATES, Graph, search
from .weak_orders import weak_orders
from .witness import Move, moves

if TYPE_CHECKING:
    from ..bindings.binding import Bindings
    from ..run.simulate import Overrides


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
    `findings`: accesses in an order that only weak memory allows, and that change an outcome, one for each pair of
    places; deadlocks.
    """

    outcomes: list[Outcome]
    states: int
    complete: bool
    deadlocks: list[list[Move]]
    findings: list[Diagnostic]
    memory: str
    seconds: float
    _graph: Graph

    def __repr__(self) -> str:
        limit = "all" if self.complete else "the first"
        return f"<Exploration: {len(self.outcomes)} outcomes in {limit} {self.states:,} states, memory {self.memory}>"


@limits_are_errors("explore")
def explore(
    wgsl: str | Path | Module,
    *,
    grid: int | Sequence[int],
    bindings: Bindings | None = None,
    entry: str | None = None,
    overrides: Overrides | None = None,
    device: str | Device = "nvidia",
    out_of_bounds: str | None = None,
    memory: str = "weak",
    states: int = STATES,
    seconds: float | None = SECONDS,
) -> Exploration:
    """Find every outcome of a dispatch of few invocations, in every order that WGSL allows.

    Each invocation takes its steps in any order with those of the others, one access to memory at a time.

    `memory`: "weak" for WGSL's memory model, in which nothing but a barrier orders accesses to different words; "sc"
    (sequentially consistent) for one in which every load reads what was stored last.
    `states`, `seconds`: limits of the search; `seconds` None: no limit. Where one ends it, `complete` is False.
    Other arguments are those of `simulate`.

    A compare-exchange fails only where values differ. Values do not come out of thin air: a store waits for the loads
    that its value depends on.

    Raises `WgslError` where the shader, or a value given for it, is wrong, or where the search cannot run it.
    """
    if memory not in MODELS:
        raise fail("unknown-option", f"memory must be one of {', '.join(MODELS)}, not {memory!r}", None)
    dispatch = prepare(
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
    if memory == "weak" and len(found) > 1:
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
    return Exploration(outcomes, len(graph.states), graph.complete, deadlocks, findings, memory, graph.seconds, graph)


def _distinct(graph: Graph) -> dict[tuple[bytes, ...], int]:
    """Return the contents of the writable bindings at each end, and the first state that has them."""
    found: dict[tuple[bytes, ...], int] = {}
    for end in graph.ends:
        found.setdefault(graph.contents(end), end)
    return found


def _outputs(graph: Graph, contents: tuple[bytes, ...]) -> dict[Key, Output]:
    pairs = zip(graph.system.outputs, contents, strict=True)
    return {bound.key: bound.output(np.frombuffer(data, np.uint8).copy()) for bound, data in pairs}
