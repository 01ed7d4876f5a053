"""Which files can be read: regular ones; the others are named."""

from __future__ import annotations

import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from bankshot.sim.wgsl.regular_files import require_regular


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (stat.S_IFIFO, "it is a pipe, not a regular file"),
        (stat.S_IFSOCK, "it is a socket, not a regular file"),
        (stat.S_IFCHR, "it is a device, not a regular file"),
        (stat.S_IFBLK, "it is a device, not a regular file"),
        (0, "it is something else, not a regular file"),
    ],
)
def test_other_files_are_named(monkeypatch, kind, words):
    monkeypatch.setattr(Path, "stat", lambda self: SimpleNamespace(st_mode=kind | 0o644))
    with pytest.raises(OSError, match=words):
        require_regular(Path("k.wgsl"))


def test_a_regular_file_is_its_own_path(tmp_path):
    file = tmp_path / "k.wgsl"
    file.write_text("", encoding="utf-8")
    assert require_regular(file) == file
    with pytest.raises(IsADirectoryError):
        require_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        require_regular(tmp_path / "none.wgsl")
