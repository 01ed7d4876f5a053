"""Bank and sector rules: patterns counted by hand, a second statement of the rule, and the compiled form."""

from collections import defaultdict

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.extending import register_jitable

from bankshot.sim.models import rules
from bankshot.sim.models.devices import AMD_CDNA, DEVICES, INTEL, LAVAPIPE, NVIDIA

LANES = range(32)


def every(step, width=4):
    """Byte addresses of lanes that stand `step` accesses apart."""
    return [width * step * lane for lane in LANES]


@pytest.mark.parametrize(
    ("step", "wavefronts"),
    [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (17, 1), (31, 1), (32, 32), (33, 1), (64, 32), (96, 32)],
)
def test_word_strides(step, wavefronts):
    """A stride of s words meets a bank gcd(s, 32) times; stride 0 is a broadcast."""
    for store in (False, True):
        assert NVIDIA.shared_wavefronts(every(step), 4, store=store) == wavefronts
        assert NVIDIA.ideal_shared_wavefronts(every(step), 4, store=store) == 1


@pytest.mark.parametrize(
    ("width", "step", "wavefronts"),
    [
        (16, 1, 4),  # a quarter of the warp fills the banks: no conflict
        (16, 2, 8),
        (16, 8, 32),  # the worst that LDS.128 can do: every lane on its own
        (16, 9, 4),  # padded by one access
        (8, 1, 2),
        (8, 2, 4),
        (8, 16, 32),
        (8, 17, 2),
        (12, 1, 4),  # vec3 is aligned to 16 bytes and goes with the vec4s
    ],
)
def test_wide_strides(width, step, wavefronts):
    aligned = 16 if width == 12 else width
    assert NVIDIA.shared_wavefronts(every(step, aligned), width) == wavefronts


def test_narrow_accesses_share_words():
    assert NVIDIA.shared_wavefronts([2 * lane for lane in LANES], 2) == 1
    assert NVIDIA.shared_wavefronts([2 * 32 * lane for lane in LANES], 2) == 16


@pytest.mark.parametrize(
    ("addresses", "active", "wavefronts"),
    [
        ([0] * 32, LANES, 2),
        ([16 * (lane & ~1) for lane in LANES], LANES, 4),  # two groups at once, but each bank is asked for two words
        ([16 * (lane // 2) for lane in LANES], LANES, 2),
        ([16 * (lane // 4 * 2 + lane % 2) for lane in LANES], LANES, 2),
        # One half in pairs does not do: the pairs must agree in the whole warp (seen on an H200).
        ([16 * (lane // 2 if lane >= 16 else lane) for lane in LANES], LANES, 4),
        # Pairs at distance 1 in one half, at distance 2 in the other: neither holds throughout (seen on an H200).
        ([16 * (lane // 2 if lane < 16 else lane // 4 * 2 + lane % 2) for lane in LANES], LANES, 4),
        # A pair with one active lane agrees, whatever the other holds (seen on an H200).
        ([16 * (lane // 2 + lane % 2 * 100) for lane in LANES], range(0, 32, 2), 2),
        ([16 * (lane // 4 * 2 + lane % 4) for lane in LANES], [lane for lane in LANES if lane % 4 < 2], 2),
        ([16 * (lane // 4 * 2 + lane % 4) for lane in LANES], [lane for lane in LANES if lane % 4 < 3], 4),
        (every(1, 16), range(8), 1),
        (every(1, 16), [31], 1),
        (every(1, 16), [], 0),
    ],
)
def test_wide_loads_merge_where_pairs_agree(addresses, active, wavefronts):
    mask = [lane in active for lane in LANES]
    assert NVIDIA.shared_wavefronts(addresses, 16, mask) == wavefronts


def test_loads_of_single_words_never_merge():
    """A subgroup of 64 lanes is two groups, as are 32 lanes that load 8 bytes each."""
    wide = NVIDIA.with_(subgroup_size=64, subgroup_sizes=(64,))
    assert wide.shared_wavefronts([4 * (lane // 2) for lane in range(64)], 4) == 2
    assert NVIDIA.shared_wavefronts([8 * (lane // 2) for lane in LANES], 8) == 1


def test_stores_never_merge():
    assert NVIDIA.shared_wavefronts([0] * 32, 16, store=True) == 4
    assert NVIDIA.shared_wavefronts([0] * 32, 8, store=True) == 2
    assert NVIDIA.shared_wavefronts([0] * 32, 8) == 1


def test_devices_serve_as_many_lanes_as_fill_their_banks():
    lanes = range(64)
    assert AMD_CDNA.shared_wavefronts([4 * lane for lane in lanes], 4) == 2
    assert AMD_CDNA.shared_wavefronts([16 * lane for lane in lanes], 16) == 8
    assert LAVAPIPE.shared_wavefronts([16 * lane for lane in range(8)], 16) == 1
    assert INTEL.shared_wavefronts([4 * lane for lane in range(16)], 4) == 1
    assert NVIDIA.with_(banks=64).shared_wavefronts(every(2), 4) == 1
    assert NVIDIA.with_(bank_width=8).shared_wavefronts(every(2), 4) == 1


def test_cdna_loads_in_phases_that_are_not_contiguous():
    """Lanes 0-3 and 20-23 go together: 16-byte rows that meet a bank at lanes 0 and 4 do not conflict in a load."""
    addresses = [16 * (lane % 4) + 128 * (lane // 4 % 2) + 64 * (lane // 16 % 2) for lane in range(64)]
    assert AMD_CDNA.shared_wavefronts(addresses, 16) == 8
    assert AMD_CDNA.shared_wavefronts(addresses, 16, store=True) == 16


@pytest.mark.parametrize(
    ("addresses", "width", "expected"),
    [
        ([4 * lane for lane in LANES], 4, (4, 4, 1)),
        ([128 * lane for lane in LANES], 4, (32, 4, 32)),
        ([8 * lane for lane in LANES], 4, (8, 4, 2)),
        ([0] * 32, 4, (1, 1, 1)),
        ([16 * lane for lane in LANES], 16, (16, 16, 4)),
        ([4 * lane + 16 for lane in LANES], 4, (5, 4, 2)),  # one sector too many: the start is off by half of one
        ([4 * (31 - lane) for lane in LANES], 4, (4, 4, 1)),
        ([1024 * (lane % 2) + 4 * (lane // 2) for lane in LANES], 4, (4, 4, 2)),
        ([2 * lane for lane in LANES], 2, (2, 2, 1)),
    ],
)
def test_sectors_and_lines(addresses, width, expected):
    counted = (
        NVIDIA.global_sectors(addresses, width),
        NVIDIA.ideal_global_sectors(addresses, width),
        NVIDIA.global_lines(addresses, width),
    )
    assert counted == expected


def test_inactive_lanes_ask_for_nothing():
    only = [lane == 5 for lane in LANES]
    assert NVIDIA.global_sectors([-1 if lane != 5 else 64 for lane in LANES], 4, only) == 1
    assert NVIDIA.global_sectors(every(1), 4, [False] * 32) == 0
    assert NVIDIA.global_lines(every(1), 4, [False] * 32) == 0


@pytest.mark.parametrize(
    ("addresses", "width", "active", "words"),
    [
        ([0] * 33, 4, None, "at most 32"),
        ([], 4, None, "at most 32"),
        ([0] * 4, 5, None, "no access is 5 bytes"),
        ([0] * 4, 4, [True] * 3, "active has shape"),
        ([0, 0, 8], 16, None, "lane 2 has address 8"),
        ([0, -4], 4, None, "lane 1 has address -4"),
    ],
)
def test_what_no_subgroup_does_is_refused(addresses, width, active, words):
    with pytest.raises(ValueError, match=words):
        NVIDIA.shared_wavefronts(addresses, width, active)


@st.composite
def accesses(draw):
    device = draw(st.sampled_from(list(DEVICES.values())))
    width = draw(st.sampled_from([4, 8, 16]))
    count = draw(st.integers(1, device.subgroup_size))
    reach = draw(st.sampled_from([1, 3, 16, 64, 1000]))
    pair = draw(st.sampled_from([0, 0, 1, 2]))
    each = draw(st.lists(st.integers(0, reach), min_size=count, max_size=count))
    active = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return device, width, [width * each[lane & ~pair] for lane in range(count)], active, draw(st.booleans())


def wavefronts_again(device, width, addresses, active, store):
    """The bank rule over sets, word by word, as the counters of the H200 were first put into words."""
    lanes = [lane for lane in range(len(addresses)) if active[lane]]
    workgroups_per_batch = device.banks * 4 // width
    order = device.lane_order.get(width, range(device.subgroup_size)) if not store else range(device.subgroup_size)
    if device.pair_merge and not store and width > 4:
        for distance in (1, 2):
            if all(addresses[lane] == addresses[lane ^ distance] for lane in lanes if lane ^ distance in lanes):
                workgroups_per_batch *= 2
                break
    total = served = 0
    for start in range(0, device.subgroup_size, workgroups_per_batch):
        asked = defaultdict(set)
        for lane in set(order[start : start + workgroups_per_batch]) & set(lanes):
            for word in range(addresses[lane] // 4, (addresses[lane] + width) // 4):
                asked[word % device.banks].add(word)
        total += max(map(len, asked.values()), default=0)
        served += bool(asked)
    return total, served


@settings(deadline=None, max_examples=400)
@given(accesses())
def test_wavefronts_agree_with_the_rule_over_sets(access):
    device, width, addresses, active, store = access
    counted = (
        device.shared_wavefronts(addresses, width, active, store),
        device.ideal_shared_wavefronts(addresses, width, active, store),
    )
    assert counted == wavefronts_again(*access)
    assert counted[1] <= counted[0]


@settings(deadline=None, max_examples=400)
@given(accesses())
def test_sectors_agree_with_the_rule_over_sets(access):
    device, width, addresses, active, _ = access
    asked = {a + i for a, on in zip(addresses, active, strict=True) if on for i in range(width)}
    assert device.global_sectors(addresses, width, active) == len({byte // device.sector_bytes for byte in asked})
    assert device.global_lines(addresses, width, active) == len({byte // device.line_bytes for byte in asked})
    assert device.ideal_global_sectors(addresses, width, active) == -(-len(asked) // device.sector_bytes)


@settings(deadline=None)
@given(accesses(), st.integers(0, 50))
def test_moving_all_lanes_by_whole_rows_of_banks_changes_nothing(access, rows):
    device, width, addresses, active, store = access
    moved = [a + rows * device.banks * device.bank_width for a in addresses]
    assert device.shared_wavefronts(moved, width, active, store) == device.shared_wavefronts(
        addresses, width, active, store
    )


@pytest.fixture(scope="module")
def compiled():
    for part in rules.PARTS:
        register_jitable(part)
    return numba.njit(rules.wavefronts), numba.njit(rules.sectors)


@settings(deadline=None, max_examples=200)
@given(access=accesses(), before=st.integers(0, 5), after=st.integers(0, 5))
def test_the_compiled_form_agrees(compiled, access, before, after):
    """A subgroup in the middle of a row of lanes, words in uint32, scratch left over from the last call."""
    device, width, addresses, active, store = access
    wavefronts, sectors = compiled
    row = np.array([9] * before + [a // 4 for a in addresses] + [9] * after, np.uint32)
    mask = np.array([1] * before + active + [1] * after, np.uint32)
    scratch = np.full_like(rules.new_scratch(), 77)
    lo, hi = before, before + len(addresses)
    assert wavefronts(row, mask, lo, hi, *device.bank_rule(width, store), scratch) == (
        device.shared_wavefronts(addresses, width, active, store),
        device.ideal_shared_wavefronts(addresses, width, active, store),
    )
    words = (width // 4, device.sector_bytes // 4, device.line_bytes // 4)
    assert sectors(row, mask, lo, hi, *words, scratch) == (
        device.global_sectors(addresses, width, active),
        device.ideal_global_sectors(addresses, width, active),
        device.global_lines(addresses, width, active),
        sum(active) * width // 4,
    )


# ---- atomic operations -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "wavefronts", "sectors", "turns"),
    [
        ([0] * 32, 32, 32, 32),  # all on one word: 32-way
        (LANES, 1, 4, 1),
        ([2 * lane for lane in LANES], 2, 8, 1),
        ([lane // 2 for lane in LANES], 2, 4, 2),  # two lanes a word: each sector passed twice
        ([32 * lane for lane in LANES], 32, 32, 1),  # one bank; as many sectors as words
        ([0] * 4 + [1] * 2 + [8], 4, 5, 4),  # the busiest word of each sector: 4 and 1
        ([lane % 2 * 32 for lane in LANES], 32, 32, 16),  # two words of one bank
    ],
)
def test_lanes_take_turns_at_a_word(words, wavefronts, sectors, turns):
    at = [4 * word for word in words]
    assert NVIDIA.shared_atomic_wavefronts(at) == wavefronts
    assert NVIDIA.global_atomic_sectors(at) == sectors
    assert NVIDIA.atomic_turns(at) == turns
    assert NVIDIA.ideal_shared_atomic_wavefronts(at) == 1


def test_wide_subgroups_go_to_the_banks_in_groups():
    assert AMD_CDNA.shared_atomic_wavefronts([4 * lane for lane in range(64)]) == 2
    assert AMD_CDNA.ideal_shared_atomic_wavefronts([0] * 64) == 2
    assert AMD_CDNA.shared_atomic_wavefronts([0] * 64) == 64


@given(st.lists(st.integers(0, 70), min_size=32, max_size=32), st.lists(st.booleans(), min_size=32, max_size=32))
@settings(deadline=None)
def test_atomics_by_a_second_statement_of_the_rule(words, active):
    on = [word for word, here in zip(words, active, strict=True) if here]
    lanes_of = {word: on.count(word) for word in on}
    busiest = defaultdict(int)
    for word, count in lanes_of.items():
        busiest[word // 8] = max(busiest[word // 8], count)
    banks = [word % 32 for word in on]
    at = [4 * word for word in words]
    assert NVIDIA.shared_atomic_wavefronts(at, active) == max(map(banks.count, banks), default=0)
    assert NVIDIA.ideal_shared_atomic_wavefronts(at, active) == bool(on)
    assert NVIDIA.global_atomic_sectors(at, active) == sum(busiest.values())
    assert NVIDIA.atomic_turns(at, active) == max(lanes_of.values(), default=0)
