"""External preprocessors: any command that reads a shader on stdin and writes the preprocessed text to stdout.

Bankshot's preprocessor runs after it and processes the `#` lines that it leaves. Messages name original files and lines
if the command writes line markers (`#line 7 "file"` or `# 7 "file"`) or preserves the line structure.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from threading import Event, Thread, Timer
from typing import IO, NamedTuple

from ..diagnostics import Note, WgslError, fail, first_words
from .preprocessor import MARKER, macro_text

_SECONDS = 60.0
_PATIENCE = 1.0  # seconds
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
MOST_BYTES = 64 << 20  # of a preprocessed text
_MOST_STDERR = 4000  # characters in a message


def filtered(
    text: str,
    name: str,
    command: str,
    *,
    defines: Mapping[str, str | int | float | bool],
    include_dirs: Sequence[Path],
    folder: Path,
    seconds: float = _SECONDS,
) -> tuple[str, str]:
    """Run `command` on a text. Return its output, and a name for that: `name` if its lines are known to correspond.

    The command is split like a shell command, but runs without a shell, in the current directory. Its words `{defines}`
    and `{includes}` expand to `-DNAME=VALUE` and `-IDIR` for each definition and folder (the shader's own first), and
    `{folder}` to the shader's folder. Raises `WgslError`, with the stderr of the command.
    """
    words = _words(command, defines, [folder, *include_dirs], folder)
    try:
        done = _run(words, text.encode(), seconds)
        written = done.stdout.decode()
    except UnicodeDecodeError:
        raise _failure(command, "wrote something that is not UTF-8 text") from None
    except (OSError, ValueError) as problem:  # ValueError: a null character in a word
        raise _failure(command, f"cannot be started: {getattr(problem, 'strerror', None) or problem}") from None
    if len(done.stdout) > MOST_BYTES:
        raise _failure(command, f"wrote more than {MOST_BYTES >> 20} MiB", done.stderr)
    if done.late:
        raise _failure(command, f"took more than {seconds:g} seconds", done.stderr)
    if done.returncode:
        raise _failure(command, f"failed with exit code {done.returncode}", done.stderr)
    known = written.count("\n") == text.count("\n") or any(MARKER.fullmatch(line) for line in written.splitlines())
    return written, name if known else f"{name} (as {Path(words[0]).name} wrote it)"


class _Done(NamedTuple):
    """How a command ended. `late`: it was ended, as it took too long."""

    stdout: bytes
    stderr: bytes
    returncode: int
    late: bool


def _run(words: Sequence[str], text: bytes, seconds: float) -> _Done:
    """Run a command on a text, in a session of its own, which ends with it. Reads one byte more than it may write."""
    process = subprocess.Popen(
        words, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True, preexec_fn=_end_with_parent()
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    late, said = Event(), list[bytes]()
    timer = Timer(seconds, lambda: (late.set(), _end(process)))
    threads = [
        Thread(target=_feed, args=(process.stdin, text), daemon=True),
        Thread(target=_listen, args=(process.stderr, said), daemon=True),
    ]
    try:
        for each in (timer, *threads):
            each.start()
        written = process.stdout.read(MOST_BYTES + 1)
        if len(written) > MOST_BYTES:
            _end(process)
        code = process.wait()
        threads[-1].join(_PATIENCE)  # a process that it left behind may hold its stderr
    finally:
        timer.cancel()
        _end(process)
        process.wait()
        for pipe in (process.stdout, process.stdin):
            with suppress(OSError):
                pipe.close()
    return _Done(written, b"".join(said), code, late.is_set())


def _end_with_parent() -> Callable[[], object] | None:
    """Return what makes Linux end a new process when this one dies."""
    if sys.platform != "linux":
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def _feed(stdin: IO[bytes], text: bytes) -> None:
    with suppress(OSError, ValueError):  # the command reads no more
        stdin.write(text)
        stdin.close()


def _listen(stderr: IO[bytes], said: list[bytes]) -> None:
    """Keep the start of a stream, and read on, so that the command can go on."""
    with stderr:
        said.append(stderr.read(_MOST_STDERR))
        while stderr.read(1 << 16):
            pass


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and the processes of its session."""
    with suppress(OSError):  # none is left
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _words(
    command: str, defines: Mapping[str, str | int | float | bool], folders: Sequence[Path], folder: Path
) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise _failure(command, f"cannot be read: {str(problem).lower()}") from None
    if not words:
        raise fail("preprocess", "the command of an outside preprocessor is empty", None)
    many = {
        "{defines}": [f"-D{name}={macro_text(name, value)}" for name, value in defines.items()],
        "{includes}": [f"-I{each}" for each in folders],
    }
    return [full for word in words for full in many.get(word, [word.replace("{folder}", str(folder))])]


def _failure(command: str, what: str, stderr: bytes | None = None) -> WgslError:
    said = (stderr or b"").decode(errors="replace").strip()[:_MOST_STDERR]
    notes = (Note(f"it says: {said}"),) if said else ()
    return fail("preprocess", f"the preprocessor '{first_words(command)}' {what}", None, *notes)
