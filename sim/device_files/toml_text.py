"""A TOML file, and errors that point at its keys and values."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from ..fast_dataclass import entity
from ..wgsl.diagnostics import WgslError, fail
from ..wgsl.regular_files import require_regular
from ..wgsl.source import Source, Span
from .toml_places import places

_CODE = "device-file"
_PLACE = re.compile(r"line (\d+), column (\d+)")


@entity
class TomlText:
    """The file's text and tables."""

    source: Source
    data: dict[str, Any]

    def error(self, message: str, *keys: str, key: bool = False, hint: str | None = None) -> WgslError:
        """Make an error at the value of a key, or at the `key` itself; at the start of the file without `keys`."""
        return fail(_CODE, message, self._span(keys, key), hint=hint)

    def _span(self, keys: tuple[str, ...], key: bool) -> Span:
        try:
            found = places(self.source.text).get(keys)
        except RecursionError:
            found = None
        start, end = (0, 1) if found is None else found.key if key else found.value
        return Span(self.source, start, end)


def load(path: Path) -> TomlText:
    """Read a file. Raises `WgslError`."""
    try:
        text = require_regular(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise fail(_CODE, f"{path}: there is no such file", None) from None
    except UnicodeDecodeError as error:
        raise fail(_CODE, f"{path}: is not UTF-8 text (byte {error.start})", None) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = error.strerror if isinstance(error, OSError) else error
        raise fail(_CODE, f"{path}: cannot be read: {reason}", None) from None
    return parse(text, str(path))


def parse(text: str, name: str) -> TomlText:
    """Parse a text; `name` is the file that messages name. Raises `WgslError`."""
    source = Source(text, name)
    try:
        return TomlText(source, tomllib.loads(text))
    except RecursionError:
        raise fail(_CODE, f"{name}: its lists or tables are nested too deeply", None) from None
    except tomllib.TOMLDecodeError as error:
        message, _, where = str(error).partition(" (at ")
        raise fail(_CODE, message[0].lower() + message[1:], _at(source, where)) from None
    except ValueError:  # an integer of over 4,300 digits
        raise fail(_CODE, f"{name}: a number has too many digits", None) from None


def _at(source: Source, where: str) -> Span:
    """The place in the words `line 3, column 5`, or the end of the text."""
    found = _PLACE.search(where)
    if found is None:
        return Span(source, len(source.text), len(source.text))
    lines = source.text.split("\n")[: int(found[1]) - 1]
    start = sum(len(line) + 1 for line in lines) + int(found[2]) - 1
    return Span(source, start, start + 1)
