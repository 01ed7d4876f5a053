"""A process for each round of `audit --watch`, forked from one that has imported everything and loaded the machine.

Processes of the pool are spawned instead, which costs half a second of imports, while a fork takes milliseconds. Each
round reads every file again, and its changes to the process end with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Sequence

from ..wgpu_worker import worker_process


def in_fork(gpu: bool, arguments: Sequence[str]) -> int | None:
    """Fork, and return None in the child; in the parent wait for it, and return its exit code.

    `gpu`: the child inherits a wgpu process that is ready, and the next one starts when the child has ended. Where the
    system cannot fork, a new process runs `bankshot` with `arguments` instead. An interrupt ends the child first.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if not hasattr(os, "fork"):
        return subprocess.run([sys.executable, "-m", "bankshot", *arguments]).returncode
    if gpu:
        worker_process.begin()
    with warnings.catch_warnings():  # NumPy's BLAS ends its threads before a fork and starts them again after it
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        worker_process.take_over()
        return None
    worker_process.hand_over()
    try:
        _, status = os.waitpid(child, 0)
    except KeyboardInterrupt:  # the child was interrupted too, unless the signal was for this process alone
        os.kill(child, signal.SIGINT)
        os.waitpid(child, 0)
        raise
    if gpu:
        worker_process.begin()
    return os.waitstatus_to_exitcode(status)
