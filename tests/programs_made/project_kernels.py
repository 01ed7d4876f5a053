"""The kernels of shaders/, without those that differ from two others of the same text only in what they switch on.

`tests/cli/test_end_to_end.py` runs every one, against its reference and an adapter. Properties of the simulator that
hold for any program are tested with these.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

from bankshot.oracle.manifests.cases import Plan, Request, plans

SHADERS = Path(__file__).parents[2] / "shaders"


@cache
def project_kernels() -> tuple[Plan, ...]:
    """The first kernel and the last of each entry point, in the order of the manifests."""
    every = plans([SHADERS], Request(quick=True))
    of_one_text: defaultdict[tuple[str, str | None], list[int]] = defaultdict(list)
    for number, plan in enumerate(every):
        of_one_text[str(plan.kernel.source), plan.kernel.entry].append(number)
    return tuple(every[n] for n in sorted({n for numbers in of_one_text.values() for n in (numbers[0], numbers[-1])}))
