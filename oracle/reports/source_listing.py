"""Counters beside the source: what each line of a shader was charged in a run.

The accesses of a line are added up; its executions are those of its busiest place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...sim.fast_dataclass import frozen
from ...sim.run.counters import NAMES

if TYPE_CHECKING:
    from ...sim import Site

# Counters of a place in the source that add up over a line.
ADDED = tuple(name for name in NAMES if name not in ("executions", "active_lanes"))


@frozen
class Line:
    """One line of source, numbered from 1. `counters` is None where nothing on the line was executed."""

    number: int
    text: str
    counters: Mapping[str, int] | None = None
    lanes: float | None = None  # active lanes / lanes of the subgroups that executed it
    issued: int = 0  # those lanes


def listings(sites: Iterable[Site], source: Path, subgroup_size: int) -> dict[Path, list[Line]]:
    """The listing of `source`, and of every other file that has sites."""
    by_file: dict[Path, list[Site]] = {source: []}
    for site in sites:
        by_file.setdefault(Path(site.span.place.file), []).append(site)
    return {file: listing(_text(file, found), found, subgroup_size) for file, found in by_file.items()}


def _text(file: Path, sites: Sequence[Site]) -> str:
    """The text of a file. If it is missing, as one that a line marker names may be: its lines in the shader."""
    if file.is_file():
        return file.read_text(encoding="utf-8")
    source = sites[0].span.source
    lines: dict[int, str] = {}
    for index in range(source.line_count):
        name, number, _ = source.place(source.line_start(index))
        if Path(name) == file:
            lines[number] = source.line_text(index)
    return "\n".join(lines.get(number, "") for number in range(1, max(lines) + 1))


def listing(text: str, sites: Iterable[Site], subgroup_size: int) -> list[Line]:
    """Every line of `text`, with the counters of the sites on it."""
    by_line: dict[int, list[Site]] = defaultdict(list)
    for site in sites:
        by_line[site.line].append(site)
    return [
        _line(number, source, by_line.get(number, ()), subgroup_size)
        for number, source in enumerate(text.splitlines(), 1)
    ]


def _line(number: int, text: str, sites: Sequence[Site], subgroup_size: int) -> Line:
    issued = sum(site.executions for site in sites)
    if not issued:
        return Line(number, text)
    counters = {name: sum(getattr(site, name) for site in sites) for name in ADDED}
    counters["executions"] = max(site.executions for site in sites)
    active = sum(site.active_lanes for site in sites)
    return Line(number, text, counters, active / (issued * subgroup_size), issued * subgroup_size)


def compact(count: float) -> str:
    """A count in at most six characters.

    >>> [compact(n) for n in (0, 9999, 12345, 4321000, 201326592, 25769803776)]
    ['0', '9999', '12.3k', '4.32M', '201M', '25.8G']
    """
    if count < 10_000:
        return str(count) if isinstance(count, int) else f"{count:.4g}"
    for unit, scale in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if count < 999.5 * scale:
            return f"{_three_digits(count / scale)}{unit}"
    return f"{count:.2g}"


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def against_ideal(actual: int, ideal: int) -> str:
    """`201M/101M`; `98.3k` where that is the ideal; empty where nothing was charged."""
    if not actual:
        return ""
    if actual == ideal or not ideal:
        return compact(actual)
    return f"{compact(actual)}/{compact(ideal)}"
