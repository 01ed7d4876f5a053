"""Counters by line of source before and after an edit, and their differences in words.

    matmul.wgsl:84: 32 -> 4 wavefronts per request, +0 barriers

Lines are matched by their text without comments and extra blanks, so a line that moves keeps its counters. A line that
was edited is matched with the one in its position, or with the most similar one nearby. Lines without a match are
reported as new, or as gone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...sim.fast_dataclass import frozen
from ...sim.run.counters import CHARGES, COUNTERS, NAMES

if TYPE_CHECKING:
    from ...sim.run.site import Site

# Charges that are reported as rates: the charge, the counter that it is divided by, and the label.
RATES = tuple((row.key, row.per, f"{row.label} per request") for row in CHARGES)
CHARGED = tuple(row.key for row in CHARGES)
_COMPARED = sorted((row for row in COUNTERS.values() if row.golden), key=lambda row: row.golden)
# The other counters of a line, the most informative first: key and label.
COUNTS = {row.key: row.label for row in _COMPARED if row.key in NAMES}
BY_LINE = (*CHARGED, *COUNTS)
# Counters that exist only as totals.
TOTALS = {row.key: row.label for row in _COMPARED if row.key not in NAMES}

MOST_WORDS = 3  # differences that are reported for a line
ALIKE = 0.5  # least similarity (`SequenceMatcher.ratio`) of a line before and after an edit


@frozen
class Line:
    """A line of source with its nonzero counters. `text`: without comments, each run of blanks as one."""

    file: str
    line: int
    text: str
    counters: Mapping[str, int]

    @property
    def key(self) -> tuple[str, str]:
        """What identifies the line wherever it moves within its file."""
        return self.file, self.text


@frozen
class Change:
    """A change of counters at a line, or of totals (`line` 0). `weight`: by how many wavefronts and sectors."""

    file: str
    line: int
    words: str
    weight: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.words}" if self.line else f"in all: {self.words}"


def lines_of(sites: Iterable[Site], folder: Path, source: Path | None = None) -> tuple[Line, ...]:
    """Sum the counters of `sites` by line. Paths are relative to `folder`; `source` replaces any that is no file."""
    found: dict[tuple[str, int], dict[str, int]] = {}
    texts: dict[tuple[str, int], str] = {}
    for site in sites:
        at = site.span.place
        path = Path(at.file) if Path(at.file).is_file() else source
        name = Path(os.path.relpath(path, folder)).as_posix() if path else at.file
        where = name, at.line
        sums = found.setdefault(where, dict.fromkeys(BY_LINE, 0))
        for counter in BY_LINE:
            sums[counter] += int(getattr(site, counter))
        if where not in texts:
            texts[where] = _bare(_texts(path)[at.line - 1] if path else site.span.line_text)
    return tuple(
        Line(*where, texts[where], {name: count for name, count in sums.items() if count})
        for where, sums in sorted(found.items())
        if any(sums.values())
    )


@cache
def _read(path: Path, changed: int) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _texts(path: Path) -> list[str]:
    return _read(path, path.stat().st_mtime_ns)


def _bare(text: str) -> str:
    """Remove comments and extra blanks.

    >>> _bare("  let a =  x[i];  // loads")
    'let a = x[i];'
    """
    return " ".join(re.sub(r"//.*|/\*.*?\*/", " ", text).split())


# ---- differences -------------------------------------------------------------------------------------


def changes(
    counters_before: Mapping[str, float],
    before: Sequence[Line],
    counters_after: Mapping[str, float],
    after: Sequence[Line],
) -> tuple[Change, ...]:
    """List the counters that changed, the worst first. Counters that the golden lacks are not compared."""
    known = [name for name in BY_LINE if name in counters_before]
    both = [int(counters["barriers"]) for counters in (counters_before, counters_after) if "barriers" in known]
    price = f"{both[1] - both[0]:+,} barriers" if both else ""
    found = [change for old, new in pairs(before, after) if (change := _change(old, new, known, price))]
    found.sort(key=lambda change: (-change.weight, change.file, change.line))
    totals = [
        f"{_number(counters_before[name])} -> {_number(counters_after[name])} {words}"
        for name, words in TOTALS.items()
        if name in counters_before and name in counters_after and counters_before[name] != counters_after[name]
    ]
    return (*found, *([Change("", 0, ", ".join(totals))] if totals else []))


def pairs(before: Sequence[Line], after: Sequence[Line]) -> Iterator[tuple[Line | None, Line | None]]:
    """Match lines before and after an edit: pairs (old, new), with None for the old of a new line, and the new of one
    that is gone."""
    old, new = list(before), list(after)
    blocks = SequenceMatcher(None, [line.key for line in old], [line.key for line in new], autojunk=False).get_opcodes()
    edits: list[tuple[list[Line], list[Line]]] = []
    for tag, i1, i2, j1, j2 in blocks:
        if tag == "equal":
            yield from zip(old[i1:i2], new[j1:j2], strict=True)
        else:
            edits.append((old[i1:i2], new[j1:j2]))
    yield from _moved(edits)
    for gone, added in edits:
        yield from _edited(gone, added)


def _moved(edits: list[tuple[list[Line], list[Line]]]) -> Iterator[tuple[Line, Line]]:
    """Remove from `edits` the lines that moved, and yield them."""
    for gone, _ in edits:
        for line in list(gone):
            for _, added in edits:
                same = next((other for other in added if other.key == line.key), None)
                if same is not None:
                    gone.remove(line)
                    added.remove(same)
                    yield line, same
                    break


def _edited(gone: list[Line], added: list[Line]) -> Iterator[tuple[Line | None, Line | None]]:
    """Match the lines of one edit: one for one where the counts are equal, else each with the most similar one."""
    if len(gone) == len(added):
        yield from zip(gone, added, strict=True)
        return
    left = list(added)
    for line in gone:
        similarity = [SequenceMatcher(None, line.text, other.text, autojunk=False).ratio() for other in left]
        best = max(similarity, default=0.0)
        yield line, left.pop(similarity.index(best)) if best >= ALIKE else None
    yield from ((None, line) for line in left)


def _change(old: Line | None, new: Line | None, known: Sequence[str], price: str) -> Change | None:
    was, is_ = ({name: line.counters.get(name, 0) if line else 0 for name in known} for line in (old, new))
    words = _words(was, is_, price)
    at = new or old
    if not words or at is None:
        return None
    more = f" (and {len(words) - MOST_WORDS} more)" if len(words) > MOST_WORDS else ""
    fate = "" if old and new else "new line, " if new else "line is gone, "
    weight = sum(abs(is_[name] - was[name]) for name in CHARGED if name in known)
    return Change(at.file, at.line, f"{fate}{', '.join(words[:MOST_WORDS])}{more}", weight)


def _words(was: Mapping[str, int], is_: Mapping[str, int], price: str) -> list[str]:
    """Describe the counters that changed, rates first. A change of wavefronts also gives its `price`: the change of
    barriers in the whole run."""
    words: list[str] = []
    for charged, of, how in RATES:
        if charged not in was:
            continue
        rates = [_rate(each[charged], each[of]) for each in (was, is_) if of in was]
        if len({*rates}) > 1:
            words.append(f"{' -> '.join(rates)} {how}")
            if charged == "shared_wavefronts" and price:
                words.append(price)
        elif was[charged] != is_[charged] and was.get(of) == is_.get(of):
            words.append(f"{was[charged]:,} -> {is_[charged]:,} {COUNTERS[charged].label}")
    counts = [name for name in COUNTS if name in was and was[name] != is_[name]]
    return words + [f"{was[name]:,} -> {is_[name]:,} {COUNTS[name]}" for name in counts]


def _rate(charged: int, of: int) -> str:
    return f"{charged / of:.4g}" if of else "0"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
