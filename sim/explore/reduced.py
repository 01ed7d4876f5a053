"""Orders of atomic operations that nothing guarantees, found in a dispatch too large for a whole search.

The search runs a reduced dispatch: the first workgroups of the grid, and the first invocations of each. A barrier that
the text lacks is missing there, too, and the outcome that shows it has a witness. It proves what may happen, not that
nothing else does. Only outcomes that sequentially consistent memory does not have count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
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

_LANES = (1, 2)  # of each workgroup, where it has more
_GROUPS = (2, 3)
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
    for smaller in _reduced(dispatch):
        if monotonic() > deadline:
            break
        found = [each for each in _searched(smaller, deadline) if {*_places(each)} <= spans]
        if found:
            made = [_finding(each, smaller) for each in found]
            _, suppressed = suppress(made, dispatch.pipeline.module.source, frozenset())
            return [each for each in made if each not in suppressed], suppressed
    return [], []


def _reduced(dispatch: Dispatch) -> Iterator[Dispatch]:
    """Yield dispatches of few invocations, the smallest first."""
    seen: set[object] = set()
    for groups in _GROUPS:
        for lanes in _LANES:
            grid, size = _first(dispatch.grid, groups), _first(dispatch.pipeline.workgroup_size, lanes)
            if prod(grid) * prod(size) > 1 and (grid, size) not in seen:
                seen.add((grid, size))
                pipeline = replace(dispatch.pipeline, workgroup_size=size)
                yield replace(dispatch, pipeline=pipeline, grid=grid, ready_memory=[], stops=[])


def _first(sizes: tuple[int, int, int], most: int) -> tuple[int, int, int]:
    """Return sizes of which the first that is over 1 is at most this, and the others are 1."""
    axis = next((axis for axis, size in enumerate(sizes) if size > 1), 0)
    x, y, z = (min(size, most) if each == axis else 1 for each, size in enumerate(sizes))
    return x, y, z


def _searched(dispatch: Dispatch, deadline: float) -> list[Diagnostic]:
    """Return what is out of order on the way to an outcome that only weak memory has."""
    try:
        strong = _search(dispatch, "sc", deadline)
        if not strong.complete:
            return []
        weak = _search(dispatch, "weak", deadline)
    except WgslError:  # the search cannot run it
        return []
    known = {strong.changes(end) for end in strong.ends}
    return weak_orders(weak, [end for end in weak.ends if weak.changes(end) not in known])


def _search(dispatch: Dispatch, memory: str, deadline: float) -> Graph:
    return search(dispatch, memory, states=_STATES, seconds=max(0.0, deadline - monotonic()), reduce=True)


def _places(found: Diagnostic) -> Iterable[object]:
    return (found.span, *(note.span for note in found.notes if note.span))


def _finding(found: Diagnostic, smaller: Dispatch) -> Finding:
    size = "{} x {} x {}".format(*smaller.grid)
    lanes = "1 invocation" if smaller.lanes == 1 else f"{smaller.lanes} invocations"
    note = f"found by a search of all orders in a grid of {size}, with {lanes} in each workgroup"
    return WEAK_ORDER.make(found.span, notes=(*found.notes, Note(note)), verdict="harmful", said=found.message)
