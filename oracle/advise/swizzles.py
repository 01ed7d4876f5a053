"""Swizzles: permutations of an array's elements, `index ^ ((index >> shift) & mask) << left`, of one term or two.

Each term adds higher bits of an index to lower ones, so that a swizzle permutes each aligned block of `block` elements:
it is a bijection of every array whose length is a multiple of that. With a pitch of 2^p, `shift` >= p takes bits of the
row, a smaller one bits of the column.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen

_MOST_BITS = 5  # log2 of the columns of banks that an access can choose between


@frozen
class Term:
    """`bits` bits of an index from `shift` on, moved to bit `left`, which is below them."""

    shift: int
    bits: int
    left: int = 0

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1

    def of(self, index: NDArray[np.int32]) -> NDArray[np.int32]:
        return ((index >> self.shift) & self.mask) << self.left

    def text(self, index: str, suffix: str = "") -> str:
        taken = f"(({index} >> {self.shift}{suffix}) & {self.mask}{suffix})"
        return f"({taken} << {self.left}{suffix})" if self.left else taken


@frozen
class Swizzle:
    """The exclusive or of an index and of terms."""

    terms: tuple[Term, ...]

    @property
    def block(self) -> int:
        """The number of elements, a power of two, that it permutes among themselves."""
        return 1 << max(term.left + term.bits for term in self.terms)

    @property
    def operations(self) -> int:
        """The operations that its expression adds to each access: a shift, a mask and an exclusive or for each term,
        and a second shift where bits do not become the lowest."""
        return sum(4 if term.left else 3 for term in self.terms)

    @property
    def complexity(self) -> tuple[int, int, int]:
        """What decides between swizzles of one cost: operations, then bits, then how far they move up."""
        moved = sum(term.left for term in self.terms)
        return self.operations, sum(term.bits for term in self.terms), moved

    def of(self, index: NDArray[np.int32]) -> NDArray[np.int32]:
        result = index
        for term in self.terms:
            result = result ^ term.of(index)
        return result

    def text(self, index: str, suffix: str = "") -> str:
        """The expression for the new index; `suffix` follows each number."""
        return " ^ ".join([index, *(term.text(index, suffix) for term in self.terms)])


def terms(length: int, unit: int, lowest: int = 0) -> list[Term]:
    """Every term for an array of `length` elements that stays in each `unit` of them, and changes bit `lowest` of an
    index or higher ones."""
    top = (length - 1).bit_length()
    return [
        Term(shift, bits, left)
        for left in range(lowest, _MOST_BITS)
        for bits in range(1, _MOST_BITS + 1 - left)
        for shift in range(left + bits, top)
        if unit % (1 << (left + bits)) == 0 and bits <= top - shift
    ]


def swizzles(length: int, unit: int, lowest: int = 0, most_terms: int = 2) -> Iterator[Swizzle]:
    """Every swizzle of `terms` with at most `most_terms` terms; those of one term first."""
    known = terms(length, unit, lowest)
    for count in range(1, most_terms + 1):
        for chosen in combinations(known, count):
            yield Swizzle(chosen)
