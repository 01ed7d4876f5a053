"""No process outlives the one that started it, also where that is killed and can end nothing itself."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

POOL = """
import os, sys, time
from pathlib import Path
from bankshot.oracle.workers.pool import WorkerPool

def work(task, report):
    Path(sys.argv[1]).write_text(str(os.getpid()))
    time.sleep(1e6)

if __name__ == "__main__":
    with WorkerPool(1, work) as pool:
        pool.idle[0].give(1)
        list(pool.hear())
"""
REFERENCE = """
import sys
from pathlib import Path
from bankshot.oracle.references import find
body = f"open({sys.argv[1]!r}, 'w').write(str(os.getpid()))\\n    while True: pass"
Path("own.py").write_text(f"import os\\ndef f(arrays, dims):\\n    {body}\\n")
find("own.py:f", Path())({}, {})
"""
PREPROCESSOR = """
import sys
from pathlib import Path
from bankshot.sim.wgsl.preprocess.external_preprocessor import filtered
command = f"sh -c 'echo $$ > {sys.argv[1]}; exec sleep 1000'"
filtered("", "k.wgsl", command, defines={}, include_dirs=[], folder=Path())
"""


def runs(pid):
    """Whether a process exists, and has not ended (a zombie waits for its parent to ask)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize("program", [POOL, REFERENCE, PREPROCESSOR], ids=["pool", "reference", "preprocessor"])
def test_children_end_with_a_parent_that_is_killed(tmp_path, program):
    (tmp_path / "main.py").write_text(program)
    place = tmp_path / "pid"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, "main.py", str(place)], cwd=tmp_path, env=environment)
    assert wait_until(lambda: place.exists() and place.read_text().strip())
    child = int(place.read_text())
    try:
        assert runs(child)
        parent.kill()
        parent.wait()
        assert wait_until(lambda: not runs(child)), "the child is still there"
    finally:
        if runs(child):
            os.kill(child, signal.SIGKILL)
