"""Manifests among the files of a folder. A `.toml` counts as one unless its content is plainly something else."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, cast

from ...sim.wgsl.regular_files import require_regular

TABLES = ("kernel", "bind", "sweep", "expect", "variant")
# Tables of other programs' files: Cargo, pyproject, and the like. Some names are close to a manifest's.
OTHERS = frozenset(
    """
    alias badges bench bin binary book build build-system build-targets config dependencies dependency-groups
    dev-dependencies env example features lib lints package patch profile project target test tool toolchain workspace
    """.split()  # noqa: SIM905
)

_CLOSE = 0.75  # as `difflib` measures it: `kernal` and `kernels`, but not `kind`

Kind = Literal["manifest", "other", "unclear"]


def is_manifest(file: Path) -> bool:
    """Whether a file is a manifest or seems to be meant as one; its errors must then be reported."""
    return kind_of(file) == "manifest"


def kind_of(file: Path) -> Kind:
    """Judge a `.toml` file by its content: a manifest or an attempt at one, plainly something else, or neither."""
    try:
        content = require_regular(file).read_bytes()
    except OSError:
        return "unclear"
    text = _text(content)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError):
        names = re.findall(r"^\s*\[{0,2}\s*[\"']?([\w-]+)[\"']?\s*[.\]=]?", text, re.MULTILINE)
        if not OTHERS.isdisjoint(_headers(text)):
            return "other"
        return "manifest" if any(map(_resembles_table, names)) else "unclear"
    if any(map(_resembles_table, data)) or any(map(_resembles_kernel, (data, *data.values()))):
        return "manifest"
    return "other" if data else "unclear"


def manifests_in(folder: Path) -> list[Path]:
    """List what must be read as a manifest below a folder, links followed: `.toml` files that are not plainly something
    else, and folders that cannot be read, both of which raise their error when they are loaded."""
    return sorted(_candidates(folder))


def _candidates(folder: Path) -> Iterator[Path]:
    unreadable: list[Path] = []
    seen: set[str] = set()
    walk = os.walk(folder, onerror=lambda error: unreadable.append(Path(error.filename)), followlinks=True)
    for place, folders, files in walk:
        seen.add(os.path.realpath(place))
        folders[:] = [name for name in sorted(folders) if os.path.realpath(os.path.join(place, name)) not in seen]
        found = (Path(place, name) for name in files if name.lower().endswith(".toml"))
        yield from (file for file in found if kind_of(file) != "other")
    yield from unreadable


def _text(content: bytes) -> str:
    """Decode a file, also one in an encoding that manifests may not have."""
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    return content.decode("utf-16" if wide else "utf-8-sig", errors="replace").replace("\0", "")


def _headers(text: str) -> Iterable[str]:
    return re.findall(r"^\s*\[{1,2}\s*([\w-]+)", text, re.MULTILINE)


def _resembles_table(name: str) -> bool:
    plain = name.casefold()
    return plain not in OTHERS and bool(difflib.get_close_matches(plain, TABLES, cutoff=_CLOSE))


def _resembles_kernel(table: object) -> bool:
    """Whether a table has keys as [kernel] has: it names a shader and its dispatch."""
    if not isinstance(table, dict):
        return False
    keys = cast("dict[str, Any]", table)
    return "dispatch" in keys or str(keys.get("source", "")).endswith(".wgsl")
