"""How Sphinx builds the site from the pages of this folder: `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from bankshot import __version__  # noqa: E402

project = "Bankshot"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
myst_heading_anchors = 4
linkcheck_anchors = False

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
python_maximum_signature_line_length = 100
default_role = "literal"  # docstrings set code in single backticks, as Markdown does

html_theme = "furo"
html_title = f"Bankshot {release}"
html_static_path = ["site"]
html_css_files = ["tables.css"]
html_copy_source = False
html_show_copyright = False


_LINK = re.compile(r"\[([^\]]+)\]\(((?!https?:)[^)#]+)[^)]*\)")


def _unlink(app: Sphinx, page: object, content: list[str]) -> None:
    """Keep only the text of links to files of the repository that are no pages of the site."""
    content[0] = _LINK.sub(lambda link: link[0] if (DOCS / link[2]).parent == DOCS else link[1], content[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", _unlink)
    app.connect("include-read", lambda app, path, page, content: _unlink(app, page, content))
