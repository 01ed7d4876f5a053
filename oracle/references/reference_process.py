"""The process that runs references of Python files.

They can neither end nor hang a command, nor print into its report. The process starts at the first question, or at
`begin`, and serves all references of a command.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, TypeVar

from ..child_process import ChildProcess, serve
from ..errors import UsageError, printable
from .reference_registry import Arrays, Expected, Reference

T = TypeVar("T")

_PROGRAM = "from bankshot.oracle.references.reference_process import main; main()"
_MOST_SHOWN = 60  # characters of what a reference prints
_SIMULATOR = __name__.removesuffix("oracle.references.reference_process") + "sim.launch"
_process: ChildProcess | None = None


def begin() -> ChildProcess:
    """Return the process, which starts if there is none."""
    global _process
    if _process is None or _process.owner != os.getpid():
        _process = ChildProcess(_PROGRAM, "the process that ran it", UsageError)
    return _process


def of_file(path: Path, name: str) -> Reference:
    """Load a function of a Python file as a reference. Raises `UsageError`, and so does the reference."""
    where = os.getcwd(), str(path), name
    _ask("check", where)

    def expected(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
        return _ask("call", where, dict(arrays), dict(dims))

    return expected


def _ask(question: str, where: tuple[str, str, str], *given: Any) -> Any:
    child = begin()
    try:
        return child.put(question, (*where, *given)).answer()
    except UsageError as error:
        if child.owner:
            raise
        raise UsageError(f"{where[1]}: {where[2]}: {error}") from None  # the process died, and knows no names


# ---- in the process ----------------------------------------------------------------------------------

_known: dict[tuple[str, str], tuple[bytes, Reference]] = {}  # by path and name: the file's text, and the function
_folder: list[str] = []  # the folder whose modules may be imported


def main() -> None:
    """Answer questions. What references print goes to a file, which is checked after each."""
    sys.meta_path.insert(0, _WithoutSimulator())
    with tempfile.TemporaryFile() as printed:
        serve({"check": check, "call": call}, stdout=printed.fileno())


class _WithoutSimulator(MetaPathFinder):
    """Refuses to import what runs kernels: the simulator would be compared with itself."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == _SIMULATOR:
            raise ImportError("a reference cannot run the simulator, which would be compared with itself")


def check(folder: str, path: str, name: str) -> None:
    """Load a reference. Raises `UsageError`."""
    _silently(path, name, lambda: _reference(folder, path, name))


def call(folder: str, path: str, name: str, arrays: Mapping[str, Any], dims: Mapping[str, int]) -> dict[str, Expected]:
    """Compute what a reference expects. Raises `UsageError`."""
    return _silently(path, name, lambda: _reference(folder, path, name)(arrays, dims))


def _silently(path: str, name: str, function: Callable[[], T]) -> T:
    """Call a function. Raises `UsageError` if it prints to stdout."""
    try:
        result = function()
    finally:
        sys.stdout.flush()
        size = os.lseek(1, 0, os.SEEK_END)
        os.lseek(1, 0, os.SEEK_SET)
        said = os.read(1, _MOST_SHOWN).decode(errors="replace")
        os.lseek(1, 0, os.SEEK_SET)
        os.ftruncate(1, 0)
    if size:
        shown = printable(said.strip())
        raise UsageError(f"{path}: {name} prints to stdout, which belongs to the report; use sys.stderr: {shown}")
    return result


def _reference(folder: str, path: str, name: str) -> Reference:
    from . import user_reference

    os.chdir(folder)
    file = os.path.abspath(path)
    try:
        text = Path(file).read_bytes()
    except OSError:
        text = b""  # loading it raises the error
    before = _known.get((file, name))
    if before is None or before[0] != text:
        _import_from(os.path.dirname(file))
        before = _known[file, name] = text, user_reference.of_file(Path(path), name)
    return before[1]


def _import_from(folder: str) -> None:
    """Let imports find modules of this folder last, and forget those of the folder before."""
    if _folder == [folder]:
        return
    for old in _folder:
        sys.path.remove(old)
        for name, module in [*sys.modules.items()]:
            if os.path.dirname(getattr(module, "__file__", None) or "") == old:
                del sys.modules[name]
    _known.clear()  # functions may import when they are called
    sys.path.append(folder)
    _folder[:] = [folder]
