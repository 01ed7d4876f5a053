"""The steps of a workgroup: which lanes executed which part of the program, in order, and where they accessed memory.

A program is split into *chunks*: items that the same lanes execute one after the other. A chunk ends where control may
diverge, and before an item with a fact that is known only at run time: the address of an access, the index of an array,
the condition of a `select`, or the source of a shuffle. A note at its start records the lanes, and the fact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import entity, frozen
from ..ir import ir
from ..ir.builder import Builder
from ..ir.lowered import Lowered
from ..ir.trace_points import Point
from ..machine import layout as at
from ..wgsl import typed
from ..wgsl.source import Source, Span
from ..wgsl.typed import Variable

Construct = ir.If | ir.Loop

_NOWHERE = Span(Source(""), 0, 0)
_NOTED = Variable("(steps)", typed.NOTHING, _NOWHERE)


@frozen
class Enter:
    """The lanes begin a loop."""

    loop: ir.Loop


@frozen
class Decide:
    """The lanes part: by the condition of an `if` or a loop. `leaves`: loops that jumps below an `if` leave."""

    construct: Construct
    condition: ir.Value
    leaves: tuple[ir.Loop, ...] = ()


Part = ir.Item | Enter | Decide


@entity
class Chunk:
    """Items that the same lanes execute. `first` is the item that the fact of each step belongs to, if it has one.

    `governors`: the constructs whose conditions decide whether a lane comes here. `head_of`: the loop whose header it
    is part of.
    """

    parts: list[Part] = field(default_factory=list[Part])
    first: ir.Item | None = None
    governors: tuple[Construct, ...] = ()
    head_of: ir.Loop | None = None
    region: ir.Region | None = None


@frozen
class Step:
    """An execution of a chunk by `lanes` (ascending), with the fact of each."""

    chunk: Chunk
    lanes: NDArray[np.int64]
    facts: NDArray[np.int64]


def note_steps(lowered: Lowered) -> list[Chunk]:
    """Add notes to a program, in place; return its chunks, in the order of their trace points."""
    lowered.builder = builder = Builder.extending(lowered.builder)
    splitter = _Splitter(builder)
    splitter.split(lowered.body, (), None)
    lowered.points += [Point(_NOTED, "", _NOWHERE, "u32", number) for number in range(len(splitter.chunks))]
    return splitter.chunks


def read_steps(notes: NDArray[np.int64], chunks: list[Chunk]) -> Iterator[Step]:
    """Yield the steps that a launch noted."""
    points, lanes = notes[:, at.NOTE_POINT], notes[:, at.NOTE_LANE]
    begins = np.flatnonzero((points[1:] != points[:-1]) | (lanes[1:] <= lanes[:-1])) + 1
    edges = [0, *begins.tolist(), len(notes)]
    for start, end in pairwise(edges):
        if start < end:
            chunk = chunks[int(points[start])]
            yield Step(chunk, lanes[start:end], notes[start:end, at.NOTE_PLACE])


@frozen
class _Jump:
    """A jump out of a region, and the innermost `if` around it that has been passed."""

    jump: ir.Jump
    below: ir.If | None = None


class _Splitter:
    """Splits regions into chunks. `chunks`: those found so far."""

    def __init__(self, builder: Builder) -> None:
        self.chunks: list[Chunk] = []
        self._builder = builder
        self._zero = builder.const("u32", 0)
        self._now: Chunk | None = None
        self._around: list[ir.Loop | ir.Scope] = []

    def split(self, region: ir.Region, governors: tuple[Construct, ...], header: ir.Loop | None = None) -> list[_Jump]:
        """Split a region; return the jumps out of it. `header`: the loop that it is the header of."""
        self._now = None
        found: list[_Jump] = []
        for item in self._builder.rewrite(region):
            match item:
                case ir.If() | ir.Loop() | ir.Scope():
                    jumps = self._nested(item, governors, header)
                    passed = (each.below for each in jumps if each.below is not None)
                    governors = tuple(dict.fromkeys((*governors, *passed)))
                    found += jumps
                case ir.Jump():
                    self._builder.append(item)
                    found.append(_Jump(item))
                case ir.Value(op="const" | "input" | "length"):
                    self._builder.append(item)
                case _:
                    self._plain(item, governors, header)
        return found

    def _plain(self, item: ir.Item, governors: tuple[Construct, ...], header: ir.Loop | None) -> None:
        fact = _fact_of(item)
        if fact is not None or isinstance(item, ir.Load | ir.Store | ir.Atomic):  # without an address: at 0
            self._begin(governors, header, item, fact)
        chunk = self._now or self._begin(governors, header)
        if isinstance(item, ir.Count):
            chunk.parts.insert(0, item)  # values of its block may come before it
        else:
            chunk.parts.append(item)
        self._builder.append(item)

    def _nested(
        self, item: ir.If | ir.Loop | ir.Scope, governors: tuple[Construct, ...], header: ir.Loop | None
    ) -> list[_Jump]:
        if isinstance(item, ir.Scope):
            self._builder.append(item)
            self._around.append(item)
            found = self.split(item.body, governors)
            self._around.pop()
        elif isinstance(item, ir.Loop):
            (self._now or self._begin(governors, header)).parts.append(Enter(item))
            self._builder.append(item)
            found = self._loop(item, (*governors, item))
        else:
            chunk = self._now or self._begin(governors, header)
            self._builder.append(item)
            inside = (*governors, item)
            found = self.split(item.then, inside) + self.split(item.orelse, inside)
            chunk.parts.append(Decide(item, item.condition, self._left_by(found)))
            found = [each for e in found for each in dict.fromkeys((e, _Jump(e.jump, item)))]
            found = [e for e in found if e.below is not None]
        self._now = None
        return [e for e in found if e.jump.target.node is not item]

    def _loop(self, loop: ir.Loop, inside: tuple[Construct, ...]) -> list[_Jump]:
        self._around.append(loop)
        found = self.split(loop.header, inside, loop)
        if loop.condition is not None:
            (self._now or self._begin_in(loop.header, inside, loop)).parts.append(Decide(loop, loop.condition))
        found += self.split(loop.body, inside)
        found += self.split(loop.continuing, inside)
        if loop.break_if is not None:
            (self._now or self._begin_in(loop.continuing, inside)).parts.append(Decide(loop, loop.break_if))
        self._around.pop()
        return found

    def _left_by(self, jumps: list[_Jump]) -> tuple[ir.Loop, ...]:
        """Return the loops that a lane leaves by these jumps."""
        left: list[ir.Loop] = []
        for each in jumps:
            for around in reversed(self._around):
                stays = around is each.jump.target.node and each.jump.kind == "continue"
                if isinstance(around, ir.Loop) and not stays and around not in left:
                    left.append(around)
                if around is each.jump.target.node:
                    break
        return tuple(left)

    def _begin_in(self, region: ir.Region, governors: tuple[Construct, ...], header: ir.Loop | None = None) -> Chunk:
        outer, self._builder.here = self._builder.here, region
        chunk = self._begin(governors, header)
        self._builder.here = outer
        return chunk

    def _begin(
        self,
        governors: tuple[Construct, ...],
        header: ir.Loop | None,
        first: ir.Item | None = None,
        fact: ir.Value | None = None,
    ) -> Chunk:
        """Begin a chunk here, with a note."""
        self._now = Chunk(first=first, governors=governors, head_of=header, region=self._builder.here)
        self._builder.append(ir.Note([self._zero], len(self.chunks), self._word(fact)))
        self.chunks.append(self._now)
        return self._now

    def _word(self, fact: ir.Value | None) -> ir.Value:
        if fact is None or fact.kind != "bool":
            return fact or self._zero
        return self._builder.op("select_u32", self._zero, self._builder.const("u32", 1), fact)


def _fact_of(item: ir.Item) -> ir.Value | None:
    """Return the value that decides at run time what an item reads or writes."""
    match item:
        case ir.Load(address=address) | ir.Store(address=address) | ir.Atomic(address=address):
            return address
        case ir.Pick(index=index) | ir.Put(index=index):
            return index
        case ir.Collective(op="shuffle" | "shuffle_last", args=(_, source)):
            return source
        case ir.Value(op=op, args=(_, _, condition)) if op.startswith("select_"):
            return condition
        case _:
            return None
