"""A run in one line, for a prompt and a failing assertion, and as HTML, for a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING

from .counters import SUMMARY, Counter
from .site import Site

if TYPE_CHECKING:
    from .result import Run

_MOST_LINES = 5
_COLOURS = {"error": "light-dark(#b3261e, #ff8a80)", "warning": "light-dark(#8a5a00, #ffcc66)"}
_STYLE = (
    "color-scheme: light dark; font: 13px/1.5 system-ui, sans-serif; border-collapse: collapse; text-align: right; "
    "font-variant-numeric: tabular-nums"
)


def excess(site: Site) -> int:
    """The wavefronts of a place that bank conflicts cause."""
    return site.shared_wavefronts - site.shared_ideal_wavefronts


def one_line(run: Run, name: str = "") -> str:
    """What ran, the place with the most excess wavefronts, and the first finding."""
    words: list[str] = []
    worst = max(run.sites, key=excess, default=None)
    if worst is not None and excess(worst):
        place = worst.span.place
        rate = worst.shared_wavefronts / worst.shared_requests
        words.append(f"most excess at {PurePath(place.file).name}:{place.line}, {rate:.4g} wavefronts per request")
    findings = [finding for finding in run.findings if finding.severity != "info"]
    words += [f"{each.code}, {each.message}" for each in findings[:1]]
    words += [f"{len(findings) - 1} more findings"] if len(findings) > 1 else []
    source = name or PurePath(run.pipeline.module.source.name).name
    return f"<run of {source}: {'; '.join(words) or 'no excess'}>"


def html(run: Run) -> str:
    """The totals, the most expensive lines and the findings, as HTML without scripts that follows the page's theme."""
    return "".join((f'<div style="{_STYLE}">', *_parts(run), "</div>"))


def _parts(run: Run) -> Iterator[str]:
    yield f'<p style="text-align: left"><code>{escape(one_line(run))}</code></p>'
    for finding in run.findings:
        colour = _COLOURS.get(finding.severity, "inherit")
        yield f'<pre style="text-align: left; color: {colour}">{escape(finding.render())}</pre>'
    yield _table("", [(row.label, _figure(row, total)) for row in SUMMARY if (total := run.counters.get(row.key))])
    lines = [(site, sum((site.shared_wavefronts, site.global_sectors))) for site in run.sites]
    hot = sorted((pair for pair in lines if pair[1]), key=lambda pair: -pair[1])[:_MOST_LINES]
    yield _table(
        "<tr><th>line</th><th>wavefronts</th><th>sectors</th><th></th></tr>",
        [
            (str(site.line), _count(site.shared_wavefronts), _count(site.global_sectors), site.span.line_text.strip())
            for site, _ in hot
        ],
        ' style="text-align: left; font-family: monospace; white-space: pre"',
    )


def _figure(row: Counter, total: float) -> str:
    if row.unit == "share":
        return f"{total:.1%}"
    return f"{total:,.4g}" if total % 1 else f"{int(total):,}"


def _count(number: int) -> str:
    return f"{number:,}" if number else ""


def _table(head: str, rows: list[tuple[str, ...]], last: str = "") -> str:
    """Return a table with a first row in HTML; `last`: attributes of the cells in the last column."""
    if not rows:
        return ""
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}<td{last}>{escape(end)}</td></tr>"
        for *cells, end in rows
    )
    return f'<table cellpadding="4">{head}{body}</table>'
