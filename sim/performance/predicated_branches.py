"""Which branches a compiler predicates: it makes the instructions of both sides conditional, and branches over none."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import ir
from ..ir.sites import SourceSite
from .instruction_costs import STEPS_OF, cost_of_access, cost_of_value, operands

# The most instructions of a side of a predicated branch: with loads from storage, without, and where all lanes take the
# same side; and the instructions that an access counts as. Stores to workgroup memory count as none.
_MOST_WITH_LOADS, _MOST, _MOST_IF_UNIFORM = 20, 8, 6
_LENGTHS: dict[str, float] = {
    "storage_load": 6,
    "storage_store": 6,
    "uniform_load": 6,
    "workgroup_load": 2.5,
    "workgroup_store": 0,
}
_SIMPLE = (ir.Value, ir.Set, ir.Load, ir.Store, ir.Count, ir.If)


def is_predicated(construct: ir.If, sites: Sequence[SourceSite]) -> bool:
    """Whether a compiler makes the instructions of both sides conditional, and branches over none of them.

    All are issued then, whatever the condition: on an H200, a loop with eight products in a branch takes as long if no
    lane ever enters it, and with nine a fifth less. The longest branches that are predicated there have eight products,
    a sum of two words of workgroup memory, a load from storage and 12 products, or two loads and six.
    """
    inside = [*ir.items(construct)]
    if not all(isinstance(item, _SIMPLE) for item in inside):
        return False
    loads = any(isinstance(item, ir.Load) and cost_of_access(item, sites).issued == "storage_load" for item in inside)
    most = _MOST_WITH_LOADS if loads else _MOST_IF_UNIFORM if construct.condition.uniform else _MOST
    return all(sum(_length(item, sites) for item in ir.items_of(side)) <= most for side in ir.regions(construct))


def _length(item: ir.Item, sites: Sequence[SourceSite]) -> float:
    """Return how many instructions a compiler counts an item as."""
    match item:
        case ir.Load() | ir.Store():
            return _LENGTHS[cost_of_access(item, sites).issued]
        case ir.Value(op=op, args=args):
            cost = cost_of_value(op, by_constant=bool(args) and args[-1].op == "const")
            return cost.times * STEPS_OF.get(cost.issued, 1) + cost.arithmetic + cost.integer if cost else 0
        case _:
            return 0


def uses_loaded_values(construct: ir.If) -> bool:
    """Whether a construct has loads, and instructions that need their results."""
    inside = [*ir.items(construct)]
    loaded = {id(each) for item in inside if isinstance(item, ir.Load) for each in item.results}
    users = [item for item in inside if isinstance(item, ir.Value | ir.Store)]
    return any(id(each) in loaded for item in users for each in operands(item))
