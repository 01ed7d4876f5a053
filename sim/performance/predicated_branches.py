"""Which branches a compiler predicates: it makes the instructions of both sides conditional, and branches over none."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from ..fast_dataclass import frozen
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
_NEVER = inf  # the length of a side with an item that is not made conditional


@frozen
class _Side:
    """`length`: the instructions of a side of a branch, as a compiler counts them; `loads`: some are loads from
    storage."""

    length: float
    loads: bool


class PredicatedBranches:
    """Tells which branches of a program are predicated. Looks at each item once, however deep branches are nested."""

    def __init__(self, sites: Sequence[SourceSite]) -> None:
        self._sites = sites
        self._sides: dict[int, _Side] = {}  # by the identity of the region

    def is_predicated(self, construct: ir.If) -> bool:
        """Whether a compiler makes the instructions of both sides conditional, and branches over none of them.

        All are issued then, whatever the condition: on an H200, a loop with eight products in a branch takes as long if
        no lane ever enters it, and with nine a fifth less. The longest branches that are predicated there have eight
        products, a sum of two words of workgroup memory, a load from storage and 12 products, or two loads and six. The
        last are too many here, because the sum in the index of a load counts, too.
        """
        sides = [self._side(region) for region in ir.regions(construct)]
        loads = any(side.loads for side in sides)
        most = _MOST_WITH_LOADS if loads else _MOST_IF_UNIFORM if construct.condition.uniform else _MOST
        return all(side.length <= most for side in sides)

    def _side(self, region: ir.Region) -> _Side:
        found = self._sides.get(id(region))
        if found is None:
            parts = [self._part(item) for item in region.items]
            found = _Side(sum(part.length for part in parts), any(part.loads for part in parts))
            self._sides[id(region)] = found
        return found

    def _part(self, item: ir.Item) -> _Side:
        """Return what an item adds to its side."""
        match item:
            case ir.If(then=then, orelse=orelse):
                sides = self._side(then), self._side(orelse)
                return _Side(sum(side.length for side in sides), any(side.loads for side in sides))
            case ir.Load() | ir.Store():
                issued = cost_of_access(item, self._sites).issued
                return _Side(_LENGTHS[issued], issued == "storage_load")
            case ir.Value():
                cost = cost_of_value(item)
                steps = cost.times * STEPS_OF.get(cost.issued, 1) + cost.arithmetic + cost.integer if cost else 0
                return _Side(steps, loads=False)
            case ir.Set() | ir.Count():
                return _Side(0, loads=False)
            case ir.Jump():
                return _Side(1, loads=False)
            case _:
                return _Side(_NEVER, loads=False)


def uses_loaded_values(construct: ir.If) -> bool:
    """Whether a construct has loads, and instructions that need their results."""
    inside = [*ir.items(construct)]
    loaded = {id(each) for item in inside if isinstance(item, ir.Load) for each in item.results}
    users = [item for item in inside if isinstance(item, ir.Value | ir.Store)]
    return any(id(each) in loaded for item in users for each in operands(item))
