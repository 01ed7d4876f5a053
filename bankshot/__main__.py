"""The command line: `bankshot`, and `python -m bankshot`. Import nothing from here: it tunes a short-lived process."""

import atexit
import gc
import os
import sys
from contextlib import suppress

# What a command makes lives to its end. Looking for garbage in it took a fifth of a short audit; a second case is begun
# before as much is made.
gc.set_threshold(400_000, 50, 100)

# How long threads of OpenBLAS wait busily for the next product: 2 to this power processor cycles. By itself it is 26,
# which takes a processor from the machine.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

from bankshot.oracle.wgpu_worker import worker_process  # noqa: E402

# wgpu is imported there, and its devices made, while this process imports what it needs itself.
if sys.argv[1:2] in (["audit"], ["diff"]) and not {"--no-gpu", "--help", "-h"} & {*sys.argv}:
    worker_process.begin()

from bankshot.oracle.cli.main import main as command  # noqa: E402


def main() -> None:
    """The command. What the process is about to lose anyway is not taken apart at its end."""
    try:
        command(prog_name="bankshot")
    except SystemExit as end:
        atexit.register(_leave, end.code)  # the last one registered is the first one called
        raise


def _leave(code: object) -> None:
    """Do what Python does at the end of a process, less the teardown of its modules."""
    atexit.unregister(_leave)
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # where nobody reads any more, Python goes on, and says so
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        if code is None or isinstance(code, int):
            os._exit(code or 0)


if __name__ == "__main__":
    main()
