"""Quantized weights: bytes against formulas written out one weight at a time, and errors against what formats allow."""

from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests import inputs, quantization
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


# ---- packing, byte by byte -----------------------------------------------------------------------------

ONE, TWO, HALF = [0x00, 0x3C], [0x00, 0x40], [0x00, 0x38]  # as f16


def packed(name, *blocks):
    parts = FORMATS[name].pack(np.array(blocks, np.float64))
    return {part: array.view(np.uint8).reshape(-1).tolist() for part, array in parts.items()}


def test_the_bytes_of_q8_0():
    """127 makes the step 1, and 254 makes it 2; weights between two levels go to the even one."""
    small, large = [127, -127, 0, 1, -1, 2.5, 3.5, -2.5] + [0] * 24, [254, -254, 3, 5, 1, 2, -4, 0] + [0] * 24
    assert packed("q8_0", small, large)[""] == [
        *ONE, 127, 129, 0, 1, 255, 2, 4, 254, *[0] * 24, *TWO, 127, 129, 2, 2, 0, 1, 254, 0, *[0] * 24
    ]  # fmt: skip


def test_the_bytes_of_int8():
    """From -2 to 253 in steps of 1; from -1 to 126.5 in steps of a half."""
    first, second = [-2.0, 253, 0, 3.4] + [-2.0] * 124, [-1.0, 126.5, 0, 0.5] + [-1.0] * 124
    parts = packed("int8", first, second)
    assert parts[""] == [0, 255, 2, 5, *[0] * 124, 0, 255, 2, 3, *[0] * 124]
    assert parts["ranges"] == [0x00, 0xC0, *ONE, 0x00, 0xBC, *HALF]


def test_the_bytes_of_nf4():
    """Level 0 is -1, level 7 is 0, level 15 is 1, times the largest weight; others go to the nearest."""
    weights = [-2.0, 2.0, 0.0, 2 * 0.0795, 2 * 0.0398, 2 * 0.0397, 2 * -0.6962, 2 * 0.85, 2 * 0.87] + [0.0] * 55
    parts = packed("nf4", weights, [0.0] * 64)
    levels = [0, 15, 7, 8, 8, 7, 1, 14, 15] + [7] * 55
    assert parts[""] == [low | high << 4 for low, high in zip(levels[::2], levels[1::2], strict=True)] + [0x77] * 32
    assert parts["absmax"] == [*TWO, 0, 0]
    assert parts["table"] == NF4_TABLE.view(np.uint8).tolist()


SCALES, MINS = [63, 1, 2, 3, 33, 18, 5, 47], [0, 63, 7, 1, 16, 32, 45, 8]


def test_the_bytes_of_q4_k():
    """The largest scale and the largest min are 63, so that d and dmin are 1, and each weight is a level."""
    rng = np.random.default_rng(5)
    q = rng.integers(0, 16, (8, 32))
    q[:, 0], q[:, 1] = 0, 15  # each sub-block has its least and its largest level
    weights = np.array(SCALES)[:, None] * q - np.array(MINS)[:, None]
    data = packed("q4_k", weights.reshape(-1))[""]
    assert len(data) == 144
    assert data[:4] == [*ONE, *ONE]
    assert [q4_k_weight(data, k) for k in range(256)] == weights.reshape(-1).tolist()
    scales = data[4:16]
    assert [each % 64 for each in scales[:8]] == [*SCALES[:4], *MINS[:4]]
    assert data[16:48] == [low | high << 4 for low, high in zip(*q[:2].tolist(), strict=True)]
    assert data[112:] == [low | high << 4 for low, high in zip(*q[6:].tolist(), strict=True)]


def test_mins_and_scales_of_q4_k_are_rounded_up():
    """A min of 62.5 takes 63 steps of 1, and a span of 15 * 1.5 takes 2: no weight is outside the levels."""
    weights = np.zeros((8, 32))
    weights[0, :2] = 0, 15 * 63
    weights[1, :2] = -63, 0
    weights[2, :2] = -62.5, 0
    weights[3, :2] = 0, 15 * 1.5
    data = packed("q4_k", weights.reshape(-1))[""]
    assert data[:4] == [*ONE, *ONE]
    assert [each % 64 for each in data[4:8]] == [63, 5, 5, 2]  # 63 / 15 and 62.5 / 15, rounded up
    assert [each % 64 for each in data[8:12]] == [0, 63, 63, 0]
    assert data[16 + 32 + 1] == round(0 + 63 / 5) & 15 | round(22.5 / 2) << 4


@pytest.mark.parametrize(("name", "block"), [("q4_k", 256), ("q8_0", 32), ("int8", 128), ("nf4", 64)])
def test_rows_end_with_a_block_of_zeros_where_they_do_not_fill_one(name, block):
    weights = np.full((2, block + 1), 3.0)
    parts = FORMATS[name].pack(weights)
    found = FORMATS[name].unpack(parts, 2, block + 1)
    assert found.value.shape == found.magnitude.shape == found.reach.shape == (2, block + 1)
    assert (np.abs(found.value - weights) <= found.reach).all()
    whole = FORMATS[name].unpack(parts, 4, block).value
    assert np.allclose(whole[1::2, 1:], 0, atol=0.05)


def test_what_rounding_errors_of_weights_are_relative_to():
    """A weight of q4_k and of int8 is a difference: scale 2, q 3, min 5; low -4, step 2, q 1."""
    block = np.zeros(144, np.uint8)
    block[:4], block[4], block[8], block[16] = [*ONE, *ONE], 2, 5, 3
    found = FORMATS["q4_k"].unpack({"": block.view(np.uint32)}, 1, 256)
    assert (found.value[0, 0], found.magnitude[0, 0], found.reach[0, 0]) == (1, 11, 1)
    bytes_, ranges = np.zeros(128, np.uint8), np.array([-4, 2], np.float16)
    bytes_[0] = 1
    found = FORMATS["int8"].unpack({"": bytes_.view(np.uint32), "ranges": ranges.view(np.uint32)}, 1, 128)
    assert (found.value[0, 0], found.magnitude[0, 0], found.reach[0, 0]) == (-2, 6, 1)
    eight = np.zeros(36, np.uint8)
    eight[:2], eight[2] = TWO, 253
    found = FORMATS["q8_0"].unpack({"": eight.view(np.uint32)}, 1, 32)
    assert (found.value[0, 0], found.magnitude[0, 0], found.reach[0, 0]) == (-6, 6, 1)


def test_a_weight_of_nf4_may_be_half_a_gap_off():
    """The gap beside level 0 is 0.3038, the larger one beside 15 is 0.2770, and beside level 7 0.0911, not 0.0796."""
    nibbles = np.zeros(32, np.uint8)
    nibbles[0], nibbles[1] = 0 | 15 << 4, 7
    absmax = np.array([2, 0], np.float16).view(np.uint32)
    found = FORMATS["nf4"].unpack({"": nibbles.view(np.uint32), "absmax": absmax, "table": NF4_TABLE}, 1, 64)
    assert found.reach[0, :3].round(3).tolist() == [0.304, 0.277, 0.091]
    assert found.magnitude[0, :3].tolist() == [2, 2, 0]


def changed(name, words):
    data = np.zeros((2, 144), np.uint8)
    data[:, 4:16], data[:, 16:] = np.arange(1, 13), 0xA1
    done = quantization.MISREAD[name][words](data.view(np.uint32).reshape(1, -1))
    assert (done.shape, done.dtype) == ((1, 72), np.uint32)
    first, second = done.view(np.uint8).reshape(2, 144)
    assert (first == second).all()
    return first[4:16].tolist(), {*first[16:].tolist()}


def test_blocks_that_are_misread():
    asis, other = [*range(1, 13)], {0xA1}
    assert changed("q4_k", "low and high nibbles exchanged") == (asis, {0x1A})
    assert changed("q4_k", "scales of the next sub-block") == ([2, 3, 4, 1, *range(5, 13)], other)
    assert changed("q4_k", "scales of the sub-block before") == ([4, 1, 2, 3, *range(5, 13)], other)
    assert changed("q4_k", "mins of the next sub-block") == ([1, 2, 3, 4, 6, 7, 8, 5, *range(9, 13)], other)
    assert changed("q4_k", "mins of the sub-block before") == ([1, 2, 3, 4, 8, 5, 6, 7, *range(9, 13)], other)
    assert changed("q4_k", "scales and mins exchanged") == ([5, 6, 7, 8, 1, 2, 3, 4, *range(9, 13)], other)
    swapped = quantization.MISREAD["nf4"]["low and high nibbles exchanged"](np.array([[0x12345678]], np.uint32))
    assert swapped.tolist() == [[0x21436587]]
