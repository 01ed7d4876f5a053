"""The memory of a process, as Linux counts it, and the peak that a dispatch adds to it.

    python -m benchmarks.memory MANIFEST:KERNEL:NAME=SIZE,... DEVICE PROBES

prints that peak in bytes, with its bindings. The process runs the kernel once in the default sizes of its manifest,
which loads everything that a dispatch of any size needs; what is resident then does not count.
"""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from pathlib import Path

from .cases import ROOT, case
from .ways import Simulator

STATUS = Path("/proc/self/status")
# Writing 5 sets the peak to what is resident. The `ru_maxrss` of `resource` cannot be set, and starts with the peak of
# the parent process.
RESET = Path("/proc/self/clear_refs")


def readable() -> bool:
    """Return whether the system reports memory: Linux does."""
    return STATUS.exists() and RESET.exists()


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return _status("VmRSS")


def peak(text: str, device: str, probes: str) -> int:
    """Return the bytes that a dispatch adds to a process of its own at its peak, with its bindings.

    `text`: the kernel, as `case` takes it. Raises `CalledProcessError` if the process fails.
    """
    command = [sys.executable, "-m", "benchmarks.memory", text, device, probes]
    return int(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout)


def _status(field: str) -> int:
    lines = STATUS.read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))


def _added(text: str, device: str, probes: str) -> int:
    path, kernel, _ = text.split(":")
    Simulator.of(case(f"{path}:{kernel}"), device).run(probes)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    RESET.write_text("5", encoding="utf-8")
    before = _status("VmHWM")
    run = Simulator.of(case(text), device).run(probes)
    assert run.outputs
    return _status("VmHWM") - before


if __name__ == "__main__":
    print(_added(*sys.argv[1:]))
