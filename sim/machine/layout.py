"""The arrays that Python hands to the machine, and what stands where in them.

`config` (int64): sizes of the launch. `access` (int64[n, 8]): one row per way of touching memory. `blocks`
(int64[n, 2]): executions and active lanes of each straight run. `tallies` (int64[n, 6]): counters of each memory probe.
`bounds` (int64[n, 4]): out-of-bounds accesses of each site. `events` (int64[n, 8]): what went wrong, in order.
"""

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
CONFIG_SIZE = 12

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
SHAPE, PERIOD, HIGHEST, STAMP = 0, 1, 2, 3
PATTERN_SIZE = 4
SCATTERED, BLOCKS, PERIODIC, CONSECUTIVE = 0, 1, 2, 3  # shapes; BLOCKS: alike in each run of 16 lanes

# rules: one row per memory probe (sector and line in units of the access; ordered: lanes in the order)
SHIFT, COLUMNS, MERGE, ORDERED, SECTOR, LINE = range(6)
RULE_SIZE = 6

# tallies: one row per memory probe
REQUESTS, CHARGED, IDEAL, LINES, BYTES = 0, 1, 2, 3, 4
TALLY_SIZE = 5

# bounds: how many accesses were outside, and the first
OUTSIDE, LANE, WORKGROUP, ADDRESS = 0, 1, 2, 3
BOUNDS_SIZE = 4

# trace: one row per value that was noted; row 0 holds how many there were, which may be more than there is room for
POINT, TRACED_LANE, PLACE, VALUE = range(4)
TRACE_SIZE = 4

# events
KIND, SITE, EVENT_WORKGROUP, EVENT_LANE, DETAIL, OTHER, EPOCH, TIMES = range(8)
DIVERGED, BUDGET_SPENT, RACE = 1, 2, 3
EVENT_SIZE = 8
