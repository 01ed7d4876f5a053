"""What changed since an earlier audit, on the HTML page: before and after, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...sim.fast_dataclass import frozen
from .changes import CaseChange, changes, read_document, summary, title_of

if TYPE_CHECKING:
    from .json_document import Entry
    from .protocol import Before

MOST_OPEN = 5  # changed cases that are open at first


@frozen
class Changed:
    """A case that changed. `anchor` is that of the case, if it still exists."""

    case: CaseChange
    anchor: str | None
    open: bool


@frozen
class Since:
    """All changes since the audit `name`, those for the worse first."""

    name: str
    summary: str
    cases: tuple[Changed, ...]


def since(before: Before, cases: Sequence[tuple[str, Entry]]) -> Since:
    """Compare an earlier audit with `cases`: the anchor and the JSON entry of each. Raises `UsageError`."""
    entries = [entry for _, entry in cases]
    found = changes(read_document(before.document), entries)
    anchors = {title_of(entry): anchor for anchor, entry in cases}
    shown = (Changed(case, anchors.get(case.title), number < MOST_OPEN) for number, case in enumerate(found))
    return Since(before.name, summary(found, len(entries)), tuple(shown))
