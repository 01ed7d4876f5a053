"""The message and the exit code of each kind of error."""

import errno
import re
from pathlib import Path

import pytest

from bankshot.oracle import exit_codes
from bankshot.oracle.errors import GpuError, UsageError
from bankshot.oracle.exit_codes import Failure
from bankshot.sim.models import MissingCost
from bankshot.sim.wgsl.diagnostics import Crash, Diagnostic, WgslError

DOCUMENTED = Path(__file__).parents[1] / "docs" / "exit-codes.md"
BUG = "\nthis is a bug in bankshot; BANKSHOT_DEBUG=1 shows the traceback"


# An error, its text and its exit code.
FAILURES = {
    "wrong WGSL": (WgslError(Diagnostic("error", "type", "no such type", None)), "error: no such type", 2),
    "wrong use": (UsageError("no kernel is named a"), "error: no kernel is named a", 2),
    "a GPU": (GpuError("no adapter"), "error: no adapter", 2),
    "no memory": (MemoryError(), "error: out of memory (none is left)", 2),
    "an array without memory": (MemoryError("Unable to allocate"), "error: out of memory (Unable to allocate)", 2),
    "a file": (OSError(errno.EACCES, "Permission denied", "k.wgsl"), "error: k.wgsl: permission denied", 2),
    "a file with control characters": (
        OSError(errno.ENOENT, "No such file", "k\x1b[2J"), r"error: k\x1b[2J: no such file", 2,
    ),
    "a number for a file": (OSError(errno.EBADF, "Bad file descriptor", 0), "error: 0: bad file descriptor", 2),
    "no file": (OSError(errno.ENOSPC, "No space left"), "error: no space left", 2),
    "a connection": (ConnectionError(1, "Reset"), f"internal error: ConnectionError: [Errno 1] Reset{BUG}", 70),
    "a system's error without words": (OSError("odd"), f"internal error: OSError: odd{BUG}", 70),
    "a crash": (Crash("oh"), f"{Crash('oh')}{BUG}", 70),
    "any other": (KeyError("a"), f"internal error: KeyError: 'a'{BUG}", 70),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_the_message_and_the_code_of_an_error(name):
    error, text, code = FAILURES[name]
    failure = Failure.of(error)
    assert (failure.text, failure.code) == (text, code)
    assert failure.reason == text.removeprefix("error: ")


def test_the_exit_codes_are_those_of_the_documentation():
    codes = exit_codes.CLEAN, exit_codes.FOUND, exit_codes.WRONG_USE, exit_codes.INTERNAL, exit_codes.INTERRUPTED
    assert [str(code) for code in codes] == re.findall(r"(?m)^\| (\d+) \|", DOCUMENTED.read_text(encoding="utf-8"))


def test_a_profile_without_a_cost_is_wrong_use():
    failure = Failure.of(MissingCost("mine.toml: [costs] lacks 'issue'"))
    assert (failure.text, failure.code) == ("error: mine.toml: [costs] lacks 'issue'", 2)
