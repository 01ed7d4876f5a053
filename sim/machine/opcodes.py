"""What the machine can do, by number.

An instruction is one row of an `int32[n, 8]` array. The columns are OP, then D (result row), A, B, C, E (operands), M
and X. Rows of registers are named by number; -1 stands for none. For scalar operations A to E are the operand rows; the
other operations are described in `MACHINE_OPS`, one line each. M is the mask row (-1: every lane), or, where an
operation writes lanes without looking at a mask, 1 to compute lane 0 alone (a value that all lanes share).
"""

from __future__ import annotations

from functools import cache

from ..scalar import OPS
from .vector_math.approximations import has_near

OP, D, A, B, C, E, M, X = range(8)
FIELDS = 8
FOUR = 4  # units that are loaded or stored at once, and M of a load that three more follow

ATOMICS = (
    *("load", "store", "add_u32", "sub_u32", "max_i32", "max_u32", "min_i32", "min_u32"),
    *("and_u32", "or_u32", "xor_u32", "exchange", "compare"),
)

COLLECTIVES = ("reduce", "inclusive", "exclusive", "shuffle", "shuffle_last", "first", "ballot")
COLLECTIVE_ROWS = 5  # D and those after it: first the results, then the operands, then room to work in

MACHINE_OPS = (
    # control
    ("halt", "end of the program"),
    ("jump", "to A"),
    ("jump_zero", "to A where row B is 0 in lane 0"),
    ("jump_none", "to A where no lane of mask M is active"),
    ("narrow", "jump_none, and from here on lanes after the last active one are left out: level D (A: -1, no jump)"),
    ("restore", "from here on as many lanes as at level D"),
    ("barrier", "site A: every lane of each workgroup should be in mask M; orders memory of kind B"),
    # rows
    ("copy", "D = A (M: narrow)"),
    ("blend", "D = A in the lanes of mask M"),
    ("broadcast", "D = lane 0 of A, in every lane"),
    ("pick", "D = row (A + min(row B, C - 1))"),
    ("put", "row (A + min(row B, C - 1)) = row D in the lanes of mask M"),
    ("mask", "D = A and B, of masks: in lanes that are left out, too"),
    # memory: A address row, B shared address part (lane 0 counts), C added, E access, X row of workgroup offsets
    ("load", "D = unit of memory (M: narrow; 4: the three rows after it load the next units, of the same addresses)"),
    ("load_known", "the same, of an address row that `learn` has seen"),
    ("learn", "note the pattern of row A, which will be an address more than once"),
    ("store", "unit of memory = D in the lanes of mask M"),
    ("store_known", "the same, of an address row that `learn` has seen"),
    ("store_four", "store; the three rows after it are stores of the next units, to the same addresses"),
    ("length", "D = number of elements of access E (M: narrow)"),
    # sums of products (see `tiles`)
    (
        "tile",
        "the A + B rows after it bring factors, the A * B rows after those add their products to sums, number D"
        " of those in the program, all at once; E is 1 where they may wait for `add_up`",
    ),
    ("add_up", "add what waits"),
    (
        "checked",
        "D = A * B + C, rounded as E says, and a look at what it makes in the lanes of mask M; X is the place of the"
        " first check, and a product that is rounded has one before the sum's",
    ),
    # atomics: D = old value; operands in the rows after D (compare: expected, new; the first then says whether it did)
    *((f"atomic_{name}", "on memory, lane by lane") for name in ATOMICS),
    # subgroup operations: on the active lanes of each subgroup (reduce to exclusive: by the scalar operation A)
    *((f"subgroup_{name}", "see `subgroups`") for name in COLLECTIVES),
    # probes: as the load or store they stand before; X is the probe's place in its table, D is 1 for a learnt row A
    ("count", "straight run A is executed by mask M"),
    ("banks", "shared wavefronts of the access"),
    ("sectors", "global sectors of the access"),
    ("bounds", "addresses past the end of the access"),
    ("writers", "who stores here last"),
    ("touched", "that this is accessed"),
    ("meets", "whether another workgroup of the batch has stored here; D is 1 where notes are of halves of a word"),
    ("watch_read", "races of a load, and words that nobody wrote"),
    ("watch_write", "races of the store of unit D"),
    ("watch_order", "what is unordered without the barrier that is ignored; D is 1 for a store"),
    ("check", "kind E: operands A, B, C and result D, in the lanes of mask M; X is the place"),
    ("reach", "how low and how high the addresses of the access go"),
    ("margin", "how far row A < row B (E is 1) or A <= B (E is 0) is from being otherwise; C is 1 for i32"),
    ("trace", "point X: row D, at place A + B + C (an address of access E, which is -1 for other variables)"),
)
NAMES = tuple(name for name, _ in MACHINE_OPS)
HALT, JUMP, JUMP_ZERO, JUMP_NONE, NARROW, RESTORE, BARRIER = range(7)
COPY, BLEND, BROADCAST, PICK, PUT, MASK = range(7, 13)
LOAD, LOAD_KNOWN, LEARN, STORE, STORE_KNOWN, STORE_FOUR, LENGTH, TILE, ADD_UP, CHECKED, FIRST_ATOMIC = range(13, 24)
TILES = (TILE, ADD_UP)
FIRST_COLLECTIVE = FIRST_ATOMIC + len(ATOMICS)
FIRST_PROBE = FIRST_COLLECTIVE + len(COLLECTIVES)
COUNT, BANKS, SECTORS, BOUNDS, WRITERS, TOUCHED, MEETS = range(FIRST_PROBE, FIRST_PROBE + 7)
WATCH_READ, WATCH_WRITE, WATCH_ORDER, CHECK, REACH, MARGIN, TRACE = range(FIRST_PROBE + 7, FIRST_PROBE + 14)
WATCHES = (WATCH_READ, WATCH_WRITE, WATCH_ORDER)
SCALAR = 64  # scalar operations are numbered from here
TILED = ("mad_f32", "fma_f32")  # those that tiles are made of
FUSED, PRODUCT_FIRST, PRODUCT_LAST = range(3)  # E of a checked sum: rounded once; or twice, a * b + c or c + a * b

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
def opcode_names() -> dict[int, str]:
    return {**dict(enumerate(NAMES)), **{code: name for name, code in scalar_opcodes().items()}}
