"""The result of `bankshot explore`: outcomes and their witnesses for people, an entry for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from .json_document import Entry
from .json_entries import case_entry, diagnostic_entry
from .terminal import say, show_heading

if TYPE_CHECKING:
    from ...sim import Exploration, Move, Progress
    from ..judge.explored import Explored

MOST_OUTCOMES = 16  # that are shown
MOST_VALUES = 8  # of an outcome
MOST_MOVES = 24  # of a witness


def show_explored(out: Console, result: Explored) -> None:
    """Print each outcome with its witness, and the findings."""
    exploration = result.exploration
    show_heading(out, result.case, f"explored with {exploration.memory} memory as {result.device}")
    say(out, f"  {_extent(exploration)}")
    values = _values(exploration)
    for number, outcome in enumerate(exploration.outcomes[:MOST_OUTCOMES]):
        only = "   (only with weak memory)" if outcome.weak else ""
        out.print()
        say(out, f"  {number + 1}  {values[number]}{only}", "bold" if outcome.weak else "")
        if len(exploration.outcomes) > 1:
            _show_moves(out, outcome.witness)
    if len(exploration.outcomes) > MOST_OUTCOMES:
        say(out, f"\n  {len(exploration.outcomes) - MOST_OUTCOMES:,} more outcomes; --json has all", "dim")
    _show_progress(out, exploration)
    if exploration.barriers:
        out.print()
    for barrier in exploration.barriers:
        say(out, f"  {barrier.sentence}")
    for finding in exploration.findings:
        out.print()
        say(out, finding.render())
    out.print()


def _show_progress(out: Console, exploration: Exploration) -> None:
    if exploration.progress:
        out.print()
    for each in exploration.progress:
        memory = "" if each.memory == exploration.memory else "   (with sequentially consistent memory)"
        say(out, f"  {each.sentence}{memory}", "bold" if each.ends is False else "")


def _extent(exploration: Exploration) -> str:
    count = len(exploration.outcomes)
    outcomes = f"{count:,} outcome{'' if count == 1 else 's'}"
    if exploration.complete:
        return f"{outcomes}; all {exploration.states:,} states were seen"
    if not exploration.states:
        return f"{outcomes}; the time ended before the first state: raise --seconds, or use a smaller input"
    return f"{outcomes} in the first {exploration.states:,} states; there are more: raise --states or --seconds"


def _show_moves(out: Console, moves: Sequence[Move]) -> None:
    for move in moves[:MOST_MOVES]:
        say(out, f"       {move}", "dim")
    if len(moves) > MOST_MOVES:
        say(out, f"       {len(moves) - MOST_MOVES:,} more steps", "dim")


def _values(exploration: Exploration) -> list[str]:
    """Say what distinguishes each outcome: the elements that differ between outcomes, or the first where none does."""
    flat = [_flat(outcome.outputs) for outcome in exploration.outcomes]
    if not flat:
        return []
    differing = [name for name, value in flat[0].items() if any(_differ(each[name], value) for each in flat)]
    shown = differing[:MOST_VALUES] or [*flat[0]][:MOST_VALUES]
    more = ", …" if len(differing or flat[0]) > len(shown) else ""
    return [", ".join(f"{name} = {each[name]:.9g}" for name in shown) + more for each in flat]


def _differ(one: float, other: float) -> bool:
    return one != other and not (one != one and other != other)


def _flat(outputs: Mapping[Any, Any]) -> dict[str, float]:
    """Return the elements of all outputs by name."""
    flat: dict[str, float] = {}
    for key, output in outputs.items():
        array = np.frombuffer(output, np.uint8) if isinstance(output, bytes) else output.reshape(-1)
        name = key if isinstance(key, str) else f"({key[0]}, {key[1]})"
        numbers = array.view(np.uint8) if array.dtype.names else array
        flat |= {f"{name}[{i}]": value for i, value in enumerate(numbers.tolist())}
    return flat


def explored_entry(result: Explored) -> Entry:
    exploration = result.exploration
    return {
        **case_entry(result.case),
        "device": result.device,
        "ok": result.ok,
        "outcome": result.outcome,
        "compared": [],
        "memory": exploration.memory,
        "states": exploration.states,
        "complete": exploration.complete,
        "seconds": exploration.seconds,
        "outcomes": [
            {
                "outputs": {str(key): output for key, output in outcome.outputs.items()},
                "weak": outcome.weak,
                "witness": [_move_entry(move) for move in outcome.witness],
            }
            for outcome in exploration.outcomes
        ],
        "deadlocks": [[_move_entry(move) for move in moves] for moves in exploration.deadlocks],
        "progress": [_progress_entry(each) for each in exploration.progress],
        "barriers": [
            {"line": each.span.line, "matters": each.matters, "outcomes": each.outcomes}
            for each in exploration.barriers
        ],
        "findings": [diagnostic_entry(each) for each in exploration.findings],
    }


def _progress_entry(progress: Progress) -> Entry:
    return {
        "model": progress.model,
        "within": progress.within,
        "ends": progress.ends,
        "never": progress.never,
        "sentence": progress.sentence,
        "memory": progress.memory,
        "way": [_move_entry(move) for move in progress.way],
        "cycle": [_move_entry(move) for move in progress.cycle],
    }


def _move_entry(move: Move) -> Entry:
    place = move.span.place if move.span else None
    return {
        "workgroup": move.workgroup,
        "lane": move.lane,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "does": move.does,
    }
