"""Markdown: what differs from an earlier audit, as a comment on a pull request."""

from __future__ import annotations

from . import changes


class Format(changes.Format):
    name = "markdown"
    help = "what changed, with --against, as a comment on a pull request"
    _layout = "as_markdown"
