"""Loops that skip the rest of an iteration cost what those with the rest in a branch cost."""

from collections import Counter

import pytest

from tests.performance.test_chains import costs


def sums(body: str) -> tuple[Counter[str], Counter[str]]:
    """Return what the regions of a loop issue and wait for, each once."""
    issued, chain = Counter[str](), Counter[str]()
    for region in costs(f"var a = i; for (var k = 0u; k < x[0]; k++) {{ {body} }} y[i] = a;"):
        issued.update(region.issued)
        chain.update(region.chain)
    return issued, chain


LONG = "".join(f"a = (a ^ {n}u) * 3u; " for n in range(9))


@pytest.mark.parametrize("rest", ["a += x[k];", LONG, "y[k] = a; a ^= t[k & 63u];"])
@pytest.mark.parametrize("before", ["", "a += 5u; "])
def test_a_continue_costs_what_a_branch_around_the_rest_costs(rest: str, before: str) -> None:
    skipped = sums(f"if (k == i) {{ {before}continue; }} {rest}")
    branched = sums(f"if (k == i) {{ {before}}} else {{ {rest} }}")
    assert skipped == branched


def test_a_rest_with_a_continue_of_its_own_is_nested_in_the_first() -> None:
    skipped = sums("if (k == i) { continue; } a += 3u; if (a > 9u) { continue; } a ^= x[k];")
    branched = sums("if (k == i) {} else { a += 3u; if (a > 9u) {} else { a ^= x[k]; } }")
    assert skipped == branched


def test_a_break_ends_the_loop_and_stays() -> None:
    skipped, _ = sums("if (k == i) { break; } a += x[k];")
    branched, _ = sums("if (k == i) {} else { a += x[k]; }")
    assert skipped["branch"] == branched["branch"] + 1
