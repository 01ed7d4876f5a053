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


STORE, WAIT = Exchange(0, stores=1), Exchange(0, tests=0)
STORE_1, WAIT_1 = Exchange(1, stores=1), Exchange(1, tests=0, target=1)
LOCK = (Exchange(0, stores=1, tests=1), Exchange(0, stores=0))
UNLOCKED = (Exchange(0, tests=1), Exchange(0, stores=1))  # a lock that tests and sets in two steps

# Each program, with the models under which every run ends.
BY_HAND = {
    "no loop": (((STORE,), (STORE_1,)), "fair hsa obe hsa+obe lobe none"),
    # `obe`: the second workgroup starts alone and spins. `lobe`: it starts, so the first must run.
    "the first stores what the second waits for": (((STORE,), (WAIT,)), "fair hsa hsa+obe lobe"),
    # `lobe` and `hsa`: the first spins alone, and owes the second nothing.
    "the second stores what the first waits for": (((WAIT,), (STORE,)), "fair"),
    # `hsa`: the second takes the lock, and the first spins. `obe`: who holds the lock has started.
    "spin lock": ((LOCK, LOCK), "fair obe hsa+obe lobe"),
    "spin lock of three": ((LOCK, LOCK, LOCK), "fair obe hsa+obe lobe"),
    "lock that two can take": ((UNLOCKED, UNLOCKED), ""),
    "two flags, each way": (((STORE, WAIT_1), (STORE_1, Exchange(0, tests=0, target=1))), "fair"),
    "one waits for itself": (((WAIT, STORE), ()), ""),
    # The second waits for the first, and the third for the second. `hsa`: the first, then the second.
    "chain, upwards": (((STORE,), (WAIT, STORE_1), (Exchange(1, tests=0),)), "fair hsa hsa+obe lobe"),
    "chain, downwards": (((Exchange(1, tests=0),), (WAIT, STORE_1), (STORE,)), "fair"),
    # The third stores once the first has; the second waits for it. `hsa`: the second spins before the third starts.
    "the second waits for the third": (((STORE,), (Exchange(1, tests=0),), (WAIT, STORE_1)), "fair"),
    # `hsa+obe`: the third stores and waits for the second, which is neither the first nor started.
    "the third holds up the first until the second stores": (
        ((Exchange(1, tests=1),), (STORE,), (STORE_1, Exchange(0, tests=0, target=1), Exchange(1, stores=0))),
        "fair lobe",
    ),
    # Each undoes what the other waits for: with weak fairness both may step forever in every model.
    "a livelock that luck ends": (((Exchange(0, 0, 1),), (Exchange(0, 1, 0),)), ""),
}
