"""Tables of a page that a program writes: between two comments, `<!-- NAME -->` and `<!-- end of NAME -->`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def write(page: Path, name: str, rows: Sequence[str]) -> None:
    """Replace the table of this name in a page."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(end)[2]
    page.write_text("\n".join([f"{before}{begin}", "", *rows, "", f"{end}{after}"]), encoding="utf-8")
