"""The command line: `bankshot`, and `python -m bankshot`. Import nothing from here: it tunes a short-lived process."""

import atexit
import gc
import os
import signal
import sys

# What a command allocates lives until it ends. Collecting garbage took a fifth of the time of a short audit; these
# thresholds are reached only after the first case.
gc.set_threshold(400_000, 50, 100)

# OpenBLAS threads spin for 2 to this power processor cycles before they sleep. The default, 26, takes a processor from
# the simulator.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

from bankshot.oracle.cli import streams  # noqa: E402
from bankshot.oracle.exit_codes import INTERRUPTED  # noqa: E402

# Whether an interrupt ends this process. In the background of a shell, interrupts are ignored.
_INTERRUPTIBLE = signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _on_interrupt(handler: object) -> None:
    """Set the handler of interrupts, where they are not ignored."""
    if _INTERRUPTIBLE:
        signal.signal(signal.SIGINT, handler)  # pyright: ignore[reportArgumentType]


def _quit(*_: object) -> None:
    os._exit(INTERRUPTED)


_on_interrupt(_quit)  # while modules are imported, nothing needs an exception
streams.occupy()

from bankshot.oracle.wgpu_worker import worker_process  # noqa: E402

# The worker imports wgpu and makes its devices while this process imports its own modules.
if sys.argv[1:2] in (["audit"], ["diff"]) and not {"--no-gpu", "--help", "-h"} & {*sys.argv}:
    worker_process.begin()

from bankshot.oracle.cli.main import main as command  # noqa: E402


def main() -> None:
    """Run the command, and end the process without tearing down its modules."""
    streams.install()
    _on_interrupt(signal.default_int_handler)
    try:
        command(prog_name="bankshot")
    except SystemExit as end:
        _on_interrupt(_quit)
        atexit.register(_leave, end.code)  # the last one registered is the first one called
        raise


def _leave(code: object) -> None:
    """End the process as Python does, but without tearing down modules."""
    atexit.unregister(_leave)
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    if code is None or isinstance(code, int):
        os._exit(streams.finish(code or 0))


if __name__ == "__main__":
    main()
