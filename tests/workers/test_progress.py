"""The lines of progress on a stderr that is no terminal: numbered, and ever more rarely."""

from types import SimpleNamespace

import pytest

from bankshot.oracle.workers import progress


@pytest.fixture
def lines(monkeypatch):
    """Progress through 9 cases that begins at 0 s, with a clock to set."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    made = progress._Lines(9, printed=0.0)

    def at(seconds, *stage, **options):
        clock.now = seconds
        made.stage(*stage, **options)

    return made, at


def printed(capsys):
    return capsys.readouterr().err.splitlines()


def test_a_stage_is_printed_after_ten_seconds_and_then_ever_more_rarely(lines, capsys):
    _, at = lines
    for seconds in (0, 9.9, 10, 19.9, 29.9, 30, 69.9, 70, 149, 150):
        at(seconds, f"k {seconds}", "runs")
    assert printed(capsys) == [f"[1/9] k {seconds}: runs" for seconds in (10, 30, 70, 150)]


def test_an_urgent_stage_is_printed_at_once(lines, capsys):
    _, at = lines
    at(1, "k", "died", urgent=True)
    at(20.9, "k", "runs")  # the next wait is as after any line: 20 s
    at(21, "k", "runs")
    assert printed(capsys) == ["[1/9] k: died", "[1/9] k: runs"]


def test_stages_have_the_number_of_their_case(lines, capsys):
    made, at = lines
    with made.finish():
        at(1, "k", "runs", urgent=True)
    with made.finish():
        pass
    at(2, "k", "runs", urgent=True)
    at(3, "k", "runs", number=7, urgent=True)
    assert [line.partition(" ")[0] for line in printed(capsys)] == ["[2/9]", "[3/9]", "[7/9]"]


def test_a_stage_that_goes_on_is_printed_without_another(lines, capsys):
    made, at = lines
    waits = []

    def wait(seconds):
        waits.append(seconds)
        at_now = {1: 10.0, 2: 30.0}.get(len(waits))
        progress.time.monotonic = lambda: at_now
        return len(waits) > 2

    at(0, "k", "runs")
    made._watch(SimpleNamespace(wait=wait))
    assert waits == [10.0, 20.0, 40.0]
    assert printed(capsys) == ["[1/9] k: runs"] * 2


def test_nothing_is_printed_before_the_first_stage(lines, capsys):
    made, _ = lines
    made._print(urgent=True)
    assert printed(capsys) == []
    assert made.wait == 10.0


def test_the_watch_ends_with_its_context():
    with progress._Lines(1).printing() as made:
        made.wait = 0.01
    assert made.now == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_has_a_bar(monkeypatch, terminal):
    stderr = SimpleNamespace(isatty=lambda: terminal, write=lambda text: len(text), flush=lambda: None)
    monkeypatch.setattr(progress.sys, "stderr", stderr)
    with progress.meter(3) as made:
        assert isinstance(made, progress._Bar if terminal else progress._Lines)
        made.stage("k", "runs \x1b[2J")
        with made.finish():
            pass
        if terminal:
            (task,) = made.progress.tasks
            assert (task.total, task.completed, task.description) == (3, 1, "k: runs \\x1b[2J")
            assert made.progress.live.is_started
        else:
            assert (made.total, made.finished) == (3, 1)
