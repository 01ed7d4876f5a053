"""What a program has divided or loaded already: a compiler does neither again.

On an H200, a loop that compares a word of workgroup memory and then keeps it, `if t[i] > most { most = t[i]; }`, waits
for one load. A load is repeated where another may have stored to the variable in between, or after a barrier.
"""

from __future__ import annotations

from dataclasses import field

from ..fast_dataclass import entity
from ..ir import ir
from ..wgsl.typed import Variable

_Place = tuple[int, int, int]  # of a load: the number of its access, the identity of its address, and its words


@entity
class KnownResults:
    """What is known at a place in a program.

    `divided`: the first operation on the operands of a division, by their identities. `changed`: the variables that
    were stored to since this was copied; `all_changed`: any variable may have been.
    """

    divided: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    changed: set[Variable] = field(default_factory=set[Variable])
    all_changed: bool = False
    _loaded: dict[_Place, tuple[Variable, list[ir.Value]]] = field(
        default_factory=dict[_Place, tuple[Variable, list[ir.Value]]]
    )

    def in_branch(self) -> KnownResults:
        """Return what is known at the beginning of a side of a branch."""
        return KnownResults(self.divided.copy(), _loaded=self._loaded.copy())

    def in_loop(self) -> KnownResults:
        """Return what is known at the beginning of an iteration, which earlier ones may have changed."""
        return KnownResults(self.divided.copy())

    def after(self, inside: KnownResults) -> KnownResults:
        """Return what is still known after a branch or a loop that knew this at its end."""
        if inside.all_changed:
            self.forget_all()
        for variable in inside.changed:
            self.forget(variable)
        return self

    def load(self, item: ir.Load, variable: Variable) -> list[ir.Value] | None:
        """Return the results of an earlier load of the same words, or None and know this one from now on."""
        place = item.access, id(item.address), len(item.results)
        _, found = self._loaded.setdefault(place, (variable, item.results))
        return None if found is item.results else found

    def forget(self, variable: Variable) -> None:
        """Forget what was loaded from a variable, because it is stored to."""
        self.changed.add(variable)
        self._loaded = {place: loaded for place, loaded in self._loaded.items() if loaded[0] is not variable}

    def forget_all(self) -> None:
        """Forget all that was loaded, because others may store to it."""
        self.all_changed = True
        self._loaded.clear()
