"""Quantized weights: packed into the layouts that kernels read, and unpacked again, in NumPy.

A format splits each row of a matrix into blocks (the last one padded with zeros) and packs each block into bits. `pack`
returns arrays by part: "" holds the weights in u32 words, and other parts are bound beside them. Weights have the shape
[rows, words] where each row takes a whole number of words; everything else is flat.

    q4_k   256 weights, 144 bytes: ggml's Q4_K. Weight = d * scale * q - dmin * min; d and dmin are f16, scale and min
           6 bits for each 32 weights, q is 4 bits
    q8_0   32 weights, 34 bytes: ggml's Q8_0. Weight = d * q; d is f16, q a signed byte
    int8   128 weights. Weight = low + step * q, q a byte; part "ranges": low and step of each block as a pair of f16
    nf4    64 weights. Weight = absmax * table[q], q is 4 bits, low nibble first; part "absmax": two f16 to a word, part
           "table": the 16 levels as f32 (Dettmers et al., QLoRA, appendix E)

Scales are rounded up, so that no weight is off by more than half the distance between levels. This module depends
neither on WGSL nor on the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...sim.fast_dataclass import frozen
from ..comparison.bits import Array
from ..errors import UsageError

Parts = dict[str, Array]

NF4_TABLE = np.array(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
     -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
     0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0],
    np.float32,
)  # fmt: skip


@frozen
class Unpacked:
    """The exact values of packed weights, in float64. Each field has the shape of the weights.

    `magnitude`: what rounding errors are relative to: |weight|, or for a weight that is a difference, the sum of both
    terms. `reach`: the largest distance between `value` and the weight before packing.
    """

    value: Array
    magnitude: Array
    reach: Array

    def rows(self, count: int, columns: int) -> Unpacked:
        """Return the matrix of `count` rows and `columns` columns, without the padding of its last blocks."""
        cut = (each.reshape(count, -1)[:, :columns] for each in (self.value, self.magnitude, self.reach))
        return Unpacked(*cut)


@frozen
class Format:
    """A format of blocks of `block` weights. `encode` takes float64 [blocks, block]; `decode` takes the parts and the
    number of blocks."""

    block: int
    encode: Callable[[Array], Parts]
    decode: Callable[[Mapping[str, Array], int], Unpacked]
    parts: Mapping[str, str]  # part -> dtype

    def pack(self, weights: Array) -> Parts:
        """Pack a matrix [rows, columns] into parts. Raises `UsageError` where a scale would not be finite."""
        rows, columns = weights.shape
        padded = np.zeros((rows, -(-columns // self.block) * self.block))
        padded[:, :columns] = weights
        with np.errstate(over="ignore"):
            parts = self.encode(padded.reshape(-1, self.block))
        if parts[""].size % rows == 0:
            parts[""] = parts[""].reshape(rows, -1)
        return parts

    def unpack(self, parts: Mapping[str, Array], rows: int, columns: int) -> Unpacked:
        """Unpack the matrix [rows, columns] from its parts. Blocks whose scale is not finite give NaNs, silently."""
        with np.errstate(invalid="ignore"):
            return self.decode(parts, rows * -(-columns // self.block)).rows(rows, columns)


# ---- the formats -------------------------------------------------------------------------------------


def _encode_q4_k(weights: Array) -> Parts:
    sub = weights.reshape(-1, 8, 32)
    depth = np.maximum(0.0, -sub.min(axis=2))
    dmin = _f16_above(depth.max(axis=1) / 63)
    mins = _steps(depth, dmin[:, None], 63, np.ceil)
    lifted = sub + (dmin[:, None] * mins)[:, :, None]
    span = lifted.max(axis=2) / 15
    d = _f16_above(span.max(axis=1) / 63)
    scales = _steps(span, d[:, None], 63, np.ceil)
    q = _steps(lifted, (d[:, None] * scales)[:, :, None], 15, np.rint).astype(np.uint8)
    nibbles = q.reshape(-1, 4, 2, 32)  # low nibbles hold the first 32 of every 64 weights, high nibbles the others
    block = [
        _f16_bytes(d),
        _f16_bytes(dmin),
        _pack_6_bits(scales.astype(np.uint8), mins.astype(np.uint8)),
        (nibbles[:, :, 0] | nibbles[:, :, 1] << 4).reshape(-1, 128),
    ]
    return {"": _words(np.concatenate(block, axis=1))}


def _decode_q4_k(parts: Mapping[str, Array], blocks: int) -> Unpacked:
    data = _bytes(parts[""]).reshape(blocks, 144)
    d, dmin = (_f16_values(data[:, at : at + 2]) for at in (0, 2))
    scales, mins = _unpack_6_bits(data[:, 4:16])
    quants = data[:, 16:].reshape(blocks, 4, 1, 32)
    q = np.concatenate([quants & 15, quants >> 4], axis=2).reshape(blocks, 8, 32)
    step, low = (d * scales)[:, :, None], (dmin * mins)[:, :, None]
    return Unpacked(step * q - low, step * q + low, np.broadcast_to(step / 2, q.shape))


def _pack_6_bits(scales: Array, mins: Array) -> Array:
    """Pack eight scales and eight mins of 6 bits into [blocks, 12] bytes.

    Numbers 0 to 3 take the low six bits of a byte each. Of numbers 4 to 7, the low four bits of scale and min share a
    byte, and the upper two take the free bits above numbers 0 to 3.
    """
    first = [values[:, :4] | values[:, 4:] >> 4 << 6 for values in (scales, mins)]
    return np.concatenate([*first, (scales[:, 4:] & 15) | mins[:, 4:] << 4], axis=1)


def _unpack_6_bits(data: Array) -> tuple[Array, Array]:
    s, m, both = data[:, :4], data[:, 4:8], data[:, 8:]
    scales = np.concatenate([s & 63, (both & 15) | s >> 6 << 4], axis=1)
    return scales, np.concatenate([m & 63, both >> 4 | m >> 6 << 4], axis=1)


def _encode_q8_0(weights: Array) -> Parts:
    d = _f16_above(np.abs(weights).max(axis=1) / 127)
    q = _steps(weights, d[:, None], 127, np.rint).astype(np.int8).view(np.uint8)
    return {"": _words(np.concatenate([_f16_bytes(d), q], axis=1))}


def _decode_q8_0(parts: Mapping[str, Array], blocks: int) -> Unpacked:
    data = _bytes(parts[""])[: blocks * 34].reshape(blocks, 34)
    d = _f16_values(data[:, :2])
    value = d * data[:, 2:].view(np.int8)
    return Unpacked(value, np.abs(value), np.broadcast_to(d / 2, value.shape))


def _encode_int8(weights: Array) -> Parts:
    low = -_f16_above(-weights.min(axis=1))
    step = _f16_above((weights.max(axis=1) - low) / 255)
    q = _steps(weights - low[:, None], step[:, None], 255, np.rint).astype(np.uint8)
    return {"": _words(q), "ranges": _words(np.concatenate([_f16_bytes(low), _f16_bytes(step)], axis=1))}


def _decode_int8(parts: Mapping[str, Array], blocks: int) -> Unpacked:
    pairs = _bytes(parts["ranges"]).reshape(blocks, 4)
    low, step = _f16_values(pairs[:, :2]), _f16_values(pairs[:, 2:])
    q = _bytes(parts[""]).reshape(blocks, 128)
    return Unpacked(low + step * q, np.abs(low) + step * q, np.broadcast_to(step / 2, q.shape))


def _encode_nf4(weights: Array) -> Parts:
    absmax = _f16_above(np.abs(weights).max(axis=1))
    relative = weights / np.where(absmax == 0, 1, absmax)[:, None]
    middles = (NF4_TABLE[1:].astype(np.float64) + NF4_TABLE[:-1]) / 2
    q = np.searchsorted(middles, relative).astype(np.uint8)
    return {"": _words(q[:, ::2] | q[:, 1::2] << 4), "absmax": _words(_f16_bytes(absmax)), "table": NF4_TABLE}


def _decode_nf4(parts: Mapping[str, Array], blocks: int) -> Unpacked:
    table = NF4_TABLE.astype(np.float64)
    gaps = np.diff(table, prepend=table[0], append=table[-1])
    absmax = _f16_values(_bytes(parts["absmax"])[: blocks * 2].reshape(blocks, 2))
    data = _bytes(parts[""]).reshape(blocks, 32)
    q = np.stack([data & 15, data >> 4], axis=2).reshape(blocks, 64)
    value = absmax * table[q]
    return Unpacked(value, np.abs(value), absmax * np.maximum(gaps[:-1], gaps[1:])[q] / 2)


FORMATS = {
    "q4_k": Format(256, _encode_q4_k, _decode_q4_k, {"": "u32"}),
    "q8_0": Format(32, _encode_q8_0, _decode_q8_0, {"": "u32"}),
    "int8": Format(128, _encode_int8, _decode_int8, {"": "u32", "ranges": "u32"}),
    "nf4": Format(64, _encode_nf4, _decode_nf4, {"": "u32", "absmax": "u32", "table": "f32"}),
}


# ---- ways to misread blocks ----------------------------------------------------------------------------


def _nibbles_swapped(data: Array) -> Array:
    return data >> 4 | data << 4


def _q4_k(change: Callable[[Array], Array], first: int, last: int) -> Callable[[Array], Array]:
    """Return a function that applies `change` to bytes `first` to `last` of each block in an array of words. `change`
    takes and returns [blocks, bytes]."""

    def changed(words: Array) -> Array:
        data = _bytes(words).reshape(-1, 144).copy()
        data[:, first:last] = change(data[:, first:last])
        return data.ravel().view(words.dtype).reshape(words.shape)

    return changed


def _rotated(by: int) -> Callable[[Array], Array]:
    return lambda data: np.roll(data, -by, axis=1)


# By format: mistakes in reading blocks, described, and functions from words to the words that would be read as such.
MISREAD: dict[str, dict[str, Callable[[Array], Array]]] = {
    "q4_k": {
        "low and high nibbles exchanged": _q4_k(_nibbles_swapped, 16, 144),
        "scales of the next sub-block": _q4_k(_rotated(1), 4, 8),
        "scales of the sub-block before": _q4_k(_rotated(-1), 4, 8),
        "mins of the next sub-block": _q4_k(_rotated(1), 8, 12),
        "mins of the sub-block before": _q4_k(_rotated(-1), 8, 12),
        "scales and mins exchanged": _q4_k(_rotated(4), 4, 12),
    },
    "nf4": {"low and high nibbles exchanged": lambda words: _nibbles_swapped(words.view(np.uint8)).view(words.dtype)},
}


# ---- bits --------------------------------------------------------------------------------------------


def _f16_above(values: Array) -> Array:
    """Round each value up to an f16, returned as float64. Raises `UsageError` where the f16 is not finite."""
    nearest = values.astype(np.float16)
    up = np.where(nearest < values, np.nextafter(nearest, np.float16(np.inf)), nearest).astype(np.float64)
    if not np.isfinite(up).all():
        raise UsageError("weights too large (or not finite): the scale of a block does not fit f16")
    return up


def _steps(values: Array, step: Array, most: int, rounded: Callable[[Array], Array]) -> Array:
    """Return `values` / `step`, rounded by `rounded` and clipped to -`most` and `most`; 0 where the step is 0."""
    count = rounded(np.divide(values, step, out=np.zeros(np.broadcast(values, step).shape), where=step != 0))
    return np.clip(count, -most, most)


def _f16_bytes(values: Array) -> Array:
    """Return the bytes of one f16 for each block, [blocks, 2]."""
    return values.astype("<f2").view(np.uint8).reshape(-1, 2)


def _f16_values(data: Array) -> Array:
    """Return the f16 in [blocks, 2] bytes as float64 [blocks, 1]."""
    return np.ascontiguousarray(data).view("<f2").astype(np.float64)


def _words(data: Array) -> Array:
    """View bytes as u32 words, the last one padded with zeros."""
    flat = data.ravel()
    return np.concatenate([flat, np.zeros(-len(flat) % 4, np.uint8)]).view("<u4")


def _bytes(words: Array) -> Array:
    return np.ascontiguousarray(words).ravel().view(np.uint8)
