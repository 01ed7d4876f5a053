"""Which cost each item of ir has: as an issued instruction, and as a step of a chain of dependent instructions."""

from __future__ import annotations

from collections.abc import Sequence

from ..fast_dataclass import frozen
from ..ir import ir
from ..ir.instruction_classes import class_of
from ..ir.sites import SourceSite

# Steps of a chain, and the cycles that decide which chain is the longest. `loop`: the least that an iteration takes,
# `issue`: an instruction that nothing waits for.
STEPS = {
    "alu": 4.5,
    "special": 20.0,
    "conversion": 10.0,
    "workgroup_load": 28.0,
    "storage_load": 250.0,
    "uniform_load": 30.0,
    "local": 40.0,
    "local_scattered": 100.0,
    "workgroup_atomic": 80.0,
    "storage_atomic": 700.0,
    "barrier": 25.0,
    "subgroup": 25.0,
    "issue": 1.0,
    "loop": 50.0,
}
# Instructions with a cost of their own when they issue.
ISSUED = (
    *("fp32", "fp32_divide", "fp16", "integer", "integer_multiply", "integer_divide", "special", "conversion"),
    *("bit_count", "branch", "loop", "workgroup_load", "workgroup_store", "storage_load", "storage_store"),
    *("uniform_load", "local", "local_scattered", "local_scattered_store"),
    *("barrier", "subgroup", "workgroup_atomic", "storage_atomic"),
)

_FREE = frozenset(("const", "input", "get", "bits", "result", "length", "pick"))
_BIT_COUNTS = (
    *("countOneBits", "reverseBits", "firstLeadingBit", "firstTrailingBit", "countLeadingZeros", "countTrailingZeros"),
    *("convert_f32_i32", "convert_f32_u32"),
)
_STEP_OF = {"special": "special", "conversion": "conversion", "bit_count": "conversion"}
_STEPS_OF = {"integer_divide": 6, "fp32_divide": 3}  # a division is a sequence of dependent instructions


@frozen
class InstructionCost:
    """The class that an item issues as, the kind of step that its result takes, and how many of these."""

    issued: str
    step: str
    steps: int = 1


def cost_of_value(op: str) -> InstructionCost | None:
    """Return the cost of a scalar operation; None for one that costs no instruction.

    >>> cost_of_value("div_f32")
    InstructionCost(issued='fp32_divide', step='alu', steps=3)
    """
    kind = None if op in _FREE else class_of(op)
    if kind is None:
        return None
    if op.startswith(_BIT_COUNTS):
        kind = "bit_count"
    elif kind == "integer" and op.startswith("mul"):
        kind = "integer_multiply"
    elif kind in ("integer", "fp32") and op.startswith(("div", "rem")):
        kind += "_divide"
    return InstructionCost(kind, _STEP_OF.get(kind, "alu"), _STEPS_OF.get(kind, 1))


def cost_of_access(item: ir.Load | ir.Store | ir.Atomic, sites: Sequence[SourceSite]) -> InstructionCost:
    """Return the cost of an access to memory. Textures count as storage."""
    space = (sites[item.site].space if item.site >= 0 else None) or "storage"
    place = space if space in ("workgroup", "uniform") else "storage"
    match item:
        case ir.Atomic():
            return InstructionCost(f"{place}_atomic", f"{place}_atomic")
        case ir.Store():
            return InstructionCost(f"{place}_store", "issue")
        case ir.Load():
            return InstructionCost(f"{place}_load", f"{place}_load")


def operands(item: ir.Item) -> list[ir.Value]:
    """Return the values that an item needs before it can issue."""
    match item:
        case ir.Value(args=args):
            return list(args)
        case ir.Set(value=value):
            return [value]
        case ir.Pick(index=index):
            return [index]
        case ir.Put(index=index, value=value):
            return [index, value]
        case ir.Load(address=address):
            return _some(address)
        case ir.Store(values=values, address=address) | ir.Atomic(args=values, address=address):
            return [*values, *_some(address)]
        case ir.Collective(args=args):
            return list(args)
        case ir.If(condition=condition):
            return [condition]
        case ir.Loop(condition=condition, break_if=last):
            return [*_some(condition), *_some(last)]
        case _:
            return []


def needed_values(body: ir.Region) -> set[int]:
    """Return the identities of the values that an effect depends on; the others cost nothing."""
    waiting = [value for item in ir.items_of(body) if not isinstance(item, ir.Value) for value in operands(item)]
    found: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) not in found:
            found.add(id(value))
            waiting.extend(value.args)
    return found


def _some(value: ir.Value | None) -> list[ir.Value]:
    return [] if value is None else [value]
