"""The declarations of wgpu-py's C header, parsed once per installation.

wgpu-py passes the header of its library to cffi, which parses C in Python: the whole header at every import, and after
that each type that is named, together with all type names declared before it. This takes three quarters of the time of
a first run. cffi can also write the parsed declarations as Python that needs no parser; this module keeps that in the
user's cache folder.
"""

from __future__ import annotations

import hashlib
import io
import marshal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

from ...sim.disk_cache import cache_home, write

_DIGEST = 32  # bytes of a checksum


@contextmanager
def read_once() -> Generator[None]:
    """While the context is active, cache the declarations of every new `cffi.FFI` on disk."""
    import cffi

    genuine, cffi.FFI = cffi.FFI, Declarations
    try:
        yield
    finally:
        cffi.FFI = genuine


class Declarations:
    """A stand-in for a `cffi.FFI` whose declarations all come in a single call of `cdef`."""

    @cached_property
    def _known(self) -> Any:
        from cffi.api import FFI

        return FFI()  # before `cdef`, only C's built-in types are known

    def cdef(self, text: str) -> None:
        """Take the declarations of a header, from the cache if it has them."""
        self._known = _known(text)

    def set_source(self, *_: Any) -> None:
        """Do nothing: no C is compiled."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._known, name)


def _known(text: str) -> Any:
    """Return an object with the methods of an `FFI` that knows these declarations, from the cache or parsed now."""
    import cffi

    digest = hashlib.sha256(f"{sys.version} {cffi.__version__} {text}".encode()).hexdigest()
    file = cache_home() / f"declarations-{digest[:16]}"
    names: dict[str, Any] = {}
    with suppress(OSError, ValueError, EOFError, TypeError):  # missing or damaged
        kept = file.read_bytes()
        if hashlib.sha256(kept[_DIGEST:]).digest() == kept[:_DIGEST]:
            exec(marshal.loads(kept[_DIGEST:]), names)
    if "ffi" not in names:
        code = marshal.dumps(compile(_as_python(text), str(file), "exec"))
        with suppress(OSError):  # cache not writable: the next process parses again
            file.parent.mkdir(parents=True, exist_ok=True)
            write(file, hashlib.sha256(code).digest() + code)
        exec(marshal.loads(code), names)
    return names["ffi"]


def _as_python(text: str) -> str:
    """Return the source of a Python module whose `ffi` knows these declarations."""
    from cffi import recompiler
    from cffi.api import FFI

    untyped: Any = recompiler
    genuine, written = FFI(), io.StringIO()
    genuine.cdef(text)
    untyped.make_py_source(genuine, "declarations", written)
    return written.getvalue()
