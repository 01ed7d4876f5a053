"""The graph of the uniformity analysis: nodes, what can be reached from them, and explanations of paths.

`uniformity` builds one for each function.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from ...fast_dataclass import entity, frozen
from .. import typed
from ..diagnostics import Note
from ..source import Span


@entity
class Node:
    """A node. `source`: why it may be non-uniform by itself, or None. `key` names the nodes that callers know.

    `via` explains a step of a path through control flow: a condition, or a jump that skips what follows.
    """

    edges: list[Node] = field(default_factory=list["Node"])
    source: Note | None = None
    key: Key | None = None
    via: Note | None = None


Key = tuple[str, int]  # ("control", 0), ("value", i), ("contents", i): of parameter i


@frozen
class Need:
    """A call that must be uniform: its callee, span and severity, and what exactly must be uniform."""

    name: str
    span: Span
    severity: str
    what: str


@entity
class Reach:
    """The ends of the paths from a node: nodes that callers know, and a source of non-uniformity."""

    keys: frozenset[Key]
    source: Note | None


@entity
class Summary:
    """The effect of a function on its callers. `contents[i]`: what pointer parameter i points to afterwards."""

    needs: dict[Need, frozenset[Key]]
    result: Reach
    contents: dict[int, Reach]


def depends_on(*edges: Node, source: Note | None = None) -> Node:
    """Return a node that is uniform only if these are."""
    return Node(list(edges), source)


def under(condition: Node, message: str, part: typed.Expr | typed.Stmt) -> Node:
    """Return the control flow behind a condition."""
    return Node([condition], via=Note(message, part.span))


def explained(start: Node) -> tuple[Note, ...]:
    """Return the steps of a shortest path to a source of non-uniformity, the source last."""
    before: dict[int, Node] = {}
    todo = [start]
    for node in todo:
        if node.source is not None:
            steps = [node.source]
            while node is not start:
                node = before[id(node)]
                if node.via is not None:
                    steps.append(node.via)
            return tuple(dict.fromkeys(reversed(steps)))
        for other in node.edges:
            if id(other) not in before and other is not start:
                before[id(other)] = node
                todo.append(other)
    return ()


def reach(start: Iterable[Node]) -> Reach:
    """Follow every path; the source found is a nearest one."""
    todo = list(start)
    seen = set(map(id, todo))
    keys: set[Key] = set()
    source: Note | None = None
    for node in todo:
        source = source or node.source
        if node.key:
            keys.add(node.key)
        for other in node.edges:
            if id(other) not in seen:
                seen.add(id(other))
                todo.append(other)
    return Reach(frozenset(keys), source)


def after_jump(stmt: typed.If | typed.Switch | typed.Loop, ends: list[Node]) -> Node:
    """Return the control flow after a statement in which some invocations may jump past what follows."""
    inner = (part for block in typed.blocks(stmt) for part in typed.statements(block))
    jump = next((part for part in inner if isinstance(part, (typed.Return, typed.Break, typed.Continue))), None)
    via = Note(f"after this {_JUMPS[type(jump)]}", jump.span) if jump else None
    return Node(ends, via=via)


_JUMPS = {typed.Return: "'return'", typed.Break: "'break'", typed.Continue: "'continue'"}


def hint_for(need: Need, notes: tuple[Note, ...]) -> str | None:
    """Return how to make a call uniform, from the steps of its explanation."""
    early = next((note.span for note in notes if note.message.startswith("after this")), None)
    if early is not None:
        leave = early.text.split()[0].rstrip(";")
        return f"put the work under the opposite condition instead of the '{leave}', so that all invocations come here"
    return None
