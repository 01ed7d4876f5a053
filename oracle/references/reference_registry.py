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
from collections.abc import Callable, Iterable, Mapping, Sequence
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


@frozen
class Names:
    """The names that a reference of Bankshot expects of a manifest: of the arrays that it `takes` (one of several
    lists), of the outputs that it `gives`, and of `dims`. `words`: what it computes."""

    takes: tuple[tuple[str, ...], ...]
    gives: tuple[str, ...]
    dims: tuple[str, ...]
    words: str

    def mismatch(self, bindings: Iterable[str], dims: Iterable[str]) -> str:
        """What a manifest with these names lacks, in words; empty if nothing."""
        there, sizes = set(bindings), set(dims)
        least = min(({*names, *self.gives} - there for names in self.takes), key=len)
        if least:
            wanted = " or ".join(", ".join(names) for names in self.takes)
            close = [(name, guess) for name in sorted(least) for guess in _near(name, there)]
            hint = (
                f"did you mean {close[0][0]} by {close[0][1]}?"
                if close
                else "rename them, and name the shader's as `var`"
            )
            known = ", ".join(bindings) or "none"
            return f"takes {wanted} and gives {', '.join(self.gives)}, and the bindings are {known}; {hint}"
        if lacking := [name for name in self.dims if name not in sizes]:
            return f"takes the dims {', '.join(self.dims)}, and [kernel] dims lacks {', '.join(lacking)}"
        return ""


def _near(name: str, known: Iterable[str]) -> list[str]:
    lower = {each.lower(): each for each in sorted(known)}
    return [lower[each] for each in difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)]


_references: dict[str, Reference] = {}
_names: dict[str, Names] = {}


def reference(
    name: str, *takes: str, gives: str = "Y", dims: str = "", words: str = ""
) -> Callable[[Reference], Reference]:
    """Register a reference under the name that manifests use.

    `takes`, `gives` and `dims` are names, separated by spaces: the arrays that it takes, in one or several ways.
    """

    def register(function: Reference) -> Reference:
        said = words or (function.__doc__ or "").strip().splitlines()[0].rstrip(".")
        _references[name] = function
        _names[name] = Names(tuple(tuple(each.split()) for each in takes), (*gives.split(),), (*dims.split(),), said)
        return function

    return register


def registered() -> Mapping[str, Reference]:
    """Return the references that come with Bankshot, by name."""
    return _references


def expected_names() -> Mapping[str, Names]:
    """Return what each reference that comes with Bankshot expects of a manifest."""
    return _names


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
