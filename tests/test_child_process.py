"""Processes that answer questions, how their end is reported, and how texts of others are shown."""

import os
import signal

import pytest

from bankshot.oracle.child_process import ChildProcess, ending
from bankshot.oracle.errors import UsageError, escape_controls, printable, time_limit


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (3, "exited with code 3"),
        (-11, "died of SIGSEGV"),
        (-9, "died of SIGKILL; perhaps there was not enough memory"),
        (-200, "died of signal 200"),
    ],
)
def test_an_ending_has_its_code_or_its_signal(code, words):
    assert ending(code) == words


# ---- questions and answers ---------------------------------------------------------------------------

PROGRAM = """
import os
from bankshot.oracle.child_process import serve
from bankshot.oracle.errors import UsageError

told = []

def double(number):
    print("printed")
    return 2 * number

def refuse(words):
    raise UsageError(words)

def odd():
    class Own(Exception):
        pass
    raise Own("of its own")

serve({"double": double, "refuse": refuse, "odd": odd, "tell": told.append, "told": lambda: told, "end": os._exit,
       "input": lambda: os.read(0, 1)})
"""


class Lost(UsageError):
    """The process has died."""


@pytest.fixture
def child():
    made = ChildProcess(PROGRAM, "the helper", Lost)
    yield made
    if made.owner:
        made.close()
    made._process.wait(10)


def test_a_question_has_its_answer_or_its_error(child):
    one, two, three = (child.put("double", (number,)) for number in (1, 2, 3))
    assert [three.answer(), one.answer(), two.answer(), one.answer()] == [6, 2, 4, 2]
    with pytest.raises(UsageError, match=r"^no such thing$"):
        child.put("refuse", ("no such thing",)).answer()
    with pytest.raises(RuntimeError, match=r"^Own: of its own$"):  # its class is known there alone
        child.put("odd", ()).answer()
    assert child.put("input", ()).answer() == b""
    assert child.put("double", (4,)).answer() == 8


def test_an_interrupt_is_the_parents(child):
    assert child.put("double", (1,)).answer() == 2
    child._process.send_signal(signal.SIGINT)
    assert child.put("double", (2,)).answer() == 4


def test_a_silent_question_has_no_answer(child):
    for number in (1, 2):
        child.put("tell", (number,), silent=True)
    assert child.put("told", ()).answer() == [1, 2]


def test_a_dead_process_is_the_error_of_every_open_question(child):
    assert child.owner == os.getpid()
    asked = [child.put("end", (3,)), child.put("double", (1,))]
    for each in asked:
        with pytest.raises(Lost, match=r"^the helper exited with code 3$"):
            each.answer()
    assert child.owner == 0


def test_the_pipes_of_a_dead_process_are_closed(child):
    with pytest.raises(Lost):
        child.put("end", (3,)).answer()
    assert [pipe.closed for pipe in (child._process.stdin, child._process.stdout)] == [True, True]
    assert (child.owner, child._process.returncode) == (0, 3)


def test_a_process_ends_when_it_is_closed(child):
    assert child.put("double", (1,)).answer() == 2
    child.close()
    assert child._process.wait(10) == 0
    assert child._process.stdout.closed
    assert child._process.stdin.closed


def test_a_process_that_does_not_answer_is_ended(monkeypatch):
    monkeypatch.setenv("BANKSHOT_LIMIT", "0.2")
    program = "import time\nfrom bankshot.oracle.child_process import serve\nserve({'sleep': time.sleep})"
    child = ChildProcess(program, "the helper", Lost)
    with pytest.raises(Lost, match=r"^the helper did not answer for 0\.2 s and was ended; --limit SECONDS gives it"):
        child.put("sleep", (60,)).answer()
    assert child._process.poll() is not None


# ---- texts of others ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\u202eabc\u2028", r"\u202eabc\u2028"),
        ("é ☃", "é ☃"),
        ("\x7f\x9f", r"\x7f\x9f"),
    ],
)
def test_control_characters_are_shown_as_escape_sequences(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "plain", "on_github"),
    [
        ("::error::a", "::error::a", "\\::error::a"),
        ("a\n  ::b\n##[c]", "a\n  ::b\n##[c]", "a\n  \\::b\n\\##[c]"),
        ("a::b ##[c]", "a::b ##[c]", "a::b ##[c]"),
        ("\x1b[31mred\x1b[0m\x1b[2J", "\x1b[31mred\x1b[0m\\x1b[2J", "\x1b[31mred\x1b[0m\\x1b[2J"),
        ("a\tb\r\n", "a\tb\\r\n", "a\tb\\r\n"),
    ],
)
def test_what_a_terminal_or_a_workflow_would_obey_is_escaped(text, plain, on_github):
    assert (escape_controls(text), escape_controls(text, github=True)) == (plain, on_github)


@pytest.mark.parametrize(("text", "seconds"), [(None, 300.0), ("", 300.0), ("0.5", 0.5), ("1e6", 1e6)])
def test_the_limit_is_that_of_the_environment(monkeypatch, text, seconds):
    monkeypatch.delenv("BANKSHOT_LIMIT", raising=False)
    if text is not None:
        monkeypatch.setenv("BANKSHOT_LIMIT", text)
    assert time_limit() == seconds


@pytest.mark.parametrize("text", ["0", "-1", "1000001", "nan", "inf", "soon"])
def test_a_limit_is_a_number_of_seconds(monkeypatch, text):
    monkeypatch.setenv("BANKSHOT_LIMIT", text)
    with pytest.raises(UsageError, match=f"^BANKSHOT_LIMIT must be a number of seconds above 0 .*, not '{text}'$"):
        time_limit()
