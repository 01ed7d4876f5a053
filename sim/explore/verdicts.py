"""Verdicts of progress models: whether a dispatch ends, who waits for whom, and findings."""

from __future__ import annotations

from collections.abc import Sequence

from ..fast_dataclass import frozen, sealed
from ..wgsl.diagnostics import Diagnostic, Note, fail
from ..wgsl.source import Span
from .progress import MODELS, Stuck, find_stuck
from .search import Graph
from .starvation import Wait, waits_of
from .visibility import Visibility
from .witness import Move, moves_along

_LISTED = 4  # waits that a sentence or a finding lists


@sealed
class Progress:
    """Whether every run of a dispatch ends that a progress model allows: `model` for workgroups, `within` in each.

    `ends` is None where no run without an end was found, but the search did not see every state. If it is False, `way`
    leads to the steps `cycle` that a run may repeat forever, and `sentence` says who waits for whom. `never`: no run
    ends at all. `memory`: the memory model that this holds for.
    """

    model: str
    within: str
    ends: bool | None
    never: bool
    sentence: str
    memory: str
    way: list[Move]
    cycle: list[Move]


@frozen
class Verdict:
    """A progress model's verdict on a graph of states; `stuck` and `waits` describe a run that never ends."""

    graph: Graph
    model: str
    within: str
    stuck: Stuck | None
    waits: tuple[Wait, ...] = ()

    @property
    def ends(self) -> bool | None:
        """Whether every run ends; None where the search did not see every state, and found no run that does not."""
        return False if self.stuck else True if self.graph.complete else None

    @property
    def never(self) -> bool:
        """Whether no run ends at all."""
        return self.stuck is not None and self.graph.complete and not self.graph.ends

    @property
    def under(self) -> str:
        """The models, as a sentence refers to them."""
        within = "" if self.within == "fair" else f", and {MODELS[self.within].under} in each workgroup"
        return MODELS[self.model].under + within

    @property
    def promises(self) -> list[str]:
        """Why the scheduler need not schedule who could step: what the models promise."""
        if self.stuck is None:
            return []
        lanes = self.graph.system.dispatch.lanes
        running = {unit // lanes for _, unit, _ in self.stuck.cycle}
        beside = {wait.units[0] // lanes in running for wait in self.waits if wait.kind == "unscheduled"}
        outer = [MODELS[self.model].promise.format(each="workgroup")] if False in beside else []
        return outer + ([MODELS[self.within].promise.format(each="invocation")] if True in beside else [])

    @property
    def sentence(self) -> str:
        if self.stuck is None:
            return f"{'ends' if self.graph.complete else 'may end'} {self.under}{_unseen(self.graph)}"
        clauses = [_clause(self.graph, wait) for wait in self.waits if wait.kind != "unscheduled"]
        more = [f"{len(clauses) - _LISTED} more wait"] if len(clauses) > _LISTED else []
        how = "never ends" if self.never else "may not end"
        return f"{how} {self.under}: {'; '.join(clauses[:_LISTED] + more + self.promises)}"

    @property
    def progress(self) -> Progress:
        """The verdict as users hold it."""
        graph, stuck = self.graph, self.stuck
        memory = "weak" if graph.system.memory.defers else "sc"
        way, cycle = (stuck.way, stuck.cycle) if stuck else ((), ())
        steps = moves_along(graph, way), moves_along(graph, cycle)
        return Progress(self.model, self.within, self.ends, self.never, self.sentence, memory, *steps)


def verdicts(graph: Graph, models: Sequence[str], within: str = "fair") -> list[Verdict]:
    """Return the verdicts of some progress models for workgroups; `within` is the model for those of each workgroup."""
    barred = Visibility(graph).barred if graph.system.memory.defers else None
    found: list[Verdict] = []
    for model in models:
        stuck = None
        if graph.states:
            stuck = find_stuck(graph, model, within=within, size=graph.system.dispatch.lanes, barred=barred)
        found.append(Verdict(graph, model, within, stuck, waits_of(graph, stuck) if stuck else ()))
    return found


def known_model(name: str) -> str:
    """Return the name of a progress model. Raises `WgslError` if there is none."""
    if name not in MODELS:
        raise fail("unknown-option", f"progress must be one of {', '.join(MODELS)}, not {name!r}", None)
    return name


def starvation(found: Sequence[Verdict]) -> list[Diagnostic]:
    """Return a finding for each place where a run may wait forever, with the models under which it may.

    Where no run ends at all there is none: that is a deadlock.
    """
    alike: dict[tuple[Span | None, str], list[Verdict]] = {}
    for verdict in found:
        if verdict.stuck and not verdict.never:
            alike.setdefault((verdict.waits[0].span, verdict.waits[0].kind), []).append(verdict)
    return [_finding(each) for each in alike.values()]


def _finding(alike: Sequence[Verdict]) -> Diagnostic:
    graph, (first, *others) = alike[0].graph, [wait for wait in alike[0].waits if wait.kind != "unscheduled"]
    words = f" for {' and '.join(first.words)}" if first.words else ""
    under = " and ".join(verdict.under for verdict in alike)
    notes = [Note(f"{_who(graph, first.others)} stores to it here", first.store)] if first.store else []
    notes += [Note(f"{_who(graph, wait.units)} then waits here", wait.span) for wait in others[:_LISTED]]
    notes += [Note(promise) for promise in dict.fromkeys(each for verdict in alike for each in verdict.promises)]
    message = f"{_who(graph, first.units)} may wait here forever{words}, {under}"
    return Diagnostic("error", "starvation", message, first.span, tuple(notes))


def _clause(graph: Graph, wait: Wait) -> str:
    who, others = _who(graph, wait.units), _who(graph, wait.others)
    several = len(wait.units) > 1
    waits, line = "wait" if several else "waits", _line(wait.span)
    if wait.kind == "barrier":
        verb = "do" if len(wait.others) > 1 else "does"
        return f"{who} {waits} at the barrier{line}, which {others} {verb} not reach"
    if not wait.words:
        return f"{who} {'repeat' if several else 'repeats'} the loop{line} forever"
    words = " and ".join(wait.words)
    if not wait.others:
        return f"{who} {waits}{line} for {words}, which no other invocation changes"
    return f"{who} {waits}{line} for {words}, which {others} writes{_line(wait.store)}"


def _unseen(graph: Graph) -> str:
    return "" if graph.complete else ": no run that does not was found, but the search did not see every state"


def _line(span: Span | None) -> str:
    return "" if span is None else f" at line {span.line}"


def _who(graph: Graph, units: Sequence[int]) -> str:
    """Name invocations of one workgroup."""
    if len(units) == 1:
        return graph.system.who(units[0])
    if not units:
        return "another invocation"
    workgroup, _ = graph.system.place(units[0])
    return f"{'all' if len(units) == graph.system.dispatch.lanes else len(units)} invocations of workgroup {workgroup}"
