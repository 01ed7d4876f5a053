"""Which cost each item of ir has: as an issued instruction, and as a step of a chain of dependent instructions."""

from __future__ import annotations

from collections.abc import Sequence

from ..fast_dataclass import frozen
from ..ir import ir
from ..ir.instruction_classes import class_of
from ..ir.integer_operations import PRODUCTS
from ..ir.lowered import Lowered
from ..ir.sites import SourceSite

# Steps of a chain, and the cycles that decide which chain is the longest. `comparison`: a condition, which is ready
# later than other results, `branch`: to one of two sides, `jump`: out of a construct, or not, `loop`: the end of an
# iteration, `issue`: an instruction that nothing waits for, `next_load`: between two loads from storage. A barrier that
# orders storage waits longer, and still longer for stores before it.
STEPS = {
    "alu": 4.5,
    "comparison": 9.0,
    "branch": 20.0,
    "jump": 16.0,
    "special": 20.0,
    "conversion": 10.0,
    "workgroup_load": 28.0,
    "storage_load": 250.0,
    "next_load": 10.0,
    "uniform_load": 30.0,
    "local": 40.0,
    "local_fill": 7.0,
    "local_scattered": 100.0,
    "workgroup_atomic": 80.0,
    "workgroup_exchange": 35.0,
    "storage_atomic": 580.0,
    "storage_atomic_load": 330.0,
    "barrier": 25.0,
    "storage_barrier": 270.0,
    "stores_before_barrier": 320.0,
    "subgroup": 25.0,
    "issue": 1.0,
    "loop": 24.0,
}
# Steps of floats are counted apart, too, for processors that wait longer for their results. They decide no chain.
STEPS_OF_SOFTWARE = {"fp32": 0.0}
FLOATS = frozenset(("fp32", "fp16"))
CHECK = 30.0  # cycles of the check of an iteration, which runs beside its body
# Instructions with a cost of their own when they issue.
ISSUED = (
    *(
        "comparison",
        "fp32",
        "fp32_divide",
        "fp16",
        "integer",
        "integer_multiply",
        "integer_divide",
        "signed_divide",
        "special",
        "conversion",
    ),
    *(
        "bit_count",
        "branch",
        "loop",
        "loop_start",
        "workgroup_load",
        "workgroup_store",
        "storage_load",
        "storage_store",
    ),
    *(
        "uniform_load",
        "constant_table",
        "selection",
        "local",
        "local_store",
        "local_fill",
        "local_scattered",
        "local_scattered_store",
    ),
    *("barrier", "subgroup", "workgroup_atomic", "workgroup_atomic_sum", "storage_atomic"),
)

_MINUS_ONE = 0xFFFFFFFF  # uint32 bits
# The last ones are a part of the instruction that takes their result, or whose result they take.
_FREE = frozenset(
    [
        *("const", "input", "get", "bits", "result", "length", "pick"),
        *(f"{op}_{kind}" for op in ("neg", "abs", "saturate") for kind in ("f32", "f16")),
    ]
)
_COMPARISONS = ("lt_", "le_", "gt_", "ge_", "eq_", "ne_")
_ROUNDINGS = ("ceil_", "floor_", "fract_", "round_", "trunc_")
_BIT_COUNTS = (
    *("countOneBits", "reverseBits", "firstLeadingBit"),
    *("firstTrailingBit", "countLeadingZeros", "countTrailingZeros"),
)
# Other operations of the unit for comparisons, which is half as wide as that for sums and products.
_HALF_RATE = ("select_", "min_", "max_", "clamp_", "shl_", "shr_")
# Of atomic operations that take less time than others.
_STEPS_OF_ATOMICS = {
    ("storage_atomic", "load"): "storage_atomic_load",
    ("workgroup_atomic", "load"): "workgroup_load",
    ("workgroup_atomic", "exchange"): "workgroup_exchange",
    ("workgroup_atomic", "compare"): "workgroup_exchange",
}
REDUCTIONS = ("add", "sub", "max", "min", "and", "or", "xor")
PREFIX_SUMS = ("add", "sub")
_PREFIX = 5  # steps of a prefix sum over a subgroup
_STEP_OF = {"bit_count": "conversion"}
STEPS_OF = {"integer_divide": 20, "signed_divide": 30}  # sequences of dependent instructions
# Division of integers by a constant: the high half of a product, a shift and corrections (Granlund and Montgomery,
# "Division by invariant integers using multiplication", PLDI 1994). A remainder multiplies and subtracts once more.
_BY_CONSTANT = {"div": (1, 3), "rem": (2, 4)}
# Functions that take several instructions: special ones (exp2, log2, sin, reciprocal, root), and f32 arithmetic. Those
# of exponentials and logarithms also scale numbers that are near the ends of the range.
_SEQUENCES = {
    **dict.fromkeys(("sin", "cos", "sqrt"), (1, 1)),
    "exp": (1, 2),
    "log": (1, 3),
    "pow": (2, 1),
    **dict.fromkeys(("sinh", "cosh"), (2, 2)),
    **dict.fromkeys(("tan", "tanh"), (3, 3)),
    **dict.fromkeys(("asinh", "acosh", "atanh"), (2, 4)),
    **dict.fromkeys(("asin", "acos"), (1, 10)),
    **dict.fromkeys(("atan", "atan2"), (1, 12)),
}
_STEPS_AFTER = {"sqrt": 0, "exp": 1, "log": 1}  # of these, one after the other


@frozen
class InstructionCost:
    """The class that an item issues as, and how often; the kind of step that its result takes, and how many of these.

    `then`: alu steps after these. `arithmetic`, `integer` and `prefix`: f32 and integer instructions, and exchanges
    between lanes, that it takes besides."""

    issued: str
    step: str
    steps: int = 1
    times: int = 1
    then: int = 0
    arithmetic: int = 0
    integer: int = 0
    prefix: int = 0


MULTIPLY_AND_SUBTRACT = InstructionCost("integer_multiply", "alu", 2, integer=1)  # a remainder, from its quotient


def cost_of_value(value: ir.Value) -> InstructionCost | None:
    """Return the cost of a value by itself; None for one that costs no instruction."""
    return cost_of_operation(value.op, by_constant=bool(value.args) and value.args[-1].op == "const")


def cost_of_operation(op: str, *, by_constant: bool = False) -> InstructionCost | None:
    """Return the cost of a scalar operation; None for one that costs no instruction.

    `by_constant`: its last operand is one.

    >>> cost_of_operation("pow_f32")
    InstructionCost(issued='special', step='special', steps=2, times=2, then=1, arithmetic=1, integer=0, prefix=0)
    """
    kind = None if op in _FREE else class_of(op)
    if kind is None:
        return None
    if op.startswith(_ROUNDINGS):
        more = int(op.startswith("fract"))  # a difference
        return InstructionCost("bit_count", "conversion", then=more, arithmetic=more)
    if op.startswith("convert_f") and op.endswith("32") and not op.endswith("f32"):  # clamped to what fits
        return InstructionCost("bit_count", "conversion", then=2, arithmetic=2)
    if op.startswith(_COMPARISONS):
        return InstructionCost(kind if kind == "fp16" else "comparison", "comparison")
    if op.startswith(_BIT_COUNTS):
        kind = "bit_count"
    elif kind in ("integer", "fp32") and op.startswith(_HALF_RATE):
        kind = "comparison"
    elif kind == "integer" and op.startswith("mul"):
        kind = "integer_multiply"
    elif kind == "integer" and by_constant and (multiplied := _BY_CONSTANT.get(op[:3])):
        products, others = multiplied
        return InstructionCost("integer_multiply", "alu", products + others, products, integer=others)
    elif kind in ("integer", "fp32") and op.startswith(("div", "rem")):
        kind = "signed_divide" if op.endswith("i32") else f"{kind}_divide"
    if kind == "special":
        special, arithmetic = _SEQUENCES.get(op.partition("_")[0], (1, 0))
        then = _STEPS_AFTER.get(op.partition("_")[0], arithmetic)
        return InstructionCost(kind, kind, special, special, then, arithmetic)
    if op.startswith("rem_f"):  # the reciprocal of the divisor is ready earlier
        return InstructionCost(kind, "conversion", then=3, arithmetic=3)
    if kind == "fp32_divide":  # a reciprocal and a product
        return InstructionCost(kind, "special", then=1, arithmetic=1)
    return InstructionCost(kind, _STEP_OF.get(kind, "alu"), STEPS_OF.get(kind, 1))


def cost_of_access(item: ir.Load | ir.Store, sites: Sequence[SourceSite]) -> InstructionCost:
    """Return the cost of an access to memory. Textures count as storage."""
    place = _place(item, sites)
    match item:
        case ir.Store():
            return InstructionCost(f"{place}_store", "issue")
        case ir.Load():
            return InstructionCost(f"{place}_load", f"{place}_load")


def _place(item: ir.Memory, sites: Sequence[SourceSite]) -> str:
    space = (sites[item.site].space if item.site >= 0 else None) or "storage"
    return space if space in ("workgroup", "uniform") else "storage"


def cost_of_atomic(item: ir.Atomic, sites: Sequence[SourceSite], *, used: bool) -> InstructionCost:
    """Return the cost of an atomic operation. `used`: something needs its result.

    Where nothing does, the lanes' operands are added up first, at some cost unless all lanes bring the same one. Where
    something needs the results of sums at one address, a compiler makes prefix sums of the operands.
    """
    kind, operation = f"{_place(item, sites)}_atomic", item.op.partition("_")[0]
    if operation not in REDUCTIONS:
        return InstructionCost(kind, _STEPS_OF_ATOMICS.get((kind, operation), kind))
    if all(each.uniform for each in item.args):
        return InstructionCost(kind, kind)
    if used:
        at_one_place = operation in PREFIX_SUMS and (item.address is None or item.address.uniform)
        return InstructionCost(kind, kind, prefix=_PREFIX if at_one_place else 0)
    return InstructionCost("workgroup_atomic_sum" if kind == "workgroup_atomic" else kind, kind)


# Functions that take a software adapter times of their own, by the operation.
_FUNCTIONS = {
    **dict.fromkeys(("exp", "exp2"), (("exp", 1),)),
    **dict.fromkeys(("log", "log2"), (("log", 1),)),
    **dict.fromkeys(("sin", "cos"), (("sin", 1),)),
    "sqrt": (("sqrt", 1),),
    "inverseSqrt": (("sqrt", 1), ("fp32_divide", 1)),
    "pow": (("exp", 1), ("log", 1)),
    "tan": (("sin", 2), ("fp32_divide", 1)),
    **dict.fromkeys(("sinh", "cosh"), (("exp", 2),)),
    "tanh": (("exp", 2), ("fp32_divide", 1)),
    **dict.fromkeys(("asinh", "acosh", "atanh"), (("log", 1), ("sqrt", 1))),
}


def executed_in_software(item: ir.Item, cost: InstructionCost) -> tuple[tuple[str, int], ...]:
    """Return what a software adapter executes for an item, by kind: an access for each word, functions by name."""
    match item:
        case ir.Load(results=words) | ir.Store(values=words):
            return ((cost.issued, len(words)),)
        case ir.Value(op="get"):
            return ()
        case ir.Value() if cost.issued == "signed_divide":
            return (("integer_divide", 1),)
        case ir.Value(op=op) if cost.issued == "special":
            return _FUNCTIONS.get(op.rpartition("_")[0], (("exp", 1), ("fp32", 8)))
        case ir.Pick(index=index):
            return (("local" if index.uniform else "local_scattered", 1),)
        case ir.Put(index=index):
            return (("local" if index.uniform else "local_scattered_store", 1),)
        case ir.Set():
            return (("local", 1),)
        case _:
            return ((cost.issued, cost.times), ("fp32", cost.arithmetic), ("integer", cost.integer))


def used_atomics(lowered: Lowered) -> frozenset[SourceSite]:
    """Return the places of atomic operations whose results are needed."""
    needed = needed_values(lowered.body)
    atomics = (item for item in ir.items_of(lowered.body) if isinstance(item, ir.Atomic) and item.site >= 0)
    used = (item.site for item in atomics if any(id(each) in needed for each in item.results))
    return frozenset(lowered.sites.rows[site] for site in used)


def is_negation(value: ir.Value) -> bool:
    """Whether a value is a product by -1, as addresses have. The sum that takes it becomes a difference."""
    last = value.args[-1] if value.op in PRODUCTS else None
    return last is not None and last.op == "const" and last.imm == _MINUS_ONE


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


def operands_without_address(item: ir.Item) -> list[ir.Value]:
    """Return the values that an item needs, without those of its address."""
    match item:
        case ir.Load():
            return []
        case ir.Store(values=values) | ir.Atomic(args=values):
            return values
        case _:
            return operands(item)


def needed_values(body: ir.Region, *, addresses: bool = True) -> set[int]:
    """Return the identities of the values that an effect depends on; the others cost nothing.

    `addresses`: also those that only addresses need.
    """
    needed = operands if addresses else operands_without_address
    waiting = [value for item in ir.items_of(body) if not isinstance(item, ir.Value) for value in needed(item)]
    found: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) not in found:
            found.add(id(value))
            waiting.extend(value.args)
    return found


def _some(value: ir.Value | None) -> list[ir.Value]:
    return [] if value is None else [value]
