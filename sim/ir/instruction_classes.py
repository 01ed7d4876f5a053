"""Instruction classes, as profilers group them.

They describe the shader as written, not as compiled here or for a GPU: an operation on vectors is one instruction per
component, a memory access is one per scalar, vector or texel, and constant expressions are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from functools import cache

from .sites import SourceSite

# Class -> the instructions in it.
CLASSES = {
    "fp32": "arithmetic and comparison of f32",
    "fp16": "arithmetic and comparison of f16",
    "special": "roots, exponentials, logarithms, trigonometry",
    "integer": "arithmetic, comparison and bits of i32 and u32, and truth values",
    "conversion": "from one type to another, packing and unpacking",
    "control": "conditions, loop iterations, jumps",
    "workgroup_load": "loads of workgroup memory",
    "workgroup_store": "stores to workgroup memory",
    "storage_load": "loads of storage buffers",
    "storage_store": "stores to storage buffers",
    "uniform_load": "loads of uniform buffers",
    "immediate_load": "loads of immediates",
    "texture_load": "loads and samples of textures",
    "texture_store": "stores to textures",
    "atomic": "atomic operations, of workgroup memory and storage",
    "barrier": "barriers",
    "subgroup": "exchange within subgroups and quads",
}
_SPECIAL = frozenset(
    [
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh"),
        *("exp", "exp2", "log", "log2", "pow", "inverseSqrt", "sqrt"),
    ]
)
_CONVERSIONS = ("convert", "pack", "unpack", "quantizeToF16")
_BY_KIND = {"f32": "fp32", "f16": "fp16", "i32": "integer", "u32": "integer", "bool": "integer"}


@cache
def class_of(op: str) -> str | None:
    """Return the class of a scalar operation; None for a bitcast, which costs no instruction.

    >>> [class_of(op) for op in ("add_f32", "exp_f16", "lt_u32", "convert_i32_f32", "bitcast_f32_u32")]
    ['fp32', 'special', 'integer', 'conversion', None]
    """
    stem, _, kind = op.rpartition("_")
    if stem.startswith("bitcast"):
        return None
    if stem.startswith(_CONVERSIONS):
        return "conversion"
    return "special" if stem in _SPECIAL else _BY_KIND[kind]


def class_of_site(site: SourceSite) -> str | None:
    """Return the class of a site; None for an `op` site, whose operations are classed one by one."""
    match site.kind:
        case "load" | "store":
            return f"{site.space}_{site.kind}"
        case "atomic" | "barrier" | "subgroup":
            return site.kind
        case _:
            return None


def instructions_of(computed: Sized, sites: Iterable[SourceSite]) -> int:
    """Return the number of instructions of a basic block, which computes these and has these sites."""
    return len(computed) + sum(class_of_site(site) is not None for site in sites)
