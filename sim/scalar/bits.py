"""The bits of floats, and floats from bits. Spec: WGSL, `bitcast`; IEEE-754 binary32, binary64."""

from __future__ import annotations

import numpy as np

from .registry import define


def bits_of(a: np.float32) -> np.uint32:
    return a.view(np.uint32)


def float_of(bits: np.uint32) -> np.float32:
    return bits.view(np.float32)


def bits_of_double(a: np.float64) -> np.int64:
    return a.view(np.int64)


def double_of(bits: np.int64) -> np.float64:
    return bits.view(np.float64)


def signed_bits_of(a: np.float32) -> np.int32:
    return a.view(np.int32)


def float_of_signed(bits: np.int32) -> np.float32:
    return bits.view(np.float32)


def to_unsigned(a: np.int32) -> np.uint32:
    return np.uint32(a)


def to_signed(a: np.uint32) -> np.int32:
    return np.int32(a)


define("bitcast_f32_u32", bits_of, "f32 -> u32")
define("bitcast_f32_i32", signed_bits_of, "f32 -> i32")
define("bitcast_u32_f32", float_of, "u32 -> f32")
define("bitcast_i32_f32", float_of_signed, "i32 -> f32")
define("bitcast_u32_i32", to_signed, "u32 -> i32")
define("bitcast_i32_u32", to_unsigned, "i32 -> u32")
