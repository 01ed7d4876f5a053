"""Probes of a sampled workgroup: which words of storage it accesses, and what the cache of its core lacks.

Both keep their notes by chunks of storage in one array (see `layout.SAMPLE`), with a list of the chunks that have any:
what a sample takes depends on what it accesses, not on the size of the bindings. Storage is empty at first. A chunk is
copied from its binding before its first access.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np
from numba import types

from . import instruction as field
from . import layout as at
from .compile.by_address import borrower, word_at
from .compile.units import compiled, inlined, part, recorded
from .kinds import INSTRUCTION, LONG, NUMBERS, PROBES, REGISTERS, WORDS
from .memory import address_of, all_ones, shared_part

_borrowed = borrower(PROBES)
_recorded = recorded(types.Tuple((NUMBERS,)))
_WORD = 4  # bytes
_PAGE_SHIFT = 19  # log2 of the words of a page: 2 MiB


@compiled
def fill(sample, storage, chunk):
    """Copy a chunk from its binding, with zeros past the binding's end. Buffers and texels are whole words."""
    words = np.int64(1) << sample[at.SAMPLE_SHIFT]
    first, source = chunk * words, sample[at.SAMPLE_SOURCES_AT]
    for place in range(source, source + sample[at.SAMPLE_SOURCES] * at.SOURCE_SIZE, at.SOURCE_SIZE):
        begin = _WORD * first - sample[place + at.SOURCE_START]
        left = sample[place + at.SOURCE_BYTES] - begin
        if begin < 0 or left <= 0:
            continue
        address = sample[place + at.SOURCE_ADDRESS] + begin
        for number in range(words):
            storage[first + number] = word_at(address) if left >= _WORD else np.uint32(0)
            address, left = address + _WORD, left - _WORD
        return


@inlined
def notes_of(sample, storage, chunk):
    """Return where the notes of a chunk are. The first use fills it."""
    place = at.SAMPLE_SIZE + chunk * at.CHUNK_SIZE
    if sample[place + at.CHUNK_LISTED] == 0:
        sample[place + at.CHUNK_LISTED] = 1
        sample[sample[at.SAMPLE_LIST_AT] + sample[at.SAMPLE_LISTED]] = chunk
        sample[at.SAMPLE_LISTED] += 1
        fill(sample, storage, chunk)
    return place


@inlined
def note_words(sample, storage, first, words, column, marks):
    """Fill the chunks of `words` words from `first` on, and mark the words if `marks`."""
    shift, word, end = sample[at.SAMPLE_SHIFT], first, first + words
    while word < end:
        chunk = word >> shift
        place, stop = notes_of(sample, storage, chunk) + column, min(end, (chunk + 1) << shift)
        bits = np.int64(0)
        for each in range(word, stop):
            bits |= np.int64(1) << (8 * (each & ((1 << shift) - 1)))
        if marks:
            sample[place] |= bits
        word = stop


@inlined
def note_operation(sample, storage, word, column):
    """Count an atomic read-modify-write: 127 stands for more."""
    shift = sample[at.SAMPLE_SHIFT]
    place, bit = notes_of(sample, storage, word >> shift) + column, 8 * (word & ((1 << shift) - 1))
    before = (sample[place] >> bit) & 255
    sample[place] ^= (before ^ (min(before + 2, 254) | 1)) << bit


@inlined
def extent(addresses, extra, entry, mask, lanes):
    """Return the first words of the first and last lane, if all lanes are active, in bounds, and access one address or
    consecutive ones; else 0 and -1."""
    first, last = np.uint32(addresses[at.FIRST_LANE] + extra), np.uint32(addresses[lanes - 1] + extra)
    apart = moved = np.uint32(0)
    for lane in range(lanes):
        distance = np.uint32(addresses[lane] - addresses[at.FIRST_LANE])
        moved = np.uint32(moved | distance)
        apart = np.uint32(apart | (distance ^ np.uint32(lane)))
    if (apart != 0 and moved != 0) or not first <= last <= np.uint32(entry[at.LIMIT]) or not all_ones(mask, lanes):
        return np.int64(0), np.int64(-1)
    half = entry[at.UNIT] == 2
    return (entry[at.BASE] + np.int64(first)) >> half, (entry[at.BASE] + np.int64(last)) >> half


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, WORDS, LONG, LONG, LONG)
def note_sampled(regs, row, config, entry, storage, workgroup, workgroups_per_batch, probes_at):
    """Note which words are accessed, by the first workgroup of the launch or by another, and fill what is loaded.

    Addresses out of bounds are not noted, but filled where the policy has the access happen elsewhere.
    """
    p = _borrowed(probes_at)
    sample, addresses = p.writers, regs[row[field.ADDRESS]]
    mask = p.ones if row[field.MASK] < 0 else regs[row[field.MASK]]
    extra, limit, half = shared_part(regs, row), np.uint32(entry[at.LIMIT]), entry[at.UNIT] == 2
    words, lanes = (entry[at.UNITS] * entry[at.UNIT] + 3) // 4, workgroups_per_batch * config[at.LANES]
    column = at.CHUNK_FIRST if workgroup == 0 else at.CHUNK_SECOND
    counts = p.rules[row[field.SLOT], at.SERIALIZES] != 0
    begin, end = extent(addresses, extra, entry, mask, lanes)
    if begin <= end and not counts:
        note_words(sample, storage, begin, end - begin + words, column, True)
        return
    before = np.int64(-1)
    for lane in range(lanes):
        if mask[lane] == 0:
            continue
        address, happens = address_of(addresses[lane], extra, entry)
        first, inside = (entry[at.BASE] + np.int64(address)) >> half, np.uint32(addresses[lane] + extra) <= limit
        if not happens or (inside and first == before and not counts):
            continue
        if counts and inside:
            note_operation(sample, storage, first, column)
        elif inside and words == 1:
            shift = sample[at.SAMPLE_SHIFT]
            place = notes_of(sample, storage, first >> shift) + column
            sample[place] |= np.int64(1) << (8 * (first & ((1 << shift) - 1)))
        else:
            note_words(sample, storage, first, words, column, inside)
        before = first if inside else before


@inlined
def enter(sample, storage, place, line):
    """Have the sector that begins at a word enter the cache, unless it holds it. Returns 1 if it did not."""
    shift = sample[at.SAMPLE_SHIFT]
    of_line = notes_of(sample, storage, (place & -line) >> shift) + at.CHUNK_LINE_ENTERED
    of_sector = notes_of(sample, storage, place >> shift) + at.CHUNK_SECTOR_ENTERED
    inserted, entered = sample[at.SAMPLE_CACHE_INSERTED], sample[of_line]
    if entered == 0 or inserted - entered >= sample[at.SAMPLE_CACHE_LINES]:
        sample[at.SAMPLE_CACHE_INSERTED] = sample[of_line] = inserted + 1
    elif sample[of_sector] == entered:
        return np.int64(0)
    sample[of_sector] = sample[of_line]
    return np.int64(1)


@part(REGISTERS, INSTRUCTION, NUMBERS, NUMBERS, WORDS, LONG, LONG, LONG)
def note_cached(regs, row, config, entry, storage, workgroup, workgroups_per_batch, probes_at):
    """Count the sectors of a load by the first workgroup that a cache lacks, which holds the lines that entered it
    last, and of these the ones that lie on another page than the one before."""
    if workgroup != 0:
        return
    p = _borrowed(probes_at)
    sample, addresses = p.writers, regs[row[field.ADDRESS]]
    mask = p.ones if row[field.MASK] < 0 else regs[row[field.MASK]]
    extra, limit, half = shared_part(regs, row), np.uint32(entry[at.LIMIT]), entry[at.UNIT] == 2
    sector, line = p.rules[row[field.SLOT], at.SECTOR] >> half, p.rules[row[field.SLOT], at.LINE] >> half
    words, lanes = (entry[at.UNITS] * entry[at.UNIT] + 3) // 4, workgroups_per_batch * config[at.LANES]
    missed, last, found = np.int64(0), np.int64(-1), p.bounds[row[field.SLOT]]
    page = np.int64(-1)
    begin, end = extent(addresses, extra, entry, mask, lanes)
    if begin <= end and words == 1:  # each sector once, in order
        for last in range(begin & -sector, end + 1, sector):
            missed += enter(sample, storage, last, line)
        lanes = 0
    for lane in range(lanes):
        address = np.uint32(addresses[lane] + extra)
        if address > limit or mask[lane] == 0:
            continue
        first = (entry[at.BASE] + np.int64(address)) >> half
        for place in range(first & -sector, first + words, sector):
            if place != last and enter(sample, storage, place, line):
                missed += 1
                found[at.PAGE_CHANGES] += page >= 0 and page != place >> _PAGE_SHIFT
                page = place >> _PAGE_SHIFT
            last = place
    found[at.MISSED] += missed
    found[at.DELAYED] += missed > 0
    found[at.EXECUTED] += last >= 0 or begin <= end


@part(LONG, returns=LONG)
def count_parts(address):
    """Count the noted words of each source, and the distinct sectors, granules and lines that have any. `address`: of
    the header of the notes, whose list of chunks and sources are in ascending order. Returns how many chunks have noted
    words."""
    (sample,) = _recorded(address)
    shift, listed = sample[at.SAMPLE_SHIFT], sample[at.SAMPLE_LIST_AT]
    source = sample[at.SAMPLE_SOURCES_AT]
    after = source + sample[at.SAMPLE_SOURCES] * at.SOURCE_SIZE
    for place in range(source, after, at.SOURCE_SIZE):
        for count in range(place + at.SOURCE_SECTORS, place + at.SOURCE_SIZE):
            sample[count] = 0
    sector = granule = line = own = np.int64(-1)  # the last one
    noted = np.int64(0)
    for place in range(listed, listed + sample[at.SAMPLE_LISTED]):
        chunk = at.SAMPLE_SIZE + sample[place] * at.CHUNK_SIZE
        if sample[chunk + at.CHUNK_FIRST] == 0 and sample[chunk + at.CHUNK_SECOND] == 0:
            continue
        noted += 1
        noted_words = np.int64(sample[chunk + at.CHUNK_FIRST]) | np.int64(sample[chunk + at.CHUNK_SECOND])
        begin = _WORD * (sample[place] << shift)  # bytes
        following = source + at.SOURCE_SIZE
        while following < after and begin >= sample[following + at.SOURCE_START]:
            source, following = following, following + at.SOURCE_SIZE
            sector = granule = line = own = np.int64(-1)
        word = (begin - sample[source + at.SOURCE_START]) // _WORD
        sample[source + at.SOURCE_SECTORS] += word // sample[at.SAMPLE_SECTOR] != sector
        sample[source + at.SOURCE_GRANULES] += word // sample[at.SAMPLE_GRANULE] != granule
        sample[source + at.SOURCE_LINES] += word // sample[at.SAMPLE_LINE] != line
        sector, line = word // sample[at.SAMPLE_SECTOR], word // sample[at.SAMPLE_LINE]
        granule = word // sample[at.SAMPLE_GRANULE]
        for byte in range(0, 64, 8):
            sample[source + at.SOURCE_WORDS] += (noted_words >> byte) & 0xFF != 0
        if sample[chunk + at.CHUNK_FIRST] != 0:
            sample[source + at.SOURCE_OWN] += granule != own
            own = granule
    return noted
