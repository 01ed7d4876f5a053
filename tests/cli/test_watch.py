"""`audit --watch`, as a user at an editor runs it: one process, and what it prints after each change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from bankshot.oracle.cli import watch as watching_room
from tests.scaling import manifest

ROOT = Path(__file__).parents[2]
MANIFEST = manifest(kernel='reference = "references.py:scale"', n=64, lanes=64)
SHADER = """\
#include "factor.wgsl"
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = FACTOR * x[id.x]; }
"""
FACTOR = "const FACTOR = {}.0;\n"
REFERENCE = "def scale(arrays, dims):\n    return {{'y': {} * arrays['x']}}\n"
DEADLINE = 120  # seconds


class Watch:
    """A process that watches. `said`: the lines since the last change."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        self.said = []
        self._waits = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            self.said.append(line)
            if line.startswith("watching "):
                self._waits.set()

    def after(self, change):
        """Everything it says after a change until it waits for the next."""
        self._waits.clear()
        self.said.clear()
        change()
        return self.now()

    def now(self):
        assert self._waits.wait(DEADLINE), "".join(self.said)
        return "".join(self.said)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(DEADLINE)


@contextmanager
def watching(folder, *options, start=("-m", "bankshot")):
    command = [sys.executable, *start, "audit", str(folder), "--watch", "--no-gpu", "--listing", "none", *options]
    watch = Watch(command)
    try:
        yield watch
    finally:
        watch.process.kill()
        watch.process.wait()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "scale.toml").write_text(MANIFEST)
    (tmp_path / "scale.wgsl").write_text(SHADER)
    (tmp_path / "factor.wgsl").write_text(FACTOR.format(2))
    (tmp_path / "references.py").write_text(REFERENCE.format(2))
    return tmp_path


def save(file, text):
    """Replace a file at once, as editors do, so that it is never half written."""
    beside = file.with_name("being written")
    beside.write_text(text)
    beside.replace(file)


def clean(said):
    return "audit: 1 of 1 cases clean" in said


def test_what_is_saved_is_audited_again(folder):
    """An included file, the reference and the manifest. The last audit's exit code is that of all."""
    with watching(folder) as watch:
        assert clean(watch.now())
        said = watch.after(lambda: save(folder / "factor.wgsl", FACTOR.format(3)))
        assert not clean(said)
        assert "factor.wgsl changed" in said
        assert "clean -> failed" in said
        assert "against the last save: 1 of 1 cases changed, 1 of them for the worse" in said
        assert clean(watch.after(lambda: save(folder / "references.py", REFERENCE.format(3))))
        assert not clean(watch.after(lambda: save(folder / "scale.toml", MANIFEST.replace("normal", "lots"))))
        assert watch.interrupt() == 130


def test_what_is_broken_may_be_mended(folder):
    with watching(folder) as watch:
        assert clean(watch.now())
        assert "scale.wgsl:5:1: error" in watch.after(lambda: save(folder / "scale.wgsl", SHADER + "}\n"))
        assert clean(watch.after(lambda: save(folder / "scale.wgsl", SHADER)))
        assert "error" in watch.after(lambda: save(folder / "scale.toml", "[kernel"))
        assert clean(watch.after(lambda: save(folder / "scale.toml", MANIFEST)))
        assert watch.interrupt() == 130


def test_of_a_broken_file_the_kernels_and_code_beside_it_are_watched(folder):
    (folder / "scale.wgsl").write_text(SHADER + "}\n")
    (folder / "notes.txt").write_text("nothing that a run reads")
    names = {path.name for path in watching_room._around(folder / "scale.wgsl")}
    assert names == {folder.name, "scale.toml", "scale.wgsl", "factor.wgsl", "references.py"}


def test_a_file_that_was_missing_is_seen(folder):
    (folder / "factor.wgsl").unlink()
    with watching(folder) as watch:
        assert "factor.wgsl" in watch.now()
        assert clean(watch.after(lambda: save(folder / "factor.wgsl", FACTOR.format(2))))
        assert not clean(watch.after((folder / "factor.wgsl").unlink))


def test_what_is_saved_during_an_audit_is_not_missed(folder):
    with watching(folder) as watch:
        assert clean(watch.now())
        watch.after(lambda: save(folder / "scale.wgsl", SHADER + "\n"))
        save(folder / "scale.wgsl", SHADER + "\n\n")
        time.sleep(0.15)  # the next audit has begun, or is about to
        save(folder / "factor.wgsl", FACTOR.format(5))
        end = time.monotonic() + DEADLINE
        while "0 of 1" not in "".join(watch.said) and time.monotonic() < end:
            time.sleep(0.05)
        assert "0 of 1" in "".join(watch.said)


def test_where_no_process_can_be_forked_others_are_started(folder):
    start = ("-c", "import os; del os.fork; from bankshot.__main__ import main; main()")
    with watching(folder, start=start) as watch:
        assert clean(watch.now())
        assert not clean(watch.after(lambda: save(folder / "factor.wgsl", FACTOR.format(3))))
        assert watch.interrupt() == 130


@pytest.mark.usefixtures("adapter")
def test_each_audit_is_compared_with_wgpu(folder):
    with watching(folder, "--gpu") as watch:
        assert "ok       y against wgpu on " in watch.now()
        said = watch.after(lambda: save(folder / "factor.wgsl", FACTOR.format(3)))
        assert not clean(said)
        assert "ok       y against wgpu on " in said
        assert "ok       y against wgpu on " in watch.after(lambda: save(folder / "factor.wgsl", FACTOR.format(2)))
        assert watch.interrupt() == 130


def test_paths_that_are_not_there_end_it(folder):
    with watching(folder / "nothing") as watch:
        assert watch.process.wait(DEADLINE) == 2


def test_what_is_half_saved_is_waited_for(monkeypatch):
    """A file that is emptied, then written, is reported once two checks find it unchanged."""
    file, looks = Path("a.wgsl"), iter([(1, 9), (1, 9), (2, 0), (3, 4), (3, 8), (3, 8)])
    monkeypatch.setattr(watching_room, "_stamp", lambda _: next(looks))
    monkeypatch.setattr(watching_room, "PERIOD", 0)
    assert watching_room._changes({file: (1, 9)}) == [file]
    assert next(looks, None) is None


def test_what_is_as_it_was_is_no_change(monkeypatch):
    file, looks = Path("a.wgsl"), iter([(2, 0), (1, 9), (1, 9), None, None])
    monkeypatch.setattr(watching_room, "_stamp", lambda _: next(looks))
    monkeypatch.setattr(watching_room, "PERIOD", 0)
    assert watching_room._changes({file: (1, 9)}) == [file]
    assert next(looks, None) is None


def test_what_is_forked_has_warmed_up_without_threads():
    """A child would have none of them, and whatever they held."""
    code = "import sys, threading; from bankshot.oracle.cli import watch as watching; watching._warm_up()"
    code += "; print(threading.active_count(), 'bankshot.sim.findings.explain' in sys.modules, 'wgpu' in sys.modules)"
    environment = {**os.environ, "BANKSHOT_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1 True False\n"
