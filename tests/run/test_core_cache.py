"""What the cache of a core holds of a dispatch, for kernels whose loads were counted by hand."""

import math

import numpy as np
import pytest

import bankshot
from bankshot.sim.models import Cost, MeasuredCosts, get
from tests.run.test_work import GRID, HEAD, work


def test_what_a_workgroup_loads_again_is_in_its_cache() -> None:
    found = work("y[g] = x[g] + x[w.x * 64u + (63u - i)];")
    assert found.missed == 0.5
    assert found.load_lines == 6 * 4
    assert found.load_sectors == 6 * 8


def caches(lines: int, sharing: int) -> MeasuredCosts:
    """Return the costs of a core whose cache has so many lines for each of the workgroups that share it: what more than
    four have shrinks by a power of 0.6 (see docs/time-model.md)."""
    size = math.ceil(sharing * lines * 128 * max(1, sharing / 4) ** 0.6)
    return MeasuredCosts({"cache_bytes": Cost(float(size), None, "by hand")})


def test_what_leaves_the_cache_before_it_is_loaded_again_is_missed_twice() -> None:
    body = "var sum = 0.0; for (var k = 0u; k < 3u; k++) { sum += x[(g + k * 1024u) % 2048u]; } y[g] = sum;"
    for lines, missed in ((3, 1.0), (4, 2 / 3)):  # a workgroup loads two, two others, and the first two again
        found = work(body, device=get("nvidia").with_(cores=1, costs=caches(lines, GRID)))
        assert found.missed == pytest.approx(missed)
        assert found.missed_lines == pytest.approx(missed * GRID * 2 * 3)


@pytest.mark.parametrize(("cores", "sharing"), [(None, GRID), (1, 6), (2, 3), (4, 2), (5, 2), (6, 1), (9, 1)])
def test_the_workgroups_of_a_core_share_its_cache(cores: int | None, sharing: int) -> None:
    """6 workgroups are dealt to the cores. Each loads two lines, two others, and the first two again."""
    body = "var sum = 0.0; for (var k = 0u; k < 3u; k++) { sum += x[(g + k * 1024u) % 2048u]; } y[g] = sum;"
    for lines, missed in ((3, 1.0), (4, 2 / 3)):
        device = get("nvidia").with_(cores=cores, costs=caches(lines, sharing))
        assert work(body, device=device).missed == pytest.approx(missed)


@pytest.mark.parametrize(("lines", "reloaded"), [(3, 1 / 3), (4, 0.0)])
def test_what_a_workgroup_misses_again_it_has_loaded_before(lines: int, reloaded: float) -> None:
    """Each workgroup loads two lines, two others, and the first two again. That others load them does not count."""
    body = "var sum = 0.0; for (var k = 0u; k < 3u; k++) { sum += x[(g + k * 2048u) % 4096u]; } y[g] = sum;"
    found = work(body, grid=64, device=get("nvidia").with_(cores=8, costs=caches(lines, 8)))
    assert found.reloaded == pytest.approx(reloaded)


def test_a_cache_holds_so_many_lines_even_if_each_has_one_sector() -> None:
    body = "var sum = 0.0; for (var k = 0u; k < 3u; k++) { sum += x[i * 32u + k % 2u * 2048u]; } y[g] = sum;"
    for lines, missed in ((127, 1.0), (128, 2 / 3)):  # 64 in an iteration
        costs = MeasuredCosts({"cache_bytes": Cost(lines * 128.0, None, "by hand")})
        assert work(body, grid=1, device=get("nvidia").with_(costs=costs)).missed == pytest.approx(missed)


def test_a_line_that_comes_back_has_none_of_its_sectors() -> None:
    """The second sector of line 0 is there again only once it is loaded again."""
    order = "array(0u, 8u, 32u, 64u, 0u, 8u)"  # words, of lines 0, 0, 1, 2, 0, 0: of which the cache holds two
    body = f"var at = {order}; var sum = 0.0; for (var k = 0u; k < 6u; k++) {{ sum += x[at[k]]; }} y[g] = sum;"
    costs = MeasuredCosts({"cache_bytes": Cost(2 * 128.0, None, "by hand")})
    found = work(body, grid=1, device=get("nvidia").with_(costs=costs, subgroup_size=64))
    assert found.load_sectors == 6


@pytest.mark.parametrize(
    ("index", "pages", "changes"),
    [
        ("i * 524288u + i * 8u + w.x * 512u", 8, 63),  # each lane on another page than the one before
        ("i / 8u * 524288u + i * 8u + w.x * 512u", 8, 7),
        ("g * 8u", 8, 0),
        ("i * 524288u + i * 8u + w.x * 512u", 4, 63),
        ("i * 524288u + i * 8u + w.x * 512u", 2, 63),  # pages that are all at hand
    ],
)
def test_a_sector_on_another_page_waits_for_the_page(index: str, pages: int, changes: int) -> None:
    """A page has 2 MiB. Of more than 3.6 pages, the square of that share is at hand."""
    words = pages << 19
    bindings = {"x": np.ones(words, np.float32), "y": np.zeros(4096, np.float32)}
    body = f"y[g] = x[({index}) % {words}u]; }}"
    found = bankshot.simulate(HEAD + body, grid=GRID, bindings=bindings, device="nvidia").work
    assert found.load_sectors == GRID * 64
    assert found.page_turns == pytest.approx(GRID * changes * max(0.0, 1 - (3.6 / pages) ** 2))
    assert found.coalesced().page_turns == 0
