"""User-defined references: functions in a Python file. Any error in them is a `UsageError` with its line.

`reference_process` calls them in a process of their own.
"""

from __future__ import annotations

import copy
import importlib.util
import os
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import numpy as np

from ...sim.bindings.binding import is_mapping
from ...sim.wgsl.regular_files import require_regular
from ..comparison.bits import Array
from ..errors import UsageError
from .reference_registry import Arrays, Expected, Reference


def of_file(path: Path, name: str) -> Reference:
    """Load a function of a Python file as a reference. Raises `UsageError`, and so does the reference."""
    functions: dict[str, object] = vars(_loaded(path))
    function = functions.get(name)
    if not callable(function):
        known = [n for n, value in functions.items() if callable(value) and not n.startswith("_")]
        raise UsageError(f"{path}: there is no function {name}; there are {', '.join(known) or 'none'}")
    named = f"{path}{_first_line(function)}: {name}"

    def expected(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
        outputs = _called(function, path, name, arrays, dims)
        if outputs is NotImplemented:
            return {}  # a stub
        if not is_mapping(outputs):
            raise UsageError(f"{named} must return a dict of arrays by output, not {type(outputs).__name__}")
        if not outputs:
            raise UsageError(f"{named} returns no output, so that nothing can be compared")
        return {output: _as_expected(f"{named} gives {output}", value) for output, value in outputs.items()}

    return expected


def _called(function: Callable[..., object], path: Path, name: str, arrays: Arrays, dims: Mapping[str, int]) -> object:
    """Call the function on copies, which it may change."""
    given = copy.deepcopy(dict(arrays))
    try:
        return function(given, dict(dims))
    except BaseException as error:
        there = isinstance(error, KeyError) and error.args and error.args[0] not in (*arrays, *dims)
        known = f"; the arrays are {', '.join(arrays)}, the dims {', '.join(dims) or 'none'}" if there else ""
        place = f"{path}{_line(error, path) or _first_line(function)}"
        raise UsageError(f"{place}: {name} fails: {type(error).__name__}: {error}{known}") from error


def _line(error: BaseException, path: Path) -> str:
    """Return `:12`, the innermost line of the file in the traceback; empty if there is none."""
    found, trace, file = "", error.__traceback__, os.path.abspath(path)  # as modules know theirs
    while trace is not None:
        if os.path.abspath(trace.tb_frame.f_code.co_filename) == file:
            found = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _first_line(function: Callable[..., object]) -> str:
    code = getattr(function, "__code__", None)
    return f":{code.co_firstlineno}" if code else ""


class _Afresh(SourceFileLoader):
    """A loader without bytecode caches, which miss a change of a file within a second."""

    def path_stats(self, path: str) -> NoReturn:
        raise OSError("not asked")


def _loaded(path: Path) -> ModuleType:
    """Run a Python file as a new module, as the file may have changed since the last use."""
    spec = importlib.util.spec_from_file_location(f"bankshot_reference_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: a reference of your own lies in a Python file, `file.py:function`")
    if isinstance(spec.loader, SourceFileLoader):
        spec.loader = _Afresh(spec.name, str(path))
    module = importlib.util.module_from_spec(spec)
    try:
        require_regular(path)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) else _line(error, path)
        raise UsageError(f"{path}{line}: cannot be run: {type(error).__name__}: {error}") from error
    return module


def _as_expected(what: str, value: object) -> Expected:
    if not isinstance(value, Expected):
        return Expected(_numbers(what, value))
    bound = None if value.bound is None else _numbers(f"{what} a bound", value.bound)
    expected = Expected(_numbers(what, value.value), bound)
    if bound is not None and bound.shape != expected.value.shape:
        raise UsageError(f"{what} as an array of {expected.value.shape}, and its bound as one of {bound.shape}")
    return expected


def _numbers(what: str, value: object) -> Array:
    if isinstance(value, np.ma.MaskedArray):
        raise UsageError(f"{what} as a masked array; set the bound to infinity where any value is correct")
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biufO":
            return array.astype(np.float64)
        kind = f"of {array.dtype}"
    except (TypeError, ValueError, OverflowError):
        kind = f"as {type(value).__name__}, with rows of several lengths or what is no number"
    raise UsageError(f"{what} {kind}, instead of an array of real numbers")
