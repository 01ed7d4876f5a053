"""What wgpu-py's header declares, read once per install.

wgpu-py hands the header of its library to cffi, which parses C in Python: the header at every import, and after that
each type that is named, with all the names of types before it. That is three quarters of what a first run takes. cffi
can also write down what it has read, as Python that needs no parser; here that is kept in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import io
import marshal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

from ...sim.disk_cache import cache_home, write

_DIGEST = 32  # bytes of a checksum


@contextmanager
def read_once() -> Iterator[None]:
    """While a module is imported: whatever it declares to a `cffi.FFI` is read once per install."""
    import cffi

    genuine, cffi.FFI = cffi.FFI, Declarations
    try:
        yield
    finally:
        cffi.FFI = genuine


class Declarations:
    """Stands in for a `cffi.FFI` that is told declarations once, and all at once."""

    @cached_property
    def _known(self) -> Any:
        from cffi.api import FFI

        return FFI()  # what C itself declares is known before anything else

    def cdef(self, text: str) -> None:
        self._known = _known(text)

    def set_source(self, *_: Any) -> None:
        """Nothing is compiled from C."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._known, name)


def _known(text: str) -> Any:
    """What cffi knows of declarations, as an object that has the methods of an `FFI`."""
    import cffi

    digest = hashlib.sha256(f"{sys.version} {cffi.__version__} {text}".encode()).hexdigest()
    file = cache_home() / f"declarations-{digest[:16]}"
    names: dict[str, Any] = {}
    with suppress(OSError, ValueError, EOFError, TypeError):  # there is none, or it is damaged
        kept = file.read_bytes()
        if hashlib.sha256(kept[_DIGEST:]).digest() == kept[:_DIGEST]:
            exec(marshal.loads(kept[_DIGEST:]), names)
    if "ffi" not in names:
        code = marshal.dumps(compile(_written(text), str(file), "exec"))
        with suppress(OSError):  # then it is read again the next time
            file.parent.mkdir(parents=True, exist_ok=True)
            write(file, hashlib.sha256(code).digest() + code)
        exec(marshal.loads(code), names)
    return names["ffi"]


def _written(text: str) -> str:
    """Python that makes an FFI of these declarations."""
    from cffi.api import FFI
    from cffi.recompiler import make_py_source

    genuine, written = FFI(), io.StringIO()
    genuine.cdef(text)
    make_py_source(genuine, "declarations", written)
    return written.getvalue()
