"""Where goldens are stored, who owns them, and when they may be written.

A golden is stored in the folder `golden` beside its owner, a manifest or a test file. It names its owner, so that
goldens that are no longer used can be found. Other JSON files in such a folder are ignored.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

from ...sim.fast_dataclass import frozen
from ..errors import UsageError

FOLDER = "golden"


@frozen
class Owner:
    """The owner of a golden: a `file` beside the folder, and a `title`, which names a kernel and its shape, or a
    test."""

    file: str
    title: str

    def __str__(self) -> str:
        return f"{self.file} ({self.title})"


def place(folder: Path, *parts: str) -> Path:
    """Return the path of a golden named after `parts`, for an owner in `folder`.

    >>> place(Path("shaders"), "matmul", "M=1 K=4 N=4").as_posix()
    'shaders/golden/matmul-M1-K4-N4.json'
    """
    words = [re.sub(r"[^\w.\[\]]+", "-", part.replace("=", "")).strip("-") for part in parts]
    return folder / FOLDER / f"{'-'.join(filter(None, words))}.json"


def owner(path: Path) -> Owner | None:
    """Read the owner of a golden; None where the file is no golden."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Owner(data["owner"], data["title"]) if "simulator" in data else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def goldens_beside(file: Path) -> dict[Path, Owner]:
    """Return every golden in the folder beside `file`, with its owner."""
    found = ((path, owner(path)) for path in sorted((file.parent / FOLDER).glob("*.json")))
    return {path: whose for path, whose in found if whose is not None}


def unused(manifest: Path, claimed: Iterable[Path]) -> list[Path]:
    """Return the goldens of `manifest` that are not among `claimed`, and those whose owner no longer exists."""
    wanted = set(claimed)
    return [
        path
        for path, whose in goldens_beside(manifest).items()
        if (whose.file == manifest.name and path not in wanted) or not (manifest.parent / whose.file).exists()
    ]


def remove(paths: Iterable[Path]) -> None:
    """Delete goldens, and the outputs that are stored with them."""
    for path in paths:
        path.unlink(missing_ok=True)
        path.with_suffix(".npz").unlink(missing_ok=True)


def may_write(how: str) -> None:
    """Raise `UsageError` if the environment sets CI, where new goldens would be discarded without review. `how`: the
    command, for the message."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise UsageError(f"{how}: CI is set, and goldens are never written there; write them at home and commit them")
