"""What unwritten workgroup memory may hold, and which part of it one finding is about: so that each is judged alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..launch.launch import Filling, Launch
from ..wgsl import types as t
from .finding import Finding

# What unwritten memory is filled with, by what it is called. No value shows every use: a NaN has even bits, and words
# that are all equal cancel in a difference.
FILLINGS = {
    "NaNs": Filling(0x7FC07FC0),  # also of f16, and large integers
    "all bits set": Filling(0xFFFFFFFF),
    "another value in each word": Filling(0x3F800001, 0x00C54321),
}


def loaded(finding: Finding, launch: Launch) -> Filling:
    """Return the part of workgroup memory that a load reads which no store precedes: a variable, or members of it."""
    assert finding.span is not None
    accesses = launch.program.watched_at.get((finding.span.start, finding.span.end), [])
    inside = [access for access in accesses if access.space == "workgroup"]
    if len({access.variable for access in inside}) > 1:  # through a pointer
        return Filling()
    name = inside[0].variable.name
    store = launch.type_of(inside[0].variable)
    if not isinstance(store, t.Struct):
        return Filling(variable=name)
    return _part(name, store, {_member(store, access.offset * access.unit) for access in inside})


def atomics_of(name: str, launch: Launch) -> list[Filling]:
    """Return the parts of a variable of workgroup memory that have atomics."""
    store = launch.workgroup_type(name)
    if not isinstance(store, t.Struct):
        return [Filling(variable=name)]
    places = (place for place, member in enumerate(store.members) if t.contains_atomic(member.type))
    return [_part(name, store, {place}) for place in places]


def filled(*parts: Filling) -> Iterator[tuple[str, Filling]]:
    """Yield each filling of each part, with its name."""
    for part in parts:
        for words, filling in FILLINGS.items():
            yield words, replace(filling, variable=part.variable, part=part.part)


def _member(store: t.Struct, byte: int) -> int:
    """Return which member of a struct has this byte."""
    return max(place for place, member in enumerate(store.members) if member.offset <= byte)


def _part(name: str, store: t.Struct, places: set[int]) -> Filling:
    """Return the part of a variable from the first to the last of these members."""
    first, last = store.members[min(places)], store.members[max(places)]
    return Filling(variable=name, part=range(first.offset, last.offset + t.size_of(last.type)))
