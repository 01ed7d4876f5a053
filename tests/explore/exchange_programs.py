"""Programs of one kind of instruction, exchange and branch, as graphs of states and as WGSL.

An instruction stores in a word, if it stores, and then branches, if it branches, where the word held a value before.
Spin locks, flags and handshakes are programs of a few such instructions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bankshot.sim.fast_dataclass import frozen


class Exchange(NamedTuple):
    """`old = m[word]; m[word] = stores; if old == tests { goto target }`; a target past the end ends the unit."""

    word: int
    stores: int | None = None
    tests: int | None = None
    target: int = 0


Program = tuple[tuple[Exchange, ...], ...]  # the instructions of each unit


@frozen
class States:
    """A graph of states, as `sim.explore.progress` takes it."""

    edges: list[list[tuple[int, int]]]
    finished: list[frozenset[int]]
    blocked: list[frozenset[int]]
    units: int


def states(program: Program) -> States:
    """Return all states of a program: words 0 and 1 are zero at first, and each unit is its own workgroup."""
    start = ((0,) * len(program), (0, 0))
    numbers, nodes, edges = {start: 0}, [start], list[list[tuple[int, int]]]()
    for counters, memory in nodes:
        edges.append([])
        for unit, counter in enumerate(counters):
            if counter < len(program[unit]):
                each = program[unit][counter]
                after = each.target if memory[each.word] == each.tests else counter + 1
                node = (_put(counters, unit, after), _put(memory, each.word, each.stores))
                if node not in numbers:
                    numbers[node] = len(nodes)
                    nodes.append(node)
                edges[-1].append((unit, numbers[node]))
    ended = [frozenset(unit for unit, at in enumerate(counters) if at >= len(program[unit])) for counters, _ in nodes]
    return States(edges, ended, [frozenset()] * len(nodes), len(program))


def _put(values: tuple[int, ...], at: int, value: int | None) -> tuple[int, ...]:
    return values if value is None else (*values[:at], value, *values[at + 1 :])


def wgsl(program: Program) -> str:
    """Return the program as a kernel of workgroups of one invocation; the words are atomics of the buffer `m`."""
    lines = [
        "@group(0) @binding(0) var<storage, read_write> m: array<atomic<u32>, 2>;",
        "@compute @workgroup_size(1)",
        "fn main(@builtin(workgroup_id) w: vec3u) {",
        "  var at = 0u;",
        "  switch w.x {",
    ]
    for unit, instructions in enumerate(program):
        lines += [f"    case {unit}u: {{", "      loop {", "        switch at {"]
        for at, each in enumerate(instructions):
            lines.append(f"          case {at}u: {{ {' '.join(_statements(at, each))} }}")
        lines += ["          default: { return; }", "        }", "      }", "    }"]
    return "\n".join([*lines, "    default: {}", "  }", "}", ""])


def _statements(at: int, each: Exchange) -> Iterator[str]:
    word = f"&m[{each.word}]"
    if each.tests is None:
        yield f"at = {at + 1}u;"
        yield f"atomicStore({word}, {each.stores}u);" if each.stores is not None else ""
        return
    read = f"atomicLoad({word})" if each.stores is None else f"atomicExchange({word}, {each.stores}u)"
    yield f"at = select({at + 1}u, {each.target}u, {read} == {each.tests}u);"
