"""Of several processes that need the machine at once, one compiles it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from bankshot.sim import child_program
from bankshot.sim.machine.compile import build

pytest.importorskip("fcntl", reason="this system has no such locks")

HOLD = """
import pathlib, sys, time
from bankshot.sim.machine.compile.build import only_one
with only_one(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held(tmp_path):
    """A folder that another process compiles into until its stdin is closed."""
    command = child_program.command(HOLD, str(tmp_path / "machine"))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield tmp_path / "machine", process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("end", ["close", "kill"])
def test_a_process_waits_until_the_other_has_compiled_or_died(held, monkeypatch, capsys, end):
    folder, process = held
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        process.communicate() if end == "close" else process.kill()
        process.wait()

    monkeypatch.setattr(build.time, "sleep", sleep)
    with build.only_one(folder):
        assert slept
    assert capsys.readouterr().err == "bankshot: waiting for another process, which compiles the machine …\n"


def test_a_process_that_waits_too_long_compiles_too(held, monkeypatch):
    monkeypatch.setattr(build, "_LONGEST", 0.2)
    start = time.monotonic()
    with build.only_one(held[0]):
        assert 0.2 <= time.monotonic() - start < 30


def test_a_folder_that_cannot_be_made_has_no_lock(tmp_path):
    (tmp_path / "file").write_text("")
    entered = False
    with build.only_one(tmp_path / "file" / "machine"):
        entered = True
    assert entered
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_compiler_exits_with_the_process_that_started_it(tmp_path):
    """It is killed, so that it cannot end the compiler itself."""
    program = f"""
import pathlib, sys, time
from bankshot.sim.machine.compile import build
order = "print('compiling', flush=True); import time; time.sleep(1e6)"
each = build.started(order, pathlib.Path({str(tmp_path)!r}), path="fast")
time.sleep(1e6)
"""
    process = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"compiling\n"
    process.kill()
    process.wait()
    assert process.stdout.read() == b""  # at the end of the stream, which the compiler holds too


def test_a_full_disk_is_an_error_of_the_system():
    """The worker names it, and the process that started it raises it."""
    program = "import json; print(json.dumps({'failed': 'No space left on device', 'errno': 28, 'file': 'part.o'}))"
    worker = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    worker.wait()
    with pytest.raises(OSError, match=r"the machine cannot be compiled: No space left on device: 'part.o'"):
        build._result(worker)
    worker.stdout.close()


def test_a_compiler_reports_a_full_disk(monkeypatch, capsys):
    def full(folder, step):
        raise OSError(28, "No space left on device", "part.o")

    monkeypatch.setattr(build, "compile_parts", full)
    build.work("folder", 1)
    assert '"errno": 28' in capsys.readouterr().out
