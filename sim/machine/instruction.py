"""The fields of an instruction: one row of an `int32[n, SIZE]` program.

Register rows are given by number, -1 for none. For scalar operations A to E are the operand rows; for other operations
the aliases below say what a field holds. What each operation does is in `opcodes`.
"""

from __future__ import annotations

import numpy as np

from .schema import Table

ROW = Table("instruction", "instruction of the program", "the operation and its operands", dtype=np.int32)
OP = ROW.field("op", "opcode", "the operation: see opcodes")
DEST = ROW.field("dest", "register row", "result")
A = ROW.field("a", "register row", "operand")
B = ROW.field("b", "register row", "operand")
C = ROW.field("c", "register row", "operand")
E = ROW.field("e", "register row", "operand")
MASK = ROW.field("mask", "register row", "active lanes, -1: all; in operations that ignore it, see ONE_LANE and FOUR")
X = ROW.field("x", "number", "another operand, see the aliases")
SIZE = ROW.size

TARGET = ROW.alias("target", A, "jumps", "instruction to go to; -1: the next one")
CONDITION = ROW.alias("condition", B, "jump_zero", "row of the condition")
LOOP = ROW.alias("loop", E, "jump", "number of the loop, if it leads backward")
COST = ROW.alias("cost", X, "jump", "what an iteration of the loop costs for each lane, if it leads backward")
COST_ONCE = ROW.alias("cost_once", C, "jump", "what it costs beyond that, for one lane, if it leads backward")
WAITS = ROW.alias("waits", MASK, "jump", "1 if the loop waits for other invocations: their lockstep groups go on")
LEVEL = ROW.alias("level", DEST, "narrow, restore", "level of leaving out tail lanes")
SITE = ROW.alias("site", A, "barrier", "its site")
MEMORY = ROW.alias("memory", B, "barrier", "kind of memory that it orders")

BASE_ROW = ROW.alias("base_row", A, "pick, put", "first of the rows that are indexed")
INDEX = ROW.alias("index", B, "pick, put", "row of the index")
COUNT = ROW.alias("count", C, "pick, put", "how many rows can be indexed")

ADDRESS = ROW.alias("address", A, "memory operations, memory probes, learn", "row of addresses, per lane")
SHARED = ROW.alias("shared", B, "memory operations, memory probes", "row whose first lane is added to the address")
CONSTANT = ROW.alias("constant", C, "memory operations, memory probes", "constant added to the address")
ACCESS = ROW.alias("access", E, "memory operations, memory probes", "row of the access table")
SHIFTS = ROW.alias("shifts", X, "memory operations", "row of what each workgroup's memory starts at")

TILE_ROWS = ROW.alias("tile_rows", A, "tile", "number of factors A")
TILE_COLUMNS = ROW.alias("tile_columns", B, "tile", "number of factors B")
TILE_SUMS = ROW.alias("tile_sums", DEST, "tile", "number of its group of sums in the program")
MAY_WAIT = ROW.alias("may_wait", E, "tile", "1 if the sums may wait for `add_up`")
ROUNDING = ROW.alias("rounding", E, "checked", "FUSED, PRODUCT_FIRST or PRODUCT_LAST")
FIRST_CHECK = ROW.alias("first_check", X, "checked", "row of its first check; a rounded product has one of its own")

SCALAR = ROW.alias("scalar", A, "subgroup_reduce to subgroup_exclusive", "opcode that combines two lanes")

BLOCK = ROW.alias("block", A, "count", "number of the basic block")
THROUGH = ROW.alias("through", B, "count", "mask of the lanes that passed the guards before")
ACCESSES = ROW.alias("accesses", X, "count", "1 if the block accesses memory")
INSTRUCTIONS = ROW.alias("instructions", C, "count", "instructions of the block, as written")
KEEPS = ROW.alias("keeps", X, "learn", "row of kept addresses: each has one of its own")
SLOT = ROW.alias("slot", X, "probes, checks, trace", "row of the probe in its table")
LEARNED = ROW.alias("learned", DEST, "memory probes, watch_read", "1 if `learn` has seen the row of addresses")
STORES = ROW.alias("stores", DEST, "watch_order", "1 if the access stores")
HALVES = ROW.alias("halves", DEST, "meets", "1 if notes are of halves of a word")
CHECK_KIND = ROW.alias("check_kind", E, "check", "what to look for: see check kinds")
SIGNED = ROW.alias("signed", C, "margin", "1 if the operands are i32")
LEAST = ROW.alias("least", E, "margin", "least B - A for which the comparison holds")

FOUR = 4  # units of a wide access; in MASK of a load, three more loads of it follow
ONE_LANE = 1  # in MASK of an operation without a mask: compute the first lane only

# Rows of registers after DEST. Atomic operations find their operands there, subgroup operations also their workspace.
OPERANDS = Table("atomic rows", "", "register rows of an atomic operation, from DEST on", prefix="ATOMIC_")
ATOMIC_OLD = OPERANDS.field("old", "register row", "result: the old value")
ATOMIC_VALUE = OPERANDS.field("value", "register row", "operand; of `compare` the expected value, then whether it was")
ATOMIC_NEW = OPERANDS.field("new", "register row", "`compare`: the new value")

COLLECTIVE = Table("subgroup rows", "", "register rows of a subgroup operation, from DEST on", prefix="ROW_")
ROW_RESULT = COLLECTIVE.field("result", "register row", "result; of `ballot` the first of four")
ROW_VALUE = COLLECTIVE.field("value", "register row", "operand")
ROW_SECOND = COLLECTIVE.field("second", "register row", "reductions: the neutral value; shuffles: the lane to read")
ROW_TOTAL = COLLECTIVE.field("total", "register row", "reductions: workspace, the totals")
ROW_NEXT = COLLECTIVE.field("next", "register row", "reductions: workspace, the next operands")
ROW_BALLOT = COLLECTIVE.alias("ballot", ROW_NEXT, "ballot", "operand")
COLLECTIVE_ROWS = COLLECTIVE.size

TABLES = (ROW, OPERANDS, COLLECTIVE)
