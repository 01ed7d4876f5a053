"""The worker process that runs wgpu: its crashes and hangs leave other processes unharmed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle import wgpu_client
from bankshot.oracle.cli.main import main
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.corpus.trial import trials
from bankshot.oracle.errors import DriverDied, NoAdapter, UsageError, portable, time_limit
from bankshot.oracle.wgpu_worker import worker_process
from tests.scaling import PARAMS, SHADER, manifest

ROOT = Path(__file__).parents[2]
DEADLINE = 60  # seconds
posix = pytest.mark.skipif(os.name != "posix", reason="sends signals")

# Makes the worker process do something at each dispatch.
AT_DISPATCH = """
import os, signal, time
from bankshot.oracle.wgpu_worker import serve as serving
def dispatch(order, plain=serving.QUESTIONS["dispatch"]):
    {}
    return plain(order)
serving.QUESTIONS["dispatch"] = dispatch
"""


def program(body):
    """Return the program of a worker that runs `body` at each dispatch."""
    return worker_process._PROGRAM.replace("from bankshot", f"exec({AT_DISPATCH.format(body)!r}); from bankshot", 1)


@pytest.fixture
def other(monkeypatch):
    """Return a function that replaces the program of the next worker. The original is restored after the test."""

    def begin(body):
        monkeypatch.setattr(worker_process, "_PROGRAM", program(body))
        worker_process.hand_over()

    yield begin
    worker_process.hand_over()


FILL = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;"
FILL += "@compute @workgroup_size(64) fn f(@builtin(global_invocation_id) id: vec3u) { y[id.x] += id.x; }"


def fill(words=64, start=0):
    return wgpu_client.begin(FILL, "f", (words // 64, 1, 1), {"y": np.full(words, start, np.uint32)})


def filled(words=64, start=0):
    return (np.arange(words) + start).tolist()


@posix
@pytest.mark.usefixtures("adapter")
def test_the_client_survives_a_crash_and_starts_another_worker(other, monkeypatch):
    other("os.kill(os.getpid(), signal.SIGSEGV)")
    one, two = fill(), fill()
    for begun in (two, one):
        with pytest.raises(DriverDied, match=r"^the process that ran wgpu died of SIGSEGV$"):
            begun.done()
    monkeypatch.undo()
    assert fill().done().outputs["y"].tolist() == filled()


@posix
def test_a_worker_that_dies_between_two_questions_fails_both(monkeypatch):
    """The second question finds the pipe closed; the first one, which has no answer yet, gets the same error."""
    monkeypatch.setattr(worker_process, "_PROGRAM", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    worker_process.hand_over()
    driver = worker_process.begin()
    first = worker_process.put("offers")
    driver._process.wait()
    second = worker_process.put("offers")
    assert second is not first
    for asked in (first, second):
        with pytest.raises(DriverDied, match=r"^the process that ran wgpu died of SIGSEGV$"):
            asked.answer()
    worker_process.hand_over()


@posix
@pytest.mark.usefixtures("adapter")
def test_an_audit_reports_a_crash_with_its_case_and_continues(other, tmp_path):
    for size in (64, 128):
        (tmp_path / f"of_{size}.toml").write_text(manifest(PARAMS, n=size))
    (tmp_path / "scale.wgsl").write_text(SHADER)
    other("len(order.resources[0].data) == 256 and any(order.grid) and os.abort()")
    done = CliRunner().invoke(main, ["audit", str(tmp_path), "--listing", "none"])
    assert done.exit_code == 2, done.output
    assert "the process that ran wgpu died of SIGABRT" in done.output
    assert "audit: 1 of 2 cases clean" in done.output


@posix
@pytest.mark.usefixtures("adapter")
def test_a_crash_ends_the_process_that_tries_a_corpus(other):
    """The process exits as if wgpu had crashed in it, and the pool that started it replaces it."""
    other("os.abort()")
    with pytest.raises(SystemExit, match="the process that ran wgpu died of SIGABRT"):
        list(trials(Shader(Path("a.wgsl"), 1, FILL), None))


@pytest.mark.usefixtures("adapter")
def test_answers_can_be_awaited_in_any_order(other):
    """With more data than a pipe holds, in both directions."""
    words, begun = 1 << 21, []
    for start in range(3):
        begun.append(fill(words, start))
    for start in (2, 0, 1):
        assert begun[start].done().outputs["y"].tolist() == filled(words, start)


@pytest.mark.usefixtures("adapter")
def test_output_of_a_driver_is_not_an_answer(other, capfd):
    other("print('from a driver', flush=True)")
    assert fill().done().outputs["y"].tolist() == filled()
    printed = capfd.readouterr()
    assert ("from a driver" in printed.err, printed.out) == (True, "")


STUCK = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where tests are run in the background
from bankshot.oracle.wgpu_worker import worker_process as process
process._PROGRAM = {program!r}
sys.argv = ["bankshot", "audit", {path!r}]
from bankshot.__main__ import main
main()
"""


@posix
@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_worker_that_hangs_exits_with_its_client(tmp_path, number, code):
    """Client and worker share stderr, which is closed once both have exited."""
    (tmp_path / "scale.wgsl").write_text(SHADER)
    (tmp_path / "scale.toml").write_text(manifest(PARAMS))
    hangs = program("os.write(2, b'stuck\\n' * any(order.grid)); time.sleep(1e6 * any(order.grid))")
    command = [sys.executable, "-c", STUCK.format(program=hangs, path=str(tmp_path / "scale.toml"))]
    asks = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert asks.stderr is not None
    assert any(line == "stuck\n" for line in asks.stderr)
    os.killpg(asks.pid, number) if number == signal.SIGINT else asks.send_signal(number)
    try:
        _, said = asks.communicate(timeout=DEADLINE)
    finally:
        asks.kill()
    assert asks.returncode == code
    assert "Traceback" not in said


@posix
@pytest.mark.usefixtures("adapter")
def test_a_driver_that_hangs_is_ended_after_a_limit(other, monkeypatch):
    other("time.sleep(1e6)")
    monkeypatch.setenv("BANKSHOT_LIMIT", "3")
    with pytest.raises(DriverDied, match="the process that ran wgpu did not answer for 3 s and was ended; --limit"):
        fill().done()
    monkeypatch.undo()
    assert fill().done().outputs["y"].tolist() == filled()


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan", "inf", "1000001"])
def test_the_limit_is_a_number_of_seconds(monkeypatch, seconds):
    monkeypatch.setenv("BANKSHOT_LIMIT", seconds)
    with pytest.raises(UsageError, match="BANKSHOT_LIMIT must be a number of seconds above 0 and at most 1,000,000, "):
        time_limit()


@pytest.mark.parametrize("seconds", [0.5, 1e6])
def test_a_limit_may_be_short_or_long(monkeypatch, seconds):
    monkeypatch.setenv("BANKSHOT_LIMIT", str(seconds))
    assert time_limit() == seconds


@pytest.mark.parametrize(
    ("arguments", "begun"),
    [
        ("audit shaders", True),
        ("diff shaders", True),
        ("audit --no-gpu shaders", False),
        ("audit --help", False),
        ("check a.wgsl", False),
        ("", False),
    ],
)
def test_commands_start_the_worker_early_if_they_need_it(arguments, begun):
    code = f"import sys; sys.argv = ['bankshot', *{arguments.split()!r}]; import bankshot.__main__ as entry"
    code += "; from bankshot.oracle.wgpu_worker import worker_process as process; print(process._worker is not None)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{begun}\n", "")


def test_errors_cross_processes():
    class Local(Exception):
        """An error class that other processes cannot import."""

    assert isinstance(portable(NoAdapter("none"), RuntimeError), NoAdapter)
    assert str(portable(Local("words"), RuntimeError)) == "Local: words"
