"""Pipeline creation: overrides get values, sizes become numbers, limits hold."""

from __future__ import annotations

from typing import Any

import pytest

from bankshot.sim.wgsl import typed
from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.check.check_module import check
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source

TILED = """
@id(7) override width: u32;
override depth = width / 2;
override scale: f32 = 1.5;
override fast: bool = false;
var<workgroup> tile: array<vec3f, depth>;
var<workgroup> flag: u32;
@compute @workgroup_size(width, 2)
fn main() {
    tile[depth - 1] = vec3f(scale);
    flag = select(1u, 2u, fast);
}
"""


def pipeline(text: str, **overrides: Any) -> typed.Pipeline:
    return check(Source(text)).pipeline(overrides=overrides)


def by_name(made: typed.Pipeline) -> dict[str, Any]:
    return {override.name: value for override, value in made.values.items()}


def test_overrides_sizes_and_memory() -> None:
    made = pipeline(TILED, width=16)
    assert made.workgroup_size == (16, 2, 1)
    assert by_name(made) == {"width": 16, "depth": 8, "scale": 1.5, "fast": False}
    tile, flag = made.globals
    assert made.store_types[tile] == t.Array(t.Vec(3, t.F32), 8)
    assert made.store_types[flag] == t.U32
    # Eight vec3 at a stride of 16 bytes, and a u32 that takes up 16.
    assert made.workgroup_bytes == 8 * 16 + 16
    assert made.warnings == []


def test_expressions_and_types_without_overrides() -> None:
    made = pipeline(TILED, width=16)
    assert made.entry.body is not None
    store = made.entry.body.body[0]
    assert isinstance(store, typed.Assign)
    target = made.fold(store.target)
    assert isinstance(target, typed.Index)
    assert isinstance(target.index, typed.Const)
    assert target.index.value == 7
    assert made.resolve(store.target.type) == store.target.type
    tile = made.globals[0]
    assert made.resolve(t.Pointer("workgroup", tile.type, "read_write")) == t.Pointer(
        "workgroup", t.Array(t.Vec(3, t.F32), 8), "read_write"
    )


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("i32", 2**31 - 1),
        ("i32", -(2**31)),
        ("u32", 2**32 - 1),
        ("u32", 0),
        ("f32", 3.4028234663852886e38),
        ("f16", 65504.0),
        ("bool", True),
        ("bool", False),
    ],
)
def test_the_greatest_and_the_least_value_of_a_type(type_: str, value: float) -> None:
    text = f"enable f16; override a: {type_}; @compute @workgroup_size(1) fn main() {{ _ = a; }}"
    assert by_name(pipeline(text, a=value)) == {"a": value}
    assert type(by_name(pipeline(text, a=value))["a"]) is type(value)
    if type_ != "bool":
        with pytest.raises(WgslError, match=f"is {type_}, which cannot hold"):
            pipeline(
                text,
                a=value + (-1 if value <= 0 else 1) * (16 if type_ == "f16" else 2.0**103 if type_ == "f32" else 1),
            )


def test_a_number_is_a_bool() -> None:
    text = "override a: bool; @compute @workgroup_size(1) fn main() { _ = a; }"
    assert [by_name(pipeline(text, a=value))["a"] for value in (0, 1, 2, 0.0)] == [False, True, True, False]


@pytest.mark.parametrize("key", ["width", "7", 7])
def test_an_override_by_name_or_id(key: str | int) -> None:
    assert check(Source(TILED)).pipeline(overrides={key: 32}).workgroup_size == (32, 2, 1)


def test_a_given_override_is_not_evaluated() -> None:
    text = "override a: i32; override b = 1 / a; @compute @workgroup_size(1) fn main() { _ = b; }"
    assert by_name(pipeline(text, b=3)) == {"b": 3}
    with pytest.raises(WgslError, match="'a' has no value"):
        pipeline(text)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({}, "override 'width' has no value"),
        ({"width": 16, "widht": 3}, "no override 'widht'"),
        ({"width": -1}, "is u32, which cannot hold -1"),
        ({"width": 2**32}, "cannot hold"),
        ({"width": 1.5}, "cannot hold 1.5"),
        ({"width": float("nan")}, "cannot hold nan"),
        ({"width": float("inf")}, "cannot hold inf"),
        ({"width": float("-inf")}, "cannot hold -inf"),
        ({"width": 16, "7": 16}, "override 'width' is given twice"),
        ({"width": 16, "fast": "yes"}, "override 'fast' is bool, but a str is given"),
        ({"width": "16"}, "a str is given"),
        ({"width": 16, "scale": 1e39}, "is f32, which cannot hold"),
        ({"width": 16, "scale": float("nan")}, "is f32, which cannot hold"),
        ({"width": 1}, "at least 1, not 0"),
        ({"width": 0}, "at least 1, not 0"),
        ({"width": 16, "depth": 0}, "at least 1, not 0"),
        ({"width": 256}, "256 \\* 2 \\* 1 = 512 invocations exceeds the limit of 256"),
        ({"width": 257}, "along x is 257"),
    ],
)
def test_values_that_do_not_do(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(WgslError, match=message):
        pipeline(TILED, **overrides)


@pytest.mark.parametrize(
    ("statement", "value", "fails"),
    [
        ("let x = a[n];", 3, False),
        ("let x = a[n];", 4, True),
        ("let x = 8 / n;", 0, True),
        ("let x = n > 0 && 8 / n > 1;", 0, False),
        ("let x = 1i << u32(n);", 31, True),
        ("a[0] /= n;", 0, True),
    ],
)
def test_override_expressions_in_functions(statement: str, value: int, fails: bool) -> None:
    text = f"override n: i32; @compute @workgroup_size(1) fn main() {{ var a: array<i32, 4>; {statement} }}"
    if fails:
        with pytest.raises(WgslError):
            pipeline(text, n=value)
    else:
        pipeline(text, n=value)


def test_limits_can_be_raised_and_storage_only_warns() -> None:
    text = "var<workgroup> a: array<f32, 4224>; @compute @workgroup_size(512) fn main() { a[0] = 1; }"
    module = check(Source(text))
    with pytest.raises(WgslError, match="more than the limit of 256"):
        module.pipeline()
    raised = {"maxComputeWorkgroupSizeX": 1024, "maxComputeInvocationsPerWorkgroup": 1024}
    made = module.pipeline(limits=raised)
    assert made.workgroup_bytes == 16896
    assert [w.code for w in made.warnings] == ["workgroup-storage"]
    assert module.pipeline(limits={**raised, "maxComputeWorkgroupStorageSize": 32768}).warnings == []


@pytest.mark.parametrize(("megabytes", "fails"), [(1, False), (2, True)])
def test_no_device_has_more_than_a_megabyte_of_workgroup_memory(megabytes: int, fails: bool) -> None:
    text = f"""
    @group(0) @binding(0) var<storage> x: array<u32, {1 << 24}>;
    var<workgroup> a: u32;
    var<workgroup> b: array<u32, {(megabytes << 18) - 4}>;
    @compute @workgroup_size(1) fn main() {{ b[0] = x[0] + a; }}"""
    module = check(Source(text))
    assert [warning.code for warning in module.warnings] == ["workgroup-storage"] * fails
    if fails:
        with pytest.raises(WgslError, match="'main' uses 2097152 bytes of workgroup memory") as error:
            module.pipeline()
        (note,) = error.value.diagnostics[0].notes
        assert note.message == f"'b' takes {4 * ((megabytes << 18) - 4)} bytes"
    else:
        assert module.pipeline().workgroup_bytes == 1 << 20


def test_each_array_may_have_a_size_of_its_own() -> None:
    text = """
    override m: u32; override n: u32; override unused: u32;
    var<workgroup> a: array<u32, m>; var<workgroup> b: array<u32, n * 2u>; var<workgroup> c: array<u32, unused>;
    @compute @workgroup_size(1) fn main() { a[0] = b[0]; }"""
    made = pipeline(text, m=3, n=5)
    assert by_name(made) == {"m": 3, "n": 5}
    assert sorted(str(type_) for type_ in made.store_types.values()) == ["array<u32, 10>", "array<u32, 3>"]
    for missing in "mn":
        with pytest.raises(WgslError, match=f"override '{missing}' has no value"):
            pipeline(text, **{name: 1 for name in "mn" if name != missing})


def test_an_unknown_limit() -> None:
    module = check(Source("@compute @workgroup_size(1) fn main() {}"))
    with pytest.raises(WgslError, match="'maxWorkgroupSize' is not a limit"):
        module.pipeline(limits={"maxWorkgroupSize": 1})


@pytest.mark.parametrize(
    ("text", "entry", "message"),
    [
        ("fn f() {}", None, "no compute entry point"),
        ("fn f() {}", "f", "'f' is no entry point"),
        ("@compute @workgroup_size(1) fn matmul() {}", "matmull", "did you mean 'matmul'?"),
        ("@compute @workgroup_size(1) fn a() {} @compute @workgroup_size(1) fn b() {}", None, "'a', 'b'"),
        ("@fragment fn a() {}", "a", "is a fragment entry point"),
    ],
)
def test_the_entry_point(text: str, entry: str | None, message: str) -> None:
    with pytest.raises(WgslError) as error:
        check(Source(text)).pipeline(entry)
    assert message in str(error.value)
