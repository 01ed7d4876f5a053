"""Whatever is written, the checker gives a module or a `WgslError`: modules with tokens dropped, doubled, swapped."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.wgsl.check import check
from sim.wgsl.diagnostics import WgslError
from sim.wgsl.source import Source

FOLDER = Path(__file__).parents[1] / "files" / "errors" / "check"
MODULES = [re.findall(r"\w+|[^\w\s]|\s+", path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.wgsl"))]
WORDS = sorted({token for module in MODULES for token in module if not token.isspace()})


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_no_text_brings_the_checker_down(data: st.DataObject) -> None:
    tokens = list(data.draw(st.sampled_from(MODULES)))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(tokens) - 1))
        kept = data.draw(st.integers(0, 1))
        tokens[place : place + 1 - kept] = data.draw(st.lists(st.sampled_from(WORDS), max_size=2))
    with suppress(WgslError):
        module = check(Source("".join(tokens)))
        for entry in module.entry_points:
            module.pipeline(entry.name)


@pytest.mark.parametrize("opening", ["(", "-", "!", "array<", "&"])
def test_deep_nesting_is_an_error(opening: str) -> None:
    with pytest.raises(WgslError):
        check(Source(f"const a = {opening * 5000}"))


def test_a_long_else_if_chain() -> None:
    chain = " else ".join(f"if x == {i} {{ y = {i}; }}" for i in range(100))
    check(Source(f"fn f(x: i32) {{ var y = 0; {chain} }}"))
    with pytest.raises(WgslError, match=r"nest"):
        check(Source(f"fn f(x: i32) {{ var y = 0; {' else '.join(['if x == 1 {}'] * 5000)} }}"))
