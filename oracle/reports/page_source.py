"""The source of a case on the HTML page: lines with counters, tinted by their share of the excess, and folded.

Lines with much excess, and those that a finding or a changed golden names, are shown with a few lines around them; the
others are folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape
from pygments import lexers
from pygments.token import Comment, Keyword, Number

from ...sim.fast_dataclass import frozen
from .cost_places import line_shares
from .source_listing import Line, against_ideal, listings
from .tables import CHARGES

if TYPE_CHECKING:
    from ...sim.wgsl.source import Source, Span
    from ..judge.verdict import Audit

# The shares of a run's excess from which a line has heat 1, 2, 3 and 4. A line of heat `HOT` is never folded.
HEAT = (0.01, 0.05, 0.15, 0.4)
HOT = 2
CONTEXT = 3  # lines around one that is shown
LEAST_FOLD = 4  # lines of a fold
SHORT_FILE = 24  # lines of a file that is not folded
CLASSES = ((Comment, "c"), (Keyword, "k"), (Number, "n"))  # of highlighted source

Anchors = Mapping[tuple[str, int], str]  # by file and line


@frozen
class Cell:
    """What was charged on a line."""

    text: str
    times: str


@frozen
class Mark:
    """A link from a line to a finding that names it. `muted`: one that is accepted, or a mere note."""

    anchor: str
    label: str
    muted: bool


@frozen
class Row:
    """A line of source. `share`: of the run's excess; `heat`: from 0 to 4. `inactive`: the preprocessor dropped it.
    `linked`: something on the page may link to it."""

    line: Line
    anchor: str
    code: Markup
    cells: tuple[Cell, ...]
    share: float
    heat: int
    inactive: bool
    marks: tuple[Mark, ...] = ()
    linked: bool = False


@frozen
class Block:
    """Consecutive lines, `count` of them. A fold without `full` has only the rows that were charged."""

    rows: tuple[Row, ...]
    folded: bool
    count: int

    @property
    def label(self) -> str:
        left_out = self.count - len(self.rows)
        more = f", {len(self.rows)} of them charged" if left_out and self.rows else ""
        return f"\u2026 {self.count} {'line' if self.count == 1 else 'lines'}{more}"

    def short(self) -> Block:
        """Without the lines of a fold that were not charged."""
        return replace(self, rows=tuple(row for row in self.rows if row.line.counters)) if self.folded else self


@frozen
class File:
    """A file of source in blocks."""

    name: str
    blocks: tuple[Block, ...]

    def short(self) -> File:
        return replace(self, blocks=tuple(block.short() for block in self.blocks))


@frozen
class Listing:
    """The rows of each file, by name, before they are folded. `anchors`: of every line. `resolved`: file names by
    absolute path."""

    rows: Mapping[str, tuple[Row, ...]]
    anchors: Anchors
    resolved: Mapping[Path, str]

    def anchor(self, file: str | Path, line: int) -> str | None:
        """The anchor of a line, if the page has it. The first file stands for those that do not exist."""
        path = Path(file)
        name = self.resolved.get(path.resolve()) if path.is_file() else next(iter(self.rows), None)
        return self.anchors.get((str(file), line)) or self.anchors.get((name or "", line))

    def of(self, span: Span) -> str | None:
        place = span.place
        return self.anchor(place.file, place.line)


def listing_of(audit: Audit, anchor: str) -> Listing:
    """Every line of the files of a case. Anchors begin with `anchor`."""
    run, source = audit.run, audit.case.kernel.source
    shares = line_shares(run)
    dropped = _inactive(run.sites[0].span.source) if run.sites else {}
    rows: dict[str, tuple[Row, ...]] = {}
    for number, (file, lines) in enumerate(listings(run.sites, source, audit.subgroup_size).items()):
        gone = dropped.get(str(file), frozenset[int]())
        codes = highlighted(tuple(line.text for line in lines))
        rows[str(file)] = tuple(
            _row(line, _anchor(anchor, number, line.number), code, shares.get((str(file), line.number), 0), gone)
            for line, code in zip(lines, codes, strict=True)
        )
    anchors = {(file, row.line.number): row.anchor for file, found in rows.items() for row in found}
    return Listing(rows, anchors, {Path(file).resolve(): file for file in rows})


def line_anchor(case: str, files: Sequence[str], name: str, line: int) -> str | None:
    """The anchor of a line that was charged, by the anchor of its case, the case's files, and the name of its file."""
    return next((_anchor(case, at, line) for at, file in enumerate(files) if Path(file).name == name), None)


def _anchor(case: str, file: int, line: int) -> str:
    return f"{case}-{file}-{line}"


def _row(line: Line, anchor: str, code: Markup, share: float, gone: frozenset[int]) -> Row:
    heat = sum(share >= least for least in HEAT)
    return Row(line, anchor, code, _cells(line), share, heat, line.number in gone and _is_code(line.text))


def _cells(line: Line) -> tuple[Cell, ...]:
    """The wavefronts and sectors of a line."""
    if line.counters is None:
        return ()
    found = [(line.counters[actual], line.counters[ideal]) for actual, ideal, _ in CHARGES]
    return tuple(
        Cell(against_ideal(charged, least), f"\u00d7{charged / least:.3g}" if charged > least > 0 else "")
        for charged, least in found
    )


# ---- inactive branches -------------------------------------------------------------------------------


def _inactive(source: Source) -> dict[str, frozenset[int]]:
    """The lines of each file, as numbers, of which the preprocessed text has nothing."""
    if source.origin is None:
        return {}
    kept: dict[str, set[int]] = {}
    last: dict[str, int] = {}
    for (file, number), text in zip(source.origin, source.lines(), strict=False):
        last[file] = max(last.get(file, 0), number)
        if text.strip():
            kept.setdefault(file, set()).add(number)
    return {file: frozenset(range(1, end + 1)) - kept.get(file, set()) for file, end in last.items()}


def _is_code(text: str) -> bool:
    """Whether a line has something that the preprocessor can drop: it is neither blank, a directive nor a comment."""
    return bool(text.strip()) and not text.lstrip().startswith(("#", "//"))


# ---- folds -------------------------------------------------------------------------------------------


def files_of(listing: Listing, marks: Mapping[str, Sequence[Mark]], shown: Iterable[str | None]) -> list[File]:
    """The files with folds. `marks`: by the anchor of a line; `shown`: the anchors of lines to show with context."""
    wanted = set(shown)
    every = [row for rows in listing.rows.values() for row in rows]
    if not any(row.heat >= HOT or row.anchor in wanted for row in every):
        busiest = max(every, key=lambda row: row.line.counters["executions"] if row.line.counters else 0, default=None)
        wanted |= {busiest.anchor} if busiest else set()
    linked = wanted | marks.keys()
    files: list[File] = []
    for name, rows in listing.rows.items():
        keep: set[int] = set()
        for at, row in enumerate(rows):
            if row.heat >= HOT or row.anchor in wanted:
                keep |= {*range(at - CONTEXT, at + CONTEXT + 1)}
            elif row.anchor in marks:
                keep.add(at)
        marked = [
            replace(row, marks=tuple(marks.get(row.anchor, ())), linked=row.anchor in linked or bool(row.line.counters))
            for row in rows
        ]
        files.append(File(name, tuple(_blocks(marked, keep))))
    return files


def _blocks(rows: Sequence[Row], keep: set[int]) -> list[Block]:
    if len(rows) <= SHORT_FILE:
        return [Block(tuple(rows), False, len(rows))]
    runs = [(shown, [at for at, _ in group]) for shown, group in groupby(enumerate(rows), lambda each: each[0] in keep)]
    visible = {at for shown, run in runs if shown or len(run) < LEAST_FOLD for at in run}
    blocks: list[Block] = []
    for shown, group in groupby(enumerate(rows), lambda each: each[0] in visible):
        found = tuple(row for _, row in group)
        blocks.append(Block(found, not shown, len(found)))
    return blocks


# ---- highlighting ------------------------------------------------------------------------------------


@lru_cache(64)
def highlighted(lines: tuple[str, ...]) -> list[Markup]:
    """The lines of a shader, escaped, with comments, keywords and numbers marked with `CLASSES`."""
    make: Any = getattr(lexers, "get_lexer_by_name")  # noqa: B009  # partially typed
    lexer = make("wgsl", stripnl=False, ensurenl=False)
    done: list[Markup] = []
    now = Markup()
    for token, text in lexer.get_tokens("\n".join(lines)):
        name = next((name for kind, name in CLASSES if token in kind), None)
        for number, part in enumerate(text.split("\n")):
            if number:
                done.append(now)
                now = Markup()
            if part:
                now += Markup('<i class="{}">{}</i>').format(name, part) if name else escape(part)
    return [*done, now]
