"""The predeclared enumerants: access modes, address spaces and texel formats. Spec: WGSL, "Predeclared Enumerants"."""

from __future__ import annotations

from collections.abc import Mapping

from . import types as t

ACCESS_MODES = ("read", "write", "read_write")
ADDRESS_SPACES = ("function", "private", "workgroup", "uniform", "storage", "immediate")

# Texel formats by channel type, and those that need `texture_formats_tier1`. Spec: "Texel Formats".
_FORMATS = {
    t.F32: "rgba8unorm rgba8snorm rgba16float r32float rg32float rgba32float bgra8unorm",
    t.U32: "rgba8uint rgba16uint r32uint rg32uint rgba32uint",
    t.I32: "rgba8sint rgba16sint r32sint rg32sint rgba32sint",
}
_TIER1 = {
    t.F32: "rgba16unorm rgba16snorm rg8unorm rg8snorm rg16unorm rg16snorm rg16float r8unorm r8snorm r16unorm r16snorm "
    "r16float rgb10a2unorm rg11b10ufloat",
    t.U32: "rg8uint rg16uint r8uint r16uint rgb10a2uint",
    t.I32: "rg8sint rg16sint r8sint r16sint",
}
TIER1_FORMATS = frozenset(name for names in _TIER1.values() for name in names.split())
TEXEL_FORMATS = {
    name: channel for table in (_FORMATS, _TIER1) for channel, names in table.items() for name in names.split()
}

ENUMERANTS: Mapping[str, str] = {
    **dict.fromkeys(ACCESS_MODES, "access mode"),
    **dict.fromkeys(ADDRESS_SPACES, "address space"),
    **dict.fromkeys(TEXEL_FORMATS, "texel format"),
}
