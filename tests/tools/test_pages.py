"""The pages of `docs/` that are made from tables."""

import pytest

from bankshot.oracle.gpu_account import account
from bankshot.sim.run.counters import SITE_COUNTERS
from tools.pages import DOCS, PAGES, table


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name):
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run `python -m tools.pages`"


def test_a_cell_may_contain_a_bar():
    assert table(("a", "b"), [("x|y", "z")]) == "| a | b |\n| --- | --- |\n| x\\|y | z |\n"


def test_every_counter_of_a_place_is_counted_a_second_time():
    assert {row.key for row in SITE_COUNTERS} == set(account.COUNTERS)
