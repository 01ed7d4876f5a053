"""What changed since an earlier audit, on the HTML page: before and after, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...sim.fast_dataclass import frozen
from .changes import CaseChange, Change, changes, read_document, summary, title_of
from .page_source import line_anchor

if TYPE_CHECKING:
    from .json_document import Entry
    from .protocol import Before

MOST_OPEN = 5  # changed cases that are open at first


@frozen
class Changed:
    """A case that changed. `anchor` is that of the case, if it still exists, and `files` are those on the page."""

    case: CaseChange
    anchor: str | None
    open: bool
    files: tuple[str, ...] = ()

    def line_anchor(self, change: Change) -> str | None:
        """The anchor of the line that changed, if the page has it."""
        return line_anchor(self.anchor, self.files, change.file, change.line) if self.anchor and change.line else None


@frozen
class Since:
    """All changes since the audit `name`, those for the worse first."""

    name: str
    summary: str
    cases: tuple[Changed, ...]


def since(before: Before, cases: Sequence[tuple[str, tuple[str, ...], Entry]]) -> Since:
    """Compare an earlier audit with `cases`: anchor, files and JSON entry of each. Raises `UsageError`."""
    entries = [entry for _, _, entry in cases]
    found = changes(read_document(before.document), entries)
    sections = {title_of(entry): (anchor, files) for anchor, files, entry in cases}
    shown: list[Changed] = []
    for number, case in enumerate(found):
        anchor, files = sections.get(case.title, (None, ()))
        shown.append(Changed(case, anchor, number < MOST_OPEN, files))
    return Since(before.name, summary(found, len(entries)), tuple(shown))
