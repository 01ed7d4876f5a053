"""What a round of `audit --watch` does around its fork; the system's calls are functions here."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bankshot.oracle.workers import fork

PID = 4711


@pytest.fixture
def calls(monkeypatch):
    """The calls in order; `ended`: the status of each wait, or an error."""
    log = SimpleNamespace(made=[], child=PID, ended=[])

    def record(name, result=None):
        def call(*given):
            log.made.append((name, *given))
            answer = result() if callable(result) else result
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return call

    for name in ("begin", "take_over", "hand_over"):
        monkeypatch.setattr(fork.worker_process, name, record(name))
    monkeypatch.setattr(os, "fork", record("fork", lambda: log.child), raising=False)
    monkeypatch.setattr(os, "waitpid", record("wait", lambda: log.ended.pop(0)))
    monkeypatch.setattr(os, "kill", record("kill"))
    return log


@pytest.mark.parametrize("gpu", [False, True])
def test_the_parent_waits_and_starts_the_next_wgpu_process(calls, gpu):
    calls.ended = [(PID, 3 << 8)]
    assert fork.in_fork(gpu, ["audit"]) == 3
    begin = [("begin",)] if gpu else []
    assert calls.made == [*begin, ("fork",), ("hand_over",), ("wait", PID, 0), *begin]


def test_the_child_takes_the_wgpu_process_over(calls):
    calls.child = 0
    assert fork.in_fork(True, ["audit"]) is None
    assert calls.made == [("begin",), ("fork",), ("take_over",)]


def test_an_interrupt_ends_the_child_first(calls):
    calls.ended = [KeyboardInterrupt(), (PID, 0)]
    with pytest.raises(KeyboardInterrupt):
        fork.in_fork(True, ["audit"])
    assert calls.made[-3:] == [("wait", PID, 0), ("kill", PID, signal.SIGINT), ("wait", PID, 0)]


def test_without_a_fork_a_process_runs_the_arguments(calls, monkeypatch):
    monkeypatch.delattr(os, "fork")
    monkeypatch.setattr(subprocess, "run", lambda command: SimpleNamespace(returncode=command))
    assert fork.in_fork(True, ["audit", "k.toml"]) == [sys.executable, "-m", "bankshot", "audit", "k.toml"]
    assert calls.made == []
