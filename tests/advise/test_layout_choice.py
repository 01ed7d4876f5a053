"""Which layouts are tried, which swizzle is the best, and what makes a layout unacceptable: by hand."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle.advise import layout_search
from bankshot.oracle.advise.advice import Advice, Trial
from bankshot.oracle.advise.bank_patterns import Group, Patterns, _pairs_agree, patterns_of
from bankshot.oracle.advise.swizzle_choice import Space, fewer
from bankshot.oracle.advise.swizzles import Swizzle, Term, swizzles, terms
from bankshot.oracle.gpu_counters.access_trace import Request as Access
from bankshot.sim.ir.sites import SourceSite
from bankshot.sim.models import DEVICES
from bankshot.sim.wgsl.source import Source, Span

NVIDIA = DEVICES["nvidia"]


# ---- swizzles ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "mask", "moved", "text"),
    [
        (Term(3, 1), 1, [0, 0, 1, 1, 0], "((i >> 3u) & 1u)"),
        (Term(2, 2), 3, [0, 1, 2, 3, 0], "((i >> 2u) & 3u)"),
        (Term(2, 2, 1), 3, [0, 2, 4, 6, 0], "(((i >> 2u) & 3u) << 1u)"),
        (Term(4, 3, 2), 7, [0, 0, 0, 0, 4], "(((i >> 4u) & 7u) << 2u)"),
    ],
)
def test_a_term_moves_bits_down(term, mask, moved, text):
    assert (term.mask, term.of(np.array([0, 4, 8, 12, 16])).tolist(), term.text("i", "u")) == (mask, moved, text)


def test_a_swizzle_of_two_terms():
    """Bits 2 and 3 go to bits 0 and 1, and bit 4 to bit 2."""
    both = Swizzle((Term(2, 2), Term(4, 1, 2)))
    assert both.of(np.array([0, 1, 4, 8, 16, 29])).tolist() == [0, 1, 5, 10, 20, 29 ^ 3 ^ 4]
    assert both.text("i") == "i ^ ((i >> 2) & 3) ^ (((i >> 4) & 1) << 2)"
    assert (both.block, both.operations, both.complexity) == (8, 7, (7, 3, 2))
    assert (Swizzle((Term(5, 3, 1),)).block, Swizzle((Term(5, 3, 1),)).complexity) == (16, (4, 3, 1))


TERMS = {
    # length, unit, lowest bit: shift, bits and place of each
    (4, 4, 0): [(1, 1, 0)],
    (8, 2, 0): [(1, 1, 0), (2, 1, 0)],
    (8, 8, 1): [(2, 1, 1)],
    (6, 6, 0): [(1, 1, 0), (2, 1, 0)],
    (5, 5, 0): [],
    (16, 4, 0): [(1, 1, 0), (2, 1, 0), (3, 1, 0), (2, 2, 0), (2, 1, 1), (3, 1, 1)],
    (2, 2, 0): [],
}


@pytest.mark.parametrize("asked", TERMS)
def test_terms_stay_within_the_unit_and_take_bits_that_indices_have(asked):
    assert [(term.shift, term.bits, term.left) for term in terms(*asked)] == TERMS[asked]


def test_terms_reach_as_far_as_accesses_can_choose_between_banks():
    found = terms(1 << 12, 1 << 12)
    assert max(term.left + term.bits for term in found) == 5
    assert max(term.shift + term.bits for term in found) == 12
    assert max(term.shift for term in found) == 11


def test_swizzles_of_fewer_terms_come_first():
    one = [Swizzle((Term(1, 1),)), Swizzle((Term(2, 1),))]
    assert [*swizzles(8, 2)] == [*one, Swizzle((Term(1, 1), Term(2, 1)))]
    assert [*swizzles(8, 2, most_terms=1)] == one
    assert [*swizzles(8, 8, 1)] == [Swizzle((Term(2, 1, 1),))]


# ---- patterns ------------------------------------------------------------------------------------------


def request(addresses, width=4, kind="load", name=None):
    return Access(
        SourceSite(kind, Span(Source(""), 0, 0), "workgroup", "tile", width, name=name), 0, 0, np.array(addresses)
    )


LANES = np.arange(32)


def test_equal_requests_are_one_pattern_with_a_weight():
    rows = [4 * LANES, 8 * LANES, 4 * LANES, np.where(LANES < 4, 128 * LANES, -1), 4 * LANES]
    found = patterns_of([request(row) for row in rows], 4, NVIDIA)
    (group,) = found.groups
    assert sorted(group.weights.tolist()) == [1, 1, 3]
    assert (found.wavefronts(), found.ideal) == (3 * 1 + 2 + 4, 5)


def test_accesses_are_apart_by_width_by_stores_and_by_turns():
    plain, turns = request(4 * LANES), request(4 * LANES, kind="atomic", name="atomicAdd")
    made = [plain, turns, plain, request(4 * LANES, kind="store"), request(16 * LANES, 16),
            request(16 * LANES, 16, "store")]  # fmt: skip
    assert len(patterns_of(made, 4, NVIDIA).groups) == 5


def test_no_accesses_take_nothing():
    nothing = patterns_of([request(0 * LANES - 1)], 4, NVIDIA)
    assert (nothing.wavefronts(), nothing.ideal, patterns_of([], 4, NVIDIA).wavefronts()) == (0, 0, 0)
    assert patterns_of([], 4, NVIDIA).padded_rows(64) is None


def test_a_move_changes_only_columns():
    """Four words of one bank, 32 elements apart, are served at once where each is stored one further."""
    found = patterns_of([request(np.where(LANES < 4, 128 * LANES, -1))], 4, NVIDIA)
    assert (found.wavefronts(), found.wavefronts(lambda index: index + index // 32)) == (4, 1)
    assert found.wavefronts(lambda index: index + index // 64) == 2


def test_rows_that_move_apart_keep_their_columns():
    """Rows 0 and 1 of eight words, columns 0 and 3. Elements that share words do not move."""
    found = patterns(0, 3, 8, 11)
    (group,) = found.with_pitch(8, 33).groups
    assert group.elements.tolist() == [0, 3, 33, 36]
    assert Patterns(2, found.groups).with_pitch(8, 33) is None
    assert found.size == 4


def test_the_best_swizzle_saves_wavefronts():
    """Four elements of one bank, which a term of two bits takes apart."""
    space = Space(patterns(0, 32, 64, 96), 128, 128)
    assert space.best() == [(Swizzle((Term(5, 2),)), 1)]
    assert Space(patterns(0, 1), 128, 128).best() == []
    assert space.work == 4 * len([*swizzles(128, 128)])


def test_swizzles_with_fewer_operations_are_kept_though_they_take_more_wavefronts():
    """A column of four rows of 32, one of eight rows of 16, and the first 8 elements of four rows of 32.

    Two bits of the row at bit 0 leave the last in 8 banks, at bit 2 in 16. At bit 3 they meet bit 4 of the second,
    which needs another term.
    """
    rows = [128 * LANES[:4], 64 * LANES[:8], 128 * (LANES // 8) + 4 * (LANES % 8)]
    made = patterns_of([request(np.pad(row, (0, 32 - len(row)), constant_values=-1)) for row in rows], 4, NVIDIA)
    assert made.wavefronts() == 4 + 4 + 4
    best = [(Swizzle((Term(5, 2),)), 6), (Swizzle((Term(5, 2, 2),)), 4), (Swizzle((Term(4, 1), Term(5, 2, 3))), 3)]
    assert Space(made, 128, 128).best() == best
    assert [swizzle.operations for swizzle, _ in best] == [3, 4, 7]
    for timed_as, chosen in ((None, best[-1:]), (NVIDIA, best)):
        swizzles, _ = layout_search._Bench.best_swizzles(bench(made, 128, timed_as), "tile", Trial(0))
        assert swizzles == [swizzle for swizzle, _ in chosen]


def test_swizzles_that_save_nothing_for_their_operations_are_left_out():
    short, long = Swizzle((Term(5, 1),)), Swizzle((Term(5, 1, 1),))
    for costs, kept in (((2, 1), [short, long]), ((1, 1), [short]), ((3, 2), [long]), ((1, 2), [short]), ((3, 3), [])):
        found = fewer([(long, costs[1]), (short, costs[0])], lambda each: each, 3)
        assert [swizzle for swizzle, _ in found] == kept


def test_bytes_within_an_element_stay_with_it():
    """Elements of 8 bytes, of which lanes load the second word: banks 1, 3, 5 and so on."""
    found = patterns_of([request(8 * LANES + 4)], 8, NVIDIA)
    (group,) = found.groups
    assert ({*group.offsets.tolist()}, group.elements.tolist()) == ({4}, LANES.tolist())
    assert found.wavefronts() == 2


@pytest.mark.parametrize(
    ("row", "agree"),
    [
        ([0, 0, 4, 4], True),
        ([0, 4, 0, 4], True),
        ([0, 4, 8, 12], False),
        ([0, -1, 4, 4], True),  # a lane that does not ask agrees with any
        ([0, 4, -1, 4], True),
        ([0, 4, 8, -1], False),
        ([-1, -1, -1, -1], True),
        ([0, 4, 4, 0], False),
    ],
)
def test_lanes_that_agree_in_pairs(row, agree):
    assert _pairs_agree(np.array(row)) == agree


def patterns(*elements):
    zeros = np.zeros(len(elements), np.int64)
    return Patterns(4, (Group(2, 32, np.array(elements, np.int64), zeros, zeros, np.ones(1, np.int64)),))


@pytest.mark.parametrize(
    ("elements", "length", "rows"),
    [
        ([0, 1, 3, 4, 6, 7], 9, (3, 2)),
        ([0, 1, 2, 4, 5, 6], 8, (4, 3)),
        ([0, 1, 2, 3, 4, 5, 6, 7], 8, None),
        ([0, 1], 8, None),  # of one row alone
        ([0, 4], 8, None),  # one column says nothing of others
        ([0, 2, 4, 6], 8, None),  # columns that are left out between others are no padding
        ([1, 2, 4, 5], 6, None),
        ([0, 1, 3, 4], 6, (3, 2)),
        ([0, 1, 3, 4], 7, None),
    ],
)
def test_padded_rows_by_hand(elements, length, rows):
    assert patterns(*elements).padded_rows(length) == rows


# ---- the search ----------------------------------------------------------------------------------------


def trial(pitch, wavefronts, size=400, refused=None, swizzle=None):
    return Trial(pitch, swizzle, bytes=size, wavefronts=wavefronts, refused=refused)


BEST = {
    # trials, of which the first is as written; the best, and the best without a swizzle
    "fewest wavefronts": ([trial(32, 9), trial(33, 4), trial(34, 5)], 1, 1),
    "as written": ([trial(32, 4), trial(33, 4), trial(34, 5)], 0, 0),
    "less memory added": ([trial(32, 9), trial(40, 4, 900), trial(33, 4, 500)], 2, 2),
    "rather more memory than narrower rows": ([trial(32, 9), trial(31, 4, 300), trial(33, 4, 500)], 2, 2),
    "narrower rows with fewer wavefronts": ([trial(32, 9), trial(31, 3, 300), trial(33, 4, 500)], 1, 1),
    "not refused": ([trial(32, 9), trial(33, 1, refused="outputs differ"), trial(34, 5)], 2, 2),
    "a swizzle": ([trial(32, 9), trial(32, 2, swizzle="one"), trial(34, 5)], 1, 2),
    "memory that is saved counts as none": ([trial(32, 4, 400), trial(33, 4, 300)], 0, 0),
}


@pytest.mark.parametrize("name", BEST)
def test_the_best_layout(name):
    trials, best, plain = BEST[name]
    made = Advice("tile", "PITCH", (), tuple(trials))
    assert (made.best is trials[best], made.best_pad is trials[plain]) == (True, True)
    assert made.ok == (best == 0)


def pitch(now, least=1):
    return SimpleNamespace(now=now, least=least)


@pytest.mark.parametrize(
    ("made", "given", "values"),
    [
        (pitch(5), None, range(1, layout_search.SPREAD + 1)),
        (pitch(layout_search.SPREAD), None, range(1, layout_search.SPREAD + 1)),
        (pitch(1_000), None, range(1_000, 1_000 + layout_search.SPREAD + 1)),
        (pitch(5, 4), None, range(4, layout_search.SPREAD + 1)),
        (pitch(5, 4), (2, 9), range(4, 10)),
        (pitch(5, 4), (6, 6), range(6, 7)),
    ],
)
def test_the_values_of_a_pitch(made, given, values):
    assert layout_search._values(made, SimpleNamespace(values=given)) == values


def finding(code="race", place=("k.wgsl", 3, 1), message="words"):
    return SimpleNamespace(code=code, message=message, span=place and SimpleNamespace(place=place))


OBJECTIONS = {
    "none": ([finding()], True, True, None),
    "outputs": ([], False, False, "outputs differ"),
    "sectors": ([], True, False, "the number of global memory sectors differs"),
    "a new finding": ([finding(), finding("uninit")], True, True, "new finding uninit: words"),
    "at another line": ([finding(place=("k.wgsl", 4, 1))], True, True, "new finding race: words"),
    "at another column": ([finding(place=("k.wgsl", 3, 9), message="others")], True, True, None),
    "without a place": ([finding(place=None)], True, True, "new finding race: words"),
    "gone": ([], True, True, None),
}


@pytest.mark.parametrize("name", OBJECTIONS)
def test_what_makes_a_layout_unacceptable(name):
    found, outputs, sectors, words = OBJECTIONS[name]

    def simulated(module, overrides, probes):
        assert probes == layout_search.WATCHED
        return SimpleNamespace(findings=found)

    bench = SimpleNamespace(run=SimpleNamespace(findings=[finding()]), _simulate=simulated)
    different = layout_search._difference(outputs, sectors)
    assert (different or layout_search._Bench._new_finding(bench, None, {})) == words


def bench(patterns, length, timed_as=None):
    made = SimpleNamespace(_patterns=lambda array, trial: (patterns, length, True), timed_as=timed_as)
    made._to_run = partial(layout_search._Bench._to_run, made)
    return made


def best_swizzle(rows, length, row=0, stride=4):
    made = patterns_of([request(each, stride) for each in rows], stride, NVIDIA)
    found, whole = layout_search._Bench.best_swizzles(bench(made, length), "tile", Trial(0, row=row))
    assert whole
    assert len(found) < 2
    return found[0] if found else None


def test_the_simplest_swizzle_with_the_fewest_wavefronts_is_the_best():
    """A column of 32 x 32 words: bits 5 to 9 go to the banks. Of 4 words of one bank, 2 bits suffice."""
    assert best_swizzle([128 * LANES], 1024) == Swizzle((Term(5, 5),))
    assert best_swizzle([np.where(LANES < 4, 128 * LANES, -1)], 1024) == Swizzle((Term(5, 2),))
    assert best_swizzle([4 * LANES], 1024) is None


def test_a_swizzle_stays_within_the_rows_of_an_array_of_rows():
    column = np.where(LANES < 4, 128 * LANES, -1)
    assert best_swizzle([column], 128, row=32) == Swizzle((Term(5, 2),))
    assert best_swizzle([column], 128, row=2).block == 2
    assert best_swizzle([column], 128, row=33) is None


def test_elements_of_less_than_a_word_move_in_words():
    """Two elements of 2 bytes share a word, so that bit 0 of an index stays: 64 elements are a row of banks."""
    found = best_swizzle([np.where(LANES < 4, 128 * LANES, -1)], 512, stride=2)
    assert found == Swizzle((Term(6, 2, 1),))
