"""Accesses that wait: with weak memory, a load may read what another thread stores after later accesses of its own.

A thread takes its steps in the order of the program, but may leave an access in its queue and go on, until a branch, an
address or a subgroup operation needs the result. What waits is performed in any order, except that accesses to one word
keep the order of the program, and that of barriers. So load buffering appears, and values out of thin air do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .invocations import Event, Invocation, Pending, Thread, depends
from .memory import Alike, Memory

MOST_WAITING = 8  # accesses of a thread


def waits_for(event: Event, unit: int, queue: Sequence[Event], threads: Sequence[Thread], group: range) -> bool:
    """Whether an access has to wait for one to the same word, before it in its thread or before a barrier."""
    if any(each.word == event.word for each in queue):
        return True
    return any(
        each.word == event.word and each.barriers > event.barriers
        for other in group
        if other != unit
        for each in threads[other].queue
    )


def deferred(invocation: Invocation, thread: Thread, event: Event, gains: bool, waits: bool) -> Thread | None:
    """Return the thread with its next access in the queue; None where that is impossible, or changes nothing.

    `gains`: the access may see more if it waits. `waits`: it cannot be performed yet.
    """
    if len(thread.queue) >= MOST_WAITING or any(_excludes(each, event) for each in thread.queue):
        return None
    if not waits and (event.op == "store" or not gains):
        return None
    after = invocation.resume(thread, (Pending(event.pc, 0), Pending(event.pc, 1)), (*thread.queue, event))
    needed = invocation.event(after)
    if needed.kind == "stall" and any(depends(each, event.pc) for each in needed.args):
        return None
    return after


def _excludes(waiting: Event, event: Event) -> bool:
    """Whether an access cannot wait beside one: the same step, or the same word on the other side of a barrier."""
    return waiting.pc == event.pc or (waiting.word == event.word and waiting.barriers > 0)


def performed(
    memory: Memory, contents: Any, threads: Sequence[Thread], invocation: Invocation, group: range
) -> Iterator[tuple[Event, tuple[int, ...], Thread, Any]]:
    """Yield each way to perform one of the accesses that wait: it, its results, the thread and the memory after it."""
    unit, thread = invocation.unit, threads[invocation.unit]
    for place, event in enumerate(thread.queue):
        before, after = thread.queue[:place], thread.queue[place + 1 :]
        if event.decided and not waits_for(event, unit, before, threads, group):
            alike = _alike(event, threads, group) if event.barriers else ((), ())
            for changed, results in memory.perform(contents, unit, event, alike):
                yield event, results, invocation.decide(thread, before + after, event.pc, results), changed


def _alike(event: Event, threads: Sequence[Thread], group: range) -> Alike:
    """Return the units of the workgroup, which barriers have ordered after an access that waited.

    Second are those with an access to the word that has waited as long, which may still come before it.
    """
    beside = [u for u in group if any(e.word == event.word and e.barriers >= event.barriers for e in threads[u].queue)]
    return [unit for unit in group if unit not in beside], beside
