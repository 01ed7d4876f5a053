"""The operations of the machine, by number: one row each, in order.

An instruction is a row of the fields in `instruction`. Operations of the machine itself are declared here; scalar
operations follow from the table in `sim.scalar` and are numbered from SCALAR on.
"""

from __future__ import annotations

from functools import cache

from ..scalar import OPS
from .schema import Codes
from .vector_math.approximations import has_near

MACHINE_OPS = Codes("opcodes", "operations of the machine")
_op = MACHINE_OPS.code

# control
HALT = _op("halt", "end of the program")
JUMP = _op("jump", "go to TARGET")
JUMP_ZERO = _op("jump_zero", "go to TARGET if row CONDITION is 0 in the first lane")
JUMP_NONE = _op("jump_none", "go to TARGET if no lane of MASK is active")
NARROW = _op("narrow", "jump_none; then compute only the lanes up to the last active one, until `restore`: level LEVEL")
RESTORE = _op("restore", "compute as many lanes as at level LEVEL")
BARRIER = _op("barrier", "barrier of site SITE, for the lanes of MASK (should be all); orders memory of kind MEMORY")

# register rows
COPY = _op("copy", "DEST = A (may be ONE_LANE)")
BLEND = _op("blend", "DEST = A in the lanes of MASK")
BROADCAST = _op("broadcast", "DEST = first lane of A, in all lanes")
PICK = _op("pick", "DEST = row BASE_ROW + min(INDEX, COUNT - 1)")
PUT = _op("put", "row BASE_ROW + min(INDEX, COUNT - 1) = DEST in the lanes of MASK")
PUT_ALL = _op("put_all", "COUNT rows, from BASE_ROW on = DEST in the lanes of MASK")
MASK = _op("mask", "DEST = A and B, both masks, in all lanes of the row")

# memory: the address is ADDRESS + first lane of SHARED + CONSTANT, in units of the access
LOAD = _op("load", "DEST = unit of memory (may be ONE_LANE; FOUR: the next three rows load the next three units)")
LOAD_KNOWN = _op("load_known", "load, with a row of addresses that `learn` has seen")
LEARN = _op("learn", "find the pattern of row ADDRESS")
STORE = _op("store", "unit of memory = DEST in the lanes of MASK")
STORE_KNOWN = _op("store_known", "store, with a row of addresses that `learn` has seen")
STORE_FOUR = _op("store_four", "store; the next three rows store the next three units, to the same addresses")
LENGTH = _op("length", "DEST = length of the array of ACCESS")

# sums of products (see `tiles`)
TILE = _op(
    "tile",
    "the next TILE_ROWS + TILE_COLUMNS rows load factors, and the TILE_ROWS * TILE_COLUMNS rows after those add their"
    " products to sums: all at once",
)
ADD_UP = _op("add_up", "add the products of the tiles that wait")
CHECKED = _op("checked", "DEST = A * B + C, rounded as ROUNDING says; checks the results in the lanes of MASK")

# atomics, lane by lane; operands are in the rows after DEST
ATOMIC_LOAD = _op("atomic_load", "DEST = old value")
ATOMIC_STORE = _op("atomic_store", "memory = value")
ATOMIC_ADD_U32 = _op("atomic_add_u32", "memory += value")
ATOMIC_SUB_U32 = _op("atomic_sub_u32", "memory -= value")
ATOMIC_MAX_I32 = _op("atomic_max_i32", "memory = max(memory, value), as i32")
ATOMIC_MAX_U32 = _op("atomic_max_u32", "memory = max(memory, value), as u32")
ATOMIC_MIN_I32 = _op("atomic_min_i32", "memory = min(memory, value), as i32")
ATOMIC_MIN_U32 = _op("atomic_min_u32", "memory = min(memory, value), as u32")
ATOMIC_AND_U32 = _op("atomic_and_u32", "memory &= value")
ATOMIC_OR_U32 = _op("atomic_or_u32", "memory |= value")
ATOMIC_XOR_U32 = _op("atomic_xor_u32", "memory ^= value")
ATOMIC_EXCHANGE = _op("atomic_exchange", "memory = value")
ATOMIC_COMPARE = _op("atomic_compare", "memory = new value if it is the expected one")

# subgroup operations, on the active lanes of each subgroup (see `subgroups`)
SUBGROUP_REDUCE = _op("subgroup_reduce", "combine all lanes with the operation SCALAR")
SUBGROUP_INCLUSIVE = _op("subgroup_inclusive", "combine the lanes up to this one")
SUBGROUP_EXCLUSIVE = _op("subgroup_exclusive", "combine the lanes before this one")
SUBGROUP_SHUFFLE = _op("subgroup_shuffle", "the value of another lane; 0 past the last one")
SUBGROUP_SHUFFLE_LAST = _op("subgroup_shuffle_last", "the value of another lane; the last one's past the last one")
SUBGROUP_FIRST = _op("subgroup_first", "the lowest active lane")
SUBGROUP_BALLOT = _op("subgroup_ballot", "a bit for each active lane in which the operand is true")

# probes: memory probes have the operands of the access that follows them
COUNT = _op("count", "count an execution of BLOCK by the lanes of MASK")
BANKS = _op("banks", "count the wavefronts of an access to workgroup memory")
SECTORS = _op("sectors", "count the sectors of an access to storage")
BOUNDS = _op("bounds", "count the addresses that are out of bounds")
WRITERS = _op("writers", "note the invocation that stores")
TOUCHED = _op("touched", "note the words that are accessed")
SAMPLED = _op("sampled", "note the words that a sampled workgroup accesses, and fill them first")
CACHED = _op("cached", "count the sectors that the core's cache does not hold")
MEETS = _op("meets", "count stores to words that another workgroup of the batch has stored to")
LOADED = _op("loaded", "note what the thread loads, if several threads run the program")
WATCH_READ = _op("watch_read", "find races of a load, and words that were never written")
WATCH_WRITE = _op("watch_write", "find races of a store")
WATCH_ORDER = _op("watch_order", "find accesses that only the ignored barrier orders")
CHECK = _op("check", "check operands A, B, C and result DEST in the lanes of MASK, as CHECK_KIND says")
REACH = _op("reach", "note the lowest and highest address")
MARGIN = _op("margin", "note how close A < B (LEAST 1) or A <= B (LEAST 0) is to the other result")
TRACE = _op("trace", "note DEST, at trace point SLOT; ACCESS -1: the variable is not in memory")

NAMES = tuple(each.name for each in MACHINE_OPS.codes)
FIRST_ATOMIC, FIRST_COLLECTIVE, FIRST_PROBE = ATOMIC_LOAD, SUBGROUP_REDUCE, COUNT
ATOMICS = tuple(name.removeprefix("atomic_") for name in NAMES[FIRST_ATOMIC:FIRST_COLLECTIVE])
COLLECTIVES = tuple(name.removeprefix("subgroup_") for name in NAMES[FIRST_COLLECTIVE:FIRST_PROBE])
TILES = (TILE, ADD_UP)
WATCHES = (WATCH_READ, WATCH_WRITE, WATCH_ORDER)
SCALAR = 64  # scalar operations are numbered from here
TILED_SUM, TILED_FUSED = "mad_f32", "fma_f32"  # scalar operations that tiles consist of
TILED = (TILED_SUM, TILED_FUSED)

_ROUNDINGS = Codes("roundings", "how a checked sum of a product is rounded")
FUSED = _ROUNDINGS.code("fused", "once")
PRODUCT_FIRST = _ROUNDINGS.code("product_first", "twice: a * b + c")
PRODUCT_LAST = _ROUNDINGS.code("product_last", "twice: c + a * b")
CODES = (MACHINE_OPS, _ROUNDINGS)

_FAMILIES = ("float", "half", "integer", "conversion", "curve")


def _family(name: str) -> str:
    row = OPS[name]
    if has_near(name):
        return "curve"
    kinds = {*row.args, row.result}
    if kinds == {"f32"} or (row.result == "bool" and kinds == {"f32", "bool"}):
        return "float"
    if kinds <= {"f16", "bool"} and "f16" in kinds:
        return "half"
    return "integer" if kinds <= {"i32", "u32", "bool"} else "conversion"


@cache
def scalar_opcodes() -> dict[str, int]:
    """Name of scalar operation -> opcode; families lie side by side, in the order of the table."""
    concrete = [n for n, row in OPS.items() if not {*row.args, row.result} & {"af", "ai"}]
    ordered = [n for family in _FAMILIES for n in concrete if _family(n) == family]
    return {name: SCALAR + i for i, name in enumerate(ordered)}


@cache
def families() -> dict[str, list[str]]:
    """Family -> its scalar operations, in opcode order."""
    members: dict[str, list[str]] = {f: [] for f in _FAMILIES}
    for name in scalar_opcodes():
        members[_family(name)].append(name)
    return members


@cache
def first_opcode(family: str) -> int:
    """The lowest opcode of a family of scalar operations."""
    return min(scalar_opcodes()[name] for name in families()[family])


@cache
def opcode_names() -> dict[int, str]:
    return {**dict(enumerate(NAMES)), **{code: name for name, code in scalar_opcodes().items()}}
