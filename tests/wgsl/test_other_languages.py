"""What people write who come from other languages is refused with a hint at what WGSL has for it."""

import pytest

from bankshot.sim.wgsl.builtins import BUILTINS
from bankshot.sim.wgsl.check.check_module import check
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source
from bankshot.sim.wgsl.syntax.other_languages import HABITS, TYPES

HEAD = """enable f16;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main() {
"""


def hint(body: str) -> str:
    with pytest.raises(WgslError) as error:
        check(Source(f"{HEAD}{body}\n}}\n"))
    return str(error.value).partition("hint: ")[2].strip()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("let v = float4(1.0, 2.0, 3.0, 4.0);", "WGSL calls it vec4<f32>"),
        ("float x = 1.0;", "write var x: f32 = …, or let x = … where it does not change"),
        ("for (int i = 0; i < 4; i++) { }", "write var i: i32 = …, or let i = … where it does not change"),
        ("let i = threadIdx.x;", "take it as a parameter of the entry point: @builtin(local_invocation_id)"),
        ("__syncthreads();", "WGSL calls it workgroupBarrier(), or storageBarrier() for storage"),
        ("barrier();", "WGSL calls it workgroupBarrier(), or storageBarrier() for storage"),
        ("let z = lerp(1.0, 2.0, 0.5);", "WGSL calls it mix"),
        ("let z = rsqrt(2.0);", "WGSL calls it inverseSqrt"),
        ("let z = mod(5.0, 3.0);", "write a % b, which has the sign of a; or a - b * floor(a / b)"),
        ("let z = y[0] > 1.0 ? 1.0 : 2.0;", "write select(if_false, if_true, condition), which computes both"),
        ("var j = 0u; let k = j++;", "'++' and '--' are statements of their own: i++;"),
        ("var j = 0u; y[j++] = 1.0;", "'++' and '--' are statements of their own: i++;"),
        ("var j = 0u; ++j;", "'++' and '--' are statements of their own: i++;"),
        ("shared float tile[64];", "write var<workgroup> name: array<f32, 64>; outside of functions"),
        ("let z = hlaf(1.0);", ""),  # no habit, and like no name
        ("let z = sqrtt(1.0);", "did you mean 'sqrt'?"),
    ],
)
def test_the_hint(body, expected):
    assert hint(body) == expected


def test_no_name_of_wgsl_is_called_a_habit():
    assert HABITS.keys().isdisjoint(BUILTINS)


@pytest.mark.parametrize("name", TYPES.values())
def test_what_types_are_called_is_a_type(name):
    assert check(Source(f"{HEAD}var v: {name};\n}}\n")).entry_points


CALLED = [text.removeprefix("WGSL calls it ") for name, text in HABITS.items() if name not in TYPES and "calls" in text]


@pytest.mark.parametrize("name", CALLED)
def test_what_functions_are_called_is_a_builtin(name):
    known = {*BUILTINS, "f16", "f32", "bitcast"}
    assert name.partition("(")[0].partition("<")[0] in known
