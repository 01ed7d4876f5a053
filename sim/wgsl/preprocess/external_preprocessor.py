"""External preprocessors: any command that reads a shader on stdin and writes the preprocessed text to stdout.

Bankshot's preprocessor runs after it and processes the `#` lines that it leaves. Messages name original files and lines
if the command writes line markers (`#line 7 "file"` or `# 7 "file"`) or preserves the line structure.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..diagnostics import Note, WgslError, fail, first_words
from .preprocessor import MARKER, macro_text

_SECONDS = 60.0
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
        done = subprocess.run(words, input=text.encode(), capture_output=True, timeout=seconds, check=False)
        written = done.stdout.decode()
    except subprocess.TimeoutExpired as late:
        raise _failure(command, f"took more than {seconds:g} seconds", late.stderr) from None
    except UnicodeDecodeError:
        raise _failure(command, "wrote something that is not UTF-8 text") from None
    except (OSError, ValueError) as problem:  # ValueError: a null character in a word
        raise _failure(command, f"cannot be started: {getattr(problem, 'strerror', None) or problem}") from None
    if done.returncode:
        raise _failure(command, f"failed with exit code {done.returncode}", done.stderr)
    known = written.count("\n") == text.count("\n") or any(MARKER.fullmatch(line) for line in written.splitlines())
    return written, name if known else f"{name} (as {Path(words[0]).name} wrote it)"


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
