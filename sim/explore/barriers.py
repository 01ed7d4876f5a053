"""Which barriers matter: those without which a dispatch may end differently."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ..fast_dataclass import sealed
from ..run.dispatch import Dispatch
from ..wgsl.source import Span
from .deadlocks import dead_ends
from .search import Graph, search


@sealed
class Barrier:
    """A barrier of the text. `outcomes`: how many the dispatch has without it, that it does not have with it.

    `matters`: whether it then ends differently; None where the search did not see every state.
    """

    span: Span
    matters: bool | None
    outcomes: int

    @property
    def sentence(self) -> str:
        """What a report says about it."""
        name = f"the barrier at line {self.span.line}"
        match self.matters:
            case None:
                return f"{name}: undecided, without it there are too many states"
            case True:
                more = f"there {'is 1 more outcome' if self.outcomes == 1 else f'are {self.outcomes:,} more outcomes'}"
                return f"{name} matters: without it {more if self.outcomes else 'the dispatch may not end'}"
            case False:
                return f"{name} makes no difference for these data"


def judge_barriers(
    dispatch: Dispatch, graph: Graph, outcomes: AbstractSet[tuple[bytes, ...]], states: int, seconds: float | None
) -> list[Barrier]:
    """Explore a dispatch again without each of its barriers. `graph`, `outcomes`: with all of them."""
    memory = "weak" if graph.system.memory.defers else "sc"
    places: dict[Span, set[int]] = {}
    for pc, step in enumerate(graph.system.code.steps):
        span = graph.system.code.span(pc)
        if step.kind == "barrier" and span is not None:
            places.setdefault(span, set()).add(pc)
    found: list[Barrier] = []
    for span, steps in places.items():
        without = search(dispatch, memory, states=states, seconds=seconds, reduce=True, without=steps)
        new = {without.contents(end) for end in without.ends} - outcomes
        decided = graph.complete and without.complete
        found.append(Barrier(span, bool(new or dead_ends(without)) if decided else True if new else None, len(new)))
    return found
