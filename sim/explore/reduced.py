"""Orders of atomic operations that nothing guarantees, found in a dispatch too large for a whole search.

The search runs a reduced dispatch: the first workgroups of the grid, and one or two invocations of each. A barrier that
the text lacks is missing there, too, and the outcome that shows it has a witness. It proves what may happen, not that
nothing else does. Only outcomes that sequentially consistent memory does not have count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from time import monotonic

from ..codegen.program import Program
from ..findings.finding import Finding
from ..findings.suppressions import suppress
from ..findings.table import WEAK_ORDER
from ..run.dispatch import Dispatch
from ..wgsl.diagnostics import Diagnostic, Note, WgslError
from .search import Graph, search
from .weak_orders import weak_orders

_STATES = 20_000
_MOST_WORDS = 1 << 20  # of memory


def find_weak_orders(dispatch: Dispatch, program: Program, seconds: float) -> tuple[list[Finding], list[Finding]]:
    """Return a finding for each pair of atomic operations whose order changes an output, and which no barrier orders;
    and those that comments in the shader suppress.

    `program`: that of a run of the dispatch. `seconds`: how long the search may take.
    """
    spans = {site.span for site in program.sites if site.kind == "atomic"}
    words = sum(len(each.data) for each in dispatch.bound) // 4
    if len(spans) < 2 or not program.order_dependent_atomics or words > _MOST_WORDS:
        return [], []
    deadline = monotonic() + seconds
    for smaller, lanes in _reduced(dispatch):
        if monotonic() > deadline:
            break
        found = [each for each in _searched(smaller, lanes, deadline) if {*_places(each)} <= spans]
        if found:
            made = [_finding(each, smaller, lanes) for each in found]
            _, suppressed = suppress(made, dispatch.pipeline.module.source, frozenset())
            return [each for each in made if each not in suppressed], suppressed
    return [], []


def _reduced(dispatch: Dispatch) -> Iterator[tuple[Dispatch, tuple[int, ...]]]:
    """Yield dispatches of few workgroups, with the few invocations of each that run, by local index."""
    last, size = dispatch.lanes - 1, dispatch.device.subgroup_size
    pairs = [(0, last), (0, 1), (0, size)] if last else []
    sets = [(0,), (last,), *(pair for pair in pairs if pair[1] <= last)]
    seen: set[object] = set()
    for groups, lanes in [*((2, lanes) for lanes in sets), (3, (0,))]:
        grid = _first(dispatch.grid, groups)
        if prod(grid) * len(lanes) > 1 and (grid, lanes) not in seen:
            seen.add((grid, lanes))
            yield dispatch.with_(grid=grid), lanes


def _first(grid: tuple[int, int, int], most: int) -> tuple[int, int, int]:
    """Return a grid of which the first size that is over 1 is at most this, and the others are 1."""
    axis = next((axis for axis, size in enumerate(grid) if size > 1), 0)
    x, y, z = (min(size, most) if each == axis else 1 for each, size in enumerate(grid))
    return x, y, z


def _searched(dispatch: Dispatch, lanes: Sequence[int], deadline: float) -> list[Diagnostic]:
    """Return what is out of order on the way to an outcome that only weak memory has."""

    def run(memory: str) -> Graph:
        left = max(0.0, deadline - monotonic())
        return search(dispatch, memory, states=_STATES, seconds=left, reduce=True, lanes=lanes)

    try:
        strong = run("sc")
        if not strong.complete:
            return []
        weak = run("weak")
    except WgslError:  # the search cannot run it
        return []
    known = {strong.changes(end) for end in strong.ends}
    return weak_orders(weak, [end for end in weak.ends if weak.changes(end) not in known])


def _places(found: Diagnostic) -> Iterable[object]:
    return (found.span, *(note.span for note in found.notes if note.span))


def _finding(found: Diagnostic, smaller: Dispatch, lanes: Sequence[int]) -> Finding:
    grid, which = "{} x {} x {}".format(*smaller.grid), " and ".join(map(str, lanes))
    who = f"invocation {which}" if len(lanes) == 1 else f"invocations {which}"
    note = Note(f"found by a search of all orders of {who} in each workgroup of a grid of {grid}")
    return WEAK_ORDER.make(found.span, notes=(*found.notes, note), verdict="harmful", said=found.message)
