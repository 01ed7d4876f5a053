"""References by name: those that come with Bankshot, and functions in a Python file beside a manifest.

A reference takes the arrays of a manifest by name, and the dims, and returns the expected result for each output: an
`Expected`, or an array alone, where it derives no bound. Bankshot's own are registered here; one of yours is
named `file.py:function` in the manifest, the file relative to it.

    def softmax(arrays, dims):
        e = np.exp(arrays["X"].astype(np.float64))
        return {"Y": e / e.sum(axis=1, keepdims=True)}
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...sim.fast_dataclass import frozen
from ..comparison.bits import Array
from ..errors import UsageError


@frozen
class Expected:
    """Expected values in float64, and by element the largest |error| of a correct float32 kernel (None: unknown)."""

    value: Array
    bound: Array | None = None

    def shaped(self, shape: Sequence[int]) -> Expected | None:
        """Add or drop axes of length 1, so that value and bound have this shape; None where they have another."""
        if [size for size in self.value.shape if size != 1] != [size for size in shape if size != 1]:
            return None
        return Expected(self.value.reshape(shape), None if self.bound is None else self.bound.reshape(shape))


Arrays = Mapping[str, Array]
Reference = Callable[[Arrays, Mapping[str, int]], dict[str, Expected]]

_references: dict[str, Reference] = {}


def reference(name: str) -> Callable[[Reference], Reference]:
    """Register a reference under the name that manifests use."""

    def register(function: Reference) -> Reference:
        _references[name] = function
        return function

    return register


def registered() -> Mapping[str, Reference]:
    """Return the references that come with Bankshot, by name."""
    return _references


def find(name: str, folder: Path | None = None) -> Reference:
    """Find the reference of this name, or the one that `file.py:function` names, relative to `folder`. Raises
    `UsageError`, with the known names, where there is none."""
    file, colon, function = name.rpartition(":")
    if colon:
        from .reference_process import of_file

        return of_file((folder or Path()) / file, function)
    if name not in _references:
        close = difflib.get_close_matches(name, _references, n=1)
        known = f"there are {', '.join(sorted(_references))}; one of your own is named `file.py:function`"
        hint = f"did you mean {close[0]}?" if close else known
        raise UsageError(f"no reference is named {name}; {hint}")
    return _references[name]
