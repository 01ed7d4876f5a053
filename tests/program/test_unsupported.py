"""What the simulator cannot run is refused by name and place, never by an internal error."""

from __future__ import annotations

import pytest

import sim
from sim.program import lower
from sim.program.build import build

PICTURE = "@group(0) @binding(0) var picture: texture_2d<f32>;"


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("_ = picture;", "picture"),
        ("let p = picture;", "picture"),
        ("take(picture);", "picture"),
        ("_ = textureDimensions(picture);", "textureDimensions"),
    ],
)
def test_a_texture_is_refused_by_name(statement: str, named: str) -> None:
    wgsl = f"{PICTURE} fn take(t: texture_2d<f32>) {{}} @compute @workgroup_size(1) fn main() {{ {statement} }}"
    with pytest.raises(sim.WgslError) as refused:
        build(sim.check(wgsl).pipeline(), fused=True, probes=frozenset(), together=1)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "unsupported"
    assert named in diagnostic.message


def test_calls_that_multiply_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower, "MAX_STATEMENTS", 1000)
    functions = "".join(f"fn f{i}() -> i32 {{ return f{i + 1}() + f{i + 1}(); }}" for i in range(40))
    pipeline = sim.check(
        f"{functions} fn f40() -> i32 {{ return 1; }} @compute @workgroup_size(1) fn main() {{ _ = f0(); }}"
    ).pipeline()
    with pytest.raises(sim.WgslError) as refused:
        build(pipeline, fused=True, probes=frozenset(), together=1)
    assert refused.value.diagnostics[0].code == "limit"
