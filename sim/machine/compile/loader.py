"""The machine as native code: compiled by Numba once per install, then taken from disk without it.

A folder, named after the path (see `paths`) and a digest of everything the code depends on, holds an object file for
each unit (see `units.Part`). A file's name ends with a checksum. `index.json` lists the files, that of the entry last.
It is written after a fresh process has loaded them, so an index promises that they work. Where the fast path has
failed, the index says why, and later processes go straight to the plain path.
"""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import CFUNCTYPE, POINTER, addressof, byref, c_char, c_int32, c_int64, c_void_p
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...disk_cache import cache_home, write
from . import paths
from .object_files import INDEX, is_intact, writable
from .paths import CompileError

_SIM = Path(__file__).parents[2]
# Symbols of what is called besides `core.run`, but for the package.
_COUNT_PARTS, _SCHEDULE = "sample_notes.count_parts", "list_scheduling.schedule"
_LOADING = Lock()
# By which Numba makes other code.
_SETTINGS = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "NUMBA_BOUNDSCHECK")
_TELLING = {
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
}


@cache
def cache_folder(path: str) -> Path:
    """Where this build of the machine is kept, compiled by a path."""
    settings = [os.environ.get(name) for name in _SETTINGS]
    digest = hashlib.sha256(f"{sys.version} {np.__version__} {_processor()} {settings}".encode())
    versions = [paths.version_file(name) for name in ("numba", "llvmlite")]
    own = (file for folder in ("machine", "models", "scalar") for file in (_SIM / folder).rglob("*.py"))
    for file in [*versions, *sorted(own)]:
        digest.update(file.read_bytes())
    return cache_home() / f"machine-{path}-{digest.hexdigest()[:16]}"


def _processor() -> str:
    """The processor and its features, in the words of Linux, or of LLVM, which takes as long to import as NumPy."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        first = takewhile(str.strip, file)  # a blank line, then the next processor
        if found := "".join(line for line in first if line.partition(":")[0].strip() in _TELLING):
            return found
    from llvmlite import binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


class Machine:
    """The machine in memory, compiled by a path. `addresses`: of `core.run`, `sample_notes.count_parts` and
    `list_scheduling.schedule`; `arrays`: data type and dimensions of each array that `core.run` takes; `code`: what the
    machine lives as long as; `files`: the object files it was loaded from."""

    def __init__(
        self, path: str, addresses: list[int], arrays: list[tuple[str, int]], code: object, files: list[Path]
    ) -> None:
        self.code, self.path, self.files = code, path, files
        self._arrays = [(np.dtype(name), dimensions) for name, dimensions in arrays]
        self._run, self._count_parts, self._schedule = map(_by_c if path == paths.PLAIN else _by_numba, addresses)

    def record(self, *arguments: Any) -> list[int]:
        """Arrays and records of arrays as `core.run` takes them: contiguous, of the types that it was compiled for."""
        arrays = list(flat(arguments))
        if [(a.dtype, a.ndim) for a in arrays] != self._arrays:
            raise TypeError("the machine is given other arrays than it was compiled for")
        return [number for array in arrays for number in header(array)]

    def ready(self, address: int) -> Callable[[], int]:
        """`core.run` on the record at this address, which may be called again and again, and while other threads call
        theirs. It is the caller who keeps record and arrays alive."""
        return partial(self._run, address)

    def count_parts(self, notes: NDArray[np.int64]) -> int:
        """`sample_notes.count_parts` on these notes."""
        return _on_arrays(self._count_parts, notes)

    def schedule(self, works: NDArray[np.int64], places: int, cores: int) -> int:
        """`list_scheduling.schedule` of these works: the most that one of the cores does, which share the places."""
        return _on_arrays(self._schedule, works, np.empty(places, np.int64), np.empty(cores, np.int64))


def _on_arrays(function: Callable[[int], int], *arrays: NDArray[np.int64]) -> int:
    """The result of a function of the machine that takes the address of the headers of these arrays."""
    record = np.array([number for array in arrays for number in header(array)], np.int64)
    return function(address_of(record))


def _by_c(address: int) -> Callable[[int], int]:
    """A function that C can call."""
    return CFUNCTYPE(c_int64, c_int64)(address)


def _by_numba(address: int) -> Callable[[int], int]:
    """A function that takes where to put result and error, and returns a status."""
    function = CFUNCTYPE(c_int32, POINTER(c_int64), POINTER(c_void_p), c_int64)(address)

    def run(record: int) -> int:
        result, error = c_int64(), c_void_p()
        status = function(byref(result), byref(error), record)
        if status != 0:
            raise RuntimeError(f"the machine stopped with status {status}")
        return result.value

    return run


def header(array: Any) -> tuple[int, ...]:
    """A contiguous array as the machine has it in memory (see `arrays`): address, lengths. Raises TypeError where it is
    not contiguous."""
    if not array.flags.c_contiguous:
        raise TypeError("the machine is given an array that is not contiguous")
    return (address_of(array), *array.shape)


def address_of(array: Any) -> int:
    """The address of a contiguous array; 0 where it is empty."""
    if not array.size:
        return 0
    if array.flags.writeable:
        return addressof(c_char.from_buffer(array))  # takes a quarter of the time
    address, _ = array.__array_interface__["data"]
    return address


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
    path = paths.wanted()
    try:
        return _compiled(path)
    except CompileError as error:
        if paths.requested() or path == paths.PLAIN:
            raise
        failure = error
    if not (known := "failed" in _index(cache_folder(path))):
        paths.warn(str(failure))
    machine = _compiled(paths.PLAIN)
    if not known:
        write(writable(cache_folder(path)) / INDEX, json.dumps({"failed": str(failure)}).encode())
    return machine


def _compiled(path: str) -> Machine:
    """The machine by a path. Raises CompileError."""
    folder = cache_folder(path)
    index = _index(folder)
    if "failed" in index and not paths.requested():
        raise CompileError(index["failed"])
    if not _is_whole(folder, index):
        from .build import build, only_one

        with only_one(folder):
            index = _index(folder)  # another process may have compiled it meanwhile
            if not _is_whole(folder, index):
                folder = build(folder, path)
                index = _index(folder)
    return load(folder, index)


def load(folder: Path, index: dict[str, Any]) -> Machine:
    """The machine by the object files that an index lists."""
    from . import llvm_engine

    code = llvm_engine.load(((folder / name).read_bytes() for name in index["files"]), index["needs_numba"])
    run = index["files"][-1].rsplit(".", 2)[0]
    package, _, _ = run.rsplit(".", 2)
    symbols = (run, f"{package}.{_COUNT_PARTS}", f"{package}.{_SCHEDULE}")
    addresses = [code.get_function_address(symbol) for symbol in symbols]
    files = [folder / name for name in index["files"]]
    return Machine(index["path"], addresses, index["arrays"], code, files)


def verify(folder: Path, index: dict[str, Any]) -> None:
    """End the process if the object files that an index lists cannot be loaded."""
    from . import llvm_engine

    llvm_engine.verify(load(folder, index).code)


def _index(folder: Path) -> dict[str, Any]:
    """The contents of a folder; nothing where it cannot be read."""
    try:
        return json.loads((folder / INDEX).read_bytes())
    except (OSError, ValueError):
        return {}


def _is_whole(folder: Path, index: dict[str, Any]) -> bool:
    """Whether all that an index lists is there as it was."""
    return "files" in index and all(is_intact(folder / name) for name in index["files"])
