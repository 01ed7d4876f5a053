"""Quantized weights: bytes against formulas written out one weight at a time, and errors against what formats allow."""

from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests import inputs
from bankshot.oracle.manifests.quantization import FORMATS, NF4_TABLE

FORMAT = pytest.mark.parametrize("name", FORMATS)


def f16(low, high):
    """An f16 from its two bytes, exactly."""
    return Fraction(float(np.frombuffer(bytes([low, high]), "<f2")[0]))


def q4_k_weight(block, k):
    """Weight `k` of 144 bytes, by ggml's layout."""
    d, dmin = f16(*block[0:2]), f16(*block[2:4])
    j, scales, nibbles = k // 32, block[4:16], block[16:]
    if j < 4:
        scale, low = scales[j] % 64, scales[j + 4] % 64
    else:
        scale = scales[j + 4] % 16 + 16 * (scales[j - 4] // 64)
        low = scales[j + 4] // 16 + 16 * (scales[j] // 64)
    byte = nibbles[k // 64 * 32 + k % 32]
    q = byte // 16 if k // 32 % 2 else byte % 16
    return d * scale * q - dmin * low


def q8_0_weight(block, k):
    q = block[2 + k]
    return f16(*block[:2]) * (q - 256 if q >= 128 else q)


@pytest.mark.parametrize(("name", "size", "weight"), [("q4_k", 144, q4_k_weight), ("q8_0", 34, q8_0_weight)])
def test_unpacking_any_bytes(name, size, weight):
    rng, count = np.random.default_rng(3), 6
    data = rng.integers(0, 256, (count, size), np.uint8)
    data[:, 1:4:2] &= 0x3F  # d and dmin: finite, not negative
    words = np.concatenate([data.reshape(-1), np.zeros(-data.size % 4, np.uint8)]).view(np.uint32)
    block = FORMATS[name].block
    value = FORMATS[name].unpack({"": words}, 2, 3 * block).value.reshape(count, block)
    for row, expected in zip(value, data.tolist(), strict=True):
        assert [Fraction(float(v)) for v in row] == [weight(expected, k) for k in range(block)]


def test_unpacking_int8_and_nf4():
    rng = np.random.default_rng(4)
    data, scales = rng.integers(0, 256, 256, np.uint8), np.array([-1.5, 0.25, 3, 0.125], np.float16)
    parts = {"": data.view(np.uint32), "ranges": scales.view(np.uint32)}
    expected = [scales[2 * (k // 128)] + scales[2 * (k // 128) + 1] * int(data[k]) for k in range(256)]
    assert FORMATS["int8"].unpack(parts, 2, 128).value.reshape(-1).tolist() == expected
    parts = {"": data[:128].view(np.uint32), "absmax": np.abs(scales).view(np.uint32), "table": NF4_TABLE}
    nibbles = [data[k // 2] >> 4 if k % 2 else data[k // 2] & 15 for k in range(256)]
    expected = [float(abs(scales[k // 64])) * float(NF4_TABLE[nibbles[k]]) for k in range(256)]
    assert FORMATS["nf4"].unpack(parts, 4, 64).value.reshape(-1).tolist() == expected


def test_levels_of_nf4_are_quantiles_of_the_normal_distribution():
    """QLoRA, equation 4, with the offset of its published code: eight levels above 0, seven below, and 0."""
    outermost, quantile = 0.9677083, NormalDist().inv_cdf
    above = [quantile(p) for p in np.linspace(outermost, 0.5, 9)[:-1]]
    below = [-quantile(p) for p in np.linspace(outermost, 0.5, 8)[:-1]]
    levels = np.array(sorted([*above, 0, *below])) / quantile(outermost)
    assert np.abs(levels - NF4_TABLE).max() < 1e-6


@FORMAT
@given(st.integers(1, 4), st.integers(1, 600), st.integers(0, 99), st.floats(1e-3, 1e3), st.floats(-3, 3))
def test_no_weight_moves_by_more_than_half_a_step(name, rows, columns, seed, scale, offset):
    weights = (np.random.default_rng(seed).standard_normal((rows, columns)) + offset) * scale
    form = FORMATS[name]
    unpacked = form.unpack(form.pack(weights), rows, columns)
    assert (np.abs(unpacked.value - weights) <= unpacked.reach * (1 + 1e-9)).all()
    assert (np.abs(unpacked.value) <= unpacked.magnitude).all()


# What a step can be at most, given the block's weights alone: the range in so many steps, widened by what rounding
# the scales up costs (f16: 2^-10 of it; Q4_K's 6 bits: one part in 63 of the largest scale and of the largest min).
STEP = {
    "q8_0": lambda w: np.abs(w).max() / 127 * (1 + 2**-10),
    "int8": lambda w: (np.ptp(w) / 255 + np.abs(w).max() * 2**-10) * (1 + 2**-10),
    "nf4": lambda w: np.abs(w).max() * (1 - 0.6961928) * (1 + 2**-10),
    "q4_k": lambda w: (np.abs(w).max() * (2 + 1 / 63) / 15 * (1 + 1 / 63)) * (1 + 2**-9),
}


@FORMAT
def test_steps_use_all_bits(name):
    form = FORMATS[name]
    weights = np.random.default_rng(5).standard_normal((64, form.block))
    error = np.abs(form.unpack(form.pack(weights), *weights.shape).value - weights).max(axis=1)
    for row, worst in zip(weights, error, strict=True):
        assert worst <= STEP[name](row) / 2


# A block of weights each of which is a level, of a scale that f16 holds.
LEVELS = {
    "q4_k": np.resize(np.arange(16) * 63, 256),
    "q8_0": np.linspace(-127, 127, 32).round(),
    "int8": np.linspace(0, 255, 128).round() / 8 - 4,
    "nf4": np.resize(NF4_TABLE, 64) * 2.0,
}


@FORMAT
def test_representable_weights_round_trip(name):
    for weights in (LEVELS[name][None], np.zeros((3, 70))):
        assert (FORMATS[name].unpack(FORMATS[name].pack(weights), *weights.shape).value == weights).all()


def test_rows_of_whole_words_are_rows():
    shapes = {name: form.pack(np.ones((3, 260)))[""].shape for name, form in FORMATS.items()}
    assert shapes == {"q4_k": (3, 72), "q8_0": (3 * 9 * 34 // 4 + 1,), "int8": (3, 96), "nf4": (3, 40)}


@FORMAT
@pytest.mark.parametrize("bad", [np.inf, np.nan, 1e12])
def test_weights_without_a_finite_scale_are_rejected(name, bad):
    with pytest.raises(UsageError, match="does not fit f16"):
        FORMATS[name].pack(np.full((1, 4), bad))
    with pytest.raises(UsageError, match="does not fit f16"):
        FORMATS[name].pack(np.array([[1.0] * FORMATS[name].block, [bad] * FORMATS[name].block]))


@FORMAT
def test_packed_inputs_belong_together(name):
    """Every part of a matrix is made from the weights that the binding's name and seed give."""
    kinds = {part: kind for kind, (form, part) in inputs.PACKED.items() if form == name}
    parts = {part: inputs.generate(kind, "W", (3, 300), *inputs.dtypes_of(kind)) for part, kind in kinds.items()}
    assert {part: str(array.dtype) for part, array in parts.items()} == {
        part: np.dtype(inputs.DTYPES[dtype]).name for part, dtype in FORMATS[name].parts.items()
    }
    weights = inputs.generate("normal", "W", (3, 300), "f32")
    unpacked = FORMATS[name].unpack(parts, 3, 300)
    assert (np.abs(unpacked.value - weights) <= unpacked.reach * (1 + 1e-4) + 1e-6).all()


def test_a_packed_input_of_the_wrong_kind_is_explained():
    with pytest.raises(UsageError, match=r"q4_k packs a matrix of two sizes into u32, not f32\[4\]"):
        inputs.generate("q4_k", "W", (4,), "f32")
