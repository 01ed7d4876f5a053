"""How many loads are waited for together, as loops took on an H200."""

import pytest

from tests.performance.test_chains import costs

LOOP = "var sum = 0u; for (var k = 0u; k < 9u; k++)"


def waits(statement: str, loads: int, held: int) -> float:
    """How often a loop of so many such statements waits for loads from storage."""
    body = " ".join(statement.replace("AT", f"i + k * 64u + {n}u").replace("N", f"{n}u") for n in range(loads))
    return sum(each.chain.get("storage_load", 0) for each in costs(f"{LOOP} {{ {body} }} y[i] = sum;", held=held))


@pytest.mark.parametrize(
    ("held", "loads", "times"),  # as loops of this form took on an H200
    [
        (32, 16, 1),
        (32, 24, 2),
        (32, 32, 2),
        (32, 48, 3),
        (32, 64, 4),
        (40, 24, 1),
        (40, 48, 2),
        (64, 48, 1),
        (64, 64, 2),
    ],
)
def test_loads_are_waited_for_together_as_far_as_registers_hold_them(held: int, loads: int, times: int) -> None:
    assert waits("sum += x[AT];", loads, held) == times


@pytest.mark.parametrize(
    ("statement", "loads", "times"),  # likewise
    [
        *(("if (i > N) { sum += x[AT]; }", loads, times) for loads, times in ((4, 1), (8, 2), (16, 3), (32, 6))),
        ("if (i > N) { sum += x[AT] * x[AT + 9u]; }", 4, 1),
        ("if (i > N) { sum += x[AT] * x[AT + 9u]; }", 8, 2),
        ("{ var v = 0u; if (i > N) { v = x[AT]; } sum += v; }", 16, 1),
        ("sum += select(0u, x[AT], i > N);", 16, 1),
        ("if (i > N) { if (i > 50u) { t[i] = N; } sum += x[AT]; }", 8, 2),
    ],
)
def test_conditional_loads_are_waited_for_together_as_far_as_there_are_predicates(
    statement: str, loads: int, times: int
) -> None:
    assert waits(statement, loads, 255) == times
