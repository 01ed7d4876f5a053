"""Oclgrind, an interpreter of OpenCL C with a race detector, which reads a kernel and its data from a text file."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bankshot.oracle import wgpu_client
from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.manifest import Case
from bankshot.oracle.manifests.reflection import check_module, entry_point

RUNNER = "oclgrind-kernel"


def missing() -> str | None:
    """Say how to install it, None if it is installed."""
    return None if shutil.which(RUNNER) else f"there is no {RUNNER}; on Debian and Ubuntu: apt-get install oclgrind"


def plain(case: Case, text: Path) -> tuple[float, NDArray[np.float32]]:
    """Run a transliteration on a case. Returns the seconds of the process, and the output. Raises `UsageError`."""
    return _run(case, text)


def races(case: Case, text: Path) -> tuple[float, NDArray[np.float32]]:
    """Run as `plain` does, with the race detector."""
    return _run(case, text, "--data-races")


def _run(case: Case, text: Path, *options: str) -> tuple[float, NDArray[np.float32]]:
    with tempfile.NamedTemporaryFile("w", suffix=".sim") as file:
        file.write(_script(case, text))
        file.flush()
        start = time.perf_counter()
        done = subprocess.run([RUNNER, *options, file.name], capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
    if done.returncode or done.stderr.strip():
        raise UsageError(f"{RUNNER} failed: {(done.stderr or done.stdout).strip()[:500]}")
    return seconds, np.array(re.findall(r"\] = (\S+)$", done.stdout, re.MULTILINE), np.float32)


def _script(case: Case, text: Path) -> str:
    """Format the runner's input: the sizes of the grid and, for each parameter, its bytes, type and numbers."""
    entry = entry_point(check_module(case.kernel), case.kernel.entry)
    size = check_module(case.kernel).pipeline(entry.name, {**case.overrides}).workgroup_size
    invocations = (groups * lanes for groups, lanes in zip(case.grid, size, strict=True))
    lines = [str(text), entry.name, " ".join(map(str, invocations)), " ".join(map(str, size)), ""]
    for slot in sorted(wgpu_client.slots_of(entry), key=lambda slot: (slot.group, slot.binding)):
        array = np.asarray(case.bindings[slot.name])
        if slot.kind == "storage-write":
            lines.append(f"<size={array.nbytes} float fill=0 dump>")
            continue
        kind = "float" if array.dtype.kind == "f" else "uint"
        lines += [f"<size={array.nbytes} {kind}>", " ".join(repr(n) for n in array.reshape(-1).tolist())]
    return "\n".join(lines) + "\n"
