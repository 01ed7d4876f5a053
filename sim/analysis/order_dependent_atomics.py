"""Atomic operations whose effect may depend on which invocation comes first.

The analysis is static; a run in another order decides. Additions to a word commute, and so does every other operation
with its own kind, except that stores and exchanges commute with nothing. The value that an operation returns depends on
all operations before it.
"""

from __future__ import annotations

from ..ir import ir
from ..ir.lowered import Lowered
from .uses import Uses, base

_COMMUTE = {"add_u32": "sum", "sub_u32": "sum"}
_NEVER = frozenset(("store", "exchange", "compare"))


def find_order_dependent_atomics(lowered: Lowered, uses: Uses) -> list[int]:
    """Return their sites, those most likely to matter first: operations that change memory and whose result is needed,
    then those that only change it, then those that only read it."""
    if not any(site.kind == "atomic" for site in lowered.sites.rows):
        return []
    atomics = [item for item in ir.items_of(lowered.body) if isinstance(item, ir.Atomic)]
    kinds: dict[str, set[str]] = {}
    for item in atomics:
        if item.op != "load":
            kinds.setdefault(_variable(lowered, item), set()).add(_COMMUTE.get(item.op, item.op))
    found: dict[int, int] = {}
    for item in atomics:
        others = kinds.get(_variable(lowered, item), set())
        needed = any(base(result) in uses.count for result in item.results)
        if others and (needed or (item.op != "load" and (len(others) > 1 or others & _NEVER))):
            rank = 2 if item.op == "load" else 0 if needed else 1
            found[item.site] = min(rank, found.get(item.site, rank))
    return sorted(found, key=lambda site: (found[site], lowered.sites.rows[site].span.start))


def _variable(lowered: Lowered, item: ir.Atomic) -> str:
    return lowered.accesses[item.access].variable.name
