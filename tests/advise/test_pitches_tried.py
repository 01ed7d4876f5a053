"""Which pitches a search tries, and what it concludes from the runs, which are made up here."""

from types import SimpleNamespace

import pytest

from bankshot.oracle.advise import layout_search
from bankshot.oracle.advise.advice import Rewritten, Trial
from bankshot.oracle.advise.array_layouts import Change
from bankshot.oracle.advise.layout_choice import cheapest
from bankshot.oracle.advise.layout_search import SPREAD, Options
from bankshot.sim.wgsl.source import Source, Span

SOURCE = Source("a text of some length")

Bench = layout_search._Bench

# ---- a pitch that indices do not show ------------------------------------------------------------------


def patterns(costs, written=8, padded=None):
    """Accesses that take `written` wavefronts, 1 without conflicts, and with rows moved apart those of `costs`."""

    def with_pitch(now, then):
        cost = costs.get((now, then), written)
        return None if cost is None else SimpleNamespace(wavefronts=lambda: cost)

    return SimpleNamespace(wavefronts=lambda: written, ideal=1, with_pitch=with_pitch, padded_rows=lambda _: padded)


def hidden(monkeypatch, costs, factors, counts=(256,), swizzles=(), padded=None, indices=(1,), sites=(1,)):
    found = patterns(costs, padded=padded)
    monkeypatch.setattr(layout_search, "Space", lambda *given: SimpleNamespace(best=lambda: [*swizzles]))
    bench = SimpleNamespace(
        sites=lambda arrays: sites, trial=lambda *_: Trial(0), _patterns=lambda array, trial: (found, 256, True)
    )
    layouts = SimpleNamespace(
        array="tile", indices=indices, counts=counts, factors=set(factors), hidden=lambda pitch, width: [(pitch, width)]
    )
    return Bench.hidden(bench, layouts)


@pytest.mark.parametrize(
    ("costs", "factors", "found"),
    [
        ({(8, 9): 4}, [8], [(8, 8)]),
        ({(8, 9): 8}, [8], []),  # no fewer
        ({(8, 9): 9}, [8], []),
        ({(8, 8 + SPREAD): 4}, [8], [(8, 8)]),
        ({(8, 8 + SPREAD + 1): 4}, [8], []),
        ({(8, 8): 4}, [8], []),
        ({(24, 25): 4}, [24], []),  # rows of 24 do not fill 256 elements
        ({(2, 3): 4}, [2], []),
        ({(256, 257): 4}, [256], []),
        ({(8, 9): 4, (16, 17): 3}, [8, 16], [(16, 16)]),
        ({(8, 9): 4, (16, 17): 4}, [8, 16], [(8, 8)]),
        ({(8, 9): None, (8, 10): 4}, [8], [(8, 8)]),
        ({(8, 9): 4}, [], []),
    ],
)
def test_a_factor_is_a_pitch_if_rows_further_apart_take_fewer_wavefronts(monkeypatch, costs, factors, found):
    assert hidden(monkeypatch, costs, factors) == found


def test_no_pitch_is_looked_for_where_a_swizzle_ends_all_conflicts(monkeypatch):
    assert hidden(monkeypatch, {(8, 9): 4}, [8], swizzles=[("s", 1)]) == []
    assert hidden(monkeypatch, {(8, 9): 4}, [8], swizzles=[("s", 2)]) == [(8, 8)]
    assert hidden(monkeypatch, {(8, 9): 4}, [8], indices=()) == []
    assert hidden(monkeypatch, {(8, 9): 4}, [8], sites=()) == []


@pytest.mark.parametrize(
    ("counts", "padded", "found"),
    [
        ((16,), (8, 5), [(8, 5)]),
        ((16,), (16, 5), [(16, 5)]),
        ((16,), (6, 5), []),
        ((4, 16), (8, 5), [(8, 5)]),
        ((4, 16), (16, 5), []),  # its pitch shows in the type
    ],
)
def test_rows_whose_end_is_not_accessed_are_a_pitch(monkeypatch, counts, padded, found):
    assert hidden(monkeypatch, {}, [], counts=counts, padded=padded) == found


@pytest.mark.parametrize(
    ("row", "pitch", "whole", "cost", "wavefronts", "moved"),
    [
        (0, 8, True, 4, 4, True),
        (16, 8, True, 4, 4, True),
        (20, 8, True, 4, 4, False),  # no whole number of rows
        (0, 7, True, 4, 4, False),
        (0, 8, True, 4, 5, False),  # more than rows moves
        (0, 8, False, 4, 5, True),  # the first workgroup alone was recorded, and the run counts all
        (0, 8, True, None, 4, False),
    ],
)
def test_accesses_are_recorded_again_if_more_than_rows_moves(row, pitch, whole, cost, wavefronts, moved):
    bench = SimpleNamespace(_patterns=lambda array, trial: ("own", array, trial))
    trial = Trial(9, wavefronts=wavefronts)
    recorded = (patterns({(pitch, 9): cost}), 64, whole)
    found = Bench._moved(bench, "tile", Trial(pitch, row=row), trial, recorded)
    if moved:
        assert (found[0].wavefronts(), *found[1:]) == (cost, 64 // 8 * 9, whole)
    else:
        assert found == ("own", "tile", trial)


# ---- rows moved by a function of each index ------------------------------------------------------------

OK, LARGE, DIFFERS = {}, {"refused": "too large"}, {"refused": "outputs differ", "differs": True}


@pytest.mark.parametrize(
    ("runs", "by_function", "again", "best"),
    [
        ([OK, OK, OK, OK], [OK] * 3, False, 3),
        ([OK, DIFFERS, OK, OK], [OK] * 3, False, 2),  # narrower rows may differ; wider ones prove the pitch
        ([OK, LARGE, LARGE, LARGE], [OK] * 3, False, 0),
        ([DIFFERS, DIFFERS, DIFFERS, DIFFERS], [OK] * 3, False, 0),  # so does the text as written
        ([OK, DIFFERS, DIFFERS, DIFFERS], [OK, OK, LARGE], True, 2),
        ([OK, DIFFERS, LARGE, LARGE], [OK, LARGE, LARGE], True, 1),  # nothing wider is proven
        ([OK, OK, OK, DIFFERS], [OK] * 3, True, 3),  # half applied
        ([OK, OK, OK, DIFFERS], [OK, LARGE, LARGE], True, 2),
    ],
)
def test_a_function_moves_rows_where_a_pitch_is_only_a_part_of_the_text(runs, by_function, again, best):
    """The text as written has rows of 17; 16, 18 and 19 are tried."""
    moved = SimpleNamespace(name="function")
    pitch = SimpleNamespace(name="P", now=17, least=1, by_function=moved)
    values, asked = (17, 16, 18, 19), []

    def at(layouts, which, value):
        asked.append(which)
        results = runs if which is pitch else [None, *by_function]
        return Trial(value, **results[values.index(value)])

    written, *tried = Bench.pitched(SimpleNamespace(_at=at), None, pitch, Options(values=(16, 19)))
    assert (written.pitch, [each.pitch for each in tried]) == (17, [16, 18, 19])
    assert (moved in asked) == again
    assert sum(each.refused is None for each in tried) == best


def test_a_pitch_that_no_function_moves_is_left_as_it_is():
    pitch = SimpleNamespace(now=17, least=17, by_function=None)
    bench = SimpleNamespace(_at=lambda layouts, which, value: Trial(value, **(OK if value == 17 else DIFFERS)))
    found = Bench.pitched(bench, None, pitch, Options(values=(16, 18)))
    assert [(each.pitch, each.refused) for each in found] == [(17, None), (18, "outputs differ")]


@pytest.mark.parametrize(
    ("now", "least", "values", "found"),
    [
        (17, 0, None, range(SPREAD + 1)),
        (SPREAD, 5, None, range(5, SPREAD + 1)),
        (SPREAD + 1, 5, None, range(SPREAD + 1, 2 * SPREAD + 2)),
        (17, 5, (2, 7), range(5, 8)),
        (17, 1, (2, 7), range(2, 8)),
    ],
)
def test_the_pitches_that_are_tried(now, least, values, found):
    pitch = SimpleNamespace(now=now, least=least)
    assert layout_search._values(pitch, Options(values=values)) == found


# ---- several arrays at once, and the change to take ----------------------------------------------------


def change(start, end):
    return Change(((Span(SOURCE, start, end), "x"),))


def test_changes_of_one_place_are_not_made_together():
    two = [("a", change(0, 5)), ("b", change(3, 8))]
    assert Bench.together(SimpleNamespace(), two) == Trial(0, refused="two of the changes are of one place in the text")


@pytest.mark.parametrize(
    ("taken", "refused", "words"),
    [
        (100, None, None),
        (101, None, layout_search.too_large(100)),
        (100, "outputs differ", "outputs differ"),
        (101, "outputs differ", "outputs differ"),
    ],
)
def test_all_arrays_together_must_fit(taken, refused, words):
    asked = []

    def trial(arrays, pitch, made):
        asked.append((arrays, pitch, made))
        return Trial(0, bytes=taken, refused=refused)

    two = [("a", change(0, 5)), ("b", change(5, 8))]
    found = Bench.together(SimpleNamespace(trial=trial, most_bytes=100), two)
    assert asked == [(["a", "b"], 0, two[0][1] + two[1][1])]
    assert (found.bytes, found.refused) == (taken, words)


@pytest.mark.parametrize(
    ("costs", "best"),
    [
        ([(8, 8), (9, 9)], 0),
        ([(9, 9), (8, 8)], 1),
        ([(2, 9), (6, 4)], 1),  # wavefronts and sectors count alike
        ([(9, 2), (4, 6)], 1),
        ([(4, 6), (6, 4)], 0),
    ],
)
def test_of_rewrites_the_one_with_the_fewest_wavefronts_and_sectors_is_taken(costs, best):
    tried = [Rewritten("", change(n, n + 1), wavefronts, 0, sectors) for n, (wavefronts, sectors) in enumerate(costs)]
    refused = Rewritten("", change(9, 10), 0, 0, 0, refused="outputs differ")
    counters = {"shared_wavefronts": 50, "global_sectors": 50}
    assert cheapest(counters, [], None, [refused, *tried], 100) == tried[best].change
    assert cheapest(counters, [], None, [refused], 100) is None
