"""wgpu on SwiftShader, a Vulkan adapter in software that Chromium brings along.

Vulkan's loader is told of it by an environment variable before it starts, so that it runs in a process of its own: this
file, as a program, which takes a pickled case on stdin and prints seconds.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from glob import glob

from oracle.audit import run_on_gpu
from oracle.errors import UsageError
from oracle.kernels.manifest import Case

# Where distributions put it.
PLACES = ("/usr/lib/chromium*/vk_swiftshader_icd.json", "/opt/google/chrome*/vk_swiftshader_icd.json")
VARIABLE = "VK_DRIVER_FILES"


def missing() -> str | None:
    return None if _driver() else "no vk_swiftshader_icd.json found; on Debian: apt-get install chromium"


def _driver() -> str | None:
    return next((path for place in PLACES for path in glob(place)), None)


def seconds(case: Case) -> float:
    """Of the second of two runs; the driver compiles in the first."""
    environment = {**os.environ, VARIABLE: _driver() or ""}
    done = subprocess.run(
        [sys.executable, "-m", __name__], env=environment, input=pickle.dumps(case), capture_output=True, check=False
    )
    if done.returncode:
        raise UsageError(f"wgpu on SwiftShader failed: {done.stderr.decode().strip()[-500:]}")
    return float(done.stdout)


if __name__ == "__main__":
    print(run_on_gpu(pickle.load(sys.stdin.buffer), "SwiftShader", repeats=2).seconds[1])
