"""Write patches into their files."""

from __future__ import annotations

from pathlib import Path

from ..sim.cures.patches import Patch, changed_files
from ..sim.disk_cache import write
from .errors import writing


def write_patch(patch: Patch) -> tuple[str, ...]:
    """Change the files of a patch, and return their names. Raises `UsageError` for one that cannot be written."""
    changed = changed_files(patch)
    for name, (_, text) in changed.items():
        with writing(name):
            write(Path(name), text.encode())
    return tuple(changed)
