"""However much is written, the checker soon gives a module or a `WgslError`; `test_fuzz_reader` is for the rest."""

from __future__ import annotations

import pytest

from bankshot.sim.wgsl.check.check_module import check
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source


@pytest.mark.parametrize("opening", ["(", "-", "!", "array<", "&"])
def test_deep_nesting_is_an_error(opening: str) -> None:
    with pytest.raises(WgslError):
        check(Source(f"const a = {opening * 5000}"))


def test_a_long_else_if_chain() -> None:
    chain = " else ".join(f"if x == {i} {{ y = {i}; }}" for i in range(100))
    check(Source(f"fn f(x: i32) {{ var y = 0; {chain} }}"))
    with pytest.raises(WgslError, match=r"nest"):
        check(Source(f"fn f(x: i32) {{ var y = 0; {' else '.join(['if x == 1 {}'] * 5000)} }}"))


NESTED = (
    "".join(f"struct S{i} {{ a: S{i + 1}, b: S{i + 1}, c: S{i + 1} }}" for i in range(13)) + "struct S13 { a: i32 }"
)


@pytest.mark.parametrize(
    "text",
    [
        NESTED,
        "const a = array<i32, 100000000>();",
        "fn f() { let a = array<i32, 100000000>(); }",
        "const a = array<f32, 60000>(); const b = array(a, a);",
    ],
)
def test_what_is_too_large_to_write_is_an_error(text: str) -> None:
    with pytest.raises(WgslError) as refused:
        check(Source(text))
    assert refused.value.diagnostics[0].code == "limit"
