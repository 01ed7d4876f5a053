"""Arrays that manifests generate, and bindings of the command line."""

import zlib

import numpy as np
import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests import inputs


@pytest.mark.parametrize("kind", inputs.GENERATORS)
@pytest.mark.parametrize("dtype", inputs.DTYPES)
def test_generators_give_the_same_array_each_time(kind, dtype):
    first, again = (inputs.generate(kind, "A", (3, 5), dtype) for _ in range(2))
    assert (first.shape, first.dtype) == ((3, 5), inputs.DTYPES[dtype])
    assert first.tobytes() == again.tobytes()


def test_generators_depend_on_name_and_seed():
    arrays = [inputs.generate("normal", name, (8,), "f32", seed) for name, seed in (("A", 0), ("B", 0), ("A", 1))]
    assert len({array.tobytes() for array in arrays}) == 3


def test_unwritten_elements_show():
    assert np.isnan(inputs.generate("unwritten", "Y", (2, 2), "f32")).all()
    assert (inputs.generate("unwritten", "Y", (2, 2), "u32") == 0xFFFFFFFF).all()


@pytest.mark.parametrize("kind", ["normal", "uniform", "arange", "zeros", "ones"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "u16", "u8"])
def test_a_large_array_equals_a_single_draw(kind, dtype):
    shape, target = (3, 50_001), np.dtype(inputs.DTYPES[dtype])
    rng = np.random.default_rng([7, zlib.crc32(b"X")])
    limits = np.iinfo(target) if target.kind != "f" else None
    at_once = {
        "normal": lambda: rng.standard_normal(shape),
        "uniform": lambda: (
            rng.uniform(-1.0, 1.0, shape)
            if limits is None
            else rng.integers(limits.min, limits.max, shape, target, endpoint=True)
        ),
        "arange": lambda: np.arange(150_003).reshape(shape),
        "zeros": lambda: np.zeros(shape),
        "ones": lambda: np.ones(shape),
    }
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_array_equal(inputs.generate(kind, "X", shape, dtype, 7), at_once[kind]().astype(target))


def test_command_line_bindings(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(2, dtype=np.float32))
    assert inputs.parse_bind(f"X={tmp_path / 'x.npy'}")[1].tolist() == [[1, 0], [0, 1]]
    name, array = inputs.parse_bind("dims=u32:512,768,0")
    assert (name, array.dtype, array.tolist()) == ("dims", np.uint32, [512, 768, 0])
    assert inputs.parse_bind("X=ones:f16:2,3")[1].tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X", "write NAME=FILE.npy"),
        ("X=none.npy", "none.npy: there is no such file"),
        ("X=u32:1,-2", "binding X is given -2, which is no uint32"),
        ("X=u32:1,x", "not a list of u32 numbers"),
        ("X=normal:f64:3", "f64 is no type"),
        ("X=normal:f32:0", "a number below 1"),
        ("X=normal:f32", "not a list of integers"),
    ],
)
def test_invalid_command_line_bindings_are_explained(text, message):
    with pytest.raises(UsageError, match=message):
        inputs.parse_bind(text)
