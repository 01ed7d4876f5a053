"""References by name: those that are registered here, and functions in a Python file beside a manifest.

A reference takes the arrays of a manifest by name, and the dims, and gives per output what is to come out: an
`Expected`, or an array alone, where it derives no bound. One that comes with Bankshot is registered; one of your own is
named `file.py:function` in the manifest, the file relative to it.

    def softmax(arrays, dims):
        e = np.exp(arrays["X"].astype(np.float64))
        return {"Y": e / e.sum(axis=1, keepdims=True)}
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sim.wgsl.records import frozen

from ..errors import UsageError


@frozen
class Expected:
    """Float64 truth, and per element the largest |error| that an honest float32 kernel can make (None: not derived)."""

    value: np.ndarray
    bound: np.ndarray | None = None


Arrays = Mapping[str, np.ndarray]
Reference = Callable[[Arrays, Mapping[str, int]], dict[str, Expected]]

_references: dict[str, Reference] = {}


def reference(name: str) -> Callable[[Reference], Reference]:
    """Register a reference under the name that manifests use."""

    def register(function: Reference) -> Reference:
        _references[name] = function
        return function

    return register


def registered() -> Mapping[str, Reference]:
    """All that come with Bankshot, by name."""
    return _references


def find(name: str, folder: Path | None = None) -> Reference:
    """The reference of this name, or the one that `file.py:function` names, in `folder`. Raises `UsageError` where
    there is none, with the names there are."""
    file, colon, function = name.rpartition(":")
    if colon:
        return _of_file((folder or Path()) / file, function)
    if name not in _references:
        close = difflib.get_close_matches(name, _references, n=1)
        known = f"there are {', '.join(sorted(_references))}; one of your own is named `file.py:function`"
        hint = f"did you mean {close[0]}?" if close else known
        raise UsageError(f"no reference is named {name}; {hint}")
    return _references[name]


def _of_file(path: Path, name: str) -> Reference:
    """A function of a Python file, as a reference."""
    functions = vars(_loaded(path))
    function = functions.get(name)
    if not callable(function):
        known = [n for n, value in functions.items() if callable(value) and not n.startswith("_")]
        raise UsageError(f"{path}: there is no function {name}; there are {', '.join(known) or 'none'}")

    def expected(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
        try:
            outputs = function(arrays, dims)
        except Exception as error:
            raise UsageError(f"{path}: {name} fails: {type(error).__name__}: {error}") from error
        if not isinstance(outputs, Mapping):
            raise UsageError(f"{path}: {name} is to return a dict of arrays by output, not {type(outputs).__name__}")
        return {output: _as_expected(value) for output, value in outputs.items()}

    return expected


def _loaded(path: Path) -> Any:
    """The module that a Python file makes, run once for each use: the file may have changed."""
    spec = importlib.util.spec_from_file_location(f"bankshot_reference_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: a reference of your own lies in a Python file, `file.py:function`")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except Exception as error:
        raise UsageError(f"{path}: cannot be run: {type(error).__name__}: {error}") from error
    return module


def _as_expected(value: Any) -> Expected:
    return value if isinstance(value, Expected) else Expected(np.asarray(value, np.float64))
