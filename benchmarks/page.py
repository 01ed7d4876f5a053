"""The page of a benchmark: a table, the ratios, and how cost grows, in Markdown beside a plot in SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .figures import MismatchMap
from .growth import Growth
from .ways import Way


@dataclass(frozen=True, slots=True)
class Document:
    """What came of timing one case: seconds, floating-point operations per second and ratios of these."""

    kernel: str
    shape: str
    machine: dict[str, Any]
    rounds: int
    ways: tuple[Way, ...]
    seconds: dict[str, MismatchMap]
    rates: dict[str, MismatchMap]
    ratios: dict[tuple[str, str], MismatchMap]
    absent: tuple[str, ...]


HEAD = """\
# How fast it is

Written by `make bench`: {kernel} {shape}, on {cores} cores of {processor}, Python {python}, where the load was {load}
the minute before. In each of {rounds} rounds every way has its turn, one after the other, after a first round that is
not counted. Figures are the median, with the least and the most in brackets. A ratio is taken within each round.

{what}
"""

RULES: dict[str, str] = dict.fromkeys(
    ("seconds", "MFLOP/s", "ratio", "fixed, ms", "a workgroup, ms"), "---:"
)  # of columns

SCALED = """\
Where a peer is too slow for the whole product, it does one of fewer of the same tiles, at two depths. Its rate is the
work that the deeper one does more, by the seconds that it takes longer: starting up, compiling and reading data cost it
nothing. Before it is timed, what it computes is held against a product in float64.
"""


def write(path: Path, document: Document, grown: Growth) -> None:
    plot = path.with_suffix(".svg")
    _draw(plot, grown)
    path.write_text("\n".join(_sections(document, grown, plot.name)), encoding="utf-8")


def _sections(document: Document, grown: Growth, plot: str) -> Iterable[str]:
    table = _table(
        ("", "seconds", "MFLOP/s", "what"),
        (
            (way.name, _spread(document.seconds[way.name]), _spread(document.rates[way.name], 1e-6), way.what)
            for way in document.ways
        ),
    )
    named = {"kernel": document.kernel, "shape": document.shape, "rounds": document.rounds}
    yield HEAD.format(**named, **document.machine, what=table)
    yield SCALED
    if document.absent:
        yield "Not on this machine:\n\n" + "\n".join(f"- {why}" for why in document.absent) + "\n"
    yield "## Times as fast\n"
    yield _table(("", "ratio"), ((f"{a} / {b}", _spread(ratio)) for (a, b), ratio in document.ratios.items())) + "\n"
    yield "## Cost against work\n"
    yield f"![Seconds by workgroups]({plot})\n"
    most = f"{grown.workgroups[0]} to {grown.workgroups[-1]}"
    yield f"From {most} workgroups of this kernel the cost is a straight line, as near as these points lie to it:\n"
    heads = ("", "fixed, ms", "a workgroup, ms", "furthest point off the line")
    lines = ((kind, grown.line(kind)) for kind in grown.seconds)
    rows = ((kind, f"{1e3 * line.fixed:.3g}", f"{1e3 * line.each:.3g}", f"{line.off:.0%}") for kind, line in lines)
    yield _table(heads, rows) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Figures to the right, words to the left."""
    lines = [head, [RULES.get(name, "---") for name in head], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _spread(spread: MismatchMap, unit: float = 1.0) -> str:
    median, least, most = (_number(n * unit) for n in (spread.median, spread.least, spread.most))
    return f"{median} ({least} to {most})"


def _number(n: float) -> str:
    return f"{n:.3g}" if n < 1000 else f"{n:,.0f}"


def _draw(path: Path, grown: Growth) -> None:
    """Seconds by workgroups, with the straight line through the origin that fits best."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "bankshot", "svg.fonttype": "none"}):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.subplots()
        counts = np.array(grown.workgroups)
        for kind, taken in grown.seconds.items():
            seconds = np.array([each.least for each in taken])
            slope = float(counts @ seconds / (counts @ counts))
            (dots,) = axes.plot(counts, seconds, "o", label=f"{kind}: {slope * 1e3:.2f} ms a workgroup")
            axes.plot([0, counts[-1]], [0, slope * counts[-1]], "-", color=dots.get_color(), linewidth=1)
        axes.set(xlabel="workgroups", ylabel="seconds", xlim=(0, None), ylim=(0, None), xticks=[0, *counts])
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None}, facecolor="white")
