"""The arrays that Python shares with the machine: the offset of each field, and the codes that fields hold.

Each table is declared by one row per field (see `schema`); a field's constant is its offset in a row. docs/machine.md
lists all of them.
"""

from __future__ import annotations

from .schema import Codes, Table

VECTOR_LANES = 16  # lanes per LLVM vector; the width of a register row is a multiple of it
FIRST_LANE = 0  # of a register row; where all lanes share one value, it is read from here
HEADER = 0  # the row of a list that says how many rows follow

# ---- codes -------------------------------------------------------------------------------------------

_SPACES = Codes("spaces", "memories that an access can address")
SHARED = _SPACES.code("shared", "workgroup memory")
GLOBAL = _SPACES.code("global", "storage: all bindings, side by side")

_POLICIES = Codes("policies", "what an out-of-bounds access does")
CLAMP = _POLICIES.code("clamp", "accesses the last element")
ZERO = _POLICIES.code("zero", "loads 0 and stores nothing")
WRAP = _POLICIES.code("wrap", "wraps around to an element of the array")

_SHAPES = Codes("shapes", "patterns of the addresses in a register row")
SCATTERED = _SHAPES.code("scattered", "none of the others")
BLOCKS = _SHAPES.code("blocks", "equal within each vector of lanes")
PERIODIC = _SHAPES.code("periodic", "repeats every `PERIOD` lanes")
CONSECUTIVE = _SHAPES.code("consecutive", "one more in each lane than in the lane before it")

_MEMORIES = Codes("memories", "what a barrier orders", prefix="ORDERED_")
ORDERED_WORKGROUP = _MEMORIES.code("workgroup", "workgroup memory")
ORDERED_STORAGE = _MEMORIES.code("storage", "storage buffers")
ORDERED_TEXTURE = _MEMORIES.code("texture", "storage textures")
_MEMORY_KINDS = 3

_EVENTS = Codes("event kinds", "what an event reports", start=1)
DIVERGED = _EVENTS.code("diverged", "some lanes of a workgroup did not reach a barrier")

_CHECKS = Codes("check kinds", "what a numeric check looks for")
NON_FINITE = _CHECKS.code("non_finite", "a result that is not finite, of finite operands")
DIVIDES_U32 = _CHECKS.code("divides_u32", "a u32 divisor of 0")
DIVIDES_I32 = _CHECKS.code("divides_i32", "an i32 divisor of 0, or the smallest number divided by -1")
SHIFTS = _CHECKS.code("shifts", "a shift by 32 bits or more")
TO_I32 = _CHECKS.code("to_i32", "an f32 outside the range of i32")
TO_U32 = _CHECKS.code("to_u32", "an f32 outside the range of u32")

_ENTRIES = Codes("shadow entries", "rows of `stamps` and `words` in a shadow memory")
WRITER = _ENTRIES.code("writer", "the last store")
READER = _ENTRIES.code("reader", "a load since then")
OTHER = _ENTRIES.code("other", "a load by another invocation")
VALUE = _ENTRIES.code("value", "what was stored (`words` only)")

_LEFT = Codes("left lanes", "lanes of an access that shadow memory does not record by blocks", prefix="")
NONE_LEFT = _LEFT.code("none_left", "it records all of them")
SOME_LEFT = _LEFT.code("some_left", "those in `left`")
ALL_LEFT = _LEFT.code("all_left", "all of them")

_STOPS = Codes("stops", "why a lockstep group has let others go on")
READY = _STOPS.code("ready", "it may go on at once")
AT_BARRIER = _STOPS.code("at_barrier", "it waits at a barrier for the others of its workgroup")
SPINS = _STOPS.code("spins", "it is in a loop that may wait for others")
ENDED = _STOPS.code("ended", "its invocations have ended")

_PICKS = Codes("picks", "which lockstep group goes on next")
ROUNDS = _PICKS.code("rounds", "each in turn, round by round, in the order that SEED says")
DRAWN = _PICKS.code("drawn", "one that is drawn")
PRIORITIES = _PICKS.code("priorities", "the one of the highest priority, which it loses at steps that are drawn")

FORWARD, BACKWARD = 0, -1  # seeds: in ascending order, in descending order; any other draws an order

# ---- a launch ----------------------------------------------------------------------------------------

CONFIG = Table("config", "lockstep group of the workgroup", "sizes and options of a launch")
LANES = CONFIG.field("lanes", "lanes", "invocations of one workgroup in this lockstep group")
SUBGROUP_SIZE = CONFIG.field("subgroup_size", "lanes", "lanes per subgroup")
WORKGROUPS_PER_BATCH = CONFIG.field("workgroups_per_batch", "workgroups", "workgroups that run side by side in a row")
GRID_X = CONFIG.field("grid_x", "workgroups", "size of the grid in x")
GRID_Y = CONFIG.field("grid_y", "workgroups", "size of the grid in y")
GRID_Z = CONFIG.field("grid_z", "workgroups", "size of the grid in z")
FIRST_WORKGROUP = CONFIG.field("first_workgroup", "position", "first workgroup of this call, in launch order")
END_WORKGROUP = CONFIG.field("end_workgroup", "position", "the workgroup after the last of this call")
BUDGET = CONFIG.field("budget", "jumps", "backward jumps that a batch may take")
WORK = CONFIG.field("work", "costs by lanes", "work in loops that a batch does before it first pauses")
RESUMES = CONFIG.field("resumes", "flag", "continue the first batch of this call, which has paused")
WGID_ROW = CONFIG.field("wgid_row", "register row", "first of the three rows that hold workgroup_id")
WIDTH = CONFIG.field("width", "lanes", "lanes of a register row")
IGNORED_BARRIER = CONFIG.field("ignored_barrier", "site", "barrier that orders no memory; -1: none")
STOP = CONFIG.field("stop", "flag", "stop after the batch in which the ignored barrier was needed")
SEED = CONFIG.field("seed", "seed", "order in which lockstep groups take turns: 0 ascending, -1 descending, else drawn")
LOCKSTEP_GROUPS = CONFIG.field("lockstep_groups", "groups", "lockstep groups of a batch; 1: all its lanes are one")
WATCHES = CONFIG.field("watches", "flag", "the program has watching probes")
FILL = CONFIG.field("fill", "bits", "initial value of the first word of workgroup memory")
FILL_WORD = CONFIG.field("fill_word", "word", "first word of a workgroup's memory that has these values, not zero")
FILL_WORDS = CONFIG.field("fill_words", "words", "how many have them")
FILL_PITCH = CONFIG.field("fill_pitch", "words", "words of workgroup memory of one workgroup")
FILL_STEP = CONFIG.field("fill_step", "bits", "by how much the initial value grows from word to word, modulo 2^32")
LANE_OFFSET = CONFIG.field("lane_offset", "lanes", "local invocation index of the group's first lane")
LANE_PITCH = CONFIG.field("lane_pitch", "lanes", "distance in a row from lane to lane of a workgroup")
GROUP_PITCH = CONFIG.field("group_pitch", "lanes", "distance in a row from workgroup to workgroup")
BESIDE = CONFIG.field("beside", "workgroups", "workgroups of a batch of several lockstep groups; 0: a batch of one")
PLACE = CONFIG.field("place", "position", "of the group's workgroup in a batch of several lockstep groups")
WORKGROUP_LANES = CONFIG.field("workgroup_lanes", "lanes", "invocations of one workgroup")
PICK = CONFIG.field("pick", "code", "which lockstep group goes on next: see picks")
SWITCHES = CONFIG.field("switches", "flag", "others may go on after atomic and subgroup operations, and races")
DEPTH = CONFIG.field("depth", "priorities", "1 + how often a lockstep group loses its priority")
PATIENCE = CONFIG.field("patience", "jumps", "turns in loops that wait before a lockstep group lets others go on")
SAMPLING = CONFIG.field("sampling", "flag", "count the lanes that loops need")
GRAIN = CONFIG.field("grain", "bytes", "smallest unit of storage: what threads access is noted in such grains")

ABSENT_BITS = 32  # lanes in each number of ABSENT
MOST_LOOPS = 64  # whose turns are counted apart; those with higher numbers count as the last one
LEVELS = 16  # of constructs that leave out tail lanes; level 0 computes all lanes

PROGRESS = Table("progress", "lockstep group of the workgroup", "where it is in the program")
PC = PROGRESS.field("pc", "instruction", "next instruction; -1: done")
BUDGET_LEFT = PROGRESS.field("budget_left", "jumps", "backward jumps left of the budget")
WORK_LEFT = PROGRESS.field("work_left", "costs by lanes", "work in loops left until the batch pauses")
PAUSED = PROGRESS.field("paused", "loop", "1 + number of the loop in which it has paused; 0: it has not")
TO_COMPARE = PROGRESS.field(
    "to_compare", "jumps", "backward jumps left at which to compare its state with the snapshot"
)
STOPPED = PROGRESS.field("stopped", "code", "why it has let others go on: see stops")
SPUN_AT = PROGRESS.field("spun_at", "instruction", "next instruction when it last spun; 0: it has gone on since")
AWAITED = PROGRESS.field("awaited", "instruction", "1 + the last atomic operation; 0: none")
AWAITED_PLACE = PROGRESS.field("awaited_place", "units", "the address that its first active lane accessed")
PATIENCE_LEFT = PROGRESS.field("patience_left", "jumps", "of PATIENCE")
PRIORITY = PROGRESS.field("priority", "number", "the higher, the sooner it goes on")
REPEATED = PROGRESS.field("repeated", "flag", "its state was that of the snapshot")
DIFFERED = PROGRESS.field("differed", "register row", "row that differed from the snapshot at the last comparison")
AT_LOOP = PROGRESS.field("at_loop", "loop", "snapshot: number of the loop that jumped backward")
BARRIERS_PASSED = PROGRESS.field("barriers_passed", "barriers", "barriers passed in this batch")
BUDGET_USED = PROGRESS.field("budget_used", "jumps", "most backward jumps that any batch has taken")
NEEDED_LANES = PROGRESS.field("needed_lanes", "lanes", "sampling: instructions of loops by active lanes")
ALL_LANES = PROGRESS.field("all_lanes", "lanes", "sampling: instructions of loops by all lanes")
LEVEL = PROGRESS.field("level", "level", "current level of leaving out tail lanes")
WIDTHS = PROGRESS.field("widths", "lanes", "lanes computed at each level", count=LEVELS)
AT_WIDTHS = PROGRESS.field("at_widths", "lanes", "snapshot: WIDTHS", count=LEVELS)
ACTIVE_LANES = PROGRESS.field("active_lanes", "lanes", "lanes up to the last active one at each level", count=LEVELS)
TURNS = PROGRESS.field("turns", "jumps", "backward jumps of each loop in this batch", count=MOST_LOOPS)
TURNED = PROGRESS.field("turned", "jumps", "budget left when each loop last jumped backward", count=MOST_LOOPS)

TURNS_TAKEN = Table(
    "turns", "batch of several lockstep groups", "who goes on next; then lists, see `machine.turns`", prefix="TURN_"
)
TURN_SEED = TURNS_TAKEN.field("seed", "seed", "of the next draw")
TURN_LISTED = TURNS_TAKEN.field("listed", "groups", "lockstep groups in the list of those that are ready")
TURN_NEXT = TURNS_TAKEN.field("next", "position", "ROUNDS: in the list, of the next one")
TURN_STEPS = TURNS_TAKEN.field("steps", "turns", "turns taken in this batch")
TURN_WOKEN = TURNS_TAKEN.field("woken", "turns", "TURN_STEPS when those that spin were last let go on")
TURN_CHANGED = TURNS_TAKEN.field("changed", "flag", "since then one has left its loop, met others, or ended")
TURN_STILL = TURNS_TAKEN.field("still", "times", "how often in a row none had")
TURN_STATE = TURNS_TAKEN.field("state", "hash", "of the state that later ones are compared with")
TURN_COMPARED = TURNS_TAKEN.field("compared", "times", "later states that were compared with it")
TURN_SAME = TURNS_TAKEN.field("same", "times", "of those, the ones that were the same")
TURN_DROPS = TURNS_TAKEN.field("drops", "times", "PRIORITIES: how often one has lost its priority")
TURN_DROP_AT = TURNS_TAKEN.field("drop_at", "turns", "PRIORITIES: TURN_STEPS at which the next one does")
TURN_WORK = TURNS_TAKEN.field("work", "costs by lanes", "work in loops that all lockstep groups have left")

ACCESS = Table("access", "way of accessing memory", "where the accessed units are, and their bounds")
BASE = ACCESS.field("base", "units", "first unit of the variable, in its memory")
LIMIT = ACCESS.field("limit", "units", "highest address that is in bounds")
UNIT = ACCESS.field("unit", "bytes", "size of a unit: 4 or 2")
UNITS = ACCESS.field("units", "units", "consecutive units of one access")
SPACE = ACCESS.field("space", "code", "memory that holds the variable: see spaces")
POLICY = ACCESS.field("policy", "code", "what an out-of-bounds access does: see policies")
COUNT_OF = ACCESS.field("count_of", "elements", "length of the array")
STRIDE = ACCESS.field("stride", "units", "distance from element to element of the array")
RACING = ACCESS.field("racing", "flag", "a load or a store races: others may go on after it")

PATTERNS = Table("patterns", "register row", "the pattern that `learn` has found in it")
SHAPE = PATTERNS.field("shape", "code", "see shapes")
PERIOD = PATTERNS.field("period", "lanes", "of a periodic row: lanes until it repeats")
LOWEST = PATTERNS.field("lowest", "units", "lowest address")
HIGHEST = PATTERNS.field("highest", "units", "highest address")
STAMP = PATTERNS.field("stamp", "count", "identifies the contents of the row")
FORM = PATTERNS.field("form", "stamp", "of the first contents of which these are the same, shifted")
MOVED = PATTERNS.field("moved", "units", "distance from them")
LEARNED_BY = PATTERNS.field("learned_by", "row", "where the last `learn` has kept them", initial=-1)
LEARNED_LANES = PATTERNS.field("learned_lanes", "lanes", "lanes of them")

# ---- lists of what happened --------------------------------------------------------------------------

HEADERS = Table("headers", "list of events, races or trace notes, at row `HEADER`", "the length of the list")
RECORDED = HEADERS.field("recorded", "rows", "rows that follow; of trace notes possibly more than fit")
BARRIER_PASSED = HEADERS.field("barrier_passed", "times", "races: how often workgroups passed the ignored barrier")
UNWATCHED = HEADERS.field("unwatched", "grains", "races: accessed grains that shadow memory has no record for")
BARRIER_NEEDED = HEADERS.field("barrier_needed", "accesses", "races: accesses that only the ignored barrier orders")

EVENTS = Table("events", "event: a kind at a site", "what went wrong, in the order of first occurrence")
KIND = EVENTS.field("kind", "code", "see event kinds")
SITE = EVENTS.field("site", "site", "the barrier's site")
EVENT_WORKGROUP = EVENTS.field("event_workgroup", "position", "workgroup of the first occurrence")
EVENT_LANE = EVENTS.field("event_lane", "lane", "first lane concerned")
DETAIL = EVENTS.field("detail", "lanes", "lanes that did not reach the barrier")
EPOCH = EVENTS.field("epoch", "barriers", "barriers passed before it")
TIMES = EVENTS.field("times", "count", "occurrences")
ABSENT = EVENTS.field("absent", "bits", "a bit for each lane that did not reach the barrier", count=32)

RACES = Table("races", "pair of watched accesses", "races, in the order of first occurrence", prefix="RACE_")
RACE_FIRST = RACES.field("first", "slot", "the earlier access, by its row in `watched`")
RACE_SECOND = RACES.field("second", "slot", "the later access, by its row in `watched`")
RACE_ACROSS = RACES.field("across", "flag", "the accesses are of two workgroups")
RACE_TIMES = RACES.field("times", "count", "occurrences")
RACE_DIFFERENT = RACES.field("different", "count", "occurrences in which the values differ")
RACE_PLACE = RACES.field("place", "grains", "grain of memory of the first occurrence")
RACE_FIRST_WORKGROUP = RACES.field("first_workgroup", "position", "the earlier access: workgroup")
RACE_FIRST_LANE = RACES.field("first_lane", "lane", "the earlier access: lane")
RACE_FIRST_CLOCK = RACES.field("first_clock", "barriers", "the earlier access: barriers passed before it")
RACE_FIRST_VALUE = RACES.field("first_value", "bits", "the earlier access: value")
RACE_SECOND_WORKGROUP = RACES.field("second_workgroup", "position", "the later access: workgroup")
RACE_SECOND_LANE = RACES.field("second_lane", "lane", "the later access: lane")
RACE_SECOND_CLOCK = RACES.field("second_clock", "barriers", "the later access: barriers passed before it")
RACE_SECOND_VALUE = RACES.field("second_value", "bits", "the later access: value")

NOTES = Table("notes", "traced write of one lane", "values of the traced variable, in order", prefix="NOTE_")
NOTE_POINT = NOTES.field("point", "trace point", "the write")
NOTE_LANE = NOTES.field("lane", "lane", "local invocation index")
NOTE_PLACE = NOTES.field("place", "units", "component that was written")
NOTE_VALUE = NOTES.field("value", "bits", "its new value")

TRACED = Table("traced", "launch", "what a trace covers; one flag per lane follows", prefix="TRACED_")
TRACED_WORKGROUP = TRACED.field("workgroup", "position", "the traced workgroup; -1: none")
TRACED_LANES = TRACED.field("lanes", "flags", "the first of the flags: whether a lane is traced")

# ---- counting probes ---------------------------------------------------------------------------------

BLOCKS_RUN = Table("blocks", "basic block", "executions and lanes")
EXECUTIONS = BLOCKS_RUN.field("executions", "subgroups", "executions with at least one active lane")
ACTIVE = BLOCKS_RUN.field("active", "lanes", "active lanes in them")
STAYED = BLOCKS_RUN.field("stayed", "lanes", "lanes in them that passed the guards before")
PRESENT = BLOCKS_RUN.field("present", "lanes", "lanes of these subgroups")
LAUNCHED = BLOCKS_RUN.field("launched", "lanes", "lanes of the workgroups with such a subgroup")
VISITS = BLOCKS_RUN.field("visits", "lanes", "executions in this batch, times the lanes of a workgroup in each")
LONGEST = BLOCKS_RUN.field("longest", "lanes", "most VISITS of a batch, which those of BESIDE share")

WORKED = Table("worked", "run", "invocations that accessed memory")
ALL_WORKED = WORKED.field("all_worked", "flag", "all invocations of this batch have")
WORKED_LANES = WORKED.field("worked_lanes", "invocations", "invocations that have, in the batches so far")
EXECUTED_BY_EACH = WORKED.field("executed_by_each", "instructions", "of subgroups, which each workgroup has executed")
WORKGROUP_SLOTS = 4096  # for what each workgroup executes: in larger grids, neighbors share one

RULES = Table("rules", "memory probe", "the device's cost rule for it")
SHIFT = RULES.field("shift", "bits", "log2 of the words in a column of banks")
COLUMNS = RULES.field("columns", "columns", "columns of banks")
MERGE = RULES.field("merge", "flag", "adjacent groups of lanes may be served as one")
ORDER_LENGTH = RULES.field("order_length", "lanes", "lanes in the order of service")
SECTOR = RULES.field("sector", "units", "units per sector")
LINE = RULES.field("line", "units", "units per line")
SERIALIZES = RULES.field("serializes", "flag", "lanes that access one word are serialized: an atomic read-modify-write")

TALLIES = Table("tallies", "memory probe", "what its accesses cost")
REQUESTS = TALLIES.field("requests", "subgroups", "executions with at least one active lane")
CHARGED = TALLIES.field("charged", "wavefronts or sectors", "what they cost")
IDEAL = TALLIES.field("ideal", "wavefronts or sectors", "the least that they could cost")
LINES = TALLIES.field("lines", "lines", "distinct lines")
BYTES = TALLIES.field("bytes", "bytes", "requested bytes")
SERIALIZED_LANES = TALLIES.field("serialized_lanes", "lanes", "serialized atomic lanes")

LAST = Table("last", "execution that a probe remembers", "its cost, to add again for a like one", base=TALLIES)
LIKE = LAST.field("like", "key", "what executions of this cost have in common; 0: none yet")

KNOWN = Table("known", "memory probe", "the execution whose addresses and mask are kept")
KEPT = KNOWN.field("kept", "lanes", "lanes of it; 0: none is kept")
KEPT_FORM = KNOWN.field("kept_form", "stamp", "form of its address pattern")
VERSION = KNOWN.field("version", "count", "executions kept so far")

BOUNDS = Table(
    "bounds", "memory probe or watched access", "accesses out of bounds, of unwritten words, that meet, or that miss"
)
OUTSIDE = BOUNDS.field("outside", "count", "occurrences")
LANE = BOUNDS.field("lane", "lane", "lane of its first one")
WORKGROUP = BOUNDS.field("workgroup", "position", "first workgroup that has one")
ADDRESS = BOUNDS.field("address", "units or grains", "address of its first one")
MISSED = BOUNDS.alias("missed", OUTSIDE, "cached", "sectors that the cache lacked")
DELAYED = BOUNDS.alias("delayed", LANE, "cached", "executions that the cache lacked a sector for")
EXECUTED = BOUNDS.alias("executed", WORKGROUP, "cached", "executions with an active lane")
PAGE_CHANGES = BOUNDS.alias(
    "page_changes", ADDRESS, "cached", "sectors that the cache lacked, on another page than the one before"
)

REACHED = Table("reached", "memory probe", "addresses of active lanes, before the policy")
LOW = REACHED.field("low", "units", "lowest", initial=0xFFFFFFFF)
HIGH = REACHED.field("high", "units", "highest", initial=-1)

SAMPLE = Table("sample", "launch", "before what sampled workgroups access", prefix="SAMPLE_")
SAMPLE_SHIFT = SAMPLE.field("shift", "bits", "log2 of the words of a chunk of storage")
SAMPLE_CACHE_LINES = SAMPLE.field("cache_lines", "lines", "lines that the cache of a core holds for a workgroup")
SAMPLE_CACHE_INSERTED = SAMPLE.field("cache_inserted", "lines", "lines that have entered it")
SAMPLE_LIST_AT = SAMPLE.field("list_at", "position", "of the list of accessed chunks")
SAMPLE_LISTED = SAMPLE.field("listed", "chunks", "in that list")
SAMPLE_SOURCES_AT = SAMPLE.field("sources_at", "position", "of the sources")
SAMPLE_SOURCES = SAMPLE.field("sources", "sources", "how many there are")
SAMPLE_SECTOR = SAMPLE.field("sector", "words", "of a sector")
SAMPLE_GRANULE = SAMPLE.field("granule", "words", "of a granule, which device memory moves at once")
SAMPLE_LINE = SAMPLE.field("line", "words", "of a line")

CHUNK = Table("chunk", "chunk of storage", "notes on its words", prefix="CHUNK_")
CHUNK_LISTED = CHUNK.field("listed", "flag", "it is in the list, and has been filled")
CHUNK_FIRST = CHUNK.field(
    "first", "bytes", "of each word: 1 if the first workgroup accesses it, 2 per atomic operation"
)
CHUNK_SECOND = CHUNK.field("second", "bytes", "likewise of the second workgroup")
CHUNK_LINE_ENTERED = CHUNK.field("line_entered", "lines", "that had entered the cache when the one here did")
CHUNK_SECTOR_ENTERED = CHUNK.field("sector_entered", "lines", "that of its line, when its sector entered the cache")

SOURCE = Table("source", "binding", "where its words are copied from, and what is accessed of it", prefix="SOURCE_")
SOURCE_START = SOURCE.field("start", "bytes", "of its first byte in storage")
SOURCE_BYTES = SOURCE.field("bytes", "bytes", "of the binding")
SOURCE_ADDRESS = SOURCE.field("address", "address", "of its first byte")
SOURCE_SECTORS = SOURCE.field("sectors", "sectors", "that the workgroups access")
SOURCE_GRANULES = SOURCE.field("granules", "granules", "that they access")
SOURCE_LINES = SOURCE.field("lines", "lines", "that they access")
SOURCE_OWN = SOURCE.field("own", "granules", "that the first workgroup accesses")
SOURCE_WORDS = SOURCE.field("words", "words", "that they access")

_FAR = 1 << 40  # beyond every difference of two numbers of 32 bits
MARGINS = Table("margins", "watched comparison A < B or A <= B", "operands, and how close it was to the other result")
A_LOW = MARGINS.field("a_low", "number", "lowest A", initial=_FAR)
A_HIGH = MARGINS.field("a_high", "number", "highest A", initial=-_FAR)
B_LOW = MARGINS.field("b_low", "number", "lowest B", initial=_FAR)
B_HIGH = MARGINS.field("b_high", "number", "highest B", initial=-_FAR)
HELD_BY = MARGINS.field("held_by", "number", "least B - A where it was true", initial=_FAR)
FAILED_BY = MARGINS.field("failed_by", "number", "greatest B - A where it was false", initial=-_FAR)

CHECKS = Table("checks", "numeric check", "failures, and the operands of the first", prefix="CHECK_")
CHECK_TIMES = CHECKS.field("times", "count", "failures")
CHECK_LANE = CHECKS.field("lane", "lane", "lane of its first one")
CHECK_WORKGROUP = CHECKS.field("workgroup", "position", "first workgroup that has one")
CHECK_A = CHECKS.field("a", "bits", "operand A of its first one")
CHECK_B = CHECKS.field("b", "bits", "operand B of its first one")
CHECK_C = CHECKS.field("c", "bits", "operand C of its first one")
CHECK_RESULT = CHECKS.field("result", "bits", "result of its first one")

# ---- watching probes ---------------------------------------------------------------------------------
# A grain is the unit of shadow memory: 2 bytes where f16 is accessed, else 4.

WATCHED = Table("watched", "watched access", "where its grains are", prefix="WATCHED_")
WATCHED_BASE = WATCHED.field("base", "grains", "first grain of the variable")
WATCHED_LIMIT = WATCHED.field("limit", "units", "highest address that is in bounds")
WATCHED_FACTOR = WATCHED.field("factor", "grains", "grains per unit")
WATCHED_GRAINS = WATCHED.field("grains", "grains", "grains per access")
WATCHED_PITCH = WATCHED.field("pitch", "grains", "distance from workgroup to workgroup of a batch")
WATCHED_VARIABLE = WATCHED.field("variable", "variable", "number of its variable")
WATCHED_MEMORY = WATCHED.field("memory", "code", "kind of memory: see memories")
WATCHED_GRAIN = WATCHED.field("grain", "bytes", "size of a grain")
WATCHED_READ = WATCHED.field("read", "flag", "some access loads from the variable")
WATCHED_UNWRITTEN = WATCHED.field("unwritten", "flag", "report loads of words that were never written")
WATCHED_BLOCKS = WATCHED.field("blocks", "flag", "shadow memory may record its accesses by blocks")

CLOCKS = Table("clocks", "workgroup of the batch", "barriers passed, counted over all batches")
CLOCK = CLOCKS.field("clock", "barriers", "barriers passed")
START = CLOCKS.field("start", "barriers", "barriers passed when this batch began")
ORDERED_SINCE = CLOCKS.field("ordered_since", "barriers", "last barrier that counts, per memory", count=_MEMORY_KINDS)
PASSED_SINCE = CLOCKS.field("passed_since", "barriers", "last barrier of any kind, per memory", count=_MEMORY_KINDS)

WATCH_STATE = Table("watch state", "run", "progress of the watching probes")
PENDING = WATCH_STATE.field("pending", "loads", "noted loads that have not been examined")
WINDOW = WATCH_STATE.field("window", "count", "barriers that have ordered all of workgroup memory")
BATCH = WATCH_STATE.field("batch", "count", "batches")
RACES_SEEN = WATCH_STATE.field("races_seen", "count", "races")
OWNER = WATCH_STATE.field("owner", "position", "the workgroup whose own memory is examined; 0 for shared memory")
READ_WINDOW = WATCH_STATE.field("read_window", "window", "window in which a load was last examined")
LANES_LEFT = WATCH_STATE.field("lanes_left", "lanes", "lanes in `left`")
BEGUN = WATCH_STATE.field("begun", "barriers", "least clock of this run: earlier stamps stand for no access", initial=1)

SPANS = Table("spans", "variable", "grains accessed in this window")
READ_LOW = SPANS.field("read_low", "grains", "lowest grain of a noted load")
READ_HIGH = SPANS.field("read_high", "grains", "highest grain of a noted load")
WRITE_LOW = SPANS.field("write_low", "grains", "lowest grain of a store")
WRITE_HIGH = SPANS.field("write_high", "grains", "highest grain of a store")

SEEN = Table("seen", "load that a watched access remembers", "when it was last examined", prefix="SEEN_")
SEEN_DISTANCE = SEEN.field("distance", "units", "distance of its addresses from the kept row")
SEEN_VERSION = SEEN.field("version", "count", "version of the kept row")
SEEN_WINDOW = SEEN.field("window", "window", "window in which it was examined")
SEEN_BATCH = SEEN.field("batch", "batch", "batch in which it was examined")

ROW_KEPT = Table("kept rows", "watched access", "the row of addresses that it keeps", prefix="ROW_")
ROW_FORM = ROW_KEPT.field("form", "stamp", "loads: form of the address pattern last compared with it", initial=-1)
ROW_SHIFT = ROW_KEPT.field("shift", "units", "loads: distance of that form from it", initial=-1)
ROW_VERSION = ROW_KEPT.field("version", "count", "rows kept so far", initial=-1)
ROW_LANES = ROW_KEPT.field("lanes", "lanes", "lanes of it", initial=-1)
ROW_IRREGULAR = ROW_KEPT.field("irregular", "rows", "rows in a row that were mostly examined by lanes, not by blocks")
ROW_RACE = ROW_KEPT.field("race", "race", "its row in `races`: the last race that the access has completed", initial=1)
ROW_DISTINCT = ROW_KEPT.alias("distinct", ROW_FORM, "stores", "each lane has grains of its own")
ROW_MISSES = ROW_KEPT.alias("misses", ROW_SHIFT, "stores", "stores in a row with other addresses")

LOADS = Table("noted loads", "noted load", "what is examined if a store comes near", prefix="LOAD_")
LOAD_SLOT = LOADS.field("slot", "slot", "the access, by its row in `watched`")
LOAD_DISTANCE = LOADS.field("distance", "units", "distance of its addresses from the kept row")

# ---- sums of products --------------------------------------------------------------------------------

QUEUE = Table("queue", "run", "the tiles that wait to be added", prefix="QUEUED_")
QUEUED_STEPS = QUEUE.field("steps", "tiles", "tiles that wait")
QUEUED_FIRST = QUEUE.field("first", "instruction", "where the sums of the last one begin")
QUEUED_SUMS = QUEUE.field("sums", "number", "number of the group of sums")
QUEUED_ROWS = QUEUE.field("rows", "rows", "factors A of each tile")
QUEUED_COLUMNS = QUEUE.field("columns", "rows", "factors B of each tile")
QUEUED_FORM_A = QUEUE.field("form_a", "code", "how factors A are stored: see factor forms")
QUEUED_FORM_B = QUEUE.field("form_b", "code", "how factors B are stored: see factor forms")
QUEUED_TILE = QUEUE.field("tile", "instruction", "the last one; -1: none since the batch began")
QUEUED_STAMP_A = QUEUE.field("stamp_a", "stamp", "of the address pattern of its factors A")
QUEUED_STAMP_B = QUEUE.field("stamp_b", "stamp", "of the address pattern of its factors B")
QUEUED_ROOM_A = QUEUE.field("room_a", "units", "factors A have the same form up to this SHARED part; -1: unknown")
QUEUED_ROOM_B = QUEUE.field("room_b", "units", "factors B have the same form up to this SHARED part; -1: unknown")

_FORMS = Codes("factor forms", "how a factor is stored in the queue", start=-1)
IMPOSSIBLE = _FORMS.code("impossible", "it cannot be queued")
FULL = _FORMS.code("full", "all lanes")
SAME = _FORMS.code("same", "16 lanes that all others repeat")
SPLAT = _FORMS.code("splat", "one number for each 16 lanes")

# Sizes that the machine itself needs, as ints.
TALLY_SIZE, CLOCKS_SIZE = TALLIES.size, CLOCKS.size
SAMPLE_SIZE, CHUNK_SIZE, SOURCE_SIZE = SAMPLE.size, CHUNK.size, SOURCE.size

TABLES = tuple(each for each in list(globals().values()) if isinstance(each, Table))
CODES = tuple(each for each in list(globals().values()) if isinstance(each, Codes))
