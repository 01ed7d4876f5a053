"""The arrays that Python hands to the machine, and what stands where in them.

`config` (int64): sizes of the launch. `access` (int64[n, 8]): one row per way of touching memory. `blocks`
(int64[n, 5]): executions and lanes of each straight run. `tallies` (int64[n, 6]): counters of each memory probe.
`bounds` (int64[n, 4]): out-of-bounds accesses of each site. `events` (int64[n, 8]): what went wrong, in order.
"""

VECTOR_LANES = 16  # lanes LLVM is asked to take at once; register rows are padded to a multiple of this

# config
LANES = 0  # invocations per workgroup
SUBGROUP = 1  # lanes per subgroup
TOGETHER = 2  # workgroups per batch
SHARED_WORDS = 3  # workgroup memory of one workgroup, in words
GRID_X, GRID_Y, GRID_Z = 4, 5, 6
FIRST, LAST = 7, 8  # workgroups of this call, by linear index; LAST exclusive
BUDGET = 9  # backward jumps allowed per batch
WGID_ROW = 10  # first of three rows that hold workgroup_id
WIDTH = 11  # lanes per register row
IGNORED = 12  # site of the barrier that is taken to order nothing (-1: none)
STOP = 13  # 1: stop after the batch in which the ignored barrier was needed
SEED = 14  # of the order in which strands take their turns: FORWARD, BACKWARD, or a number that draws it
STRANDS = 15  # that a workgroup is cut into
WATCHES = 16  # 1: the program has watching probes
FILLING = 17  # what a word of workgroup memory holds at first
FIRST_LANE = 18  # of this strand
LANE_PITCH, GROUP_PITCH = 19, 20  # how far apart in a row neighbouring lanes, and workgroups, are: see `Program`
GLANCE = 21  # 1: note how many lanes have work in loops
CONFIG_SIZE = 22
FORWARD, BACKWARD = 0, -1

# places: one row per strand of a workgroup: its next instruction (-1: it is done), what is left of its budget, and
# barriers passed; the most that it has used of its budget in any batch; at which level it is of leaving lanes out, and
# how many lanes are computed at each (level 0: all). At a glance: rows of loops, by lanes up to the last active one and
# by all lanes, and the lanes up to the last active one at each level
PC, LEFT, PASSED, MOST, NEEDED_LANES, ALL_LANES, LEVEL, WIDTHS = range(8)
LEVELS = 16
ACTIVE_LANES = WIDTHS + LEVELS
PLACE_SIZE = ACTIVE_LANES + LEVELS

# access
BASE = 0  # first unit of the variable, in its arena
LIMIT = 1  # largest address of a first unit
UNIT = 2  # bytes per unit: 4 or 2
UNITS = 3  # consecutive units of one access
SPACE = 4  # SHARED or GLOBAL
POLICY = 5  # what an out-of-bounds access does
COUNT_OF = 6  # elements of the array, for `length`
STRIDE = 7  # units from element to element of that array
ACCESS_SIZE = 8

SHARED, GLOBAL = 0, 1
CLAMP, ZERO, WRAP = 0, 1, 2

# patterns: one row per register row that was learnt
SHAPE, PERIOD, LOWEST, HIGHEST, STAMP = range(5)
PATTERN_SIZE = 5
SCATTERED, BLOCKS, PERIODIC, CONSECUTIVE = 0, 1, 2, 3  # shapes; BLOCKS: alike in each run of 16 lanes

# rules: one row per memory probe (sector and line in units of the access; ordered: lanes in the order; turns: 1 where
# lanes on one word take turns)
SHIFT, COLUMNS, MERGE, ORDERED, SECTOR, LINE, TURNS_TAKEN = range(7)
RULE_SIZE = 7

# tallies: one row per memory probe
REQUESTS, CHARGED, IDEAL, LINES, BYTES, TURNS = range(6)
TALLY_SIZE = 6

# known: one row per memory probe: how many lanes of an execution are kept (0: none), the stamp of its pattern, and how
# many have been kept so far
KEPT, KEPT_STAMP, VERSION = range(3)
KNOWN_SIZE = 3
LIKE = TALLY_SIZE  # of `last`, after a tally: what has counted that much (0: nothing)
LAST_SIZE = TALLY_SIZE + 1

# blocks: one row per straight run. Subgroups that came to it; their active lanes, those that guards had let through,
# and all invocations in them; invocations of the workgroups of which some subgroup came
EXECUTIONS, ACTIVE, STAYED, PRESENT, LAUNCHED = range(5)
BLOCK_SIZE = 5

# bounds: how many accesses were outside, and the first; or how many stores met those of another workgroup
OUTSIDE, LANE, WORKGROUP, ADDRESS = 0, 1, 2, 3
BOUNDS_SIZE = 4

# reach: one row per memory probe: lowest and highest address that active lanes asked for, before the policy
LOW, HIGH = 0, 1
REACH_SIZE = 2
UNREACHED = 0xFFFFFFFF, -1  # of an access that no lane has made

# margins: one row per comparison A < B, or A <= B, that is watched: lowest and highest A, the same of B, and of B - A
# the least where the comparison held, the most where it did not
A_LOW, A_HIGH, B_LOW, B_HIGH, HELD_BY, FAILED_BY = range(6)
MARGIN_SIZE = 6
NO_MARGIN = 1 << 40, -1 << 40, 1 << 40, -1 << 40, 1 << 40, -1 << 40

# notes: one row per value that was traced; row 0 holds how many there were, which may be more than there is room for
POINT, TRACED_LANE, NOTED_AT, NOTED = range(4)
NOTE_SIZE = 4

# clocks: one row per workgroup of the batch: barriers passed so far, in all batches; the same when this batch began;
# when each kind of memory was last ordered, by a barrier that counts and by any
CLOCK, START = 0, 1
ORDERED_SINCE, PASSED_SINCE = 2, 5  # each and the two after it
ORDERED_WORKGROUP, ORDERED_STORAGE, ORDERED_TEXTURE = range(3)
CLOCKS_SIZE = 8

# watched: one row per watched access, in grains of its memory (2 bytes where f16 is accessed, else 4); READ is 1 where
# its variable is loaded from anywhere
W_BASE, W_LIMIT, W_FACTOR, W_GRAINS, W_PITCH, W_VARIABLE, W_MEMORY, W_GRAIN, W_READ, W_UNWRITTEN = range(10)
WATCHED_SIZE = 10

# races: one row per pair of places; row 0 holds how many rows there are, and how often the ignored barrier was needed
R_FIRST, R_SECOND, R_ACROSS, R_TIMES, R_DIFFERENT, R_PLACE = range(6)
R_FIRST_WORKGROUP, R_FIRST_LANE, R_FIRST_CLOCK, R_FIRST_VALUE = range(6, 10)
R_SECOND_WORKGROUP, R_SECOND_LANE, R_SECOND_CLOCK, R_SECOND_VALUE = range(10, 14)
RACE_SIZE = 14
HOW_MANY, NEEDED = 0, 1  # of row 0

# checks: one row per place, how often an operand or a result was wrong, and the first time
CHECK_TIMES, CHECK_LANE, CHECK_WORKGROUP, CHECK_A, CHECK_B, CHECK_C, CHECK_RESULT = range(7)
CHECK_SIZE = 7
BORN, DIVIDES_U32, DIVIDES_I32, SHIFTS, TO_I32, TO_U32 = range(6)  # kinds

# events
KIND, SITE, EVENT_WORKGROUP, EVENT_LANE, DETAIL, OTHER, EPOCH, TIMES = range(8)
DIVERGED, BUDGET_SPENT = 1, 2
ABSENT = 8  # and the words after it: a bit for each lane that is absent, 32 to a word
EVENT_SIZE = 8 + 32
