"""A second definition of weak memory, by axioms, that enumerates the executions of a litmus test.

An execution says which store each load reads from (rf), and in which order the stores to a word come (co). It is
allowed if, for each word, rf, co, from-reads (a load before every store that comes after the one that it reads) and the
order by program and barriers form no cycle, if nothing comes between the two sides of a read-modify-write, and if no
value depends on itself. It is Vulkan's model for relaxed atomics and barriers of workgroup scope, with the last
condition added.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, permutations, product
from typing import NamedTuple

from tests.explore.litmus import Litmus, Outcome, Statement, parse

INIT = -1  # the store of 0 before everything


class _Event(NamedTuple):
    number: int
    thread: int
    phase: int  # how many barriers its thread has passed
    statement: Statement
    writes: bool  # a compare-exchange may

    @property
    def reads(self) -> bool:
        return self.statement.kind != "store"


class _Choice(NamedTuple):
    """The execution as seen by one word."""

    rf: dict[int, int]
    co: tuple[int, ...]
    writes: frozenset[int]


def allowed(text: str, place: str) -> set[Outcome]:
    """Return every outcome that the axioms allow."""
    litmus = parse(text)
    events = _events(litmus)
    found: set[Outcome] = set()
    for choices in product(*(list(_executions(word, events, place)) for word in litmus.words)):
        outcome = _outcome(litmus, events, choices)
        if outcome is not None:
            found.add(outcome)
    return found


def _events(litmus: Litmus) -> list[_Event]:
    events: list[_Event] = []
    for thread, statements in enumerate(litmus.threads):
        phase = 0
        for statement in statements:
            if statement.kind == "barrier":
                phase += 1
            elif statement.kind != "other":
                events.append(_Event(len(events), thread, phase, statement, statement.kind != "load"))
    return events


def _executions(word: str, events: list[_Event], place: str) -> Iterator[_Choice]:
    """Yield the executions of one word that the axioms allow; a compare-exchange may succeed or fail."""
    here = [e for e in events if e.statement.word == word]
    compares = [e.number for e in here if e.statement.kind == "compare"]
    readers = [e.number for e in here if e.reads]
    order = {(a.number, b.number) for a in here for b in here if _before(a, b, place)}
    for succeeds in product((False, True), repeat=len(compares)):
        failed = {n for n, success in zip(compares, succeeds, strict=True) if not success}
        writers = [e.number for e in here if e.writes and e.number not in failed]
        for co in permutations(writers):
            for sources in product([INIT, *writers], repeat=len(readers)):
                rf = dict(zip(readers, sources, strict=True))
                if _is_coherent(order, rf, (INIT, *co)):
                    yield _Choice(rf, co, frozenset(writers))


def _before(a: _Event, b: _Event, place: str) -> bool:
    """Whether program order, or a barrier of their workgroup, puts one access before another."""
    if a.thread == b.thread:
        return a.number < b.number
    size = int(place.partition(":")[2] or 1) if place.startswith("across") else 1 << 10
    return a.thread // size == b.thread // size and a.phase < b.phase


def _is_coherent(order: set[tuple[int, int]], rf: dict[int, int], co: tuple[int, ...]) -> bool:
    rank = {store: i for i, store in enumerate(co)}
    edges = set(order)
    edges |= set(pairwise(co))
    for reader, source in rf.items():
        if reader in rank and rank[source] + 1 != rank[reader]:
            return False
        edges.add((source, reader))
        edges |= {(reader, later) for later in co[rank[source] + 1 :] if later != reader}
    return not _has_cycle(edges)


def _has_cycle(edges: set[tuple[int, int]]) -> bool:
    left = set(edges)
    while left:
        heads = {b for _, b in left}
        kept = {(a, b) for a, b in left if a in heads}
        if len(kept) == len(left):
            return True
        left = kept
    return False


def _outcome(litmus: Litmus, events: list[_Event], choices: tuple[_Choice, ...]) -> Outcome | None:
    """Return the outcome of an execution; None if a value depends on itself, or a compare-exchange does otherwise."""
    rf = {reader: source for choice in choices for reader, source in choice.rf.items()}
    writes = {n for choice in choices for n in choice.writes}
    known: dict[int, int] = {INIT: 0}
    read: dict[int, int] = {}
    left = list(events)
    while left:
        ready = [e for e in left if _is_ready(e, events, rf, known, read)]
        if not ready:
            return None
        for event in ready:
            left.remove(event)
            kind = event.statement.kind
            if event.reads:
                read[event.number] = known[rf[event.number]]
            values = [_number(v, event, events, read) for v in event.statement.values]
            if kind == "compare" and (read[event.number] == values[0]) != (event.number in writes):
                return None
            if event.number in writes:
                known[event.number] = values[-1] + (read[event.number] if kind == "add" else 0)
    last: dict[str, int] = {}
    for event in events:
        if event.statement.register:
            last[event.statement.register] = read[event.number]
    finals = (known[choice.co[-1]] if choice.co else 0 for choice in choices)
    return (*(last[r] for r in litmus.registers), *finals)


def _source(name: str, event: _Event, events: list[_Event]) -> int:
    """Return the access that a register of an access's thread was last written by."""
    return [e.number for e in events[: event.number] if e.thread == event.thread and e.statement.register == name][-1]


def _is_ready(
    event: _Event, events: list[_Event], rf: dict[int, int], known: dict[int, int], read: dict[int, int]
) -> bool:
    """Whether the value of an access can be computed: what it reads, and the registers that it stores, are known."""
    if event.reads and rf[event.number] not in known:
        return False
    return all(v.isdigit() or _source(v, event, events) in read for v in event.statement.values)


def _number(value: str, event: _Event, events: list[_Event], read: dict[int, int]) -> int:
    return int(value) if value.isdigit() else read[_source(value, event, events)]
