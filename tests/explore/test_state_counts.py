"""How many states there are, by a second enumeration that steps litmus tests one statement at a time.

A state is how far each thread is, what its registers hold, and the words. That pins what the search leaves out, and
what it tells apart: both change no outcome.
"""

from __future__ import annotations

import pytest

from tests.explore.litmus import Statement, graph, parse

State = tuple[tuple[tuple[int, tuple[int, ...]], ...], tuple[int, ...]]  # each thread, and the words


def state_count(text: str, reduce: bool = False) -> int:
    """Count the states with sequentially consistent memory.

    `reduce`: the first thread goes alone whose word no other accesses any more, or all that do only load.
    """
    litmus = parse(text)
    words = litmus.words

    def after(statement: Statement, old: int) -> int:
        number = int(statement.values[-1]) if statement.values else 0
        match statement.kind:
            case "store" | "exchange":
                return number
            case "add":
                return old + number
            case "compare":
                return number if old == int(statement.values[0]) else old
            case _:
                return old

    def steps(state: State) -> list[State]:
        threads, memory = state
        able = [n for n, (pc, _) in enumerate(threads) if pc < len(litmus.threads[n])]
        for n in able if reduce else ():
            mine = litmus.threads[n][threads[n][0]]
            others = [s for m in able if m != n for s in litmus.threads[m][threads[m][0] :] if s.word == mine.word]
            if all(s.kind == mine.kind == "load" for s in others):
                able = [n]
                break
        found: list[State] = []
        for n in able:
            pc, read = threads[n]
            statement = litmus.threads[n][pc]
            place = words.index(statement.word)
            read += (memory[place],) if statement.register else ()
            changed = (*memory[:place], after(statement, memory[place]), *memory[place + 1 :])
            found.append(((*threads[:n], (pc + 1, read), *threads[n + 1 :]), changed))
        return found

    first: State = (((0, ()),) * len(litmus.threads), (0,) * len(words))
    states = {first: None}
    for state in (queue := [first]):
        new = [each for each in steps(state) if each not in states]
        states |= dict.fromkeys(new)
        queue += [each for each in dict.fromkeys(new)]
    return len(states)


# One thread stores to each word, so that weak memory has one order of its values.
ONE_WORD = [
    "x=1 | r=x",
    "x=1 | r=x; s=x",
    "x=1; x=2 | r=x",
    "x=1; x=2 | r=x | s=x",
    "x=1; x=2; x=3 | r=x; s=x",
]
OTHERS = [
    "x=1 | x=2",
    "x=1 | x=1",
    "r=x+1 | s=x+2",
    "r=x+1 | s=x+1 | t=x+1",
    "r=x<-1 | s=x<-2 | t=x",
    "r=x?0:1 | s=x?0:2 | t=x",
    "x=1; y=1 | r=y; s=x",
    "x=1; r=y | y=1; s=x",
    "x=1; y=2 | y=1; x=2",
    "x=1 | r=x | y=1 | s=y",
    "x=1; x=0 | r=x",
]


def test_the_enumeration_counts_as_by_hand():
    assert state_count("x=1 | r=x") == 5  # r read 0 before or after the store, 1, or not yet, with x 0 or 1
    assert state_count("x=1 | x=2") == 5
    assert state_count("x=1 | r=x | y=1 | s=y") == 25
    assert state_count("x=1 | r=x | y=1 | s=y", reduce=True) < 25


@pytest.mark.parametrize("text", ONE_WORD + OTHERS)
@pytest.mark.parametrize("reduce", [False, True])
def test_states_of_sequentially_consistent_memory(text, reduce):
    assert len(graph(text, "across", "sc", reduce).states) == state_count(text, reduce)


@pytest.mark.parametrize("text", ONE_WORD)
def test_states_of_weak_memory_with_one_word(text):
    assert len(graph(text, "across", "weak").states) == state_count(text)
