"""Numba's CUDA simulator, which runs each CUDA thread as a thread of Python.

It is switched on when Numba is imported, so that it runs in a process of its own: this file, as a program. That is
given a transliteration, which holds a kernel under the name of the entry point, with the bindings for parameters, and a
file of the bindings, grid and workgroup size. It prints the seconds that the launch took, and puts the last parameter
into the same file.
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

import numpy as np
from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.manifest import Case
from bankshot.oracle.manifests.reflection import check_module, entry_point

OUTPUT = "output"


def missing() -> str | None:
    return None if find_spec("numba.cuda") else "this Numba has no CUDA simulator; pip install numba-cuda"


def run(case: Case, text: Path) -> tuple[float, np.ndarray]:
    module = check_module(case.kernel)
    entry = entry_point(module, case.kernel.entry).name
    size = module.pipeline(entry, case.overrides).workgroup_size
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, grid=case.grid, size=size, **{f"binding_{k}": v for k, v in case.bindings.items()})
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
