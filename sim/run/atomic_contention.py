"""Which atomic operations on storage wait for each other: those on one word, and on one part of the L2 cache."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import frozen
from ..launch.sample_memory import GRANULE, Accessed

# Chunks of so many bytes lie on two parts of the L2 cache in turn, up to the end of a stretch: measured on an H200 by
# pairs of lines that atomic operations change at once. Those of a stretch that lie on the same part are a stripe.
_CHUNK, _STRETCH = 256, 1024
_IN_TURN = 2


@frozen
class Contention:
    """How the atomic operations of two neighbouring workgroups share the stripes of a buffer.

    `busiest`: the share on the stripe that has the most; `word`: the share on the word that has the most; `collisions`:
    the chance that two operations share a stripe; `apart`: 0 where workgroups change the same words, 1 where they
    change others; `crossing`: the chance that an operation of one and one of the other share a granule.
    """

    busiest: float
    word: float
    collisions: float
    apart: float
    crossing: float


def largest_stripe(size: int) -> float:
    """Return the share of a buffer of so many bytes that is on its largest stripe."""
    of_words = _stripes(4 * np.arange(min(size, _STRETCH) // 4))
    return 4 * float(np.bincount(of_words).max()) / size


def _stripes(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the stripe that holds each byte, by its offset."""
    return offsets // _STRETCH * _IN_TURN + offsets // _CHUNK % _IN_TURN


def contentions(accessed: Accessed, names: Iterable[str], *, alone: bool) -> dict[str, Contention]:
    """Return the contention for each buffer that the workgroups change. `alone`: there is no second one, and what two
    would access is the same."""
    if alone:
        accessed = replace(accessed, second=accessed.first)
    return {name: found for name in names if (found := _contention(accessed, name)) is not None}


def _contention(accessed: Accessed, name: str) -> Contention | None:
    """Return the contention of two workgroups for a buffer; None where neither changes it."""
    words, first, second = accessed.operations(name)
    one, other = first.astype(np.int64), second.astype(np.int64)
    if not (both := one + other).any():
        return None
    _, its_stripe = np.unique(_stripes(4 * words), return_inverse=True)
    mine, its = (np.bincount(its_stripe, each.sum(axis=1)) for each in (one, other))
    most, of_word, total = (mine + its).max(), both.max(), both.sum()
    collisions = _collisions(mine + its)
    busiest = float(max(collisions, (most - 2 * sqrt(most)) / total))
    word = busiest if of_word == total else min(busiest, max(0.0, float(of_word - 2 * sqrt(of_word)) / total))
    granules = np.flatnonzero(np.diff(words // GRANULE, prepend=-1))
    crossing = _crossing(*(np.add.reduceat(each.sum(axis=1), granules) for each in (one, other)))
    return Contention(busiest, word, collisions, _apart(one, other), crossing)


def _collisions(counts: NDArray[Any]) -> float:
    """Return the chance that two operations of so many on each place share one."""
    total = counts.sum()
    return float(np.sum(counts * (counts - 1)) / max(1, total * (total - 1)))


def _crossing(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the chance that an operation of one workgroup and one of the other share a place."""
    return float(np.sum(one * other) / max(1, one.sum() * other.sum()))


def _apart(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return how far the words of two workgroups are apart: 0 where the operations of both share words as often as
    those of one do, by chance or always, or where only one has any; 1 where they share none."""
    shared, pairs = float(np.sum(one * other)), float(one.sum() * other.sum())
    if not pairs:
        return 0.0
    if within := _collisions(one):
        likely = (shared + 2 * sqrt(shared)) / (pairs * within)
    else:
        likely = shared / min(one.sum(), other.sum())
    return 1 - log2(1 + min(1.0, likely))
