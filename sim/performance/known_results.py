"""What a program has divided or loaded already: a compiler does neither again.

On an H200, a loop that compares a word of workgroup memory and then keeps it, `if t[i] > most { most = t[i]; }`, waits
for one load. A load is repeated where another may have stored to the variable in between, or after a barrier.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field

from ..fast_dataclass import entity
from ..ir import ir
from ..wgsl.typed import Variable

_Place = tuple[int, int, int]  # of a load: the number of its access, the identity of its address, and its words


def _nothing_loaded() -> defaultdict[Variable, dict[_Place, list[ir.Value]]]:
    return defaultdict(dict)


@entity
class KnownResults:
    """What is known in a program, in a branch or in a loop, besides what is known `around` it.

    `changed`: the variables that it stores to; `all_changed`: others may store to any variable; `repeats`: it is a
    loop, whose earlier iterations may have stored to any.
    """

    around: KnownResults | None = None
    repeats: bool = False
    changed: set[Variable] = field(default_factory=set[Variable])
    all_changed: bool = False
    _divided: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    _loaded: defaultdict[Variable, dict[_Place, list[ir.Value]]] = field(default_factory=_nothing_loaded)

    def in_branch(self) -> KnownResults:
        """Return what is known at the beginning of a side of a branch."""
        return KnownResults(around=self)

    def in_loop(self) -> KnownResults:
        """Return what is known at the beginning of an iteration."""
        return KnownResults(around=self, repeats=True)

    def after(self, inside: KnownResults) -> KnownResults:
        """Return what is still known after a branch or a loop that knew this at its end."""
        if inside.all_changed:
            self.forget_all()
        for variable in inside.changed:
            self.forget(variable)
        return self

    def first_division(self, division: ir.Value) -> str:
        """Return the first operation on the operands of a division, and know of this one from now on."""
        dividend, divisor = division.args
        place = id(dividend), id(divisor)
        scope: KnownResults | None = self
        while scope is not None:
            if place in scope._divided:
                return scope._divided[place]
            scope = scope.around
        self._divided[place] = division.op
        return division.op

    def first_load(self, load: ir.Load, variable: Variable) -> list[ir.Value]:
        """Return the results of the first load of the same words, and know of this one from now on."""
        place = load.access, id(load.address), len(load.results)
        scope: KnownResults | None = self
        while scope is not None:
            if found := scope._loaded.get(variable, {}).get(place):
                return found
            is_hidden = scope.repeats or scope.all_changed or variable in scope.changed
            scope = None if is_hidden else scope.around
        self._loaded[variable][place] = load.results
        return load.results

    def forget(self, variable: Variable) -> None:
        """Forget what was loaded from a variable, because it is stored to."""
        self.changed.add(variable)
        self._loaded.pop(variable, None)

    def forget_all(self) -> None:
        """Forget all that was loaded, because others may store to it."""
        self.all_changed = True
        self._loaded.clear()
