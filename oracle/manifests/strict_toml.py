"""TOML files whose every key must be known: a key that no code takes is an error with a hint.

    table = Table.load(path)
    kernel = table.table("kernel")
    entry = kernel.take("entry", str)
    kernel.done()

Errors are `UsageError`s that begin with the file and, where the key can be found, its line.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, cast

from ...sim.fast_dataclass import entity
from ...sim.wgsl.regular_files import require_regular
from ..errors import UsageError, printable

REQUIRED = object()
LONGEST = 2_000  # characters of a name or an expression
FREE_TEXT = ("preprocess", "defines")  # keys whose values may be long, and have several lines
_MOST_SHOWN = 60  # characters of a value in a message

NAMES = {
    str: "a string",
    int: "an integer",
    list: "a list",
    dict: "a table",
    float: "a number",
    bool: "true or false",
}


def _parsed(path: Path, text: str) -> dict[str, Any]:
    if text.startswith("\ufeff"):
        raise UsageError(f"{path}:1: begins with a byte order mark; save it as UTF-8 without one")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UsageError(f"{path}:{line}: holds a null character; save it as UTF-8 text")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"{path}: its lists or tables are nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at ")
        line = re.search(r"line (\d+)", place)
        at = f"{path}:{line[1]}" if line else str(path)
        raise UsageError(f"{at}: {message[0].lower()}{message[1:]}") from None
    except ValueError:  # an integer of over 4,300 digits
        raise UsageError(f"{path}: a number has too many digits") from None


@entity
class Table:
    """One table of the file. `header`: how its line begins (`[bind.X]`), '' for the whole file."""

    path: Path
    text: str
    data: dict[str, Any]
    header: str = ""
    within: Table | None = None

    @classmethod
    def load(cls, path: Path) -> Table:
        try:
            text = require_regular(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            what = "is a link to a missing file" if path.is_symlink() else "there is no such file"
            raise UsageError(f"{path}: {what}") from None
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}: is not UTF-8 text (byte {error.start})") from None
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
        data = _parsed(path, text)
        if bad := next((key for key in _keys(data) if key != printable(key) or len(key) > LONGEST), None):
            raise UsageError(f"{path}: a name must be short and without control characters, and {shown(bad)} is not")
        return cls(path, text, data)

    def take(self, key: str, *types: type, default: Any = REQUIRED, of: tuple[type, ...] = ()) -> Any:
        """Remove `key` and return its value: what is left at `done` is unknown. A bool does not count as an integer.

        `of`: the types that items of a list, or values of a table, may have.
        """
        if key not in self.data:
            if default is REQUIRED:
                self.fail(f"{self.header or 'the file'} lacks `{key}`{self._near(key)}")
            return default
        value: Any = self.data[key]
        if not _is_one_of(value, types):
            self.fail(f"`{key}` must be {_any_of(types)}, not {shown(value)}", key)
        for item in _items(value):
            if of and not _is_one_of(item, of):
                self.fail(f"`{key}` holds {shown(item)}, which is not {_any_of(of)}", key)
        for text in () if key in FREE_TEXT else _texts(value):
            self._check_text(key, text)
        del self.data[key]
        return value

    def _check_text(self, key: str, text: str) -> None:
        if text != printable(text):
            self.fail(f"`{key}` holds control characters: {shown(text)}", key)
        if len(text) > LONGEST:
            self.fail(f"`{key}` has {len(text):,} characters, and at most {LONGEST:,} are allowed", key)

    def table(self, key: str, required: bool = False) -> Table:
        """Take the sub-table at `key`; empty where there is none."""
        data = self.take(key, dict, default=REQUIRED if required else {})
        inner = f"{self.header[1:-1]}.{key}" if self.header else key
        return Table(self.path, self.text, data, f"[{inner}]", self)

    def tables(self, key: str) -> list[Table]:
        """Take the tables of an array of tables."""
        found = self.take(key, list, default=[])
        if not all(isinstance(item, dict) for item in found):
            self.fail(f"`{key}` must be written as [[{key}]] tables", key)
        return [Table(self.path, self.text, item, f"[[{key}]]") for item in found]

    def done(self, known: Iterable[str] = ()) -> None:
        """Raise `UsageError` for a key that was not taken; `known`: the names to guess from."""
        for key in self.data:
            close = difflib.get_close_matches(key, list(known), n=1)
            hint = f"; did you mean `{close[0]}`?" if close else f"; known are {', '.join(known)}" if known else ""
            self.fail(f"{self.header or 'the file'} has an unknown key `{key}`{hint}", key)

    def fail(self, message: str, key: str | None = None) -> NoReturn:
        raise UsageError(f"{self.place(key)}: {message}")

    def place(self, key: str | None = None) -> str:
        """Return the file and, where the key can be found, its line."""
        return f"{self.path}{self._line(key)}"

    def _near(self, key: str) -> str:
        close = difflib.get_close_matches(key, self.data, n=1)
        return f"; is `{close[0]}` meant to be it?" if close else ""

    def _line(self, key: str | None) -> str:
        """`:12` where `key` (or this table's header) can be found. Of arrays of tables, the first that has it."""
        inside = not self.header
        path = self.header.strip("[]")
        for number, line in enumerate(self.text.splitlines(), 1):
            if line.lstrip().startswith("["):
                inside = line.strip().startswith(self.header) if self.header else False
                names_key = key is not None and line.split("]")[0].strip(" \t[") == f"{path}.{key}".lstrip(".")
                if (inside and key is None) or names_key:
                    return f":{number}"
            elif inside and key is not None and re.match(rf"\s*\"?{re.escape(key)}\"?\s*=", line):
                return f":{number}"
        # A table that is written inline is a key of the one around it.
        return self.within._line(path.rpartition(".")[2]) if self.within and self.within.header else ""


def place_of(path: Path, key: str, value: str) -> str:
    """Return `FILE:line:col` of the first `key = "value"` in a file; FILE alone where it is not found."""
    with suppress(OSError, UnicodeDecodeError):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if found := re.search(rf"\b{re.escape(key)}[\"']?\s*=\s*([\"']{re.escape(value)}[\"'])", line):
                return f"{path}:{number}:{found.start(1) + 1}"
    return str(path)


def _keys(value: object) -> Iterator[str]:
    """Every key of nested tables."""
    waiting: list[object] = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield from cast("dict[str, object]", each)
        waiting += _items(cast("object", each))


def shown(value: object) -> str:
    """Write a value for a message, shortened."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # ValueError: a number of over 4,300 digits
        return "what is too long or too deep to show"
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


def _items(value: object) -> Iterable[object]:
    """The values of a table, or the items of a list."""
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def _texts(value: object) -> Iterable[str]:
    """A text, or those in a list."""
    each = _items(cast("object", value)) if isinstance(value, list) else [value]
    return (text for text in each if isinstance(text, str))


def _is_one_of(value: object, types: tuple[type, ...]) -> bool:
    return isinstance(value, types) and (not isinstance(value, bool) or bool in types)


def _any_of(types: tuple[type, ...]) -> str:
    return " or ".join(NAMES[t] for t in types)
