"""The reader neither crashes nor depends on changed shaders: some here, many by `python -m tests.wgsl.fuzz_reader`."""

from __future__ import annotations

import pytest

from tests.wgsl import fuzz_reader


def test_changed_shaders_get_a_plain_answer() -> None:
    faults = [(i, answer) for i in range(500) if (answer := fuzz_reader.read(fuzz_reader.text_of(i))).where]
    assert not faults


def test_a_crash_and_a_hang_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(text: str) -> None:
        while True:
            text = text[::-1]

    monkeypatch.setattr(fuzz_reader, "SECONDS", 0.01)
    monkeypatch.setattr(fuzz_reader, "_read", spin)
    assert fuzz_reader.read("fn").word == "hung"
    monkeypatch.setattr(fuzz_reader, "_read", lambda text: text / 2)
    assert fuzz_reader.read("fn") == fuzz_reader.Answer("crashed", "TypeError")


def test_the_texts_are_many_and_the_same_again() -> None:
    texts = {fuzz_reader.text_of(i) for i in range(300)}
    assert len(texts) > 250
    assert texts == {fuzz_reader.text_of(i) for i in range(300)}
    assert texts != {fuzz_reader.text_of(i, seed=1) for i in range(300)}
