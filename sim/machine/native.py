"""The machine as native code: compiled by Numba once per install, then loaded from disk without it.

A folder, named after a digest of everything the code depends on, holds an object file for each unit (see `jit.Part`):
the name of its function, a line feed, the object code. The file's name ends with a checksum. `index.json` lists the
units. It is written last, after a fresh process could load them, so where it is, all is well.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from ctypes import CFUNCTYPE, POINTER, addressof, byref, c_int32, c_int64, c_void_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any
from zlib import crc32

import llvmlite
import numpy as np
from llvmlite import binding as llvm

_HERE = Path(__file__).parent
INDEX = "index.json"
_LOADING = Lock()
_SETTINGS = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT")  # by which Numba makes other code


def cache_home() -> Path:
    """Where is kept what is made once per install: in `$BANKSHOT_CACHE`, or the user's cache folder."""
    home = os.environ.get("BANKSHOT_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "bankshot"


@cache
def cache_folder() -> Path:
    """Where this build of the machine is kept."""
    processor = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    settings = [os.environ.get(name) for name in _SETTINGS]
    digest = hashlib.sha256(f"{sys.version} {np.__version__} {llvmlite.__version__} {processor} {settings}".encode())
    numba = find_spec("numba")
    assert numba is not None
    assert numba.origin is not None
    version = Path(numba.origin).with_name("_version.py")
    for path in [version, *sorted([*_HERE.rglob("*.py"), *(_HERE.parent / "models").glob("*.py")])]:
        digest.update(path.read_bytes())
    return cache_home() / f"machine-{digest.hexdigest()[:16]}"


def keep(folder: Path, symbol: str, content: bytes) -> None:
    """Write the object file of a unit. Its name has its checksum: of two processes that compile, none changes what the
    other has listed."""
    write(folder / f"{symbol}.{crc32(content):08x}.o", content)


def find(folder: Path, symbol: str) -> Path | None:
    """The object file of a unit; None where there is none, or it is damaged."""
    return next((file for file in sorted(folder.glob(f"{symbol}.*.o")) if _is_intact(file)), None)


def _is_intact(file: Path) -> bool:
    return file.exists() and f"{crc32(file.read_bytes()):08x}" == file.name.split(".")[-2]


def write(file: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all, whoever else writes it."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.replace(file)


class Machine:
    """The machine whose object files lie in a folder, as an index lists them."""

    def __init__(self, folder: Path, index: dict[str, Any]) -> None:
        self._folder = folder
        if index["needs_numba"]:
            from numba.core.registry import cpu_target

            _ = cpu_target.target_context  # Numba's own helpers, and Intel's vector functions, become known to LLVM
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple().create_target_machine(jit=True)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
        self._waiting: list[tuple[dict[str, Any], c_void_p]] = []
        address = 0
        for unit in index["units"]:
            if unit["opcodes"] is None:
                address = self._load(unit)
                llvm.add_symbol(unit["symbol"], address)
            else:
                self._waiting.append((unit, c_void_p(None)))
                llvm.add_symbol(unit["symbol"], addressof(self._waiting[-1][1]))
        self._arguments = [(np.dtype(name), dimensions) for name, dimensions in index["units"][-1]["arguments"]]
        fields = sum(5 + 2 * dimensions for _, dimensions in self._arguments)
        self._run = CFUNCTYPE(c_int32, POINTER(c_int64), POINTER(c_void_p), *[c_int64] * fields)(address)

    def load(self, opcodes: set[int]) -> None:
        """Load what programs with these opcodes need and others do not."""
        for unit, pointer in self._waiting:
            if not pointer and not opcodes.isdisjoint(unit["opcodes"]):
                pointer.value = self._load(unit)

    def _load(self, unit: dict[str, Any]) -> int:
        """The address of a unit's function."""
        function, _, code = (self._folder / unit["file"]).read_bytes().partition(b"\n")
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        return self._engine.get_function_address(function.decode())

    def ready(self, *arguments: Any) -> Callable[[], int]:
        """`core.run` on arrays and records of arrays, contiguous and of the types that it was compiled for. It may be
        called again and again, and while other threads call theirs."""
        arrays = list(_arrays(arguments))
        fields = self._fields(arrays)

        def run() -> int:
            assert arrays  # they live as long as this
            result, error = c_int64(), c_void_p()
            status = self._run(byref(result), byref(error), *fields)
            if status != 0:
                raise RuntimeError(f"the machine stopped with status {status}")
            return result.value

        return run

    def _fields(self, arrays: list[Any]) -> list[int]:
        """Arrays as Numba passes them: owner and parent, elements, bytes of one, address, lengths, strides."""
        fields: list[int] = []
        if [(a.dtype, a.ndim) for a in arrays] != self._arguments or not all(a.flags.c_contiguous for a in arrays):
            raise TypeError("the machine is given other arrays than it was compiled for")
        for each in arrays:
            fields += (0, 0, each.size, each.itemsize, each.ctypes.data, *each.shape, *each.strides)
        return fields


def _arrays(values: tuple[Any, ...]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple):
            yield from _arrays(value)
        else:
            yield value


def machine_for(opcodes: set[int]) -> Callable[..., Callable[[], int]]:
    """`Machine.ready`, for programs with these opcodes. The first call of an install compiles, and says so.

    Of several threads that call, one loads at a time: LLVM's engine does not lock.
    """
    with _LOADING:
        machine = _machine()
        machine.load(opcodes)
    return machine.ready


@cache
def _machine() -> Machine:
    folder = cache_folder()
    if not _is_whole(folder):
        from .jit import build

        folder = build(folder)
    return Machine(folder, _index(folder))


def _index(folder: Path) -> dict[str, Any]:
    return json.loads((folder / INDEX).read_bytes())


def _is_whole(folder: Path) -> bool:
    """Whether all that the index lists is there as it was."""
    return (folder / INDEX).exists() and all(_is_intact(folder / unit["file"]) for unit in _index(folder)["units"])


def load_all(folder: str, index: str) -> None:
    """Load every unit of an index (JSON): the proof that nothing is missing."""
    table = json.loads(index)
    Machine(Path(folder), table).load({code for unit in table["units"] for code in unit["opcodes"] or ()})
