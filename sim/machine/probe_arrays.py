"""The arrays that probes use, and their sizes. Python allocates them; the machine fills them in.

Comments name the table in `layout` that declares the fields of each row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..models import rules
from . import instruction as field
from . import layout as at
from . import opcodes as op

LANE_BITS, SLOT_BITS = 14, 18  # fields of a stamp: barriers passed, slot, lane
LANES, SLOTS = 1 << LANE_BITS, 1 << SLOT_BITS
BLOCK_BITS = 4
BLOCK = 1 << BLOCK_BITS  # grains
SPAN_BITS = 2
SPAN = 1 << SPAN_BITS  # blocks
GRAIN_BYTES, BLOCK_BYTES = 40, 32  # of the record of a grain, and of a block or a span
PLACES = 64  # executions whose cost each memory probe remembers
_LOADS = 4096  # noted loads
_SEEN = 256  # loads at different distances that each watched access remembers
MOST_RACES = 256  # pairs of accesses
_LEAST_QUEUE = 4096  # words: half of the nearest cache
_LEAST_STEP = 2 * at.VECTOR_LANES  # words: the two factors of a step, in their smallest form


class Probes(NamedTuple):
    """Arrays of the counting probes of a run, with `n` memory probes and `w` lanes per register row."""

    blocks: NDArray[np.int64]  # [basic blocks], BLOCKS_RUN
    by_workgroup: NDArray[np.int64]  # [WORKGROUP_SLOTS, 1 without blocks] instructions of subgroups
    executed: NDArray[np.int64]  # [w] likewise, of workgroups of this batch, beside EXECUTED_BY_EACH
    working: NDArray[np.uint32]  # [w] lanes that have accessed memory in this batch
    worked: NDArray[np.int64]  # WORKED
    rules: NDArray[np.int64]  # [n], RULES
    orders: NDArray[np.int64]  # [n, lanes of a subgroup] order in which lanes are served
    tallies: NDArray[np.int64]  # [n], TALLIES
    bounds: NDArray[np.int64]  # [n], BOUNDS
    reached: NDArray[np.int64]  # [n], REACHED
    margins: NDArray[np.int64]  # [comparisons], MARGINS
    known: NDArray[np.int64]  # [n], KNOWN
    addresses: NDArray[np.uint32]  # [n, w] addresses of the execution that is kept
    masks: NDArray[np.uint32]  # [n, w] mask of the execution that is kept
    last: NDArray[np.int64]  # [n, PLACES], LAST
    writers: NDArray[np.int64]  # [words of storage, or 1] 1 + invocation that stored last, counted through the grid; of
    # interleaved workgroups: [words of storage, or halves] 1 + workgroup; of sampled ones: SAMPLE and what follows it
    touched: NDArray[np.uint8]  # [words of storage, or 1] 1 where a word was accessed
    stored: NDArray[np.uint32]  # [grains of storage / 32, or 1] a bit for each that this thread has stored to
    loaded: NDArray[np.uint32]  # likewise, loaded from variables that are stored to
    checks: NDArray[np.int64]  # [checks], CHECKS
    traced: NDArray[np.int64]  # TRACED, a flag for each lane of a workgroup
    notes: NDArray[np.int64]  # [1 + notes], NOTES after a header
    current: NDArray[np.uint32]  # [w] addresses of this execution
    ones: NDArray[np.uint32]  # [w] a mask of all lanes
    scratch: NDArray[np.int64]  # see `rules.new_scratch`


def make_probes(
    probes: int,
    lanes: int,
    blocks: int,
    checks: int,
    writers: NDArray[np.int64],
    touched: NDArray[np.uint8],
    traced: NDArray[np.int64],
    notes: int,
    margins: int,
) -> Probes:
    """Make the arrays for this many memory probes, lanes per row, basic blocks, checks, trace notes and comparisons.

    All counters are 0. `writers`, `touched` and `traced` are used as they are; the notes of a thread have no room.
    """

    def lanes_of(*shape: int) -> NDArray[np.uint32]:
        return np.zeros((*shape, lanes), np.uint32)

    count = max(1, probes)
    return Probes(
        blocks=at.BLOCKS_RUN.new(max(1, blocks)),
        by_workgroup=np.zeros(at.WORKGROUP_SLOTS if blocks else 1, np.int64),
        executed=np.zeros(lanes, np.int64),
        working=lanes_of(),
        worked=at.WORKED.new(),
        rules=at.RULES.new(count),
        orders=np.zeros((count, rules.MAX_LANES), np.int64),
        tallies=at.TALLIES.new(count),
        bounds=at.BOUNDS.new(count),
        reached=at.REACHED.new(count),
        margins=at.MARGINS.new(max(1, margins)),
        known=at.KNOWN.new(count),
        addresses=lanes_of(count),
        masks=lanes_of(count),
        last=at.LAST.new(count, PLACES),
        writers=writers,
        touched=touched,
        stored=np.zeros(1, np.uint32),
        loaded=np.zeros(1, np.uint32),
        checks=at.CHECKS.new(max(1, checks)),
        traced=traced,
        notes=at.NOTES.new(1 + notes),
        current=lanes_of(),
        ones=np.ones(lanes, np.uint32),
        scratch=rules.new_scratch(),
    )


class Shadow(NamedTuple):
    """Shadow memory: the last writer of each grain, and two readers."""

    stamps: NDArray[np.int64]  # [WRITER to OTHER, grains] clock, slot and lane of the access
    words: NDArray[np.uint32]  # [WRITER to VALUE, grains] their workgroups, 0 in workgroup memory; the value stored
    # Records of spans, then of blocks, see `shadow_blocks`
    starts: NDArray[np.int64]  # [WRITER to READER, records] stamp of the first grain
    groups: NDArray[np.uint32]  # [WRITER to READER, records] their workgroups
    covers: NDArray[np.uint32]  # [WRITER to READER, records] shape of the access, then a bit for each grain of a block


class Watch(NamedTuple):
    """Arrays of the watching probes of a run, with `n` watched accesses and `w` lanes per register row."""

    table: NDArray[np.int64]  # [n], WATCHED
    clocks: NDArray[np.int64]  # [workgroups of a batch], CLOCKS
    workgroup: Shadow
    storage: Shadow
    races: NDArray[np.int64]  # [1 + pairs], RACES after a header
    unwritten: NDArray[np.int64]  # [n], BOUNDS: loads of words that were never written; the address is a grain
    spans: NDArray[np.int64]  # [variables], SPANS
    seen: NDArray[np.int64]  # [n, _SEEN], SEEN
    rows: NDArray[np.uint32]  # [n, w] the row of addresses that each access keeps
    kept: NDArray[np.int64]  # [n], ROW_KEPT
    loads: NDArray[np.int64]  # [_LOADS], LOADS
    left: NDArray[np.uint32]  # [w] 1: a lane whose access shadow memory does not record by blocks
    state: NDArray[np.int64]  # WATCH_STATE


def stamp_of_clock(clock: int) -> int:
    """Return the least stamp of an access at this clock."""
    return clock << (LANE_BITS + SLOT_BITS)


def record_count(grains: int) -> int:
    """Return how many records of spans and of blocks so many grains need."""
    return max(1, -(-grains // (BLOCK * SPAN))) * (1 + SPAN)


def make_shadow(grains: int, recorded: int | None = None) -> Shadow:
    """Make shadow memory without accesses. Pages that are never written take no memory.

    `recorded`: only the first grains can have a record of their own, so many; None: all."""
    records, recorded = record_count(grains), grains if recorded is None else min(grains, recorded)
    return Shadow(
        stamps=np.zeros((at.VALUE, max(1, recorded)), np.int64),
        words=np.zeros((at.VALUE + 1, max(1, recorded)), np.uint32),
        starts=np.zeros((at.OTHER, records), np.int64),
        groups=np.zeros((at.OTHER, records), np.uint32),
        covers=np.zeros((at.OTHER, records), np.uint32),
    )


def make_watch(
    table: NDArray[np.int64], variables: int, workgroups_per_batch: int, lanes: int, workgroup: Shadow, storage: Shadow
) -> Watch:
    """Make the arrays for these watched accesses, variables, workgroups per batch and lanes per register row."""
    count = len(table)
    return Watch(
        table=table,
        clocks=at.CLOCKS.new(workgroups_per_batch),
        workgroup=workgroup,
        storage=storage,
        races=at.RACES.new(1 + MOST_RACES),
        unwritten=at.BOUNDS.new(count),
        spans=at.SPANS.new(max(1, variables)),
        seen=at.SEEN.new(count, _SEEN),
        rows=np.zeros((count, lanes), np.uint32),
        kept=at.ROW_KEPT.new(count),
        loads=at.LOADS.new(_LOADS),
        left=np.zeros(lanes, np.uint32),
        state=at.WATCH_STATE.new(),
    )


def no_watch() -> Watch:
    """Make the arrays of a run without watching probes."""
    made = make_watch(at.WATCHED.new(1), 1, 1, 1, make_shadow(1), make_shadow(1))
    return made._replace(races=at.RACES.new(1), loads=at.LOADS.new(1))  # each launch clears its own


class Queue(NamedTuple):
    """Factors whose products have not been added yet, see `tiles`."""

    words: NDArray[np.uint32]
    kept: NDArray[np.uint32]  # the sums before the products are added
    begins: NDArray[np.int64]  # for each tile that waits: the instruction at which its sums begin
    state: NDArray[np.int64]  # QUEUE


def make_queue(words: NDArray[np.uint32], kept: NDArray[np.uint32]) -> Queue:
    """Make an empty queue on these arrays."""
    return Queue(words, kept, np.zeros(1 + len(words) // _LEAST_STEP, np.int64), at.QUEUE.new())


def queue_words(code: NDArray[np.int32], lanes: int) -> int:
    """Return the words for at least one step of a program's tiles, with register rows of `lanes`."""
    tiles = code[code[:, field.OP] == op.TILE]
    return max(_LEAST_QUEUE, int((tiles[:, field.TILE_ROWS] + tiles[:, field.TILE_COLUMNS]).max(initial=0)) * lanes)


def kept_rows(code: NDArray[np.int32]) -> int:
    """Return how many rows of addresses a program's `learn` instructions keep; at least 1."""
    return 1 + int(code[code[:, field.OP] == op.LEARN, field.KEEPS].max(initial=0))


def kept_words(code: NDArray[np.int32], lanes: int) -> int:
    """Return the words to keep the sums of a program's tiles, if some are checked; else 1."""
    tiles = code[code[:, field.OP] == op.TILE]
    return (
        int((tiles[:, field.TILE_ROWS] * tiles[:, field.TILE_COLUMNS]).max(initial=0)) * lanes
        if op.CHECKED in code[:, field.OP]
        else 1
    )


def make_turns(groups: int, beside: int) -> NDArray[np.int64]:
    """Make the array that says who goes on next, for so many lockstep groups of so many workgroups (see `turns`)."""
    return np.zeros(at.TURNS_TAKEN.size + groups + 2 * beside, np.int64)
