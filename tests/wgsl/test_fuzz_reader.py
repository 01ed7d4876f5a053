"""The reader neither crashes nor depends on changed shaders: some here, many by `python -m tests.wgsl.fuzz_reader`."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from bankshot.sim.wgsl.diagnostics import limits_are_errors
from tests.wgsl import fuzz_reader


def test_changed_shaders_get_a_plain_answer() -> None:
    faults = [(i, answer) for i in range(500) if (answer := fuzz_reader.read(fuzz_reader.text_of(i))).where]
    assert not faults


def test_changed_shaders_run_or_are_refused() -> None:
    """Fifty that are accepted, among the first texts of another seed."""
    words = Counter[str]()
    for i in itertools.count():
        answer = fuzz_reader.read(fuzz_reader.text_of(i, seed=7), "run")
        assert not answer.where, (i, answer)
        words[answer.word] += 1
        if words["accepted"] == 50:
            break
    assert words["refused"] > 20


def test_running_out_of_memory_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    @limits_are_errors("run")
    def exhausted(text: str) -> None:
        raise MemoryError

    monkeypatch.setitem(fuzz_reader.WAYS, "run", exhausted)
    assert fuzz_reader.read("fn", "run").word == "crashed"


def test_a_crash_and_a_hang_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(text: str) -> None:
        while True:
            text = text[::-1]

    monkeypatch.setitem(fuzz_reader.SECONDS, "read", 0.01)
    monkeypatch.setitem(fuzz_reader.WAYS, "read", spin)
    assert fuzz_reader.read("fn").word == "hung"
    monkeypatch.setitem(fuzz_reader.WAYS, "read", lambda text: text / 2)
    assert fuzz_reader.read("fn") == fuzz_reader.Answer("crashed", "TypeError")


def test_the_texts_are_many_and_the_same_again() -> None:
    texts = {fuzz_reader.text_of(i) for i in range(300)}
    assert len(texts) > 250
    assert texts == {fuzz_reader.text_of(i) for i in range(300)}
    assert texts != {fuzz_reader.text_of(i, seed=1) for i in range(300)}
