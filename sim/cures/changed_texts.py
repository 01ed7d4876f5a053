"""Changed texts, checked: each text once, since the dispatches of a kernel try the same changes."""

from __future__ import annotations

from collections.abc import Iterable

from ..bounded_cache import remember
from ..wgsl.check.check_module import check
from ..wgsl.diagnostics import WgslError
from ..wgsl.source import Source
from ..wgsl.text_edits import Replacement, replaced
from ..wgsl.typed import Module

_MOST = 64  # texts that are kept
_CHECKED: dict[tuple[str, str, str], Module | WgslError] = {}


def changed(source: Source, replacements: Iterable[Replacement]) -> Module | None:
    """Return the module of a changed text; None where it is invalid.

    Barriers must be in uniform control flow, unless the text itself has some that are not.
    """
    text = replaced(source.text, list(replacements))
    found = _checked(text, source.name, "error")
    if found is None and _checked(source.text, source.name, "error") is None:
        return _checked(text, source.name, "off")
    return found


def _checked(text: str, name: str, uniformity: str) -> Module | None:
    def check_once() -> Module | WgslError:
        try:
            return check(Source(text, name), uniformity=uniformity)
        except WgslError as error:
            return error

    found = remember(_CHECKED, (text, name, uniformity), check_once, _MOST)
    return None if isinstance(found, WgslError) else found
