"""Compiling the machine with Numba, unit by unit: each becomes an object file that `native` loads.

What is compiled here is not run here, so calls from unit to unit need no address.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory
from typing import Any

from numba import njit, types
from numba.core import cgutils

from . import inlining, loader
from .numba_codegen import uncollected
from .numba_passes import Pipeline
from .packed_arrays import Packed
from .scalar_functions import called_as

# No reference counts: nothing here allocates, and counting at every view of a row took half of the time. No rewrites of
# array expressions: there are none. No wrappers: neither Python nor C calls it by one.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_rewrites": True}
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
COMPILE = f"from {__package__} import jit; jit.compile_parts(sys.argv[1], -1)"
LOAD = f"from {__package__} import native; native.from_objects(pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]))"


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function of the machine; it becomes part of what calls it, be it by the name of the plain one."""
    made = inlining.COMPILED[function] = njit(pipeline_class=Pipeline, **_OPTIONS, **_NO_WRAPPERS)(function)
    return made


def inlined(function: Callable[..., Any]) -> Any:
    """A piece of one compiled function, put in its place: Numba takes longer for one more than for its lines."""
    return inlining.Piece(function)


class Part:
    """A unit: a function that is compiled on its own. Others reach it by the address of its symbol: what Numba sees
    called, it optimizes anew with the caller, and the machine is too large for that."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], returns: Any, record: Any) -> None:
        self.symbol = f"bankshot.{function.__module__}.{function.__name__}"
        self.signature = returns(*arguments)
        self._record = record
        self._dispatcher = compiled(function)
        self.call = called_as(function, self.signature, self._generate)

    def compile(self) -> tuple[str, bytes]:
        """The name of its function, and the object code that has it."""
        self._dispatcher.compile(self.signature)
        result = self._dispatcher.overloads[self.signature.args]
        return result.fndesc.llvm_func_name, result.library.emit()

    def row(self, folder: Path) -> dict[str, Any]:
        """What `native` has to know of it, and of its file in the folder."""
        file = loader.find(folder, self.symbol)
        assert file is not None
        return {"symbol": self.symbol, "arguments": list(_arrays(self._record)), "file": file.name}

    def _generate(self, context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(signature.return_type, signature.args)
        callee = cgutils.get_or_insert_function(builder.module, kind, self.symbol)
        _, result = convention.call_function(builder, callee, signature.return_type, signature.args, values)
        return context.get_dummy_value() if signature.return_type == types.void else result


def _arrays(kinds: Any) -> Iterator[tuple[str, int]]:
    """Data type and dimensions of each array in a record of these types, records in it taken apart."""
    for kind in kinds:
        if isinstance(kind, types.BaseTuple):
            yield from _arrays(kind)
        elif isinstance(kind, Packed):
            yield kind.dtype.name, kind.ndim


PARTS: list[Part] = []  # a part stands after those that it calls


def part(*arguments: Any, returns: Any = types.void, record: Any = ()) -> Callable[[Callable[..., Any]], Any]:
    """Make a function a `Part` of these argument types; the result is what compiled functions call. `record`: types of
    what is at the address that it takes, where Python is to put it there."""

    def make(function: Callable[..., Any]) -> Any:
        PARTS.append(Part(function, arguments, returns, record))
        return PARTS[-1].call

    return make


def build(folder: Path) -> Path:
    """Compile the machine into a folder, in two processes, and say so. Returns the folder: one for this process alone
    where nobody may write to that."""
    print("bankshot: compiling the machine, once per install (about 10 s) …", file=sys.stderr, flush=True)
    start = time.perf_counter()
    folder = writable(folder)
    other = started(COMPILE, str(folder))
    try:
        compile_parts(folder, 1)
    finally:
        other.wait()
    index = {"needs_numba": False, "units": [each.row(Path(folder)) for each in PARTS]}
    alone = started(LOAD, str(folder), json.dumps(index), stderr=DEVNULL)
    index["needs_numba"] = alone.wait() != 0
    loader.write(folder / loader.INDEX, json.dumps(index).encode())
    print(f"bankshot: compiled in {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    return folder


def compile_parts(folder: str | Path, step: int) -> None:
    """Leave the object files of all parts in a folder, from the first on (`step` 1) or from the last (-1).

    Two processes that start from either end meet: what the other has compiled is found there.
    """
    from .. import core  # noqa: F401  (it brings all parts)

    with uncollected():
        for each in PARTS[::step]:
            if loader.find(Path(folder), each.symbol) is None:
                name, code = each.compile()
                loader.keep(Path(folder), each.symbol, name.encode() + b"\n" + code)


@cache
def _here() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="bankshot-")


def writable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    print(f"bankshot: it cannot be kept for the next time in {folder}", file=sys.stderr, flush=True)
    return Path(_here().name)


def started(order: str, *arguments: str, **options: Any) -> Popen[Any]:
    """A second process, on a second processor, that imports something of this room, and does it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    program = f"import json, pathlib, sys; {order}"
    return Popen([sys.executable, "-c", program, *arguments], env=environment, **options)
