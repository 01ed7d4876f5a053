"""The current values of variables in nested branches."""

from typing import Any

from bankshot.sim.wgsl.analysis.current_values import Values


def test_changes_of_all_layers_count_and_the_last_one_wins() -> None:
    first, second, third, a, b = (object() for _ in range(5))
    base: Any = Values()
    outer: Any = Values(base)
    inner: Any = Values(outer)
    base[a] = outer[a] = first
    outer[b] = second
    inner[a] = third
    assert inner.since(base) == {a: third, b: second}
    assert inner.since(outer) == {a: third}
    assert inner.since(inner) == {}
