"""What the simulator cannot run is reported by name and place, not as an internal error."""

from __future__ import annotations

import pytest

import bankshot
from bankshot.sim.codegen.build import build
from bankshot.sim.ir.rounding import Rounding
from bankshot.sim.lowering import lower

EXACT = Rounding(fused=False, contracts=False, cuts_f16=False)
PICTURE = "@group(0) @binding(0) var picture: texture_external;"
HUGE = "array<i32, 100000000>"
BUFFER = f"struct B {{ a: {HUGE} }} @group(0) @binding(0) var<storage, read_write> x: B;"


def refusal(declarations: str, statement: str) -> tuple[str, str]:
    """Code and message of the one error that lowering gives."""
    module = bankshot.check(f"{declarations} @compute @workgroup_size(1) fn main() {{ {statement} }}")
    with pytest.raises(bankshot.WgslError) as refused:
        build(module.pipeline(), rounding=EXACT, probes=frozenset(), workgroups_per_batch=1)
    (diagnostic,) = refused.value.diagnostics
    return diagnostic.code, diagnostic.message


def test_an_external_texture_is_refused_by_name() -> None:
    code, message = refusal(PICTURE, "_ = textureDimensions(picture);")
    assert code == "unsupported"
    assert "picture" in message


@pytest.mark.parametrize(
    ("declarations", "statement"),
    [
        (BUFFER, "x.a[0] = 1; let a = x;"),
        (f"{BUFFER} fn f() -> {HUGE} {{ if x.a[0] == 1 {{ return x.a; }} return x.a; }}", "_ = f();"),
    ],
)
def test_a_value_too_large_to_hold_is_refused(declarations: str, statement: str) -> None:
    code, message = refusal(declarations, statement)
    assert code == "unsupported"
    assert "100,000,000 components" in message


@pytest.mark.parametrize(
    ("declarations", "statement"), [("", f"var a: {HUGE}; a[1] = 2;"), (f"var<private> a: {HUGE};", "a[1] = 2;")]
)
def test_a_variable_too_large_to_hold_is_refused(declarations: str, statement: str) -> None:
    code, message = refusal(declarations, statement)
    assert code == "unsupported"
    assert message.startswith("variable 'a' takes 400,000,000 bytes of each invocation")


def test_calls_that_multiply_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower, "MAX_STATEMENTS", 1000)
    functions = "".join(f"fn f{i}() -> i32 {{ return f{i + 1}() + f{i + 1}(); }}" for i in range(40))
    assert refusal(f"{functions} fn f40() -> i32 {{ return 1; }}", "_ = f0();")[0] == "limit"
