"""Startup and exit of a command's process: OpenBLAS, exit codes, exit handlers, buffered output."""

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
    environment = {**PLAIN, **environment}
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )


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


def test_unwritable_output_is_reported():
    read, write = os.pipe()
    os.close(read)
    done = probe("pass", stdout=write)
    os.close(write)
    assert done.returncode == 120  # Python's own, where it cannot flush
    assert "BrokenPipeError" in done.stderr


def test_a_reader_that_closes_early_is_not_a_failure():
    read, write = os.pipe()
    os.close(read)
    done = probe("click.echo('enough')", stdout=write, PYTHONUNBUFFERED="1")
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_ends_it():
    done = probe("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)")
    assert done.returncode == 1
    assert "Aborted!" in done.stderr
    assert "registered first" in done.stdout


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
