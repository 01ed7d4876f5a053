"""Changes of a text that may end races within a workgroup: barriers, barriers of another kind, and split statements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..fast_dataclass import frozen
from ..wgsl import typed
from ..wgsl.source import LINE_BREAKS, Source, Span
from ..wgsl.text_edits import Replacement
from .places import BARRIERS, Gap, Path, Places

_SEMICOLON = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*;", re.DOTALL)
_REST = re.compile(rf"[ \t]*(?://[^{LINE_BREAKS}]*)?(?=[{LINE_BREAKS}]|$)")  # of a line, without code
_INDENT = "    "
_BARRIER = 1  # the effort of a barrier more
_MOST_PAIRS = 4  # that are tried


@frozen
class Race:
    """Two places that race, and the memory: workgroup, storage or texture. `across`: in different workgroups.
    `same_value`: both store the same."""

    first: Span
    second: Span
    space: str
    variable: str
    across: bool
    same_value: bool = False

    @property
    def spans(self) -> tuple[Span, Span]:
        return self.first, self.second


@frozen
class Change:
    """A change of the text. `words` say what it is. `orders`: the races that it may end, from where it is; `straight`:
    how many of them in the order of the text. `depth`: in how many blocks it is. `effort`: 0 for another kind of
    barrier, 1 for a barrier more, 2 where it rewrites a statement, 3 where it rewrites a variable. `joint`: it is two
    changes.
    """

    words: str
    replacements: tuple[Replacement, ...]
    orders: frozenset[Race]
    straight: int = 0
    depth: int = 0
    effort: int = _BARRIER
    joint: bool = False

    @property
    def rank(self) -> tuple[int, int, int, int, int]:
        """The most promising first: the most races, the least change, outside of inner blocks; in a loop, its end."""
        start = self.replacements[0].start
        return -len(self.orders), -self.straight, self.effort, self.depth, start if self.straight else -start


def changes(source: Source, places: Places, races: Iterable[Race]) -> list[Change]:
    """Return the changes that may end some of these races, the most promising first."""
    inside = [race for race in races if not race.across]
    found = [*_other_kinds(places, inside), *_barriers(source, places, inside), *_splits(source, places, inside)]
    return sorted(found, key=lambda change: change.rank)


def both_ways(found: Iterable[Change]) -> list[Change]:
    """Return pairs of barriers for accesses in a loop: one in the order of the text, and one before the next iteration.

    An access may race with another one of its iteration and of the next: then neither barrier alone ends the race.
    """
    barriers = [change for change in found if change.effort == _BARRIER]
    ahead = [change for change in barriers if change.straight]
    back = [change for change in barriers if not change.straight]
    pairs = [
        replace(
            one,
            words=f"{one.words} and {other.words}",
            replacements=(*one.replacements, *other.replacements),
            orders=one.orders & other.orders,
            joint=True,
        )
        for one in ahead
        for other in back
    ]
    return sorted((pair for pair in pairs if pair.orders), key=lambda change: change.rank)[:_MOST_PAIRS]


# ---- barriers ----


def _barriers(source: Source, places: Places, races: list[Race]) -> Iterator[Change]:
    """Yield a barrier for each kind of memory at each gap; of neighbors that separate the same, at one."""
    blocks: dict[typed.Block, dict[int, Gap]] = {}
    for race in races:
        for gap in places.gaps(race.spans):
            blocks.setdefault(gap.block, {})[gap.index] = gap
    for space in dict.fromkeys(race.space for race in races):
        of_space = [race for race in races if race.space == space]
        for gaps in blocks.values():
            before: Change | None = None
            for _, gap in sorted(gaps.items()):
                orders, straight = _separated(places, gap, of_space)
                change = _barrier(source, gap, space, orders, straight) if orders else None
                if before is not None and (change is None or not _alike(before, change)):
                    yield before
                    before = None
                if change is not None and (before is None or not straight):
                    before = change  # in a loop, the last such place: the end of its body
            if before is not None:
                yield before


def _alike(one: Change, two: Change) -> bool:
    return one.orders == two.orders and one.straight == two.straight


def _separated(places: Places, gap: Gap, races: Iterable[Race]) -> tuple[frozenset[Race], int]:
    """Return the races whose accesses a gap separates, and how many of them in the order of the text."""
    found = {race: side for race in races if (side := places.between(gap, race.spans)) is not None}
    return frozenset(found), sum(side.straight for side in found.values())


def _barrier(source: Source, gap: Gap, space: str, orders: frozenset[Race], straight: int) -> Change:
    call = f"{BARRIERS[space]}()"
    around = gap.before or gap.block.body[0]
    offset = gap.block.span.start + 1 if gap.before is None else _end(source, gap.before)
    insertion = _insertion(source, offset, _indent(source, around), call + ";")
    place = source.place(offset - 1)
    if gap.before is None:
        words = f"at the start of the block in line {place.line}"
    else:
        own_line = insertion.text.startswith("\n")
        words = f"after line {place.line}" if own_line else f"after column {place.column} of line {place.line}"
        if gap.loop is not None and gap.index == len(gap.block.body):
            words += f", at the end of the loop in line {gap.loop.span.line},"
    return Change(f"a {call} {words}", (insertion,), orders, straight, gap.depth)


def _end(source: Source, stmt: typed.Stmt) -> int:
    """Return where a statement ends, with its semicolon."""
    found = _SEMICOLON.match(source.text, stmt.span.end)
    return found.end() if found else stmt.span.end


def _indent(source: Source, stmt: typed.Stmt) -> str | None:
    """Return the blanks before a statement in its line; None where there is code."""
    start = source.line_start(source.line_index(stmt.span.start))
    before = source.text[start : stmt.span.start]
    return None if before.strip() else before


def _insertion(source: Source, offset: int, indent: str | None, code: str) -> Replacement:
    """Insert a statement on a line of its own if the lines allow it."""
    rest = _REST.match(source.text, offset)
    if rest is None or indent is None:
        return Replacement(offset, offset, f" {code}")
    return Replacement(rest.end(), rest.end(), f"\n{indent}{code}")


def _other_kinds(places: Places, races: list[Race]) -> Iterator[Change]:
    """Yield the barriers between the accesses that order another kind of memory, each with the right kind."""
    for space in dict.fromkeys(race.space for race in races):
        of_space = [race for race in races if race.space == space]
        calls = {call: gap for race in of_space for gap, call in places.barriers(race.spans)}
        for call, gap in calls.items():
            name = call.builtin.name
            orders, straight = _separated(places, gap, of_space)
            if name != BARRIERS[space] and orders:
                start = call.span.start
                words = f"{BARRIERS[space]}() instead of {name}() in line {call.span.line}"
                change = (Replacement(start, start + len(name), BARRIERS[space]),)
                yield Change(words, change, orders, straight, gap.depth, effort=0)


# ---- statements that load and store ----


def _splits(source: Source, places: Places, races: list[Race]) -> Iterator[Change]:
    """Yield a barrier between the load and the store of a statement, which becomes two."""
    statements: dict[typed.Stmt, tuple[Path, list[Race]]] = {}
    for race in races:
        path, other = places.statement(race.first), places.statement(race.second)
        if path is None or other is None:
            continue
        stmt = _of(path)
        if stmt is _of(other) and isinstance(stmt, typed.Assign | typed.CompoundAssign):
            statements.setdefault(stmt, (path, []))[1].append(race)
    for path, found in statements.values():
        if any(race.first == race.second for race in found):
            continue  # several invocations store to one word: no barrier orders these
        replacement = _split(source, path, [BARRIERS[space] for space in dict.fromkeys(race.space for race in found)])
        if replacement is not None:
            line = _of(path).span.line
            barrier = f"a {BARRIERS[found[0].space]}() between the load and the store of line {line}"
            yield Change(barrier, (replacement,), frozenset(found), len(found), len(path), effort=2)


def _of(path: Path) -> typed.Stmt:
    block, index = path[-1]
    return block.body[index]


def _block(path: Path) -> typed.Block:
    block, _ = path[-1]
    return block


def _split(source: Source, path: Path, barriers: list[str]) -> Replacement | None:
    stmt = _of(path)
    assert isinstance(stmt, typed.Assign | typed.CompoundAssign)
    value = stmt.value.span
    if not stmt.span.start < value.start < value.end <= stmt.span.end or not _block(path).span.text.startswith("{"):
        return None
    name = _free(source, "loaded")
    store = source.text[stmt.span.start : value.start] + name + source.text[value.end : stmt.span.end]
    calls = [f"{barrier}();" for barrier in barriers]
    outer = path[:-1]
    around = _of(outer) if outer else None
    if isinstance(around, typed.If) and around.orelse is None and around.then.body == [stmt]:
        if not _block(outer).span.text.startswith("{"):
            return None
        taken = _free(source, "taken")
        span, lines = around.span, [
            f"let {taken} = {around.condition.span.text};",
            f"var {name}: {stmt.value.type};",
            f"if {taken} {{ {name} = {value.text}; }}",
            *calls,
            f"if {taken} {{ {store}; }}",
        ]  # fmt: skip
    else:
        span, lines = stmt.span, [f"let {name} = {value.text};", *calls, store]
    indent = _indent(source, _of(outer) if span is not stmt.span else stmt)
    return Replacement(span.start, span.end, (" " if indent is None else f"\n{indent}").join(lines))


def _free(source: Source, name: str) -> str:
    """Return a name that the text does not have."""
    while re.search(rf"\b{name}\b", source.text):
        name += "_"
    return name
