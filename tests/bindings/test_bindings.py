"""What a kernel may be given, what comes back, and what is said about everything else."""

import re

import numpy as np
import pytest

import bankshot
from bankshot.sim.bindings.binding import Bits

SOURCE = """
struct Params { n: u32, factor: f32 }
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(1) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;
var<workgroup> tile: array<f32, 4>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    tile[i] = input[i];
    if i < params.n { output[i] = tile[i] * params.factor; }
}
"""
FOUR = np.arange(4, dtype=np.float32)


def given(**changes):
    """Bindings that fit, with some changed, or left out where they are None."""
    every = {"input": FOUR, "output": np.zeros(4, np.float32), "params": (3, 2.0), **changes}
    return {name: value for name, value in every.items() if value is not None}


def run(bindings=None, source=SOURCE, **options):
    return bankshot.simulate(source, bindings=given() if bindings is None else bindings, **{"grid": 1, **options})


def test_immediate_data_is_given_by_name():
    source = """
    requires immediate_address_space;
    var<immediate> scale: f32;
    @group(0) @binding(0) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[i] = scale * f32(i); }
    """
    assert run({"scale": 0.5, "y": np.zeros(4, np.float32)}, source).outputs["y"].tolist() == [0, 0.5, 1, 1.5]
    with pytest.raises(bankshot.WgslError, match="nothing is bound to scale, which is immediate, f32"):
        run({"y": np.zeros(4, np.float32)}, source)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n": 3, "factor": np.complex64(2)}, "np.complex64(2+0j) in params is not a value of f32"),
        ({"n": 3, "factor": 2j}, "2j in params is not a value of f32"),
        ({"n": 3, "scale": 2.0}, "params is given n, scale, and has n, factor"),
    ],
)
def test_values_and_members_that_do_not_fit_are_named(params, message):
    with pytest.raises(bankshot.WgslError, match=re.escape(message)):
        run(given(params=params))


def test_a_vector_has_no_members():
    with pytest.raises(bankshot.WgslError, match=re.escape("params is given x, and has no members, but vec2<f32>")):
        run(given(params={"x": 1.0}), SOURCE.replace("params: Params", "params: vec2f").replace("params.n", "3u")
            .replace("params.factor", "params.y"))  # fmt: skip


def holds(type_, value, access="uniform"):
    """What a shader reads of a binding of this type, word by word."""
    source = f"""
    enable f16;
    struct S {{ a: u32, b: vec3<f32>, c: f32 }}
    struct Nested {{ first: S, pair: array<vec4<u32>, 2>, last: vec2<f16> }}
    @group(0) @binding(0) var<{access}> x: {type_};
    @group(0) @binding(1) var<storage, read_write> y: {type_};
    @compute @workgroup_size(1) fn main() {{ y = x; }}
    """
    room = np.zeros(256, np.uint8)
    return bankshot.simulate(source, grid=1, bindings={"x": value, "y": room}).outputs["y"]


# ---- what is refused ---------------------------------------------------------------------------------

REFUSED = {
    "missing": (given(output=None), ("nothing is bound to output", "@group(1) @binding(2)", "array<f32>")),
    "unknown": (given(outpt=FOUR), ("'outpt'", "did you mean output?")),
    "unknown, unlike any": (given(zzz=FOUR), ("'zzz'", "input, output, params")),
    "not a binding": (given(tile=FOUR), ("no binding 'tile'",)),
    "unknown place": ({**given(), (3, 0): FOUR}, ("(3, 0)",)),
    "twice": ({**given(), (0, 0): FOUR}, ("input", "(0, 0)")),
    "empty": (given(input=FOUR[:0]), ("input has 0 bytes", "at least 4")),
    "too small": (given(params=b"1234"), ("params has 4 bytes", "needs 8")),
    "odd bytes": (given(input=b"12345"), ("input has 5 bytes", "multiple of 4")),
    "double": (given(input=FOUR.astype(np.float64)), ("input is float64", "astype(np.float32)")),
    "integers": (given(input=FOUR.astype(np.int32)), ("input is int32", "float32")),
    "truth": (given(input=FOUR > 1), ("input is bool",)),
    "half": (given(input=FOUR.astype(np.float16)), ("input is float16",)),
    "objects": (given(input=np.array([None] * 4)), ("input", "objects")),
    "big-endian": (given(input=FOUR.astype(">f4")), ("input", "big-endian")),
    "floats for a mixed struct": (given(params=np.array([3, 2], np.float32)), ("params", "f32 and u32", "structured")),
    "number for a runtime-sized array": (given(input=1), ("input is a int", "NumPy array")),
    "too few values": (given(params=(3,)), ("params has 1 values", "needs 2")),
    "too many values": (given(params=(3, 1, 2)), ("params has 3 values",)),
    "negative": (given(params=(-1, 1)), ("-1 in params", "u32")),
    "fraction": (given(params=(2.5, 1)), ("2.5 in params", "u32")),
    "too large": (given(params=(1 << 32, 1)), ("4294967296 in params", "u32")),
    "too large for f32": (given(params=(1, 1e40)), ("1e+40 in params", "f32")),
    "too large for any float": (given(params=(1, 10**400)), ("in params", "f32")),
    "not a number": (given(params=("3", 1)), ("'3' in params", "u32")),
    "nan as an integer": (given(params=(float("nan"), 1)), ("nan in params", "u32")),
    "wrong member": (given(params={"n": 1, "faktor": 2}), ("params", "faktor", "n, factor")),
    "missing member": (given(params={"n": 1}), ("params", "n, factor")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_bindings_are_named(name):
    bindings, parts = REFUSED[name]
    with pytest.raises(bankshot.WgslError) as caught:
        run(bindings)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(("type_", "values"), [("u32", (0, 2**32 - 1)), ("i32", (-(2**31), 2**31 - 1))])
def test_the_least_and_the_greatest_integer_of_a_type_fit(type_, values):
    source = f"""
    struct Params {{ least: {type_}, greatest: {type_} }}
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage, read_write> y: Params;
    @compute @workgroup_size(1) fn main() {{ y = params; }}
    """
    y = np.zeros(2, np.dtype(np.uint32 if type_ == "u32" else np.int32))
    assert run({"params": values, "y": y}, source).outputs["y"].tolist() == list(values)


@pytest.mark.parametrize("grid", [0, (4, 0), -1, (1, -2, 1), (1, 1, 1, 1), (), 2.0, "12", None])
def test_wrong_grids(grid):
    with pytest.raises(bankshot.WgslError) as caught:
        run(grid=grid)
    assert repr(grid) in str(caught.value)


def test_a_grid_past_the_limit_says_so():
    with pytest.raises(bankshot.WgslError, match="65,536 is over"):
        run(grid=(1, 65536))


@pytest.mark.parametrize(
    ("option", "value", "parts"),
    [
        ("probes", "bank", ("'bank'", "banks")),
        ("probes", ["lanes", "flopps"], ("'flopps'", "flops")),
        ("device", "nvidai", ("nvidai", "nvidia")),
        ("schedule", "random", ("'random'", "lockstep")),
        ("out_of_bounds", "crash", ("'crash'", "clamp")),
        ("entry", "mian", ("mian", "main")),
        ("overrides", {"wg": 3}, ("wg",)),
    ],
)
def test_wrong_options_are_named(option, value, parts):
    with pytest.raises(bankshot.WgslError) as caught:
        run(**{option: value})
    for part in parts:
        assert part in str(caught.value)


# ---- what comes back ---------------------------------------------------------------------------------


def test_outputs_have_the_dtype_and_shape_that_went_in():
    done = run(given(output=np.full((2, 2, 1), 9, np.float32)))
    assert done.outputs["output"].dtype == np.float32
    assert done.outputs["output"].tolist() == [[[0], [2]], [[4], [9]]]
    assert list(done.outputs) == ["output"]


def test_bytes_come_back_as_bytes():
    assert run(given(output=bytes(16))).outputs["output"] == np.array([0, 2, 4, 0], np.float32).tobytes()


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_what_is_like_bytes_will_do(kind):
    assert run(given(input=kind(FOUR.tobytes()))).outputs["output"].tolist() == [0, 2, 4, 0]


def test_outputs_are_keyed_as_the_bindings_were():
    done = run({(0, 0): FOUR, (1, 2): np.zeros(4, np.float32), "params": (4, 1)})
    assert list(done.outputs) == [(1, 2)]
    assert done.outputs[1, 2].tolist() == [0, 1, 2, 3]


def test_inputs_are_untouched():
    bindings = given()
    before = {name: np.array(value) for name, value in bindings.items()}
    outputs = run(bindings).outputs
    assert all((np.array(bindings[name]) == before[name]).all() for name in bindings)
    assert outputs["output"] is not bindings["output"]


@pytest.mark.parametrize("workgroups", ["all", "classes"])
def test_a_run_knows_what_it_was_given_whatever_becomes_of_it(workgroups):
    source = """
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) { y[id.x] = y[id.x] + sqrt(x[id.x]); }
    """
    x, y = np.full(8, 4, np.float32), np.ones(8, np.float32)
    for probes in ("counters", "all"):
        done = bankshot.simulate(source, grid=8, bindings={"x": x, "y": y}, probes=probes, workgroups=workgroups)
        x[:], y[:] = 9, 5
        assert done.outputs["y"].tolist() == [3] * 8
        assert max(done.bounds["y"]) < 1e-4
        assert str(done.writer("y", 2)).startswith("workgroup (2, 0, 0)")
        x[:], y[:] = 4, 1


def test_an_array_need_not_be_contiguous():
    wide = np.arange(8, dtype=np.float32)
    assert run(given(input=wide[::2])).outputs["output"].tolist() == [0, 4, 8, 0]


def test_bindings_of_other_entry_points_may_be_given():
    source = SOURCE + "@compute @workgroup_size(1) fn other() { output[0] = 1.0; }"
    assert run(source=source, entry="other").outputs["output"].tolist() == [1, 0, 0, 0]


def test_a_structured_dtype_goes_in_and_out():
    point = np.dtype([("position", np.float32, 3), ("kind", np.uint32)])
    points = np.zeros(3, point)
    points["position"][:, 2] = [1, 2, 3]
    source = """
    struct Point { position: vec3<f32>, kind: u32 }
    @group(0) @binding(0) var<storage, read_write> points: array<Point>;
    @compute @workgroup_size(3) fn main(@builtin(local_invocation_index) i: u32) {
        points[i].kind = u32(points[i].position.z) * 10u;
    }
    """
    after = bankshot.simulate(source, grid=1, bindings={"points": points}).outputs["points"]
    assert after.dtype == point
    assert after["kind"].tolist() == [10, 20, 30]
    assert after["position"].tolist() == points["position"].tolist()


def test_an_atomic_scalar_comes_back_as_a_word():
    source = """
    @group(0) @binding(0) var<storage, read_write> count: atomic<i32>;
    @compute @workgroup_size(40) fn main() { atomicSub(&count, 1); }
    """
    after = bankshot.simulate(source, grid=2, bindings={"count": 5}).outputs["count"]
    assert (after.dtype, after.tolist()) == (np.int32, [-75])


# ---- scalars and sequences ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params", [(3, 2.0), [3, 2], {"n": 3, "factor": 2}, {"factor": 2, "n": 3}, (np.uint8(3), np.float64(2))]
)
def test_ways_to_give_a_struct(params):
    assert run(given(params=params)).outputs["output"].tolist() == [0, 2, 4, 0]


@pytest.mark.parametrize(
    ("type_", "value", "words"),
    [
        ("u32", 7, [7]),
        ("i32", -2, [0xFFFFFFFE]),
        ("f32", 1, [0x3F800000]),
        ("f32", float("inf"), [0x7F800000]),
        ("f32", True, [0x3F800000]),
        ("vec4<u32>", (1, 2, 3, 4), [1, 2, 3, 4]),
        ("vec4<u32>", ((1, 2), [3, 4]), [1, 2, 3, 4]),
        ("vec4<u32>", (np.array([1, 2, 3]), 4), [1, 2, 3, 4]),
        ("vec4<u32>", np.array([1, 2, 3, 4], np.int32), [1, 2, 3, 4]),
        ("vec2<f16>", (1, -2), [0xC0003C00]),
        ("mat2x3<f32>", range(6), None),
    ],
)
def test_values_are_laid_out_as_words(type_, value, words):
    if words is None:
        value = list(value)
        words = [0, 0x3F800000, 0x40000000, 0, 0x40400000, 0x40800000, 0x40A00000, 0]
    assert holds(type_, value).view(np.uint32)[: len(words)].tolist() == words


@pytest.mark.parametrize("b", [(2, 3, 4), [2.0, 3, 4], np.array([2, 3, 4])])
def test_a_vec3_in_a_struct_stands_on_16_bytes(b):
    after = holds("S", {"c": 5, "b": b, "a": 1})
    assert after.view(np.uint32)[0] == 1
    assert after.view(np.float32)[4:8].tolist() == [2, 3, 4, 5]


def test_nested_values():
    nested = {"last": (1, 2), "first": {"a": 1, "b": (2, 3, 4), "c": 5}, "pair": [(6, 7, 8, 9), (10, 11, 12, 13)]}
    after = holds("Nested", nested)
    assert after.view(np.float32)[4:8].tolist() == [2, 3, 4, 5]
    assert after.view(np.uint32)[8:16].tolist() == [6, 7, 8, 9, 10, 11, 12, 13]
    assert after.view(np.float16)[32:34].tolist() == [1, 2]


def test_f16_arrays():
    source = """
    enable f16;
    @group(0) @binding(0) var<storage, read_write> x: array<f16>;
    @compute @workgroup_size(6) fn main(@builtin(local_invocation_index) i: u32) { x[i] *= 2; }
    """
    halves = np.array([0.5, 1, -1.5, 1e-7, 40000, 3], np.float16)
    after = bankshot.simulate(source, grid=1, bindings={"x": halves}).outputs["x"]
    np.testing.assert_array_equal(after, [1, 2, -3, 2 * float(halves[3]), np.inf, 6])
    with pytest.raises(bankshot.WgslError, match="6 bytes, which is not a multiple of 4"):
        bankshot.simulate(source, grid=1, bindings={"x": halves[:3]})


def test_floats_go_in_as_bits_of_words_where_that_is_asked_for():
    source = """
    @group(0) @binding(0) var<storage, read_write> x: array<atomic<u32>>;
    @compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) { atomicAdd(&x[i], 0x800000); }
    """
    floats = np.array([0.75, -3], np.float32)
    after = bankshot.simulate(source, grid=1, bindings={"x": floats.view(Bits)}).outputs["x"]
    assert (after.dtype, after.tolist()) == (np.float32, [1.5, -6])  # one more in the exponent
    for refused in (floats, np.ones(4, np.float16).view(Bits)):
        with pytest.raises(bankshot.WgslError, match=r"x is float.., and array<atomic<u32>> holds uint32"):
            bankshot.simulate(source, grid=1, bindings={"x": refused})


# ---- modules -----------------------------------------------------------------------------------------


def test_a_module_is_run_again_with_other_overrides():
    module = bankshot.check("""
    override sign: f32;
    @group(0) @binding(0) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(1) fn main() { y[0] = sign; }
    """)
    signs = [
        str(
            bankshot.simulate(module, grid=1, bindings={"y": np.ones(1, np.float32)}, overrides={"sign": s}).outputs[
                "y"
            ][0]
        )
        for s in (0.0, -0.0, 1.0)
    ]
    assert signs == ["0.0", "-0.0", "1.0"]
