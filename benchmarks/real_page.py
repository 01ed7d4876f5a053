"""The page that `benchmarks.real` writes: names, commits and times of other people's kernels, without their texts.

The slowest kernels are explained by runs with more and more of what all probes do: counters, then the probes that look
for findings, then the reruns that give these verdicts, then those of changed texts.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bankshot.oracle.errors import UsageError

if TYPE_CHECKING:
    from .real import Row, Timed

EXPLAINED = 10  # slowest entry points
_ROUNDS = 5
HEAD = """\
# Times on other people's kernels

Written by `python -m benchmarks.real FOLDER --sources FILE --page docs/other-kernels.md` on {cores} cores of
{processor}, Python {python}, with a load average of {load} in the minute before, compared with {adapter}. The texts
are those of the repositories below and are not part of this one; {chosen}. Each entry point gets generated inputs
with which it stays in bounds, ends, and changes an output; both sides get the same, in grids of {workgroups}
workgroups. Modules and pipelines are made before. The simulator's time goes from bindings to outputs, wgpu's from
submission to completion. Each is the minimum of several interleaved rounds. *plain* computes outputs only, *counters*
all counters, and *all* every probe with the reruns that judge findings.
"""
PARTS = {
    "run": "the kernel itself, without probes",
    "counters": "what all counters take beside it",
    "findings": "the probes that look for findings, and reruns that look for more, as in other orders of atomics",
    "verdicts": "reruns that give findings their verdicts: at most eight times the work of the run, or about 10 ms",
    "cures": "runs of changed texts, which show what ends a race: as much again, or six runs",
}


@dataclass(frozen=True, slots=True)
class Source:
    """A repository: where its files are, its name, and the commit they are from."""

    folder: Path
    name: str
    commit: str


@dataclass(frozen=True, slots=True)
class Explained:
    """Where the time of a run with all probes goes: seconds by `PARTS`; what it found; and its lane efficiency."""

    row: Row
    seconds: dict[str, float]
    findings: dict[str, int]
    active: float | None

    @property
    def largest(self) -> str:
        """The part that takes the most time."""
        return max(self.seconds, key=lambda part: self.seconds[part])


def read_sources(path: Path, folders: Sequence[Path] = ()) -> list[Source]:
    """Read the repositories: a line `FOLDER OWNER/NAME COMMIT` for each, the folder relative to the file.

    Raises `UsageError` for another line, and where one of `folders` has nothing of them: a page would have its path.
    """
    sources: list[Source] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            parts = line.split()
            if len(parts) != 3:
                raise UsageError(f"{path}:{number}: a line must be FOLDER OWNER/NAME COMMIT")
            sources.append(Source((path.parent / parts[0]).resolve(), parts[1], parts[2]))
    for folder in folders:
        place = folder.resolve()
        if not any(place.is_relative_to(each.folder) or each.folder.is_relative_to(place) for each in sources):
            raise UsageError(f"{path}: no line is for {folder}; folders are relative to the file")
    return sources


def explained(row: Row, case: Timed) -> Explained:
    """Run a kernel with more and more of what all probes do. What takes longer each time is a part."""
    steps: dict[str, dict[str, Any]] = {
        "findings": {"replay": False, "cures": False},
        "verdicts": {"cures": False},
        "cures": {},
    }
    seconds = {"run": row.simulator["plain"], "counters": row.simulator["counters"]}
    seconds |= {name: case.seconds("all", _ROUNDS, **options) for name, options in steps.items()}
    parts, before = dict[str, float](), 0.0
    for name, total in seconds.items():
        parts[name] = max(0.0, total - before)
        before = max(before, total)
    run = case.prepare("all").run(case.given)
    found = Counter(finding.code for finding in run.findings)
    return Explained(row, parts, dict(found), run.counters["simt_efficiency"])


def page(
    rows: Sequence[Row],
    lines: Sequence[str],
    slowest: Sequence[Explained],
    sources: Sequence[Source],
    conditions: dict[str, Any],
) -> Iterator[str]:
    """Yield the lines of the page in Markdown. `lines`: the summary; `conditions`: what `HEAD` says."""
    title, _, text = HEAD.format(**conditions).partition("\n\n")
    yield from (title, "", *textwrap.wrap(text, 120), "", "```text", *lines, "```", "")
    yield from _repositories(rows, sources)
    yield from _slowest(slowest, sources)
    kinds = [*rows[0].simulator]
    yield from ("## All", "", "| kernel | wgpu, ms | " + " | ".join(kinds) + " |")
    yield "| --- |" + " ---: |" * (1 + len(kinds))
    for row in sorted(rows, key=lambda row: -row.ratio("all")):
        ratios = " | ".join(f"{row.ratio(kind):.2f}" for kind in kinds)
        yield f"| {_name(row, sources)} | {1e3 * row.wgpu:.2f} | {ratios} |"


def _repositories(rows: Sequence[Row], sources: Sequence[Source]) -> Iterator[str]:
    counts = Counter(source for row in rows if (source := _source(row, sources)) is not None)
    if counts:
        yield from ("| repository | commit | entry points |", "| --- | --- | ---: |")
        for source, count in sorted(counts.items(), key=lambda each: (-each[1], each[0].name)):
            yield f"| [{source.name}](https://github.com/{source.name}) | `{source.commit}` | {count} |"
        yield ""


def _slowest(slowest: Sequence[Explained], sources: Sequence[Source]) -> Iterator[str]:
    """Yield what the slowest kernels spend their time on."""
    yield from (f"## The slowest {len(slowest)}, explained", "")
    yield from ("Milliseconds of a run with all probes, by what they go to; the largest part is bold:", "")
    yield from (f"- *{name}*: {words}" for name, words in PARTS.items())
    yield from ("", "*Lanes* is the share of active lanes in subgroups that execute.", "")
    yield "| kernel | all / wgpu | " + " | ".join(PARTS) + " | lanes | findings |"
    yield "| --- |" + " ---: |" * (2 + len(PARTS)) + " --- |"
    for each in slowest:
        parts = (_cell(1e3 * taken, name == each.largest) for name, taken in each.seconds.items())
        found = ", ".join(f"{count} {code}" for code, count in each.findings.items()) or "none"
        active = "" if each.active is None else f"{each.active:.0%}"
        words = " | ".join((f"{each.row.ratio('all'):.2f}", *parts, active, found))
        yield f"| {_name(each.row, sources)} | {words} |"
    yield ""


def _cell(milliseconds: float, is_largest: bool) -> str:
    return f"**{milliseconds:.2f}**" if is_largest else f"{milliseconds:.2f}"


def _source(row: Row, sources: Sequence[Source]) -> Source | None:
    path = Path(row.shader).resolve()
    return next((source for source in sources if path.is_relative_to(source.folder)), None)


def _name(row: Row, sources: Sequence[Source]) -> str:
    """Return the name of an entry point: the repository, the path in it, and the function."""
    source = _source(row, sources)
    if source is None:
        return f"`{row.shader}:{row.entry}`"
    return f"{source.name} `{Path(row.shader).resolve().relative_to(source.folder)}:{row.entry}`"
