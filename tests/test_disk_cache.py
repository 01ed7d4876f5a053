"""Atomic writes: a file is replaced when it is whole, or stays as it was."""

import os
from pathlib import Path

import pytest

from bankshot.sim.disk_cache import cache_home, replacing, write


@pytest.mark.parametrize(
    ("given", "home"),
    [
        ({"BANKSHOT_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a/bankshot"),
        ({"BANKSHOT_CACHE": "", "XDG_CACHE_HOME": "/b"}, "/b/bankshot"),
        ({"HOME": "/c"}, "/c/.cache/bankshot"),
    ],
)
def test_where_the_cache_is(given, home, monkeypatch):
    for name in ("BANKSHOT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert cache_home() == Path(home)


def test_a_file_is_replaced(tmp_path):
    file = tmp_path / "report.html"
    write(file, b"first")
    write(file, b"second")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("report.html", b"second")]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_what_fails_leaves_nothing_behind(tmp_path, error):
    file = tmp_path / "report.html"
    write(file, b"before")

    def fail():
        with replacing(file) as fresh:
            fresh.write_bytes(b"half")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("report.html", b"before")]


@pytest.mark.parametrize("content", [b"half", None], ids=["some content", "nothing yet"])
def test_a_new_file_that_fails_is_not_made(tmp_path, content):
    def fail():
        with replacing(tmp_path / "report.html") as fresh:
            if content is not None:
                fresh.write_bytes(content)
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write(tmp_path / "link", b"content")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"content"


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudoterminals")
def test_a_device_is_written_to_and_not_replaced():
    """A terminal, whose folder takes no other file: a fault must not replace a device that others use."""
    screen, keyboard = os.openpty()
    device = Path(os.ttyname(keyboard))
    before = device.stat().st_ino
    write(device, b"content")
    assert os.read(screen, 7) == b"content"
    assert device.stat().st_ino == before
    os.close(screen)
    os.close(keyboard)
