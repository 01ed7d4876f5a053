"""Tables of a manifest, taken key by key, and the numbers of the command line: the place and words of each mistake."""

import numpy as np
import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests import inputs, strict_toml
from bankshot.oracle.manifests.strict_toml import Table, place_of, shown

TEXT = """\
top = 1
"quoted" = 2
[kernel]
source = "k.wgsl"
names = ["a", "b"]
flag = true
  indented = 1.5
inline = { inner = 3 }
[kernel.deep]
key = 4
[[sweep]]
N = 1
[[sweep]]
M = 2
[ bind.x ]
init = "ones"
"""


@pytest.fixture
def whole(tmp_path):
    path = tmp_path / "k.toml"
    path.write_text(TEXT)
    return Table.load(path)


def message(action):
    with pytest.raises(UsageError) as caught:
        action()
    return str(caught.value).rpartition("/k.toml")[2]


TAKEN = [
    # key, types, items; the value, or the mistake
    ("source", (str,), (), "k.wgsl"),
    ("names", (list,), (str,), ["a", "b"]),
    ("flag", (bool,), (), True),
    ("indented", (int, float), (), 1.5),
    ("source", (int,), (), ":4: `source` must be an integer, not 'k.wgsl'"),
    ("flag", (int,), (), ":6: `flag` must be an integer, not True"),
    ("flag", (int, float), (), ":6: `flag` must be an integer or a number, not True"),
    ("indented", (int,), (), ":7: `indented` must be an integer, not 1.5"),
    ("names", (str, dict), (), ":5: `names` must be a string or a table, not ['a', 'b']"),
    ("names", (list,), (int,), ":5: `names` holds 'a', which is not an integer"),
    ("inline", (dict,), (str, bool), ":8: `inline` holds 3, which is not a string or true or false"),
    ("sourc", (str,), (), ":3: [kernel] lacks `sourc`; is `source` meant to be it?"),
    ("zzz", (str,), (), ":3: [kernel] lacks `zzz`"),
]


@pytest.mark.parametrize(("key", "types", "of", "expected"), TAKEN)
def test_a_value_is_taken_with_its_type(whole, key, types, of, expected):
    kernel = whole.table("kernel")
    if isinstance(expected, str) and expected.startswith(":"):
        assert message(lambda: kernel.take(key, *types, of=of)) == expected
        return
    assert kernel.take(key, *types, of=of) == expected
    assert key not in kernel.data
    assert kernel.take(key, *types, default="none") == "none"


def test_what_is_left_is_unknown(whole):
    whole.take("top", int)
    assert message(lambda: whole.done()) == ":2: the file has an unknown key `quoted`"
    whole.take("quoted", int)
    assert message(lambda: whole.done(["kernels", "bind"])) == (
        ":3: the file has an unknown key `kernel`; did you mean `kernels`?"
    )
    assert message(lambda: whole.done(["zzz", "yyy"])) == ":3: the file has an unknown key `kernel`; known are zzz, yyy"


def test_lines_of_tables_within_tables(whole):
    kernel = whole.table("kernel")
    deep = kernel.table("deep")
    assert (deep.header, deep.data) == ("[kernel.deep]", {"key": 4})
    assert message(lambda: deep.take("key", str)) == ":10: `key` must be a string, not 4"
    assert message(lambda: deep.take("none", str)) == ":9: [kernel.deep] lacks `none`"
    inline = kernel.table("inline")
    assert message(lambda: inline.take("inner", str)) == ":8: `inner` must be a string, not 3"
    assert kernel.table("missing").data == {}
    assert message(lambda: kernel.table("missing", required=True)) == ":3: [kernel] lacks `missing`"
    bind = whole.table("bind").table("x")
    assert message(lambda: bind.take("init", int)).endswith("`init` must be an integer, not 'ones'")


def test_lines_of_arrays_of_tables(whole):
    first, second = whole.tables("sweep")
    assert (first.header, first.data, second.data) == ("[[sweep]]", {"N": 1}, {"M": 2})
    assert message(lambda: second.take("M", str)) == ":14: `M` must be a string, not 2"
    assert message(lambda: second.take("K", str)).startswith(":11: [[sweep]] lacks `K`")
    assert whole.tables("none") == []
    kernel = whole.table("kernel")
    assert message(lambda: kernel.tables("names")) == ":5: `names` must be written as [[names]] tables"


@pytest.mark.parametrize(
    ("key", "text", "wrong"),
    [
        ("source", "a\\u0007b", "`source` holds control characters: 'a\\x07b'"),
        ("source", "x" * 2_001, "`source` has 2,001 characters, and at most 2,000 are allowed"),
        ("source", "x" * 2_000, None),
        ("preprocess", "x" * 2_001, None),
        ("preprocess", "a\\nb", None),
    ],
)
def test_texts_are_short_and_plain(tmp_path, key, text, wrong):
    path = tmp_path / "k.toml"
    for written in (f'"{text}"', f'["a", "{text}"]'):
        path.write_text(f"{key} = {written}\n")
        table = Table.load(path)
        if wrong is None:
            assert table.take(key, str, list)
        else:
            assert message(lambda table=table: table.take(key, str, list)) == f":1: {wrong}"


@pytest.mark.parametrize("key", ["x" * 2_001, "a\\u001bb"])
def test_names_are_short_and_plain(tmp_path, key):
    path = tmp_path / "k.toml"
    path.write_text(f'[kernel]\n[kernel.inner]\n"{key}" = [1]\n')
    assert message(lambda: Table.load(path)).startswith(": a name must be short and without control characters, and '")
    path.write_text(f'"{"x" * 2_000}" = 1\n')
    assert Table.load(path).data


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3"), ("a" * 58, f"'{'a' * 58}'"), ("a" * 59, f"'{'a' * 58}…"), ([1, "b"], "[1, 'b']")],
)
def test_values_are_shown_in_short(value, text):
    assert shown(value) == text
    assert len(shown(value)) <= 60


def test_the_place_of_a_value(tmp_path):
    path = tmp_path / "k.toml"
    path.write_text('other = "b"\nkeys = "a"\nkey = "ab"\n"key" = \'a\'\nkey = "a"\n')
    assert place_of(path, "key", "a") == f"{path}:4:9"
    assert place_of(path, "key", "ab") == f"{path}:3:7"
    assert place_of(path, "key", "none") == place_of(path, "none", "a") == str(path)
    assert place_of(tmp_path / "none", "key", "a") == str(tmp_path / "none")
    assert strict_toml.LONGEST == 2_000


# ---- numbers of the command line -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (inputs.parse_lanes, "0-3,7", (0, 1, 2, 3, 7)),
        (inputs.parse_lanes, "5, 2-2", (5, 2)),
        (inputs.parse_place, "2", (2, 0, 0)),
        (inputs.parse_place, "2,1", (2, 1, 0)),
        (inputs.parse_place, "2,1,3", (2, 1, 3)),
        (inputs.parse_grid, "12", (12, 1, 1)),
        (inputs.parse_grid, "12,8,2", (12, 8, 2)),
        (lambda text: inputs.parse_int("--set", text), "0", 0),
        (lambda text: inputs.parse_range("--values", text), "0..33", (0, 33)),
        (lambda text: inputs.parse_range("--values", text), "5", (5, 5)),
        (lambda text: inputs.parse_range("--values", text), "5..5", (5, 5)),
    ],
)
def test_numbers_by_hand(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((inputs.parse_lanes, text) for text in ("", "3-1", "a", "1-2-3", "-1", "1,", f"{inputs.MOST_LANES}")),
        *((inputs.parse_place, text) for text in ("", "a", "1,2,3,4")),
        *((inputs.parse_grid, text) for text in ("", "0", "1,2,3,4", "-1", "a")),
        *((lambda text: inputs.parse_int("--set", text), text) for text in ("-1", "1,2", "a", "")),
        *((lambda text: inputs.parse_range("--values", text), text) for text in ("3..1", "-1..2", "..", "a", "1..b")),
    ],
)
def test_numbers_that_are_refused(parse, text):
    with pytest.raises(UsageError):
        parse(text)


def test_the_largest_lane():
    assert inputs.parse_lanes(f"{inputs.MOST_LANES - 1}") == (inputs.MOST_LANES - 1,)


@pytest.mark.parametrize(
    ("dtype", "value", "fits"),
    [
        (np.uint8, 255, True), (np.uint8, 256, False), (np.uint8, -1, False), (np.uint8, 2.0, True),
        (np.uint8, 2.5, False), (np.int8, -128, True), (np.int8, -129, False), (np.float16, 65_504, True),
        (np.float16, 65_505, False),
        (np.float16, float("inf"), True), (np.float16, float("nan"), True), (np.float32, -3.4e38, True),
        (np.float32, 1e39, False), (np.float32, 10**400, False),
    ],
)  # fmt: skip
def test_numbers_fit_their_type(dtype, value, fits):
    if fits:
        np.testing.assert_equal(inputs.numbers("x", [value], np.dtype(dtype)), np.array([value], dtype))
        return
    with pytest.raises(UsageError, match=f"^binding x is given .*, which is no {np.dtype(dtype).name}$"):
        inputs.numbers("x", [1, value], np.dtype(dtype))


@pytest.mark.parametrize(
    ("kind", "dtype", "expected"),
    [
        ("zeros", "i32", [0, 0, 0]), ("ones", "f16", [1, 1, 1]), ("arange", "u8", [0, 1, 2]),
        ("unwritten", "u16", [65_535] * 3), ("unwritten", "i8", [-1] * 3), ("unwritten", "f32", [np.nan] * 3),
    ],
)  # fmt: skip
def test_generators_by_hand(kind, dtype, expected):
    made = inputs.generate(kind, "x", (3, 1), dtype)
    assert (made.shape, made.dtype.name) == ((3, 1), np.dtype(inputs.DTYPES[dtype]).name)
    np.testing.assert_equal(made.ravel(), np.array(expected, made.dtype))


def test_random_generators_fill_their_ranges():
    floats, whole = inputs.generate("uniform", "x", (9_999,), "f32"), inputs.generate("uniform", "x", (9_999,), "i8")
    assert -1 <= floats.min() < -0.99
    assert 0.99 < floats.max() <= 1
    assert (whole.min(), whole.max()) == (-128, 127)
    normal = inputs.generate("normal", "x", (9_999,), "f32")
    assert abs(normal.mean()) < 0.05
    assert abs(normal.std() - 1) < 0.05


@pytest.mark.parametrize(
    ("kind", "shape", "dtype", "words"),
    [
        ("zeros", (3, 0), "f32", r"would have the shape \[3, 0\], and each size must be at least 1"),
        ("zeros", (1,) * (inputs.MOST_AXES + 1), "f32", f"has {inputs.MOST_AXES + 1} sizes"),
        ("zeros", (inputs.MOST_BYTES // 4 + 1,), "f32", "no binding holds more than"),
        ("q4_k", (256,), "u32", r"q4_k packs a matrix of two sizes into u32, not u32\[256\]"),
        ("q4_k", (2, 256), "f32", r"q4_k packs a matrix of two sizes into u32, not f32\[2, 256\]"),
    ],
)
def test_arrays_that_no_generator_makes(kind, shape, dtype, words):
    with pytest.raises(UsageError, match=words):
        inputs.generate(kind, "x", shape, dtype)


def test_raw_bytes_are_numbers_where_they_divide():
    raw = np.arange(8, dtype=np.uint8)
    assert inputs.as_numbers(raw, np.dtype(np.uint32)).tolist() == [0x03020100, 0x07060504]
    assert inputs.as_numbers(raw[:6], np.dtype(np.uint32)).dtype == np.uint8
    assert inputs.as_numbers(raw.astype(np.uint16), np.dtype(np.uint32)).dtype == np.uint16
