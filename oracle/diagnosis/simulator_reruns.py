"""Causes found by rerunning the simulator with another choice for what WGSL or the device leaves open."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from ...sim.bindings.binding import is_array
from ...sim.models.device import ROUNDINGS
from ...sim.wgsl import types as t
from ...sim.wgsl.diagnostics import WgslError
from ..comparison.bits import Array
from .mismatch import Mismatch, Options

if TYPE_CHECKING:
    from ...sim import Finding
    from ...sim.bindings.binding import Value

ORDERS = ("subgroup-serial", "reversed", "random(1)")  # alternatives to the default schedule
# What accesses out of bounds may do instead of what the device does.
POLICIES = {
    "zero": "left out",
    "zero-buffers": "left out in buffers",
    "clamp": "clamped",
    "wrap": "wrapped around",
}
SUBGROUPS = (4, 8, 16, 32, 64, 128)


def place(finding: Finding) -> str:
    """Describe a finding with its line."""
    line = f"line {finding.span.line}: " if finding.span else ""
    return f"{finding.code}, {line}{finding.message}"


def finding(code: str) -> Callable[[Mismatch], str | None]:
    """Make a test that detects a finding with this code."""

    def look(m: Mismatch) -> str | None:
        found = m.find(code)
        return None if found is None else place(found)

    return look


# By code of a finding: the other choices for what it leaves open, described, and as options of a rerun.
OPEN: dict[str, dict[str, Options]] = {
    "race": {f"run {order}": {"schedule": order} for order in ORDERS},
    "atomic-order": {f"run {order}": {"schedule": order} for order in ("mirrored", *ORDERS)},
    "out-of-bounds": {f"with accesses out of bounds {POLICIES[p]}": {"out_of_bounds": p} for p in POLICIES},
}


def out_of_range(m: Mismatch) -> str | None:
    """Detect numbers that are not finite, unless they reach only elements that do not differ."""
    found = m.find("not-finite")
    if found is None:
        return None
    poisoned = ~np.isfinite(m.ours) if m.ours.dtype.kind == "f" else np.zeros(m.ours.shape, bool)
    return None if poisoned.any() and not poisoned[m.wrong].any() else place(found)


def decides(code: str, least: float, unless: str = "") -> Callable[[Mismatch], str | None]:
    """Make a test that detects a finding with this `code` that decides the outputs.

    With another choice for what the finding leaves open, all elements must agree, or a share of at least `least` of the
    wrong ones must change (0: any; above 1: only agreement counts). A finding with the code `unless`, which can cause
    this one, rules it out.
    """

    def look(m: Mismatch) -> str | None:
        found = m.find(code)
        if found is None or m.find(unless) is not None:
            return None
        moved: dict[str, int] = {}
        for words, options in OPEN[code].items():
            values = m.rerun_output(**options)
            if m.agrees(values):
                return f"{words}, {m.all_elements_agree}; {place(found)}"
            moved[words] = m.count_changed(values)
        words = max(moved, key=moved.__getitem__)
        enough = moved[words] and moved[words] >= least * np.count_nonzero(m.wrong)
        return f"{words}, {moved[words]:,} of {m.wrong_elements} change; {place(found)}" if enough else None

    return look


def unwritten_memory(m: Mismatch) -> str | None:
    """Detect loads of unwritten workgroup memory where NaNs in it change an output."""
    return harmful_words(m.find("uninit"))


def racing_memory(m: Mismatch) -> str | None:
    """Detect a race that decides an output, and that is also why a load finds memory unwritten: the load is part of
    both."""
    race, uninit = m.find("race"), m.find("uninit")
    if race is None or uninit is None or uninit.span not in [span for _, span in race.spans]:
        return None
    return decides("race", 0)(m)


def inactive_lanes(m: Mismatch) -> str | None:
    """Detect shuffles that read inactive lanes where other values in those change an output."""
    return harmful_words(m.find("inactive-lane"))


def harmful_words(found: Finding | None) -> str | None:
    """Describe a finding that replays have proved harmful; None for any other."""
    if found is None or found.verdict != "harmful":
        return None
    return "; ".join([place(found), *(note.message for note in found.notes if note.span is None)])


def subgroup_size(m: Mismatch) -> str | None:
    """Detect that all elements agree with another subgroup size."""
    if not any(site.kind == "subgroup" for site in m.run.program.sites):
        return None
    for size in SUBGROUPS:
        if size != m.run.device.subgroup_size and m.agrees(
            m.rerun_output(device=m.run.device.with_(subgroup_size=size))
        ):
            return f"with subgroups of {size} instead of {m.run.device.subgroup_size}, {m.all_elements_agree}"
    return None


def contraction(m: Mismatch) -> str | None:
    """Detect that all elements agree with another contraction of products and sums."""
    for fma in ROUNDINGS:
        if fma != m.run.device.fma and m.agrees(m.rerun_output(device=m.run.device.with_(fma=fma))):
            return f"with fma {fma} instead of {m.run.device.fma}, {m.all_elements_agree}"
    return None


def half_precision(m: Mismatch) -> str | None:
    """Detect that all elements agree where the kernel computes in f32 instead of f16."""
    from ... import sim

    text = m.run.pipeline.module.source.text
    wider = widened(text)
    if wider == text:
        return None
    textures = {v.name for v in m.run.pipeline.globals if isinstance(v.type, t.Texture)}
    bindings: dict[str, Value] = {
        name: array.astype(np.float32) if name not in textures and _is_half(array) else array
        for name, array in m.case.bindings.items()
    }
    try:
        values = m.rerun_output(module=sim.check(wider), bindings=bindings)
    except WgslError:  # the kernel uses the bits of f16, or f16 in a struct
        return None
    return f"with f32 for f16 in the kernel, {m.all_elements_agree}" if m.agrees(values.astype(m.ours.dtype)) else None


def _is_half(value: object) -> TypeGuard[Array]:
    return is_array(value) and value.dtype == np.float16


# Patterns that turn a text with f16 into one with f32.
_WIDENED = (
    (re.compile(r"\benable\s+f16\s*;"), ""),
    (re.compile(r"(\benable\b[^;]*?)\bf16\s*,\s*"), r"\1"),
    (re.compile(r"(\benable\b[^;]*?)\s*,\s*f16\b"), r"\1"),
    (re.compile(r"\bf16\b"), "f32"),
    (re.compile(r"\b(vec[234]|mat[234]x[234])h\b"), r"\1f"),
    (re.compile(r"(?<![\w.])((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)h\b"), r"\1f"),
)


def widened(text: str) -> str:
    """Return the text with f32 for f16.

    >>> widened("enable f16; let a = vec4h(1.5h) * vec4<f16>(b);")
    ' let a = vec4f(1.5f) * vec4<f32>(b);'
    """
    for pattern, wider in _WIDENED:
        text = pattern.sub(wider, text)
    return text


def builtin_accuracy(m: Mismatch) -> str | None:
    """Detect a difference within the accuracy that WGSL requires of the builtins in use."""
    return f"{_allowed(m)}, which uses {_operations(m)}" if m.run.loose and _allowed(m) else None


def rounding(m: Mismatch) -> str | None:
    """Detect a difference from a reference that is no larger than rounding errors of the kernel's sums and products."""
    return None if m.run.loose or m.on_gpu is not None else _allowed(m)


def _operations(m: Mismatch) -> str:
    return ", ".join(sorted(name.rpartition("_")[0] for name in m.run.loose))


def _allowed(m: Mismatch) -> str | None:
    """Describe the largest error relative to what WGSL allows; None where some element is off by more."""
    if m.rule.name == "derived" or not m.within_bounds:
        return None
    error, bound = m.errors
    with np.errstate(divide="ignore", invalid="ignore"):
        used = np.nanmax(np.where(error > 0, error / bound, 0))
    legal = "twice the error" if m.golden else "the error"
    return f"{m.wrong_elements} are off by at most {used:.2g} of {legal} that WGSL allows this kernel"
