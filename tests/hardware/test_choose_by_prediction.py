"""The cost of choosing by prediction, by hand, and the table of the page."""

from pathlib import Path

import pytest

from tests.hardware.choose_by_prediction import Choice, choices, table
from tests.hardware.page_table import write

TIMES = [  # at, measured, predicted
    (("a", "x", "1"), 10.0, 5.0),
    (("a", "y", "1"), 8.0, 6.0),  # the best, but x is predicted to be faster
    (("a", "x", "2"), 10.0, 5.0),
    (("a", "y", "2"), 12.0, 6.0),
    (("b", "x", "1"), 3.0, 1.0),  # alone: no choice
]


def test_the_chosen_kernel_is_the_one_predicted_to_be_fastest() -> None:
    assert choices(TIMES) == [
        Choice("a", "1", 2, "x", 1.25, (1.25 + 1) / 2),
        Choice("a", "2", 2, "x", 1.0, pytest.approx((1 + 1.2) / 2)),
    ]


def test_the_table_has_all_problems_and_each_family() -> None:
    found = [Choice("a", "1", 2, "x", 1.25, 1.5), Choice("a", "2", 2, "x", 1.0, 1.5), Choice("b", "1", 3, "y", 1.05, 3)]
    assert table(found)[2:] == [
        "| **2 families** | 3 | 2 | 5.0% | 10.0% | 25.0% | 100.0% |",
        "| a | 2 | 1 | 12.5% | 12.5% | 25.0% | 50.0% |",
        "| b | 1 | 1 | 5.0% | 5.0% | 5.0% | 200.0% |",
    ]


def test_the_table_replaces_the_old_one_in_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n\n<!-- a -->\nold\n<!-- end of a -->\n\n<!-- b -->\nleft\n<!-- end of b -->\n")
    write(page, "a", ["| new |"])
    write(page, "a", ["| new |"])
    expected = "before\n\n<!-- a -->\n\n| new |\n\n<!-- end of a -->\n\n<!-- b -->\nleft\n<!-- end of b -->\n"
    assert page.read_text() == expected
