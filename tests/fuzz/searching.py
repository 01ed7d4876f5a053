"""Program number so many."""

from __future__ import annotations

import warnings

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import HypothesisWarning

from .programs import Program, programs


def program_of(number: int) -> Program:
    """Always the same for a number, as long as neither hypothesis nor the strategy changes."""
    drawn: list[Program] = []

    @seed(number)
    @settings(
        max_examples=2,  # the first is always the simplest program of all
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(programs())
    def draw(program: Program) -> None:
        drawn.append(program)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)  # of the recursion limit, which reading a shader raises
        draw()
    return drawn[-1]
