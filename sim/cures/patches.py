"""Proposals as changes of files: a unified diff, also where the preprocessor made the text from other files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Protocol

from ..fast_dataclass import frozen
from ..wgsl.regular_files import require_regular
from ..wgsl.source import LINE_BREAKS, Source
from ..wgsl.text_edits import Replacement, replaced


class Proposal(Protocol):
    """Changes of a text. `words` say what they are."""

    @property
    def words(self) -> str: ...
    @property
    def replacements(self) -> tuple[Replacement, ...]: ...


@frozen
class Patch:
    """Changes by file. `unmapped`: proposals that are not changes of a file, each with the reason, in words."""

    files: Mapping[str, tuple[Replacement, ...]]
    unmapped: tuple[str, ...] = ()

    def __or__(self, other: Patch) -> Patch:
        """Return both patches as one. Where two change the same characters, the first stays."""
        files = dict(self.files)
        for name, added in other.files.items():
            known = files.get(name, ())
            files[name] = (*known, *(each for each in added if not any(_clash(each, one) for one in known)))
        return Patch(files, tuple(dict.fromkeys((*self.unmapped, *other.unmapped))))


def patch_of(source: Source, proposals: Iterable[Proposal]) -> Patch:
    """Return proposals for a text as changes of the files that it came from, each as a whole or not at all."""
    patch = Patch({})
    for proposal in proposals:
        files: dict[str, tuple[Replacement, ...]] = {}
        try:
            for each in proposal.replacements:
                name, change = _in_file(source, each)
                files[name] = (*files.get(name, ()), change)
            patch |= Patch(files)
        except _Unmapped as reason:
            patch |= Patch({}, (f"{proposal.words}: {reason}",))
    return patch


def changed_files(patch: Patch) -> dict[str, tuple[str, str]]:
    """Return the text of each file, before and after."""
    texts = {name: _text(name) for name in patch.files}
    return {name: (text, replaced(text, patch.files[name])) for name, text in texts.items()}


def unified(patch: Patch) -> str:
    """Return a patch as a unified diff, which `git apply` and `patch -p1` take."""
    parts: list[str] = []
    for name, (old, new) in changed_files(patch).items():
        shown = _shown(name)
        lines = unified_diff(
            old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{shown}", f"b/{shown}"
        )  # fmt: skip
        parts += [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
    return "".join(parts)


def _shown(name: str) -> str:
    """Return the name of a file relative to the current folder, if it lies there."""
    path, here = Path(name).absolute(), Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix().lstrip("/")


class _Unmapped(Exception):
    """A change of the preprocessed text that is not one of a file."""


def _in_file(source: Source, change: Replacement) -> tuple[str, Replacement]:
    """Return the file that a change of a text concerns, and the change of that file."""
    first, last = source.line_index(change.start), source.line_index(max(change.start, change.end - 1))
    places = [source.place(source.line_start(index)) for index in range(first, last + 1)]
    name, line = places[0].file, places[0].line
    where = f"{name}:{line}"
    if [(place.file, place.line) for place in places] != [(name, line + n) for n in range(len(places))]:
        raise _Unmapped(f"{where} and the next lines of the preprocessed text are not together in a file")
    if source.origin is not None and source.origin.count((name, line)) > 1:
        raise _Unmapped(f"{where} is included more than once; change it by hand")
    try:
        file = Source(_text(name), name)
    except (OSError, ValueError):
        raise _Unmapped(f"{where} is no line of a file") from None
    for number, place in enumerate(places):
        index = place.line - 1
        if index >= file.line_count or file.line_text(index) != source.line_text(first + number):
            raise _Unmapped(f"the preprocessor makes another line of {where}; change it by hand")
    moved = file.line_start(line - 1) - source.line_start(first)
    end = change.end + moved
    if last > first:
        end = file.line_start(places[-1].line - 1) + change.end - source.line_start(last)
    return name, Replacement(change.start + moved, end, change.text.replace("\n", _line_break(file)))


def _text(name: str) -> str:
    return require_regular(Path(name)).read_bytes().decode("utf-8")


def _line_break(file: Source) -> str:
    """Return the line break of a file's first line."""
    line = file.lines()[0]
    return line[len(line.rstrip(LINE_BREAKS)) :] or "\n"


def _clash(one: Replacement, two: Replacement) -> bool:
    """Whether two changes are equal, or change the same characters."""
    return (
        one == two or (one.start < two.end and two.start < one.end) or (one.start == two.start and one.text in two.text)
    )
