"""Shadow memory: one more word for each unit of a variable, for instrumentation to read and write."""

from __future__ import annotations

from dataclasses import replace

from ..fast_dataclass import frozen
from ..ir import ir
from ..ir.access import Access
from ..ir.builder import Builder
from ..ir.lowered import Lowered
from ..wgsl.typed import Variable


@frozen
class Shadow:
    """A variable with a 32-bit word for each unit, of `unit` bytes, of the variable `of`."""

    variable: Variable
    of: Variable
    unit: int


class Shadows:
    """The shadows of a program, created on demand. `what` they hold is part of their names."""

    def __init__(self, accesses: list[Access], what: str) -> None:
        self._accesses = accesses
        self._what = what
        self._known: dict[tuple[Variable, int], Shadow] = {}

    def all(self) -> list[Shadow]:
        return list(self._known.values())

    def beside(self, item: ir.Load | ir.Store | ir.Atomic) -> int:
        """Return the number of the access to the shadow of what an item accesses, at the same address."""
        access = self._accesses[item.access]
        which = access.variable, access.unit
        if which not in self._known:
            name = f"{access.variable.name} ({self._what}, {access.unit})"  # no identifier of WGSL
            self._known[which] = Shadow(replace(access.variable, name=name, access="read_write"), *which)
        wide = 4 // access.unit
        tail = None if access.tail is None else (access.tail[0] * wide, access.tail[1] * wide)
        return self.number(replace(access, variable=self._known[which].variable, unit=4, tail=tail))

    def number(self, access: Access) -> int:
        """Return the number of an access, which is added to the program if it is new."""
        if access not in self._accesses:
            self._accesses.append(access)
        return self._accesses.index(access)


def mark_stores(lowered: Lowered) -> list[Shadow]:
    """Add to each store to a buffer one of its site, counted from 1, to the buffer's shadow. Returns the shadows."""
    shadows = Shadows(lowered.accesses, "sites")
    lowered.builder = builder = Builder.extending(lowered.builder)
    for region in ir.regions_of(lowered.body):
        for item in builder.rewrite(region):
            builder.append(item)
            if isinstance(item, ir.Store | ir.Atomic) and lowered.accesses[item.access].space == "storage":
                mark = builder.const("u32", item.site + 1)
                width = len(item.values) if isinstance(item, ir.Store) else 1
                builder.append(ir.Store([mark] * width, shadows.beside(item), item.address, item.site))
    return shadows.all()
