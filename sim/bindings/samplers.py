"""Samplers: how texture coordinates select texels. Spec: WebGPU, "GPUSamplerDescriptor"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import sealed
from ..ir import texture_handles as at
from ..wgsl import types as t
from ..wgsl.diagnostics import fail
from ..wgsl.typed import Variable
from .binding import Bound, Key, is_mapping, is_sequence

ADDRESS_MODES = {"clamp-to-edge": at.CLAMP, "repeat": at.REPEAT, "mirror-repeat": at.MIRROR}
FILTERS = {"nearest": at.NEAREST, "linear": at.LINEAR}
COMPARISONS = {
    "never": 0,
    "less": at.LESS,
    "equal": at.EQUAL,
    "less-equal": at.LESS | at.EQUAL,
    "greater": at.GREATER,
    "not-equal": at.LESS | at.GREATER,
    "greater-equal": at.GREATER | at.EQUAL,
    "always": at.LESS | at.EQUAL | at.GREATER,
}
_AXES = 3


@sealed
class Sampler:
    """A sampler, to bind to a `sampler` or `sampler_comparison`.

    `mag`, `min` and `mip` filter by "nearest" or "linear". `address` is one mode, or one for each of up to three axes:
    "clamp-to-edge", "repeat" or "mirror-repeat". `lod` is the lowest and the highest level of detail. `compare` is the
    comparison of a `sampler_comparison`: "never", "less", "equal", "less-equal", "greater", "not-equal",
    "greater-equal" or "always". Raises ValueError for any other value.
    """

    mag: str = "nearest"
    min: str = "nearest"
    mip: str = "nearest"
    address: str | tuple[str, ...] = "clamp-to-edge"
    lod: tuple[float, float] = (0.0, 32.0)
    compare: str | None = None

    def __post_init__(self) -> None:
        for name in ("mag", "min", "mip"):
            _known(name, getattr(self, name), FILTERS)
        for mode in self.addresses:
            _known("address", mode, ADDRESS_MODES)
        if not isinstance(self.address, str) and not 1 <= len(self.address) <= _AXES:
            raise ValueError(f"address has {len(self.address)} modes, and a texture has one to {_AXES} axes")
        if self.compare is not None:
            _known("compare", self.compare, COMPARISONS)
        if len(self.lod) != 2 or not 0 <= self.lod[0] <= self.lod[1]:
            raise ValueError(f"lod must be the lowest and the highest level of detail, at least 0, not {self.lod!r}")

    @property
    def addresses(self) -> tuple[str, str, str]:
        """The address mode of each of three axes."""
        given = (self.address,) if isinstance(self.address, str) else tuple(self.address)
        x, y, z = (given * _AXES if isinstance(self.address, str) else (*given, *["clamp-to-edge"] * _AXES))[:_AXES]
        return x, y, z

    def words(self) -> NDArray[np.uint32]:
        """Return the words that the program reads; see `ir.texture_handles`."""
        words = np.zeros(at.SAMPLER_WORDS, np.uint32)
        words[at.MODES : at.MODES + _AXES] = [ADDRESS_MODES[mode] for mode in self.addresses]
        words[[at.MAG, at.MIN, at.MIP]] = [FILTERS[f] for f in (self.mag, self.min, self.mip)]
        words[[at.LOWEST, at.HIGHEST]] = np.array(self.lod, np.float32).view(np.uint32)
        words[at.COMPARE] = COMPARISONS[self.compare or "never"]
        return words


def _known(what: str, name: str, names: Mapping[str, int]) -> None:
    if name not in names:
        raise ValueError(f"{what} must be one of {', '.join(names)}, not {name!r}")


def bind_sampler(variable: Variable, type_: t.Sampler, key: Key, value: object) -> Bound:
    """Bind a sampler, or a mapping of its fields. Raises `WgslError`, which names the binding."""
    sampler = read_sampler(variable, type_, value)
    return Bound(variable, type_, key, sampler, sampler.words().view(np.uint8))


def read_sampler(variable: Variable, type_: t.Sampler, value: object) -> Sampler:
    """Return the sampler given, or made from a mapping. Raises `WgslError`, which names the binding."""
    sampler = value if isinstance(value, Sampler) else _of_fields(variable, value)
    if type_.comparison != (sampler.compare is not None):
        does = "compares" if type_.comparison else "does not compare"
        raise fail("binding-sampler", f"{variable.name} is a {type_}, which {does}, not {sampler}", variable.span)
    return sampler


def _of_fields(variable: Variable, value: object) -> Sampler:
    names = [f.name for f in fields(Sampler)]
    if not is_mapping(value) or not set(value) <= set(names):
        what = ", ".join(map(str, value)) if is_mapping(value) else f"a {type(value).__name__}"
        message = (
            f"{variable.name} is given {what}, and a sampler is a bankshot.Sampler, or a mapping of {', '.join(names)}"
        )
        raise fail("binding-sampler", message, variable.span)
    try:
        given: dict[str, Any] = {n: tuple(each) if is_sequence(each) else each for n, each in value.items()}
        return Sampler(**given)
    except (ValueError, TypeError) as error:
        raise fail("binding-sampler", f"{variable.name}: {error}", variable.span) from None
