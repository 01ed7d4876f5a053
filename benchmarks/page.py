"""Write a benchmark as a Markdown page with tables of times and ratios, and a plot of growing cost in SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import growth_page
from .figures import Summary
from .growth import Growth
from .tables import spread, table
from .ways import Way


@dataclass(frozen=True, slots=True)
class Document:
    """The results for one case: seconds, floating-point operations per second and their ratios.

    `absent` has a sentence for each peer that is not available.
    """

    kernel: str
    shape: str
    machine: dict[str, Any]
    rounds: int
    ways: tuple[Way, ...]
    seconds: dict[str, Summary]
    rates: dict[str, Summary]
    ratios: dict[tuple[str, str], Summary]
    absent: tuple[str, ...]


HEAD = """\
# Speed

Written by `make bench`: {kernel} {shape}, on {cores} cores of {processor}, Python {python}, with a load average of
{load} in the minute before. Each of {rounds} rounds times every way once, after a first round that does not count.
Figures are medians, with the minimum and maximum in brackets. Ratios are computed within rounds.

{what}
"""

FIGURES = ("seconds", "MFLOP/s", "ratio")

SCALED = """\
A peer that is too slow for the whole product computes one of fewer tiles, at two depths. Its rate is the difference in
work divided by the difference in time, so that startup, compilation and input do not count. Before it is timed, its
result is compared with a product in float64.
"""


def write(path: Path, document: Document, grown: Sequence[Growth]) -> None:
    """Write the page to `path`, and its plot beside it."""
    plot = path.with_suffix(".svg")
    growth_page.draw(plot, grown)
    path.write_text("\n".join(_sections(document, grown, plot.name)), encoding="utf-8")


def _sections(document: Document, grown: Sequence[Growth], plot: str) -> Iterable[str]:
    rows = (
        (way.name, spread(document.seconds[way.name]), spread(document.rates[way.name], 1e-6), way.what)
        for way in document.ways
    )
    what = table(("", "seconds", "MFLOP/s", "what"), rows, FIGURES)
    named = {"kernel": document.kernel, "shape": document.shape, "rounds": document.rounds}
    yield HEAD.format(**named, **document.machine, what=what)
    yield SCALED
    if document.absent:
        yield "Not on this machine:\n\n" + "\n".join(f"- {why}" for why in document.absent) + "\n"
    yield "## Times as fast\n"
    ratios = ((f"{a} / {b}", spread(ratio)) for (a, b), ratio in document.ratios.items())
    yield table(("", "ratio"), ratios, FIGURES) + "\n"
    yield from growth_page.section(grown, plot)
