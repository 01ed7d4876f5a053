"""How the end of a child process is reported."""

import pytest

from bankshot.oracle.child_process import ending


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
