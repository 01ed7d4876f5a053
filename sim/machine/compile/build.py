"""Compiling the machine into a folder, in two processes that import Numba so that this one need not."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from pathlib import Path
from signal import SIG_IGN, SIGINT, SIGKILL, SIGTERM, Signals, signal
from subprocess import DEVNULL, PIPE, Popen
from threading import Thread
from typing import Any

from ...child_program import command, without_interrupts
from ...disk_cache import write
from ...without_gc import without_gc
from . import paths
from .object_files import INDEX, find, keep, writable
from .paths import CompileError

_SECONDS = {paths.FAST: 10, paths.PLAIN: 25}  # that it takes on two processors
# The plain path optimizes a unit as a whole. A user who disables Numba's JIT means that of their own functions.
_ENVIRONMENT = {paths.FAST: {"NUMBA_DISABLE_JIT": "0"}, paths.PLAIN: {"NUMBA_DISABLE_JIT": "0", "NUMBA_OPT": "0"}}
_BETWEEN = 5.0  # seconds from one line of progress to the next
_WORK = f"from {__package__} import build; build.work(sys.argv[1], int(sys.argv[2]))"
_EXIT = f"from {__package__} import build; build.exit_with_parent()"
_LONGEST = 300.0  # seconds to wait for another process that compiles
_LOAD = f"from {__package__} import loader; loader.verify(pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]))"


def build(folder: Path, path: str) -> Path:
    """Compile the machine into a folder, and say so. Returns the folder: one for this process alone where the other is
    not writable. Raises CompileError, or RuntimeError where another attempt may succeed."""
    seconds = _SECONDS[path]
    print(f"bankshot: compiling the machine, once per install (about {seconds} s) …", file=sys.stderr, flush=True)
    start = time.perf_counter()
    folder = writable(folder)
    workers = [_worker(folder, path, step) for step in (1, -1)]
    try:
        symbols, arrays = _finish(workers)
    finally:
        for each in workers:
            each.kill()
            each.wait()
            for unfinished in folder.glob(f".*.{each.pid}.*"):
                unfinished.unlink(missing_ok=True)
    files = [file.name for file in (find(folder, symbol) for symbol in symbols) if file]
    index = {"path": path, "needs_numba": False, "arrays": arrays, "files": files}
    if len(files) != len(symbols) or not any(_loads(folder, index, needs_numba) for needs_numba in (False, True)):
        raise CompileError("the compiled code cannot be loaded")
    write(folder / INDEX, json.dumps(index).encode())
    print(f"bankshot: compiled in {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    return folder


def _worker(folder: Path, path: str, step: int) -> Popen[str]:
    return started(_WORK, folder, str(step), path=path, stdout=PIPE, text=True)


def _finish(workers: list[Popen[str]]) -> tuple[list[str], Any]:
    """Wait for the workers. Returns the symbols of all parts, and the arrays that the last one takes. Raises as soon as
    one fails."""
    waiting, result = list(workers), dict[str, Any]()
    while waiting:
        ended = [each for each in waiting if each.poll() is not None]
        for each in ended:
            waiting.remove(each)
            result = _result(each)
        if not ended:
            time.sleep(0.02)
    return result["symbols"], result["arrays"]


def _result(worker: Popen[str]) -> dict[str, Any]:
    """The result of a worker that has ended. Raises CompileError if it would fail again, else RuntimeError."""
    assert worker.stdout is not None
    lines = worker.stdout.read().splitlines()
    if not lines and worker.returncode in (-SIGKILL, -SIGTERM):
        raise RuntimeError(f"compiling the machine was ended by {Signals(-worker.returncode).name}")
    result = json.loads(lines[-1]) if lines else {"failed": f"the compiler ended with status {worker.returncode}"}
    if "errno" in result:
        raise OSError(result["errno"], f"the machine cannot be compiled: {result['failed']}", result["file"])
    if "failed" in result:
        raise (CompileError if result.get("again", True) else RuntimeError)(result["failed"])
    return result


def _loads(folder: Path, index: dict[str, Any], needs_numba: bool) -> bool:
    """Whether a fresh process can load the code. A process in which it cannot ends."""
    index["needs_numba"] = needs_numba
    with started(_LOAD, folder, json.dumps(index), path=index["path"], stderr=DEVNULL) as process:
        return process.wait() == 0


def work(folder: str, step: int) -> None:
    """What a worker does: compile, and print the result as a line of JSON."""
    with redirect_stdout(sys.stderr):  # of Numba, which prints where its variables ask for that
        try:
            result = compile_parts(Path(folder), step)
        except OSError as error:
            result = {"failed": error.strerror, "errno": error.errno, "file": error.filename or folder}
        except Exception as error:
            result = {"failed": paths.reason(error), "again": not isinstance(error, MemoryError)}
    print(json.dumps(result))


def compile_parts(folder: Path, step: int) -> dict[str, Any]:
    """Leave the object files of all parts in a folder, from the first on (`step` 1) or from the last (-1).

    Two processes that start from either end meet: what the other has compiled is found there.
    """
    for name in ("..list_scheduling", "..core"):  # the latter brings all other parts
        import_module(name, __package__)
    from .units import PARTS

    reported = time.monotonic()
    with without_gc():  # what compiles makes millions of objects, and keeps most
        for each in PARTS[::step]:
            if find(folder, each.symbol) is None:
                keep(folder, each.symbol, each.compile())
            if step == 1 and time.monotonic() - reported > _BETWEEN:
                reported = time.monotonic()
                done = len({file.name.rsplit(".", 2)[0] for file in folder.glob("*.o")})
                print(f"bankshot: {done} of {len(PARTS)} parts", file=sys.stderr, flush=True)
    return {"symbols": [each.symbol for each in PARTS], "arrays": PARTS[-1].arrays}


def started(order: str, folder: Path, *arguments: str, path: str, **options: Any) -> Popen[Any]:
    """A second process, on a second processor, that imports something of this package, and does it in a folder. It
    leaves interrupts to this process, and exits with it."""
    environment = {**os.environ, **_ENVIRONMENT[path], paths.VARIABLE: path}
    program = command(f"import json, pathlib; {_EXIT}; {order}", str(folder), *arguments)
    with without_interrupts():
        return Popen(program, env=environment, cwd=folder, stdin=PIPE, **options)


def exit_with_parent() -> None:
    """Ignore interrupts, and end this process when the one that started it closes the pipe, or dies."""
    signal(SIGINT, SIG_IGN)

    def wait() -> None:
        os.read(0, 1)
        os._exit(1)

    Thread(target=wait, daemon=True).start()


@contextmanager
def only_one(folder: Path) -> Generator[None]:
    """Wait while another process compiles into this folder, for `_LONGEST` seconds at most."""
    lock = folder.with_name(f"{folder.name}.lock")
    try:
        import fcntl

        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("a")
    except (ImportError, OSError):  # no such locks here, or no such folder: at worst, two compile
        yield
        return
    with file:
        end, reported = time.monotonic() + _LONGEST, False
        while time.monotonic() < end:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if not reported:
                    print("bankshot: waiting for another process, which compiles the machine …", file=sys.stderr)
                reported = True
                time.sleep(0.1)
        yield
