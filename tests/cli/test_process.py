"""Startup and exit of a command's process: OpenBLAS, exit codes, exit handlers, buffered output."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A command of our own beside the others, with a body that is put in, then the lines that call it.
BODY = """
import atexit, os, signal, sys, time, click
atexit.register(print, "registered first")
from bankshot import __main__ as entry

class Global:
    def __del__(self):
        os.write(1, b"torn down\\n")

kept = Global()
@entry.command.command()
def probe():
    print("begun")
    atexit.register(print, "registered last")
    {body}
sys.argv = ["bankshot", "probe"]
"""
CALL = "entry.main()"
PLAIN = {
    name: value for name, value in os.environ.items() if name not in ("OPENBLAS_THREAD_TIMEOUT", "PYTHONUNBUFFERED")
}


def probe(body, call=CALL, stdout=subprocess.PIPE, **environment):
    command = [sys.executable, "-c", BODY.format(body=body) + call]
    encoding = environment.get("PYTHONIOENCODING")
    return subprocess.run(command, cwd=ROOT, env={**PLAIN, **environment}, stdout=stdout, stderr=subprocess.PIPE,
                          text=True, encoding=encoding, check=False)  # fmt: skip


def oracle(*arguments):
    command = [sys.executable, "-m", "bankshot", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_commands_exit_code_is_that_of_the_process(tmp_path):
    (tmp_path / "good.wgsl").write_text("@compute @workgroup_size(1) fn main() {}")
    (tmp_path / "bad.wgsl").write_text("fn")
    assert oracle("check", tmp_path / "good.wgsl").returncode == 0
    assert oracle("check", tmp_path / "bad.wgsl").returncode == 2
    assert oracle("no-such-command").returncode == 2


@pytest.mark.parametrize(("body", "code"), [("pass", 0), ("sys.exit(1)", 1), ("sys.exit(None)", 0), ("1 / 0", 70)])
def test_exit_handlers_run_once_and_output_is_complete(body, code):
    done = probe(body)
    assert done.returncode == code
    assert done.stdout.splitlines() == ["begun", "registered last", "registered first"]


def test_no_teardown_runs_at_the_end():
    assert "torn down" not in probe("pass").stdout
    assert "torn down" in probe("pass", call="entry.commands.main(standalone_mode=False)").stdout


def test_callers_of_the_command_continue_after_it():
    call = "try:\n    entry.main()\nexcept SystemExit as end:\n    print('after', end.code)"
    done = probe("sys.exit(1)", call)
    assert done.stdout.splitlines()[:2] == ["begun", "after 1"]


def test_threads_are_waited_for():
    body = "import threading; threading.Thread(target=lambda: time.sleep(0.2) or print('worked')).start()"
    assert "worked" in probe(body).stdout


def test_a_message_instead_of_a_code_is_printed():
    done = probe("sys.exit('no')")
    assert (done.returncode, done.stderr) == (1, "no\n")


def closed_pipe():
    """The writing end of a pipe that has no reader."""
    read, write = os.pipe()
    os.close(read)
    return write


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_closes_early_changes_no_exit_code(unbuffered):
    done = probe("click.echo('enough'); print('x' * 100_000); sys.exit(1)", stdout=closed_pipe(),
                 PYTHONUNBUFFERED=unbuffered)  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(("verdict", "code"), [(0, 2), (70, 70)])
def test_a_full_disk_is_an_error(verdict, code):
    with open("/dev/full", "w") as full:
        done = probe(f"click.echo('enough'); sys.exit({verdict})", stdout=full)
    assert (done.returncode, done.stderr) == (code, "error: stdout could not be written: No space left on device\n")


def test_closed_streams_keep_the_exit_code(tmp_path):
    (tmp_path / "bad.wgsl").write_text("fn")
    command = f'"{sys.executable}" -m bankshot check "{tmp_path / "bad.wgsl"}"'
    done = subprocess.run(f"{command} >&-; echo $?; {command} <&- >&- 2>&-; echo $?", shell=True, cwd=ROOT,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stdout.split() == ["2", "2"]
    assert done.stderr.endswith("note: stdout is closed, so that the report was printed nowhere\n")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_characters_that_the_encoding_lacks_are_escaped(encoding):
    body = "import rich.console; click.echo('\u00b5 \u2192'); rich.console.Console().print('\u00b5 \u2192')"
    done = probe(body, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    expected = "\u00b5 \u2192".encode(encoding, "backslashreplace").decode(encoding)
    assert done.stdout.splitlines()[1:3] == [expected] * 2


def test_an_interrupt_ends_it():
    done = probe("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)")
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
    assert "registered first" in done.stdout


def test_an_interrupt_while_modules_are_imported_ends_it():
    program = """
import builtins, os, signal, sys
plain = builtins.__import__
def watched(name, *rest, **more):
    if name == "click":
        os.kill(os.getpid(), signal.SIGINT)
    return plain(name, *rest, **more)
builtins.__import__ = watched
import bankshot.__main__
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files")
def test_reports_that_cannot_be_written_leave_nothing_behind(tmp_path):
    (tmp_path / "k.wgsl").write_text("@compute @workgroup_size(1) fn main() {}")
    files = [tmp_path / "report.html", tmp_path / "report.sarif"]
    command = f'"{sys.executable}" -m bankshot audit k.wgsl --no-gpu --json --html report.html --sarif report.sarif'
    done = subprocess.run(f"ulimit -f 0; {command}", shell=True, cwd=tmp_path, capture_output=True, text=True,
                          env={**PLAIN, "PYTHONPATH": str(ROOT)}, check=False)  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-2:] == [
        "error: --html report.html: cannot be written: File too large",
        "--sarif report.sarif: cannot be written: File too large",
    ]
    assert json.loads(done.stdout)["verb"] == "audit"
    assert not any(file.exists() for file in files)
    assert [each.name for each in tmp_path.iterdir()] == ["k.wgsl"]


def test_an_audit_whose_reader_leaves_finishes_its_work(tmp_path):
    (tmp_path / "wrong.wgsl").write_text(
        "@group(0) @binding(0) var<storage, read_write> y: array<f32, 4>;"
        "@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[i + 1] = 1; }"
    )
    (tmp_path / "wrong.toml").write_text(
        '[kernel]\nsource = "wrong.wgsl"\ndispatch = [1]\n[bind.y]\ndtype = "f32"\nshape = [4]\ninit = "zeros"\n'
    )
    files = {name: tmp_path / f"report.{name}" for name in ("sarif", "html")}
    options = [part for name, file in files.items() for part in (f"--{name}", file)]
    command = ["audit", tmp_path / "wrong.toml", "--no-gpu", "--format", "github", *options]
    done = subprocess.run([sys.executable, "-m", "bankshot", *command], cwd=ROOT, stdout=closed_pipe(),
                          stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "Error" not in done.stderr
    assert "out-of-bounds" in files["sarif"].read_text()
    assert files["html"].read_text().rstrip().endswith("</html>")


@pytest.mark.parametrize(("given", "expected"), [({}, "4"), ({"OPENBLAS_THREAD_TIMEOUT": "20"}, "20")])
def test_openblas_does_not_spin_unless_asked_to(given, expected):
    assert probe("print(os.environ['OPENBLAS_THREAD_TIMEOUT'])", **given).stdout.splitlines()[1] == expected


def test_openblas_is_configured_before_numpy_is_imported():
    program = """
import builtins, os
plain = builtins.__import__
def watched(name, *rest, **more):
    assert name.split(".")[0] != "numpy" or "OPENBLAS_THREAD_TIMEOUT" in os.environ, "numpy came first"
    return plain(name, *rest, **more)
builtins.__import__ = watched
import bankshot.__main__
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=PLAIN, check=True)


def test_importing_the_command_line_changes_nothing_of_the_process():
    program = "import gc; before = gc.get_threshold(); import bankshot.oracle.cli.main"
    program += "; assert gc.get_threshold() == before"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
