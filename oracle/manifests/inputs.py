"""Contents of bindings: seeded generators, and values from the command line.

An array depends on its binding's name, shape, dtype and seed alone: it is the same on every machine and in every run.
The shape of packed weights is that of the matrix before packing.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...sim.bindings.binding import is_array
from ...sim.wgsl.diagnostics import first_words
from ...sim.wgsl.regular_files import require_regular
from ..comparison.bits import Array
from ..errors import UsageError
from . import quantization

MOST_BYTES = (1 << 32) - 4  # of one binding: its bytes have 32-bit addresses
MOST_AXES = 32
MOST_LANES = 1 << 16  # of a workgroup, whatever the device

DTYPES = {
    **{"f32": np.float32, "f16": np.float16, "i32": np.int32, "u32": np.uint32},
    **{"i16": np.int16, "u16": np.uint16, "i8": np.int8, "u8": np.uint8},  # of texels, or packed
}
NUMBERS = {**DTYPES, "i4": np.int8, "u4": np.uint8}  # with those that are only ever packed
PACKED_BITS = {"f16": 16, "i16": 16, "u16": 16, "i8": 8, "u8": 8, "i4": 4, "u4": 4}  # that 32-bit words can hold
ONLY_PACKED = ("i4", "u4")

# Makes part of an array: takes the random generator, the index of the first number, the count, and the dtype.
Generator = Callable[[np.random.Generator, int, int, np.dtype[Any]], Array]
_PIECE = 1 << 16  # numbers that are made together


def _uniform(rng: np.random.Generator, start: int, count: int, dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "f":
        return rng.uniform(-1.0, 1.0, count)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, count, dtype, endpoint=True)


# Kind of contents -> generator. Values are computed in float64 (or as integers) and cast once.
GENERATORS: dict[str, Generator] = {
    "normal": lambda rng, start, count, dtype: rng.standard_normal(count),
    "uniform": _uniform,  # floats in [-1, 1), integers over their whole range
    "zeros": lambda rng, start, count, dtype: np.zeros(count, dtype),
    "ones": lambda rng, start, count, dtype: np.ones(count, dtype),
    "arange": lambda rng, start, count, dtype: np.arange(start, start + count),
    # All bits set (NaN in floats), so that an element that is never written shows.
    "unwritten": lambda rng, start, count, dtype: np.full(count * dtype.itemsize, 0xFF, np.uint8).view(dtype),
}

BLANK = ("zeros", "unwritten")  # usually the contents of outputs

# Packed normal weights: `q4_k`, `nf4` and so on, and `nf4.absmax` for the other parts of a format.
PACKED = {
    f"{name}.{part}".rstrip("."): (name, part) for name, each in quantization.FORMATS.items() for part in each.parts
}  # fmt: skip

KINDS = (*GENERATORS, *PACKED)


def dtypes_of(kind: str) -> tuple[str, ...]:
    """Return the dtypes that an array of this kind can have."""
    name, part = PACKED.get(kind, ("", ""))
    return (quantization.FORMATS[name].parts[part],) if name else tuple(NUMBERS)


def generate(kind: str, name: str, shape: Sequence[int], dtype: str, seed: int = 0) -> Array:
    """Make an array of `kind` for the binding called `name`. Raises `UsageError` where the kind has no such shape or
    dtype, and where no binding could hold it."""
    if min(shape, default=1) < 1:
        sizes = ", ".join(map(str, shape))
        raise UsageError(f"binding {name} would have the shape [{sizes}], and each size must be at least 1")
    if len(shape) > MOST_AXES:
        raise UsageError(f"binding {name} has {len(shape)} sizes, and an array at most {MOST_AXES}")
    if (size := math.prod(shape) * np.dtype(NUMBERS[dtype]).itemsize) > MOST_BYTES:
        raise UsageError(f"binding {name} would have {size:,} bytes, and no binding holds more than {MOST_BYTES:,}")
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if kind in PACKED:
        return _packed(kind, rng, shape, dtype)
    target = np.dtype(NUMBERS[dtype])
    array = np.empty(math.prod(shape), target)
    for start in range(0, array.size, _PIECE):
        part = array[start : start + _PIECE]
        part[:] = GENERATORS[kind](rng, start, len(part), target)
    return _four_bits(array, dtype).reshape(shape)


def _four_bits(array: Array, dtype: str) -> Array:
    """Return the lowest four bits of integers as numbers of `i4` or `u4`; an array of another dtype as it is."""
    if dtype not in ONLY_PACKED:
        return array
    return array & 15 if dtype == "u4" else ((array & 15) ^ 8) - 8


def pack(name: str, array: Array, dtype: str, unit: int = 1) -> Array:
    """Pack numbers into u32 words, in order, the first in the lowest bits; zeros fill the last `unit` of words.

    Raises `UsageError` for a number that does not fit.
    """
    if (_four_bits(array, dtype) != array).any() and dtype in ONLY_PACKED:
        low, high = (0, 15) if dtype == "u4" else (-8, 7)
        raise UsageError(f"binding {name} holds a number that is no {dtype}, which are {low} to {high}")
    bits = PACKED_BITS[dtype]
    size = np.dtype(f"u{max(bits, 8) // 8}")
    codes = np.ascontiguousarray(array).view(size).reshape(-1).astype(np.uint32) & np.uint32((1 << bits) - 1)
    words = np.zeros((-(-codes.size * bits // (32 * unit)) * unit, 32 // bits), np.uint32)
    words.reshape(-1)[: codes.size] = codes
    places = np.arange(32 // bits, dtype=np.uint32) * np.uint32(bits)
    return np.bitwise_or.reduce(words << places, axis=1)


def _packed(kind: str, rng: np.random.Generator, shape: Sequence[int], dtype: str) -> Array:
    """Pack random weights and return one part. The parts for one name and seed come from the same weights."""
    name, part = PACKED[kind]
    if len(shape) != 2 or dtype not in dtypes_of(kind):
        wanted = " or ".join(dtypes_of(kind))
        raise UsageError(f"{kind} packs a matrix of two sizes into {wanted}, not {dtype}{list(shape)}")
    return quantization.FORMATS[name].pack(rng.standard_normal(tuple(shape)))[part]


def load(path: Path) -> Array:
    """Load the array in an .npy file, or the raw bytes of a .bin file. Raises `UsageError`."""
    try:
        require_regular(path)
        if path.suffix == ".bin":
            return np.fromfile(path, np.uint8)
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except MemoryError:
        raise
    except Exception as error:  # NumPy's readers of headers and archives raise many kinds
        raise UsageError(f"{path}: is not a whole .npy file of plain numbers ({_first_sentence(error)})") from None
    if not is_array(array):
        raise UsageError(f"{path}: holds several arrays; save one per file, as .npy")
    return array


def as_numbers(array: Array, dtype: np.dtype[Any]) -> Array:
    """View raw bytes as numbers of this type, where they divide evenly; return any other array unchanged."""
    whole = array.dtype == np.uint8 and array.nbytes % dtype.itemsize == 0
    return array.view(dtype) if whole else array


def _first_sentence(error: Exception) -> str:
    return str(error).partition(". ")[0].rstrip(".")


def parse_bind(text: str) -> tuple[str, Array]:
    """Parse `X=file.npy`, `dims=u32:512,768,768,0` or `X=normal:f32:512,768` (a generator, a dtype and a shape)."""
    name, equals, what = text.partition("=")
    head, colon, rest = what.partition(":")
    if not name or not equals or not what:
        raise UsageError(f"--bind {text}: write NAME=FILE.npy, NAME=u32:1,2,3 or NAME=normal:f32:512,768")
    if colon and head in DTYPES:
        return name, _listed(name, rest, head)
    if colon and head in KINDS:
        dtype, _, shape = rest.partition(":")
        if dtype not in DTYPES:
            raise UsageError(f"--bind {text}: {dtype or 'nothing'} is no type; there are {', '.join(DTYPES)}")
        return name, generate(head, name, parse_ints(text, shape), dtype)
    return name, load(Path(what))


def parse_int(what: str, text: str) -> int:
    """Parse one non-negative integer."""
    first, *others = parse_ints(what, text, least=0)
    if others:
        raise UsageError(f"{what}: `{text}` must be one integer")
    return first


def parse_ints(what: str, text: str, least: int = 1) -> tuple[int, ...]:
    """Parse `12,8,1` as integers of at least `least`; `what` names the option in errors."""
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{what}: `{text}` is not a list of integers like 12,8,1") from None
    if min(numbers) < least:
        raise UsageError(f"{what}: `{text}` holds a number below {least}")
    return numbers


def parse_lanes(text: str) -> tuple[int, ...]:
    """Parse `0-3,7` as (0, 1, 2, 3, 7)."""
    lanes: list[int] = []
    for part in text.split(","):
        written = re.fullmatch(r"\d{1,9}(-\d{1,9})?", part.strip(), re.ASCII)
        ends = [int(end) for end in part.split("-")] if written else []
        if not ends or not ends[0] <= ends[-1] < MOST_LANES:
            raise UsageError(f"--lanes: `{text}` is not a list of lanes like 0-3,7")
        lanes += range(ends[0], ends[-1] + 1)
    return tuple(lanes)


def parse_place(text: str) -> tuple[int, int, int]:
    """Parse `--workgroup`: `2,1` as (2, 1, 0)."""
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not 1 <= len(sizes) <= 3:
        raise UsageError(f"--workgroup: `{text}` is not a place in the grid like 2,1,0")
    x, y, z = (*sizes, 0, 0)[:3]
    return x, y, z


def parse_grid(text: str) -> tuple[int, int, int]:
    """Parse `12,8` as (12, 8, 1)."""
    sizes = parse_ints("--grid", text)
    if len(sizes) > 3:
        raise UsageError(f"--grid: `{text}` has {len(sizes)} sizes, a grid has at most three")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def numbers(name: str, values: Sequence[int | float], dtype: np.dtype[Any]) -> Array:
    """Round numbers to an array of this type. Raises `UsageError` for one that is out of its range."""
    for value in values:
        if dtype.kind == "f":  # `math.isfinite` refuses large integers
            fits = abs(value) <= float(np.finfo(dtype).max) or (isinstance(value, float) and not math.isfinite(value))
        else:
            fits = value == value // 1 and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
        if not fits:
            raise UsageError(f"binding {name} is given {first_words(str(value))}, which is no {dtype.name}")
    return np.array(values).astype(dtype)


def parse_range(what: str, text: str) -> tuple[int, int]:
    """Parse `0..33` as (0, 33), both ends inclusive, and `5` as (5, 5)."""
    low, dots, high = text.partition("..")
    try:
        first, last = int(low), int(high if dots else low)
    except ValueError:
        raise UsageError(f"{what} {text}: write FROM..TO, as in 0..33") from None
    if not 0 <= first <= last:
        raise UsageError(f"{what} {text}: write the smaller number, 0 or more, first")
    return first, last


def _listed(name: str, text: str, dtype: str) -> Array:
    try:
        values = [float(part) if dtype.startswith("f") else int(part, 0) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--bind {name}: `{text}` is not a list of {dtype} numbers") from None
    return numbers(name, values, np.dtype(DTYPES[dtype]))
