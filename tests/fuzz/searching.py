"""Program number so many, and the smallest that an adapter disagrees on in the same way."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky, HypothesisWarning

from .programs import Program, programs

SECONDS = 40.0  # for making a program small


class _Disagreement(Exception):
    pass


def program_of(number: int) -> Program:
    """Always the same for a number, as long as neither hypothesis nor the strategy changes."""
    return _search(number, lambda program: False)[-1]


def smallest(number: int, disagreed: Callable[[Program], bool]) -> Program:
    """Program number so many, made as small as can be in some seconds while `disagreed` holds."""
    end, found = time.monotonic() + SECONDS, [program_of(number)]

    def still(program: Program) -> bool:
        if time.monotonic() > end or not disagreed(program):
            return False
        found.append(program)
        return True

    _search(number, still)
    return min(found, key=lambda program: len(program.text))


def _search(number: int, disagreed: Callable[[Program], bool]) -> list[Program]:
    """Every program that hypothesis comes to, but for the first, with which it always begins: the simplest of all."""
    drawn: list[Program] = []
    begun = False

    @seed(number)
    @settings(
        max_examples=2,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(programs())
    def draw(program: Program) -> None:
        nonlocal begun
        if begun:
            drawn.append(program)
            if disagreed(program):
                raise _Disagreement
        begun = True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)  # of the recursion limit, which reading a shader raises
        try:
            draw()
        except (_Disagreement, Flaky):
            pass  # flaky: there was no more time
    return drawn
