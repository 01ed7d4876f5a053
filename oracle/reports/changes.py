"""What changed between two audits, from their JSON documents: outcomes, outputs, findings, totals and lines.

Cases are matched by kernel and dims, lines by their text in the order of the source, so that a line that moved is the
same line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path, PurePath
from typing import Any, cast

from ...sim.fast_dataclass import frozen
from ..errors import UsageError
from .json_document import SCHEMA, Entry

# Counters of lines and of runs for which less is better, as key and heading. Totals have the same keys.
COSTS = (
    ("shared_wavefronts", "wavefronts"),
    ("global_sectors", "sectors"),
    ("atomic_turns", "atomic turns"),
    ("barriers", "barriers"),
    ("flops", "FLOPs"),
)
TOTALS = (*COSTS, ("workgroup_memory_bytes", "bytes of workgroup memory"))
_RANKS = {"clean": 0, "unchecked": 1, "failed": 2, "error": 3}  # outcomes, the best first
MOST_LINES = 12  # that are listed of a case


@frozen
class Change:
    """One thing that changed. `better`: None where it is neither better nor worse. `code`: a line of the source, and
    `line` its number, if it still exists, in the file of this name."""

    what: str
    before: str
    after: str
    better: bool | None
    code: str = ""
    file: str = ""
    line: int = 0

    @property
    def word(self) -> str:
        return {True: "better", False: "worse", None: ""}[self.better]


@frozen
class CaseChange:
    """The changes of one case, the most important first. `title`: kernel and dims."""

    title: str
    changes: tuple[Change, ...]
    left_out: int = 0  # lines beyond `MOST_LINES`

    @property
    def worse(self) -> bool:
        return any(change.better is False for change in self.changes)


def read_document(path: Path) -> list[Entry]:
    """The cases of a document that `bankshot audit --json` wrote. Raises `UsageError`."""
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: is no JSON document") from None
    whole = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    if (whole.get("verb"), whole.get("schema")) != ("audit", SCHEMA):
        raise UsageError(f"{path}: is no document of `bankshot audit --json`, schema {SCHEMA}")
    return whole["cases"]


def changes(before: Sequence[Entry], after: Sequence[Entry]) -> list[CaseChange]:
    """Compare two audits, case by case; cases without a change are left out, and those that are worse come first."""
    old = {_key(entry): entry for entry in before}
    new = {_key(entry): entry for entry in after}
    found = [_case(title_of(entry), old.get(key), entry) for key, entry in new.items()]
    found += [_case(title_of(entry), entry, None) for key, entry in old.items() if key not in new]
    return sorted((each for each in found if each.changes), key=lambda each: not each.worse)


def _key(entry: Entry) -> tuple[str, str]:
    return entry["kernel"], repr(sorted(entry["dims"].items()))


def title_of(entry: Entry) -> str:
    """Kernel and dims."""
    return " ".join((entry["kernel"], *(f"{name}={size}" for name, size in entry["dims"].items())))


def _case(title: str, before: Entry | None, after: Entry | None) -> CaseChange:
    if before is None or after is None:
        there = before or after or {}
        words = ("absent", str(there["outcome"]))
        was, now = words if before is None else words[::-1]
        good = None if there["outcome"] == "clean" and before is None else False
        return CaseChange(title, (Change("case", was, now, good),))
    found = [*_outcome(before, after)]
    if "counters" in before and "counters" in after:
        found += [*_outputs(before, after), *_findings(before, after), *_totals(before, after)]
        lines = [*_lines(before, after)]
        return CaseChange(title, (*found, *lines[:MOST_LINES]), max(0, len(lines) - MOST_LINES))
    return CaseChange(title, tuple(found))


def _outcome(before: Entry, after: Entry) -> Iterator[Change]:
    was, now = str(before["outcome"]), str(after["outcome"])
    if was != now:
        yield Change("outcome", was, now, _RANKS[now] < _RANKS[was])


def _outputs(before: Entry, after: Entry) -> Iterator[Change]:
    """Comparisons of outputs, by output and truth; an adapter is a truth as well."""
    old, new = ({(each["output"], each["against"]): each for each in entry["outputs"]} for entry in (before, after))
    for key in dict.fromkeys((*old, *new)):
        was, now = (_compared(each.get(key)) for each in (old, new))
        if was != now:
            ranks = [_RANKS.get(each.get(key, {}).get("outcome", ""), 1) for each in (old, new)]
            yield Change(f"{key[0]} against {key[1]}", was, now, None if ranks[0] == ranks[1] else ranks[1] < ranks[0])


def _compared(check: Entry | None) -> str:
    if check is None:
        return "not compared"
    bad = check.get("mismatches", 0)
    return f"{check['outcome']}, {bad:,} wrong" if bad else str(check["outcome"])


def _findings(before: Entry, after: Entry) -> Iterator[Change]:
    was, now = (Counter(each["code"] for each in entry["findings"] if not each["allowed"]) for entry in (before, after))
    for code in sorted(was.keys() | now.keys()):
        if was[code] != now[code]:
            yield Change(f"finding {code}", _places(was[code]), _places(now[code]), now[code] < was[code])


def _places(count: int) -> str:
    return "none" if not count else "1 place" if count == 1 else f"{count} places"


def _totals(before: Entry, after: Entry) -> Iterator[Change]:
    for key, what in TOTALS:
        was, now = before["counters"].get(key, 0), after["counters"].get(key, 0)
        if was != now:
            yield Change(what, _number(was), f"{_number(now)}{_ratio(was, now)}", now < was)


def _number(value: float) -> str:
    return f"{value:,}" if float(value).is_integer() else f"{value:,.4g}"


def _ratio(was: float, now: float) -> str:
    return f" (x{now / was:.3g})" if was and now else ""


# ---- lines ----

Line = tuple[str, int]  # file, number


def _lines(before: Entry, after: Entry) -> Iterator[Change]:
    """Lines whose costs changed, the largest change first."""
    (old, texts), (new, now_texts) = _costs(before), _costs(after)
    pairs = _matched(texts, now_texts)
    rows: list[tuple[float, Change]] = []
    for line, costs in new.items():
        was = old.get(pairs.get(line, ("", 0)), Counter[str]())
        rows += [row for row in _line(line, now_texts[line], was, costs) if line in pairs or any(costs.values())]
    kept = {*pairs.values()}
    for line, costs in old.items():
        if line not in kept:
            rows += _line(line, texts[line], costs, {}, gone=True)
    for _, change in sorted(rows, key=lambda row: -row[0]):
        yield change


def _line(
    line: Line, text: str, was: Mapping[str, int], now: Mapping[str, int], gone: bool = False
) -> Iterator[tuple[float, Change]]:
    for key, heading in COSTS:
        first, last = was.get(key, 0), now.get(key, 0)
        if first != last:
            place = f"{line[0]}:{line[1]}{' (before)' if gone else ''} {heading}"
            size = abs(last - first) / max(first, last)
            still = ("", 0) if gone else line
            change = Change(place, _number(first), _number(last), last < first, text.strip(), *still)
            yield abs(last - first) * size, change


def _costs(entry: Entry) -> tuple[dict[Line, Counter[str]], dict[Line, str]]:
    """The costs of each line, in the order of the source, and the text of each."""
    costs: dict[Line, Counter[str]] = {}
    texts: dict[Line, str] = {}
    for site in sorted(entry["sites"], key=lambda site: (site["file"], site["line"])):
        line = (PurePath(site["file"]).name, site["line"])
        costs.setdefault(line, Counter()).update({key: site.get(key, 0) for key, _ in COSTS})
        texts[line] = site.get("text", "")
    return costs, texts


def _matched(before: Mapping[Line, str], after: Mapping[Line, str]) -> dict[Line, Line]:
    """Lines after a change, with those before it: of equal text, and else in order between these."""
    pairs: dict[Line, Line] = {}
    for file in dict.fromkeys(file for file, _ in after):
        old, new = ([line for line in texts if line[0] == file] for texts in (before, after))
        match = SequenceMatcher(None, _texts(old, before), _texts(new, after), autojunk=False)
        for kind, a, b, c, d in match.get_opcodes():
            if kind == "equal" or (kind == "replace" and b - a == d - c):
                pairs.update(zip(new[c:d], old[a:b], strict=True))
    return pairs


def _texts(lines: Iterable[Line], texts: Mapping[Line, str]) -> list[str]:
    return ["".join(texts[line].split()) for line in lines]


# ---- words ----


def summary(found: Sequence[CaseChange], cases: int) -> str:
    """One sentence on all cases."""
    if not found:
        return f"no change in {cases} case{'' if cases == 1 else 's'}"
    worse = sum(each.worse for each in found)
    return f"{len(found)} of {cases} cases changed, {worse} of them for the worse"


def as_text(found: Sequence[CaseChange], against: str, cases: int) -> list[str]:
    """The changes as a table, in lines."""
    lines: list[str] = []
    for case in found:
        lines.append(case.title)
        widths = [max(len(getattr(change, part)) for change in case.changes) for part in ("what", "before", "after")]
        for c in case.changes:
            row = f"  {c.what:<{widths[0]}}  {c.before:>{widths[1]}} -> {c.after:<{widths[2]}}  {c.word:<6}  {c.code}"
            lines.append(row.rstrip())
        lines += [f"  and {case.left_out} more lines"] if case.left_out else []
    return [*lines, f"against {against}: {summary(found, cases)}"]


def as_markdown(found: Sequence[CaseChange], against: str, cases: int) -> list[str]:
    """The changes as a comment on a pull request."""
    lines = [f"### Bankshot against {_escaped(against)}: {summary(found, cases)}"]
    for case in found:
        lines += ["", f"**{_escaped(case.title)}**", "", "| what | before | after | | line |", "|---|--:|--:|---|---|"]
        for c in case.changes:
            word = f"**{c.word}**" if c.better is False else c.word
            code = f"`` {c.code.replace('|', chr(92) + '|')} ``" if c.code else ""
            cells = (_escaped(c.what), _escaped(c.before), _escaped(c.after), word, code)
            lines.append(f"| {' | '.join(cells)} |")
        lines += ["", f"and {case.left_out} more lines"] if case.left_out else []
    return lines


def _escaped(text: str) -> str:
    for letter in "\\`*_<>|[]":
        text = text.replace(letter, f"\\{letter}")
    return text
