"""Numba's CUDA simulator, which runs each CUDA thread as a thread of Python.

An environment variable enables it when Numba is imported, so that it runs in a separate process: this file, as a
program. Its arguments are a transliteration, which defines a kernel with the name of the entry point and the bindings
as parameters; that name; and a file with the bindings, grid and workgroup size. It prints the seconds of the launch,
and writes the last parameter to the same file.
"""

from __future__ import annotations

import inspect
import os
import runpy
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.manifest import Case
from bankshot.oracle.manifests.reflection import check_module, entry_point

OUTPUT = "output"


def missing() -> str | None:
    """Say how to install it, None if it is installed."""
    return None if find_spec("numba.cuda") else "this Numba has no CUDA simulator; pip install numba-cuda"


def run(case: Case, text: Path) -> tuple[float, NDArray[Any]]:
    """Run a transliteration on a case. Returns the seconds of the launch, and the output. Raises `UsageError`."""
    module = check_module(case.kernel)
    entry = entry_point(module, case.kernel.entry).name
    size = module.pipeline(entry, {**case.overrides}).workgroup_size
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        contents: dict[str, Any] = {f"binding_{name}": np.asarray(data) for name, data in case.bindings.items()}
        np.savez(file, grid=case.grid, size=size, **contents)
        command = [sys.executable, "-m", __name__, str(text), entry, str(file)]
        environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UsageError(f"Numba's CUDA simulator failed: {done.stderr.strip()[-500:]}")
        return float(done.stdout), np.load(file)[OUTPUT].reshape(-1)


def _serve(text: str, entry: str, file: str) -> None:
    data = dict(np.load(file))
    grid, size = (tuple(map(int, data.pop(name))) for name in ("grid", "size"))
    arrays = {name.removeprefix("binding_"): array for name, array in data.items()}
    kernel = runpy.run_path(text)[entry]
    names = list(inspect.signature(kernel.fn).parameters)
    start = time.perf_counter()
    kernel[grid, size](*(arrays[name] for name in names))
    print(time.perf_counter() - start)
    np.savez(file, **{OUTPUT: arrays[names[-1]]})


if __name__ == "__main__":
    _serve(*sys.argv[1:])
