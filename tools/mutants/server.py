"""A process that has imported NumPy, Numba and pytest, and forks for each run of pytest.

Their imports take longer than most tests of a mutant. It imports nothing that a mutant may change.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pytest

_IMPORTED = ("numpy", "numba", "llvmlite.binding", "xdist.plugin", "hypothesis.strategies",
             "_hypothesis_pytestplugin", "click.testing", "rich.console", "jinja2", "pygments")  # fmt: skip


class Server:
    """The server of a folder, which ends with this process: one run at a time."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.mutants.server"],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            start_new_session=True,
        )

    def pytest(self, arguments: Sequence[str], environment: Mapping[str, str], limit: float,
               settings: Path | None) -> tuple[int | None, str]:  # fmt: skip
        """Run pytest, under coverage.py where there are settings for it, and end it after so many seconds.

        Returns its exit code, None for a timeout, and the end of its output.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with NamedTemporaryFile(encoding="utf-8", mode="r", errors="replace") as log:
            request = {"arguments": [*arguments], "environment": {**environment}, "limit": limit, "log": log.name,
                       "settings": str(settings) if settings else None}  # fmt: skip
            self._process.stdin.write(json.dumps(request) + "\n")
            return json.loads(self._process.stdout.readline()), log.read()[-2000:]


def main() -> None:
    for name in _IMPORTED:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # no collection in a fork looks at them, or copies their memory
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        request = json.loads(line)
        if (child := os.fork()) == 0:
            answers.close()
            _run(request)
        print(json.dumps(_ended(child, request["limit"])), file=answers, flush=True)


def _run(request: dict[str, Any]) -> None:
    """Run pytest in this process, and exit."""
    os.setsid()
    for stream, file in ((0, os.devnull), (1, request["log"]), (2, request["log"])):
        os.dup2(os.open(file, os.O_RDONLY if stream == 0 else os.O_WRONLY | os.O_APPEND), stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["pytest", *request["arguments"]]
    sys.exit(_measured(request["settings"]) if request["settings"] else pytest.main())


def _measured(settings: str) -> int:
    import coverage  # only what measures needs it

    measurement = coverage.Coverage(config_file=settings, messages=False)
    measurement.start()
    code = pytest.main()
    measurement.stop()
    measurement.save()
    return code


def _ended(child: int, limit: float) -> int | None:
    """Wait for a process, and end its group. Returns its exit code, or None where it ran longer than `limit`."""
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, limit)
    _, status = os.waitpid(child, 0)
    late = signal.setitimer(signal.ITIMER_REAL, 0)[0] == 0
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with suppress(ProcessLookupError):  # what it has left behind
        os.killpg(child, signal.SIGKILL)
    return None if late else os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
