"""The machine as native code: compiled by Numba once per install, then taken from disk without it.

A folder, named after a digest of everything the code depends on, holds an object file for each unit (see `jit.Part`):
the name of its function, a line feed, the object code. The file's name ends with a checksum. `index.json` lists the
units. It is written last, after a fresh process could load them, so where it is, all is well. Beside them lies the
`image` of all, if there can be one, which is all that a start reads. It is made again where it cannot be used.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import CFUNCTYPE, POINTER, byref, c_int32, c_int64, c_void_p
from functools import cache
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from threading import Lock
from typing import Any
from zlib import crc32

import numpy as np

from ...disk_cache import cache_home, write
from . import image

_SIM = Path(__file__).parents[2]
INDEX, IMAGE = "index.json", "image"
_LOADING = Lock()
# By which Numba makes other code.
_SETTINGS = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "NUMBA_BOUNDSCHECK")
_TELLING = {
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
}


@cache
def cache_folder() -> Path:
    """Where this build of the machine is kept."""
    settings = [os.environ.get(name) for name in _SETTINGS]
    digest = hashlib.sha256(f"{sys.version} {np.__version__} {_processor()} {settings}".encode())
    versions = [_package(name) / "_version.py" for name in ("numba", "llvmlite")]
    for path in [
        *versions,
        *sorted(path for room in ("machine", "models", "scalar") for path in (_SIM / room).rglob("*.py")),
    ]:
        digest.update(path.read_bytes())
    return cache_home() / f"machine-{digest.hexdigest()[:16]}"


def _package(name: str) -> Path:
    """The folder of a package that takes long to import."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _processor() -> str:
    """The processor and its features, in the words of Linux, or of LLVM, which takes as long to import as NumPy."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        first = takewhile(str.strip, file)  # a blank line, then the next processor
        if told := "".join(line for line in first if line.partition(":")[0].strip() in _TELLING):
            return told
    from llvmlite import binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def keep(folder: Path, symbol: str, content: bytes) -> None:
    """Write the object file of a unit. Its name has its checksum: of two processes that compile, none changes what the
    other has listed."""
    write(folder / f"{symbol}.{crc32(content):08x}.o", content)


def find(folder: Path, symbol: str) -> Path | None:
    """The object file of a unit; None where there is none, or it is damaged."""
    return next((file for file in sorted(folder.glob(f"{symbol}.*.o")) if _is_intact(file)), None)


def _is_intact(file: Path) -> bool:
    return file.exists() and f"{crc32(file.read_bytes()):08x}" == file.name.split(".")[-2]


class Machine:
    """The machine in memory. `address`: of `core.run`; `arguments`: data type and dimensions of each array that it was
    compiled for; `code`: what the machine lives as long as."""

    def __init__(self, address: int, arguments: list[tuple[str, int]], code: object) -> None:
        self._code = code
        self._arguments = [(np.dtype(name), dimensions) for name, dimensions in arguments]
        self._run = CFUNCTYPE(c_int32, POINTER(c_int64), POINTER(c_void_p), c_int64)(address)

    def record(self, *arguments: Any) -> list[int]:
        """Arrays and records of arrays as `core.run` takes them: contiguous, of the types that it was compiled for."""
        arrays = list(flat(arguments))
        if [(a.dtype, a.ndim) for a in arrays] != self._arguments:
            raise TypeError("the machine is given other arrays than it was compiled for")
        return [number for array in arrays for number in header(array)]

    def ready(self, address: int) -> Callable[[], int]:
        """`core.run` on the record at this address, which may be called again and again, and while other threads call
        theirs. It is the caller who keeps record and arrays alive."""

        def run() -> int:
            result, error = c_int64(), c_void_p()
            status = self._run(byref(result), byref(error), address)
            if status != 0:
                raise RuntimeError(f"the machine stopped with status {status}")
            return result.value

        return run


def header(array: Any) -> tuple[int, ...]:
    """A contiguous array as the machine has it in memory (see `arrays`): address, lengths. Raises TypeError where it is
    not contiguous."""
    if not array.flags.c_contiguous:
        raise TypeError("the machine is given an array that is not contiguous")
    address, _ = array.__array_interface__["data"]  # `ctypes` takes four times as long
    return (address, *array.shape)


def flat(values: tuple[Any, ...]) -> Iterator[Any]:
    """The arrays of nested records, in order."""
    for value in values:
        if isinstance(value, tuple):
            yield from flat(value)
        else:
            yield value


def machine() -> Machine:
    """The machine of this process. The first call of an install compiles, and says so."""
    with _LOADING:  # of several threads that call, one loads
        return _machine()


@cache
def _machine() -> Machine:
    folder = cache_folder()
    try:
        return from_image(folder)
    except (OSError, image.Unlinkable):
        if not _is_whole(folder):
            from .units import build

            folder = build(folder)
        return from_objects(folder, _index(folder))


def from_image(folder: Path) -> Machine:
    """The machine by its image. Raises OSError, or Unlinkable, where there is none or it is damaged."""
    return Machine(*image.load((folder / IMAGE).read_bytes()))


def from_objects(folder: Path, index: dict[str, Any]) -> Machine:
    """The machine by the object files that an index lists. They are linked for the next time, where that can be."""
    from . import llvm_engine

    units = [_unit(folder, unit) for unit in index["units"]]
    arguments = index["units"][-1]["arguments"]
    with suppress(OSError, image.Unlinkable):
        write(folder / IMAGE, image.link(units, arguments))
    address, code = llvm_engine.load(units, index["needs_numba"])
    return Machine(address, arguments, code)


def _unit(folder: Path, unit: dict[str, Any]) -> tuple[str, str, bytes]:
    """Symbol, name of the function and object code."""
    function, _, code = (folder / unit["file"]).read_bytes().partition(b"\n")
    return unit["symbol"], function.decode(), code


def _index(folder: Path) -> dict[str, Any]:
    return json.loads((folder / INDEX).read_bytes())


def _is_whole(folder: Path) -> bool:
    """Whether all that the index lists is there as it was."""
    try:
        index = _index(folder)
    except (OSError, ValueError):
        return False
    return all(_is_intact(folder / unit["file"]) for unit in index["units"])
