"""`python -m tools.layouts`: `bankshot advise` against brute force on any shaders."""

from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle.advise.swizzle_choice import Space
from bankshot.sim.models import DEVICES
from tests.advise.kernels import text_of
from tools.layouts.__main__ import main
from tools.layouts.brute_force import Access, Array, Layout, fewest, groups, swizzle_costs, term_of, terms, with_pitch

# Two columns and a block of 8 by 4: no swizzle of one term ends the conflicts of all three, and two terms do.
THREE = """\
@group(0) @binding(0) var<storage, read> x: array<f32, 1024>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 4096>;
var<workgroup> tile: array<f32, 1024>;
@compute @workgroup_size(1024)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3<u32>) {
    tile[i] = x[i];
    workgroupBarrier();
    var sum = 0.0;
    for (var k = 0u; k < 8u; k++) {
        sum += tile[i % 4u * 32u + k % 2u] + tile[i % 8u * 16u + k % 4u] + tile[i / 8u % 4u * 32u + i % 8u];
    }
    y[group.x * 1024u + i] = sum;
}
"""
ATOMIC = """\
@group(0) @binding(0) var<storage, read_write> y: array<u32, 64>;
var<workgroup> bins: array<atomic<u32>, 256>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    atomicAdd(&bins[i % 8u * 32u], 1u);
    workgroupBarrier();
    y[i] = atomicLoad(&bins[i * 4u]) + 1u;
}
"""
PLAIN = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { y[i] += 1.0; }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    scalar = (
        ATOMIC.replace("array<atomic<u32>, 256>", "atomic<u32>").replace("[i % 8u * 32u]", "").replace("[i * 4u]", "")
    )
    texts = {
        "three": THREE,
        "atomic": ATOMIC,
        "plain": PLAIN,
        "scalar": scalar,
        "wrong": "fn",
        "twelve": text_of("rows of twelve"),
        "twelve_copy": text_of("rows of twelve"),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.wgsl").write_text(text)
    return tmp_path


def compared(*args) -> tuple[int, list[str]]:
    done = CliRunner().invoke(main, [*map(str, args)], catch_exceptions=False)
    return done.exit_code, done.stdout.splitlines()


def test_advise_finds_what_brute_force_finds(folder: Path) -> None:
    code, lines = compared(folder)
    assert code == 0
    assert [line.split()[4] for line in lines[1:4]] == ["equal"] * 3
    assert "terms [(3, 2, 0), (5, 2, 3)]" in lines[2]
    assert "rows of 12 as" in lines[3]
    assert "3 arrays of 3 kernels in 6 shaders; 0 differ" in lines[4]
    left_out = ["1 no bank conflicts", "1 no workgroup memory", "1 not valid"]
    assert sorted(lines[5:]) == [f"not compared: {each}" for each in left_out]


def test_advise_finds_what_is_fastest_of_all_swizzles_of_one_term(folder: Path) -> None:
    """Two terms take fewer wavefronts than one, and more operations, so that they are slower."""
    code, lines = compared(folder / "three.wgsl", "--by", "time")
    written, found, least = map(float, lines[1].split()[:3])
    assert (code, found) == (0, least)
    assert least < written


@pytest.mark.parametrize("by", ["wavefronts", "time"])
def test_a_search_that_misses_the_best_is_noticed(folder: Path, monkeypatch, by: str) -> None:
    """One of one term, which does not take the fewest; one that takes the fewest, and more operations."""
    best = Space.best
    monkeypatch.setattr(Space, "best", lambda space: best(space)[:1] if by == "wavefronts" else best(space)[-1:])
    code, lines = compared(folder / "three.wgsl", "--by", by)
    assert code == 1
    assert "DIFFERENT" in lines[1]
    assert "1 differ" in lines[2]


# ---- brute force, by hand --------------------------------------------------------------------------------


def access(addresses, width=4, is_store=False, serialized=False) -> Access:
    return Access((*addresses, *[-1] * (32 - len(addresses))), width, is_store, serialized)


def costs(length: int, *accesses: Access, stride: int = 4, row: int = 0) -> dict:
    return swizzle_costs(Array(length, stride, row, Counter(accesses)))


@pytest.mark.parametrize(
    ("made", "sizes"),
    [
        (access(range(0, 128, 4)), [32]),
        (access([0, 0, 4, 128]), [3]),  # a word once
        (access([0, 0, 4, 128], serialized=True), [4]),
        (access(range(0, 256, 8), 8), [16, 16]),
        (access(range(0, 512, 16), 16), [8, 8, 8, 8]),
        (access(range(0, 512, 16), 12), [8, 8, 8, 8]),  # three components as four
        (access([at // 2 * 8 for at in range(32)], 8), [16]),  # pairs agree: both halves at once
        (access([at // 2 * 8 for at in range(32)], 8, is_store=True), [8, 8]),  # not in a store
        (access([at % 2 * 16 for at in range(32)], 16), [2, 2]),
    ],
)
def test_lanes_that_are_served_together(made: Access, sizes: list[int]) -> None:
    assert [len(group) for group in groups(made)] == sizes


def test_a_column_of_words_takes_a_wavefront_a_lane_until_a_swizzle_takes_it_apart() -> None:
    found = costs(1024, access(range(0, 4096, 128)))
    assert found[()] == 32
    assert found[(5, 5, 0),] == 1
    assert found[(5, 2, 0),] == 8
    assert found[(5, 2, 0), (7, 3, 2)] == 1


def test_an_atomic_operation_takes_a_wavefront_for_each_lane_of_a_bank() -> None:
    assert costs(64, access([0] * 7, serialized=True))[()] == 7
    assert costs(64, access([0] * 7))[()] == 1


def test_terms_permute_each_row_and_move_whole_words() -> None:
    assert terms(8, 8, 4) == [(1, 1, 0), (2, 1, 0), (2, 2, 0), (2, 1, 1)]
    assert terms(8, 8, 2) == [(2, 1, 1)]
    assert terms(5, 5, 4) == []
    for length, row in ((64, 64), (48, 16), (96, 96), (64, 2)):
        rows = np.arange(length).reshape(-1, row)
        for one, other in combinations(terms(length, row, 4), 2):
            assert (np.sort(rows ^ term_of(rows, one) ^ term_of(rows, other), axis=1) == rows).all()


def test_rows_that_move_apart_and_together() -> None:
    """Two rows of four, of which the last element is not in use."""
    rows = Array(8, 4, 0, Counter([access([0, 4, 8, 16, 20, 24])]))
    wider, narrower = with_pitch(rows, 4, 33), with_pitch(rows, 4, 3)
    assert wider is not None
    assert narrower is not None
    assert (wider.length, wider.elements.tolist()) == (66, [0, 1, 2, 33, 34, 35])
    assert (narrower.length, narrower.elements.tolist()) == (6, [0, 1, 2, 3, 4, 5])
    assert with_pitch(rows, 4, 2) is None  # elements 2 and 4 would be one


def test_the_fewest_of_all_layouts_that_fit() -> None:
    """Five elements of 64 bytes, which have no blocks to swizzle: 0, 2 and 4 are of one bank, and in rows of three in
    place of two they become 0, 3 and 6."""
    array = Array(5, 64, 0, Counter([access([0, 128, 256])]))
    assert fewest(array, [(2, [2, 3])], 9 * 64) == (Layout(2, 2, 3), 2)
    assert fewest(array, [(2, [2, 3])], 9 * 64 - 1) == (Layout(3), 1)


def test_counts_are_those_of_the_rule_of_the_device() -> None:
    rng = np.random.default_rng(7)
    for width in (4, 8, 16):
        asked = rng.integers(0, 64, 32) * width
        counted = costs(64, access(asked.tolist(), width), stride=width)[()]
        assert counted == DEVICES["nvidia"].shared_wavefronts(asked, width)
