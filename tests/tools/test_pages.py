"""The pages of `docs/` that are made from tables."""

import pytest

from tools.pages import DOCS, PAGES, table


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name):
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run `python -m tools.pages`"


def test_a_cell_may_contain_a_bar():
    assert table(("a", "b"), [("x|y", "z")]) == "| a | b |\n| --- | --- |\n| x\\|y | z |\n"
