"""The site of docs/ builds without a warning: every page is in it, and every reference leads somewhere."""

import subprocess
import sys

import bankshot
from tools.pages import DOCS


def test_the_site_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", tmp_path / "trees"]
    built = subprocess.run([*command, DOCS, tmp_path / "site"], capture_output=True, text=True)
    assert (built.returncode, built.stderr) == (0, "")
    assert {page.stem for page in DOCS.glob("*.md")} <= {page.stem for page in (tmp_path / "site").glob("*.html")}


def test_the_python_page_has_every_public_name():
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    assert [name for name in bankshot.__all__ if f"bankshot.{name}" not in page] == ["__version__"]
