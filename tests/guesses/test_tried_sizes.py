"""The sizes and contents that `init` tries, and what it asks about those that it chooses."""

from types import SimpleNamespace

import pytest

from bankshot.oracle.guesses import new_manifest
from bankshot.oracle.guesses.array_sizes import CONTENTS, Contents, Extent, Measured
from bankshot.oracle.guesses.new_manifest import SIZES, Sizes
from tests.guesses.test_written_bindings import drafted, storage

# For a step of 10: the size and the other one, of the first dim and of the third.
CHOICES = {
    "": [(23, 35), (27, 39)],
    "multiples of the tiles": [(20, 40), (40, 80)],
    "multiples of 64": [(64, 128), (192, 384)],
    "equal multiples of 64": [(64, 128), (64, 128)],
    "multiples of 256": [(256, 512), (256, 512)],
    "small": [(4, 8), (4, 8)],
    "1": [(1, 2), (1, 2)],
}


def test_sizes_that_are_tried():
    assert {each.words: [each.of(10, 0), each.of(10, 2)] for each in SIZES} == CHOICES
    assert [each.words for each in SIZES] == [*CHOICES]


ODD = SIZES[0]


@pytest.mark.parametrize(
    ("names", "steps", "changed", "sizes"),
    [
        (["n"], {}, None, [35]),  # 2 * 16 + 3
        (["n"], {"n": 8}, None, [19]),
        (["n"], {"n": 8}, "n", [29]),
        (["n", "m"], {}, "m", [35, 55]),
        (["a", "b", "c"], {}, None, [35, 37, 39]),
        (["a", "b", "c", "d"], {}, None, [11, 13, 15, 17]),  # steps of 4 where there are many
        (["groups_x"], {}, None, [3]),
        (["groups_x"], {}, "groups_x", [5]),
        (["n", "groups_y"], {}, None, [35, 2]),
        (["n", "groups_y"], {}, "groups_y", [35, 4]),
    ],
)
def test_sizes_of_dims(names, steps, changed, sizes):
    assert new_manifest._chosen(names, steps, ODD, changed) == dict(zip(names, sizes, strict=True))


@pytest.mark.parametrize(
    ("default", "steps", "edges"),
    [
        (35, {}, [1, 36]), (1, {}, [2]), (35, {"n": 16}, [1, 15, 16, 17]), (16, {"n": 16}, [1, 15, 17]),
        (9, {"n": 1}, [1, 2]), (9, {"n": 2}, [1, 2, 3]), (35, {"m": 16}, [1, 36]),
    ],
)  # fmt: skip
def test_the_sizes_around_a_workgroup_are_edges(default, steps, edges):
    assert new_manifest._edges("n", default, steps) == edges


def faults(**given):
    return {"inside": True, "ends": True, "divides": True, "changes": True} | given


GOOD, DULL, WRONG, LOOPS = faults(), faults(changes=False), faults(inside=False), faults(ends=False)


@pytest.fixture
def searched(monkeypatch):
    """`searched(outcomes, names)`: the sizes, contents, words and dims of a search, where `outcomes` has what a run
    shows by its contents and words; those that it lacks are endless."""

    def run(outcomes, names=("n",), others=GOOD):
        words = {each.of(16, 0)[0]: each.words for each in SIZES[:2]}
        tried = []

        def measured(pipeline, uses, dispatch, dims, contents, overrides):
            first = next(iter(dims.values()), 0)
            other = names and first not in words
            tried.append((contents.init, "other" if other else words.get(first, "")))
            return Measured(dims, {}, **(others if other else outcomes.get(tried[-1], LOOPS)))

        monkeypatch.setattr(new_manifest, "_measured", measured)
        monkeypatch.setattr(new_manifest, "SIZES", SIZES[:2])
        found, contents, said = new_manifest._search(None, None, [], {}, [*names], {})
        return tried, contents.init, said, [dict(each.dims) for each in found]

    return run


TILES = "multiples of the tiles"


def test_a_search_ends_with_the_first_run_without_a_fault(searched):
    assert searched({("uniform", ""): GOOD}) == (
        [("uniform", ""), ("uniform", "other")],
        "uniform",
        "",
        [{"n": 35}, {"n": 53}],
    )
    tried, init, said, dims = searched({("uniform", ""): WRONG, ("uniform", TILES): GOOD})
    assert (init, said, dims) == ("uniform", TILES, [{"n": 32}, {"n": 64}])
    assert tried[:2] == [("uniform", ""), ("uniform", TILES)]


def test_a_search_keeps_the_run_with_the_fewest_faults(searched):
    tried, init, said, _ = searched({("arange", ""): WRONG, ("arange", TILES): DULL, ("zeros", ""): DULL})
    assert (init, said) == ("arange", TILES)
    assert [each for each in tried if each[1] != "other"] == [
        (contents.init, words) for contents in CONTENTS for words in ("", TILES)
    ]


def test_without_sizes_only_contents_are_tried(searched):
    tried, init, said, dims = searched({("zeros", ""): GOOD}, names=())
    assert (tried, init, said, dims) == ([("uniform", ""), ("arange", ""), ("zeros", "")], "zeros", "", [{}])


def test_other_sizes_count_where_they_are_as_good(searched):
    assert searched({("uniform", ""): GOOD}, others=DULL)[3] == [{"n": 35}]
    assert searched({("uniform", ""): DULL, ("uniform", TILES): LOOPS}, others=DULL)[3] == [{"n": 35}, {"n": 53}]
    assert searched({})[3] == [{"n": 35}]  # no run that ends has others


def test_at_most_eight_dims_are_varied(searched):
    names = tuple(f"d{n}" for n in range(10))
    assert len(searched({("uniform", ""): GOOD}, names=names)[3]) <= 9


@pytest.mark.parametrize(
    ("dispatch", "lanes", "ran"),
    [
        ([65_535, 1, 1], 16, True), ([65_536, 1, 1], 1, False), ([1, 65_536, 1], 1, False), ([0, 0, 0], 1, True),
        ([1024, 16, 1], 64, True), ([1024, 16, 1], 65, False), (["n", 1, 1], 1, True),
    ],
)  # fmt: skip
def test_grids_that_are_too_large_are_not_run(monkeypatch, dispatch, lanes, ran):
    grids = []
    monkeypatch.setattr(new_manifest, "measure", lambda pipeline, uses, grid, *rest: grids.append(grid) or "measured")
    pipeline = SimpleNamespace(workgroup_size=(lanes, 1, 1))
    found = new_manifest._measured(pipeline, None, dispatch, {"n": 7}, None, {})
    if ran:
        assert found == "measured"
        assert grids == [tuple(7 if each == "n" else max(1, each) for each in dispatch)]
    else:
        assert (found.ends, found.faults, grids) == (False, 15, [])


def test_long_lists_are_cut():
    names = [f"n{number}" for number in range(8)]
    assert new_manifest._listed(names[:6]) == "n0, n1, n2, n3, n4, n5"
    assert new_manifest._listed(names) == "n0, n1, n2, n3, n4, n5 and 2 more"


def test_questions_on_extents_and_sizes():
    made = drafted(storage("array<f32>", "read_write"), "b[0] = 1.0;")
    (b,) = made.extents

    def asked(extent, words="", **given):
        made.extents[b] = extent
        return [*new_manifest._questions(made, Measured({}, {}, **faults(**given)), words)]

    assert asked(Extent(("n", "m"), True)) == []
    assert asked(Extent(("n", "m"), False)) == [
        "how many elements does b have? n * m holds all that the kernel accesses"
    ]
    assert asked(Extent(("n",), False, 3)) == [
        "the kernel accesses 3 more than n elements of b: is it larger, or is an index out of bounds?"
    ]
    assert asked(Extent(("n",), False, None)) == [
        "the kernel accesses more elements of b than n, a number that varies with the sizes: which shape does it have, "
        "or is an index wrong?"
    ]
    sure = Extent(("n",), True)
    assert asked(sure, "small", divides=False) == [
        "sizes are small here, because the kernel fails with others: which sizes may the host pass?"
    ]
    assert asked(sure, "small", inside=False) == [
        "no sizes were found with which every access is in bounds: which sizes and contents does the host pass?"
    ]
    assert asked(sure, "small", ends=False, inside=False) == [
        "no sizes were found with which every loop ends: which sizes does the host pass?"
    ]
    made.dispatch[:] = [1, "groups_y", "n"]
    made.contents = Contents("zeros", 1)
    assert asked(sure) == [
        "ids along y are compared with no size: how many workgroups does the host dispatch? groups_y stands for that "
        "number",
        "what do integers in storage hold? `zeros` keeps every access in bounds",
    ]


def test_questions_on_structs_in_storage():
    declared = (
        storage("array<Pair>")
        + """
        @group(0) @binding(1) var<storage> f: array<Flat>;
        @group(0) @binding(2) var<storage> v: array<vec4<f32>>;
        @group(0) @binding(3) var<uniform> p: Pair;"""
    )
    made = drafted(declared, "_ = &b; _ = &f; _ = &v; _ = &p;")
    assert [*new_manifest._questions_on_data(made)] == [
        "what do the structs in b, f hold? they are zeros here; `file` takes their bytes"
    ]


def test_sizes_have_words_only_where_they_limit():
    assert [each.words for each in SIZES if not each.words] == [""]
    assert isinstance(SIZES[0], Sizes)
