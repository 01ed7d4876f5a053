"""The section of a page that shows how time and memory grow with the work, and its plot in SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .growth import KERNELS, LARGE, Growth
from .tables import number, table

INTRODUCTION = """\
Dispatches of {least:,} to {most:,} workgroups, whose bindings grow with the grid:

{kernels}

The lines of the plot are those of the first table: a fixed part, and a part for each workgroup. The exponent is that of
the power of the workgroups that fits best from {large:,} workgroups on; it is 1 if cost grows as the work does. Both
are fitted to the minimum of the rounds, which the plot shows; the second table has medians.
"""

MEMORY = """\
Memory is the peak of a dispatch in a process of its own, less what is resident before its bindings exist, divided by
the bytes of the bindings. It is bounded if the figures of a kernel do not grow with the workgroups. The simulator
copies every binding into memory of its own and, of bindings that the kernel may write, also keeps the values before and
after: 2 for bindings that the kernel only reads, and 4 for others. Of such buffers from 64 MiB on, it keeps neither: 2,
and half as much again for what all probes remember. In small dispatches, a fixed part dominates.
"""

NO_MEMORY = "Memory is not shown, as this system does not report it.\n"

LINES = ("kernel", "probes", "fixed, ms", "a workgroup, µs", "furthest point off the line", "exponent")
FIGURES = {*LINES[2:], "workgroups", "bindings, MB"}


def section(grown: Sequence[Growth], plot: str) -> Iterable[str]:
    """Yield the paragraphs and tables of the section. `plot`: the name of the plot's file."""
    counts = [count for each in grown for count in each.workgroups]
    yield "## Cost against work\n"
    yield f"![Seconds and memory by workgroups]({plot})\n"
    kernels = "\n".join(f"- `{each.kernel}`: {KERNELS[each.kernel].what}" for each in grown)
    yield INTRODUCTION.format(least=min(counts), most=max(counts), kernels=kernels, large=LARGE)
    yield table(LINES, (_line(each, kind) for each in grown for kind in each.seconds), FIGURES) + "\n"
    measured = [each for each in grown if each.peaks]
    yield MEMORY if measured else NO_MEMORY
    kinds = list(grown[0].seconds)
    seconds = [f"{kind}, s" for kind in kinds]
    memory = [f"memory, {kind}" for kind in kinds if measured]
    head = ("kernel", "workgroups", "bindings, MB", *seconds, *memory)
    yield table(head, (row for each in grown for row in _dispatches(each)), {*FIGURES, *seconds, *memory}) + "\n"


def _line(grown: Growth, kind: str) -> tuple[str, ...]:
    line = grown.line(kind)
    figures = (number(1e3 * line.fixed), number(1e6 * line.each), f"{line.off:.0%}", f"{grown.exponent(kind):.2f}")
    return (f"`{grown.kernel}`", kind, *figures)


def _dispatches(grown: Growth) -> Iterable[tuple[str, ...]]:
    """Yield a row for each dispatch."""
    ratios = [grown.memory(kind) for kind in grown.peaks]
    for place, (count, size) in enumerate(zip(grown.workgroups, grown.bindings, strict=True)):
        seconds = (number(taken[place].median) for taken in grown.seconds.values())
        memory = (number(each[place]) for each in ratios)
        yield (f"`{grown.kernel}`", f"{count:,}", number(size / 1e6), *seconds, *memory)


def draw(path: Path, grown: Sequence[Growth]) -> None:
    """Plot seconds against workgroups with the fitted lines and, if it was measured, memory below."""
    import matplotlib as untyped
    from matplotlib.figure import Figure

    mpl: Any = untyped
    with_memory = any(each.peaks for each in grown)
    with mpl.rc_context({"svg.hashsalt": "bankshot", "svg.fonttype": "none"}):
        figure: Any = Figure(figsize=(6.4, 6.4 if with_memory else 3.8), layout="constrained")
        above, *below = figure.subplots(1 + with_memory, 1, sharex=True, squeeze=False)[:, 0]
        for each in grown:
            for kind in each.seconds:
                _draw_kind(each, kind, above, below)
        above.set(xscale="log", yscale="log", ylabel="seconds")
        for axes in below:
            axes.set(ylabel="peak memory / bytes of bindings", ylim=(0, None))
            axes.axhline(1, color="gray", linewidth=1, linestyle=":")
        (below or [above])[-1].set(xlabel="workgroups")
        for axes in (above, *below):
            axes.spines[["top", "right"]].set_visible(False)
        above.legend(frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None}, facecolor="white")


def _draw_kind(grown: Growth, kind: str, above: Any, below: Sequence[Any]) -> None:
    """Plot the dispatches of a kernel with some probes."""
    line = grown.line(kind)
    label = f"{grown.kernel}, {kind}: {1e6 * line.each:.3g} µs a workgroup"
    (dots,) = above.plot(grown.workgroups, [taken.least for taken in grown.seconds[kind]], "o", label=label)
    finely = np.geomspace(grown.workgroups[0], grown.workgroups[-1])
    above.plot(finely, line.fixed + line.each * finely, "-", color=dots.get_color(), linewidth=1)
    if grown.peaks:
        for axes in below:
            axes.plot(grown.workgroups, grown.memory(kind), "o-", color=dots.get_color(), linewidth=1)
