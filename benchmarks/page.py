"""Write a benchmark as a Markdown page with tables of times and ratios, and a plot of growing cost in SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .figures import Summary
from .growth import Growth
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

# Columns with figures, which are aligned to the right.
RULES: dict[str, str] = dict.fromkeys(("seconds", "MFLOP/s", "ratio", "fixed, ms", "a workgroup, ms"), "---:")

SCALED = """\
A peer that is too slow for the whole product computes one of fewer tiles, at two depths. Its rate is the difference in
work divided by the difference in time, so that startup, compilation and input do not count. Before it is timed, its
result is compared with a product in float64.
"""


def write(path: Path, document: Document, grown: Growth) -> None:
    """Write the page to `path`, and its plot beside it."""
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
    yield f"From {most} workgroups of this kernel, the cost fits a straight line as closely as the last column says:\n"
    heads = ("", "fixed, ms", "a workgroup, ms", "furthest point off the line")
    lines = ((kind, grown.line(kind)) for kind in grown.seconds)
    rows = ((kind, f"{1e3 * line.fixed:.3g}", f"{1e3 * line.each:.3g}", f"{line.off:.0%}") for kind, line in lines)
    yield _table(heads, rows) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table, with figures aligned to the right and text to the left."""
    lines = [head, [RULES.get(name, "---") for name in head], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _spread(spread: Summary, unit: float = 1.0) -> str:
    median, least, most = (_number(n * unit) for n in (spread.median, spread.least, spread.most))
    return f"{median} ({least} to {most})"


def _number(n: float) -> str:
    return f"{n:.3g}" if n < 1000 else f"{n:,.0f}"


def _draw(path: Path, grown: Growth) -> None:
    """Plot seconds against workgroups, with the best line through the origin."""
    import matplotlib as untyped
    from matplotlib.figure import Figure

    mpl: Any = untyped
    with mpl.rc_context({"svg.hashsalt": "bankshot", "svg.fonttype": "none"}):
        figure: Any = Figure(figsize=(6.4, 3.6), layout="constrained")
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
