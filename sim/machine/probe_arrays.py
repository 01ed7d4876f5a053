"""The records of arrays that probes write to and look up, and how much room each needs.

Python makes them, the machine fills them in; what stands in the columns of a row is in `layout`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..models import rules
from . import layout as at
from . import opcodes as op

LANE_BITS, SLOT_BITS = 14, 18  # of a stamp: barriers passed, place in the table, lane
LANES, SLOTS = 1 << LANE_BITS, 1 << SLOT_BITS
PLACES = 64  # executions that each memory probe remembers the count of
_NOTES = 4096  # loads that are noted down before they are worked off
_SEEN = 256  # loads at different distances that each place remembers
_RACES = 256
_QUEUE_STATE, _LEAST_QUEUE = 7, 4096  # words: half of the nearest cache
_LEAST_STEP = 2 * at.VECTOR_LANES  # words of the queue that a step takes: two factors
WRITER, READER, OTHER, VALUE = range(4)  # of `Shadow`


class Probes(NamedTuple):
    """What the probes of one run write to and look up; `n` memory probes, `w` lanes per row."""

    blocks: NDArray[np.int64]  # [runs, BLOCK_SIZE]
    working: NDArray[np.uint32]  # [w] lanes that have touched storage or workgroup memory in this batch
    worked: NDArray[np.int64]  # [2] whether all lanes have; invocations of all batches so far that did
    rules: NDArray[np.int64]  # [n, RULE_SIZE]
    orders: NDArray[np.int64]  # [n, lanes of a subgroup] order in which lanes are served
    tallies: NDArray[np.int64]  # [n, TALLY_SIZE]
    bounds: NDArray[np.int64]  # [n, 4]
    reached: NDArray[np.int64]  # [n, REACH_SIZE]
    margins: NDArray[np.int64]  # [comparisons, MARGIN_SIZE]
    known: NDArray[np.int64]  # [n, KNOWN_SIZE] of the execution whose addresses and mask are kept
    addresses: NDArray[np.uint32]  # [n, w]
    masks: NDArray[np.uint32]  # [n, w]
    last: NDArray[np.int64]  # [n, PLACES, LAST_SIZE] what others have counted, moved from it
    writers: NDArray[np.int64]  # [words of storage, or 1] 1 + invocation that stored there last, workgroup by workgroup
    # (where these go abreast: [words of storage, or halves] 1 + workgroup that did)
    touched: NDArray[np.uint8]  # [words of storage, or 1] which were accessed
    checks: NDArray[np.int64]  # [checks, CHECK_SIZE]
    watched: NDArray[np.int64]  # [1 + lanes of a workgroup] the workgroup that is traced (-1: none), and which lanes
    notes: NDArray[np.int64]  # [n, NOTE_SIZE] what they wrote
    current: NDArray[np.uint32]  # [w]
    ones: NDArray[np.uint32]  # [w]
    scratch: NDArray[np.int64]


def make_probes(
    probes: int,
    lanes: int,
    runs: int,
    checks: int,
    writers: NDArray[np.int64],
    touched: NDArray[np.uint8],
    watched: NDArray[np.int64],
    notes: int,
    margins: int,
) -> Probes:
    """Room for this many memory probes, lanes of a register row, straight runs, checks, traced values and comparisons,
    with nothing counted."""

    def numbers(*shape: int) -> NDArray[np.int64]:
        return np.zeros(shape, np.int64)

    def lanes_of(*shape: int) -> NDArray[np.uint32]:
        return np.zeros((*shape, lanes), np.uint32)

    count = max(1, probes)
    return Probes(
        blocks=numbers(max(1, runs), at.BLOCK_SIZE),
        working=lanes_of(),
        worked=numbers(2),
        rules=numbers(count, at.RULE_SIZE),
        orders=numbers(count, rules.MAX_LANES),
        tallies=numbers(count, at.TALLY_SIZE),
        bounds=numbers(count, at.BOUNDS_SIZE),
        reached=np.tile(np.array(at.UNREACHED, np.int64), (count, 1)),
        margins=np.tile(np.array(at.NO_MARGIN, np.int64), (max(1, margins), 1)),
        known=numbers(count, at.KNOWN_SIZE),
        addresses=lanes_of(count),
        masks=lanes_of(count),
        last=numbers(count, PLACES, at.LAST_SIZE),
        writers=writers,
        touched=touched,
        checks=numbers(max(1, checks), at.CHECK_SIZE),
        watched=watched,
        notes=numbers(notes + 1, at.NOTE_SIZE),
        current=lanes_of(),
        ones=np.ones(lanes, np.uint32),
        scratch=rules.new_scratch(),
    )


class Shadow(NamedTuple):
    """Columns of one entry per grain: the last writer, and two readers."""

    stamps: NDArray[np.int64]  # [WRITER to OTHER, n]; 0 for nobody
    words: NDArray[np.uint32]  # [WRITER to OTHER, n] their workgroups, 0 in workgroup memory; [VALUE] what was stored


class Watch(NamedTuple):
    """What the watching probes of one run know; `n` of them, `w` lanes per row."""

    table: NDArray[np.int64]  # [n, WATCHED_SIZE]
    clocks: NDArray[np.int64]  # [workgroups of a batch, CLOCKS_SIZE]
    workgroup: Shadow
    storage: Shadow
    races: NDArray[np.int64]  # [1 + places, RACE_SIZE]; row 0 says how many there are
    unwritten: NDArray[np.int64]  # [n, BOUNDS_SIZE] loads of what nobody stored to; the address is a grain
    spans: NDArray[np.int64]  # [variables, 4] noted loads and stores since the last barrier: lowest, highest grain
    seen: NDArray[np.int64]  # [n, SEEN, 4] loads looked at: distance, row, window, batch
    rows: NDArray[np.uint32]  # [n, w] addresses of noted loads
    patterns: NDArray[np.int64]  # [n, 4] the pattern of that row, see `recognize`
    notes: NDArray[np.int64]  # [NOTES, 2] place, distance
    state: NDArray[np.int64]


def make_shadow(grains: int) -> Shadow:
    """A memory that nobody has touched. Pages that nobody touches take no room."""
    return Shadow(np.zeros((3, max(1, grains)), np.int64), np.zeros((4, max(1, grains)), np.uint32))


def make_watch(
    table: NDArray[np.int64], variables: int, workgroups_per_batch: int, lanes: int, workgroup: Shadow, storage: Shadow
) -> Watch:
    """Room for these watched accesses, variables, workgroups of a batch and lanes of a row."""
    count = len(table)
    return Watch(
        table=table,
        clocks=np.zeros((workgroups_per_batch, at.CLOCKS_SIZE), np.int64),
        workgroup=workgroup,
        storage=storage,
        races=np.zeros((1 + _RACES, at.RACE_SIZE), np.int64),
        unwritten=np.zeros((count, at.BOUNDS_SIZE), np.int64),
        spans=np.zeros((max(1, variables), 4), np.int64),
        seen=np.zeros((count, _SEEN, 4), np.int64),
        rows=np.zeros((count, lanes), np.uint32),
        patterns=np.full((count, 4), -1, np.int64),
        notes=np.zeros((_NOTES, 2), np.int64),
        state=np.zeros(5, np.int64),
    )


def no_watch() -> Watch:
    """Of a run that watches nothing."""
    return make_watch(np.zeros((1, at.WATCHED_SIZE), np.int64), 1, 1, 1, make_shadow(1), make_shadow(1))


class Queue(NamedTuple):
    """Factors of sums of products that wait to be added, see `tiles`."""

    words: NDArray[np.uint32]
    kept: NDArray[np.uint32]  # the sums, before they are added to
    begins: NDArray[np.int64]  # for each step that waits, in which row of the program its sums begin
    state: NDArray[np.int64]  # what is in it


def make_queue(words: NDArray[np.uint32], kept: NDArray[np.uint32]) -> Queue:
    """An empty one, with this much room."""
    return Queue(words, kept, np.zeros(1 + len(words) // _LEAST_STEP, np.int64), np.zeros(_QUEUE_STATE, np.int64))


def queue_words(code: NDArray[np.int32], lanes: int) -> int:
    """Room that a program's tiles need for one step, with rows of so many lanes; for several where they are small."""
    tiles = code[code[:, op.OP] == op.TILE]
    return max(_LEAST_QUEUE, int((tiles[:, op.A] + tiles[:, op.B]).max(initial=0)) * lanes)


def kept_words(code: NDArray[np.int32], lanes: int) -> int:
    """Room that the sums of a program's tiles need that are to be checked."""
    tiles = code[code[:, op.OP] == op.TILE]
    return int((tiles[:, op.A] * tiles[:, op.B]).max(initial=0)) * lanes if op.CHECKED in code[:, op.OP] else 1
