"""Integers, ranges, lanes, places and grids of the command line: what each text means, and what is refused."""

import numpy as np
import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests import inputs

INT = lambda text: inputs.parse_int("--set", text)  # noqa: E731
INTS = lambda text: inputs.parse_ints("--x", text)  # noqa: E731
RANGE = lambda text: inputs.parse_range("--pads", text)  # noqa: E731

LANES, PLACE, GRID = inputs.parse_lanes, inputs.parse_place, inputs.parse_grid

# A parser, a text and its value.
VALUES = [
    (INT, "0", 0), (INT, "7", 7), (INT, " 12 ", 12),
    (INTS, "1", (1,)), (INTS, "12,8,1", (12, 8, 1)), (INTS, "3, 4", (3, 4)),
    (LANES, "0", (0,)), (LANES, "7", (7,)), (LANES, "0-3,7", (0, 1, 2, 3, 7)), (LANES, "5-5", (5,)),
    (LANES, "4-6", (4, 5, 6)), (LANES, " 2 , 8-9 ", (2, 8, 9)), (LANES, "3,1", (3, 1)),
    (LANES, "65535", (65_535,)), (LANES, "65534-65535", (65_534, 65_535)),
    (PLACE, "2", (2, 0, 0)), (PLACE, "2,1", (2, 1, 0)), (PLACE, "2,1,4", (2, 1, 4)),
    (GRID, "12", (12, 1, 1)), (GRID, "12,8", (12, 8, 1)), (GRID, "1,2,3", (1, 2, 3)),
    (RANGE, "0..33", (0, 33)), (RANGE, "5", (5, 5)), (RANGE, "0", (0, 0)), (RANGE, "4..4", (4, 4)),
]  # fmt: skip
REFUSED = [
    (INT, "-1", "--set: `-1` holds a number below 0"),
    (INT, "1,2", "--set: `1,2` must be one integer"),
    (INT, "a", "--set: `a` is not a list of integers like 12,8,1"),
    (INTS, "0", "--x: `0` holds a number below 1"),
    (INTS, "4,0,4", "--x: `4,0,4` holds a number below 1"),
    (INTS, "", "--x: `` is not a list of integers like 12,8,1"),
    (INTS, "1.5", "--x: `1.5` is not a list of integers like 12,8,1"),
    *((inputs.parse_lanes, text, f"--lanes: `{text}` is not a list of lanes like 0-3,7")
      for text in ("", "a", "-1", "3-", "4-3", "65536", "0-65536", "1,,2", "1-2-3", "1.5", "0-3,9-8", "1234567890",
                   "1-1234567890")),
    *((inputs.parse_place, text, f"--workgroup: `{text}` is not a place in the grid like 2,1,0")
      for text in ("", "a", "1,2,3,4", "1,x")),
    (inputs.parse_grid, "1,2,3,4", "--grid: `1,2,3,4` has 4 sizes, a grid has at most three"),
    (inputs.parse_grid, "1,0", "--grid: `1,0` holds a number below 1"),
    *((RANGE, text, f"--pads {text}: write FROM..TO, as in 0..33") for text in ("", "a", "1..", "..2", "1..a", "1.5")),
    *((RANGE, text, f"--pads {text}: write the smaller number, 0 or more, first") for text in ("-1", "3..2", "-2..4")),
]  # fmt: skip


@pytest.mark.parametrize(("parse", "text", "value"), VALUES, ids=lambda each: str(each)[:12])
def test_numbers_of_the_command_line(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(("parse", "text", "message"), REFUSED, ids=lambda each: str(each)[:12])
def test_numbers_that_are_refused(parse, text, message):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        ("u8", (0, 255), (-1, 256)),
        ("i8", (-128, 127), (-129, 128)),
        ("i16", (-32_768, 32_767), (-32_769, 32_768)),
        ("u16", (0, 65_535, 3.0), (-1, 65_536, 2.5)),
        ("i32", (-(2**31), 2**31 - 1), (-(2**31) - 1, 2**31)),
        ("u32", (0, 2**32 - 1), (-1, 2**32, 0.5)),
        ("f16", (65_504.0, -65_504, float("inf"), float("nan"), 0.1), (65_505, -65_505, 1e300)),
        ("f32", (3.4028234e38, -(2**127), float("-inf")), (3.5e38, -3.5e38, 2**128, 10**400)),
    ],
)
def test_numbers_must_be_of_their_type(dtype, good, bad):
    target = np.dtype(inputs.DTYPES[dtype])
    for value in good:
        made = inputs.numbers("x", [1, value], target)
        assert made.dtype == target
        np.testing.assert_array_equal(made, np.array([1.0, value], np.float64).astype(target))
    for value in bad:
        with pytest.raises(UsageError, match=rf"binding x is given .*, which is no {target.name}"):
            inputs.numbers("x", [1, value], target)


def test_listed_numbers():
    assert inputs.parse_bind("x=u32:0x10,3")[1].tolist() == [16, 3]
    assert inputs.parse_bind("x=i32:-1,2")[1].tolist() == [-1, 2]
    assert inputs.parse_bind("x=f32:-1.5,2")[1].tolist() == [-1.5, 2]
    assert inputs.parse_bind("x=f16:0.5")[1].dtype == np.float16
    with pytest.raises(UsageError, match=r"--bind x: `1,a` is not a list of f32 numbers"):
        inputs.parse_bind("x=f32:1,a")


@pytest.mark.parametrize(
    ("data", "dtype", "numbers"),
    [
        (np.arange(8, dtype=np.uint8), "u32", [0x03020100, 0x07060504]),
        (np.arange(6, dtype=np.uint8), "u32", [0, 1, 2, 3, 4, 5]),
        (np.arange(6, dtype=np.uint8), "u16", [0x0100, 0x0302, 0x0504]),
        (np.arange(4, dtype=np.int8), "u32", [0, 1, 2, 3]),
    ],
)
def test_bytes_as_numbers(data, dtype, numbers):
    assert inputs.as_numbers(data, np.dtype(inputs.DTYPES[dtype])).tolist() == numbers


@pytest.mark.parametrize("text", ["", "X", "X=", "=", "=u32:1", "u32:1"])
def test_a_binding_is_a_name_and_its_contents(text):
    with pytest.raises(UsageError) as caught:
        inputs.parse_bind(text)
    assert str(caught.value) == f"--bind {text}: write NAME=FILE.npy, NAME=u32:1,2,3 or NAME=normal:f32:512,768"


@pytest.mark.parametrize("file", ["u32", "normal", "a:b.npy", "f64:1"])
def test_what_is_no_generator_and_no_type_is_a_file(file):
    with pytest.raises(UsageError, match=rf"^{file}: there is no such file"):
        inputs.parse_bind(f"X={file}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X=normal:f64:3", "f64 is no type; there are f32, f16, i32, u32, i16, u16, i8, u8"),
        ("X=normal:", "nothing is no type; there are f32, f16, i32, u32, i16, u16, i8, u8"),
    ],
)
def test_a_generator_makes_known_types(text, message):
    with pytest.raises(UsageError) as caught:
        inputs.parse_bind(text)
    assert str(caught.value) == f"--bind {text}: {message}"


@pytest.mark.parametrize(
    ("said", "quoted"),
    [("it is bad", "it is bad"), ("it is bad.", "it is bad"), ("no 1.5 here. Pass allow_pickle=True.", "no 1.5 here")],
)
def test_a_file_that_numpy_refuses_is_reported_in_its_first_sentence(monkeypatch, tmp_path, said, quoted):
    def refuse(path, allow_pickle):
        raise ValueError(said)

    (tmp_path / "x.npy").touch()
    monkeypatch.setattr(np, "load", refuse)
    with pytest.raises(UsageError) as caught:
        inputs.load(tmp_path / "x.npy")
    assert str(caught.value) == f"{tmp_path / 'x.npy'}: is not a whole .npy file of plain numbers ({quoted})"
