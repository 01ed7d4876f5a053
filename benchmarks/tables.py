"""Markdown tables, and the figures in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .figures import Summary


def table(head: Sequence[str], rows: Iterable[Sequence[str]], figures: Iterable[str] = ()) -> str:
    """Format a table, with the columns that `figures` names aligned to the right and the others to the left."""
    right = set(figures)
    lines = [head, ["---:" if name in right else "---" for name in head], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def spread(figure: Summary, unit: float = 1.0) -> str:
    """Format a median, with its minimum and maximum in brackets, as multiples of 1 / `unit`."""
    median, least, most = (number(n * unit) for n in (figure.median, figure.least, figure.most))
    return f"{median} ({least} to {most})"


def number(n: float) -> str:
    """Format a figure with three significant digits, or more where its integer part has more."""
    return f"{n:.3g}" if n < 1000 else f"{n:,.0f}"
