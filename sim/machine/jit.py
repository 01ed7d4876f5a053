"""Compiling the machine: once per install, kept on disk, and said aloud.

Numba's cache looks only at the date of the file that holds a function, but the machine is made from tables and scalar
functions in other files too. So its cache lives in a folder named after a digest of every source it depends on.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import addressof, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite.binding import add_symbol
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_HERE = Path(__file__).parent


@cache
def cache_folder() -> Path:
    """Where this build of the machine is kept: `$BANKSHOT_CACHE`, or the user's cache folder."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {sys.version}".encode())
    for path in sorted([*_HERE.rglob("*.py"), *(_HERE.parent / "models").glob("*.py")]):
        digest.update(path.read_bytes())
    home = os.environ.get("BANKSHOT_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "bankshot" / f"machine-{digest.hexdigest()[:16]}"


@contextmanager
def _cached_there() -> Iterator[None]:
    """Numba reads its cache folder when a function is decorated; other people's functions keep theirs."""
    settings: Any = config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(cache_folder())
    try:
        yield
    finally:
        settings.CACHE_DIR = before


# No reference counts: nothing here allocates, and counting at every view of a row took half of the time. No rewrites of
# array expressions: there are none.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_rewrites": True}


def compiled(function: Callable[..., Any], *, from_python: bool = False) -> Any:
    """Compile a function of the machine, and keep it on disk. `from_python`: Python itself calls it."""
    wrappers: dict[str, Any] = {"no_cpython_wrapper": not from_python, "no_cfunc_wrapper": True}
    with _cached_there():
        return njit(cache=True, **_OPTIONS, **wrappers)(function)


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls."""
    return compiled(function, from_python=True)


class Part:
    """A function that is compiled on its own. Others reach it by the address of its symbol: what Numba sees called, it
    optimizes anew with the caller, and the machine is too large for that.

    `connect` compiles it, or finds it on disk, and tells the linker where it is; before that nothing that calls it can
    be loaded. It returns nothing and raises nothing. A `rare` part is reached through a pointer, which `connect` leaves
    empty and `load` fills: programs that have no instruction of it never pay for it.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], calls_parts: bool, rare: bool) -> None:
        self.calls_parts = calls_parts
        self.name, self.rare = function.__name__, rare
        self._pointer = c_void_p(None)
        self.symbol = f"bankshot.{function.__module__}.{function.__name__}"
        self.signature = types.void(*arguments)
        self.dispatcher = compiled(function)
        self.call = intrinsic(self._caller(function))

    def compile(self) -> None:
        self.dispatcher.compile(self.signature)

    def connect(self) -> None:
        add_symbol(self.symbol, addressof(self._pointer) if self.rare else self._address())

    def load(self) -> None:
        """Compile a rare part, or find it on disk, and make it callable."""
        if not self._pointer:
            self._pointer.value = self._address()

    def _address(self) -> int:
        self.compile()
        result = self.dispatcher.overloads[self.signature.args]
        return result.library.get_pointer_to_function(result.fndesc.llvm_func_name)

    def _caller(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What Numba asks for the type and the code of a call, with the parameters of `function`."""

        def typed(typingctx: Any, *arguments: Any) -> Any:
            return self.signature, self._generate

        own = inspect.signature(typed).parameters["typingctx"]
        typed.__dict__["__signature__"] = inspect.Signature([own, *inspect.signature(function).parameters.values()])
        return typed

    def _generate(self, context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(signature.return_type, signature.args)
        if self.rare:
            known = builder.module.globals.get(self.symbol)
            callee = builder.load(known or cgutils.add_global_variable(builder.module, kind.as_pointer(), self.symbol))
        else:
            callee = cgutils.get_or_insert_function(builder.module, kind, self.symbol)
        convention.call_function(builder, callee, signature.return_type, signature.args, values)
        return context.get_dummy_value()


PARTS: list[Part] = []


def part(*arguments: Any, calls_parts: bool = False, rare: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Make a function a `Part` of these argument types; the result is what compiled functions call.

    `calls_parts`: it calls other parts, so that it cannot be compiled before they are connected. `rare`: few programs
    need it; those `load` it.
    """

    def make(function: Callable[..., Any]) -> Any:
        PARTS.append(Part(function, arguments, calls_parts, rare))
        return PARTS[-1].call

    return make


def inlined(function: Callable[..., Any]) -> Any:
    """A part of one compiled function, put in its place: Numba optimizes what a function calls anew with the caller."""
    return njit(inline="always", **_OPTIONS)(function)


def ready() -> bool:
    """Whether this install has compiled this machine before."""
    return (cache_folder() / "ready").exists()


@contextmanager
def announced() -> Iterator[None]:
    """Say on stderr that the machine is being compiled, and remember that it has been."""
    print("bankshot: compiling the machine, once per install (about 20 s) …", file=sys.stderr, flush=True)
    start = time.perf_counter()
    yield
    print(f"bankshot: compiled in {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    cache_folder().mkdir(parents=True, exist_ok=True)
    (cache_folder() / "ready").touch()


@contextmanager
def beside(order: str) -> Iterator[None]:
    """Run Python code in a second process, on a second processor, while the body runs."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen([sys.executable, "-c", order], env=environment)
    try:
        yield
    finally:
        process.wait()
