"""WGSL in .wgsl files and in the string literals of programs.

`shaders(file)` returns every WGSL module in a file. In the source of another language, a module is a literal with an
entry point. Literals that the program combines at run time are returned as written; most of them are not valid WGSL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path

from ...sim.fast_dataclass import frozen
from ..errors import printable

LARGEST = 4 << 20  # bytes; larger files are generated programs, not shaders

_ENTRY_POINT = re.compile(r"@\s*(compute|vertex|fragment)\b[^`]*?\bfn\s+\w+\s*\(", re.S)


@frozen
class Shader:
    """The text of one module, which starts at `line` (1-based) of `file`."""

    file: Path
    line: int
    text: str

    @property
    def name(self) -> str:
        file = printable(str(self.file))
        return file if self.file.suffix == ".wgsl" else f"{file}:{self.line}"


def files(folder: Path, embedded: bool) -> list[Path]:
    """List the files under `folder` (or the file itself) that may contain WGSL, sorted."""
    if folder.is_file():
        return [folder]
    suffixes = {".wgsl", *(LITERALS if embedded else ())}
    return sorted(f for f in folder.rglob("*") if f.suffix.lower() in suffixes and f.is_file())


def shaders(file: Path) -> list[Shader]:
    """Return the modules in a file. Invalid UTF-8 becomes replacement characters, which the checker refuses."""
    if file.stat().st_size > LARGEST:
        return []
    text = file.read_bytes().decode("utf-8", errors="replace")
    if file.suffix.lower() == ".wgsl":
        return [Shader(file, 1, text)]
    found: list[Shader] = []
    for literals in LITERALS.get(file.suffix.lower(), ()):
        for start, literal in literals(text):
            if _ENTRY_POINT.search(literal):
                found.append(Shader(file, text.count("\n", 0, start) + 1, literal))
    return sorted(found, key=lambda shader: shader.line)


def filled(shader: Shader, values: Mapping[str, str]) -> Shader:
    """Replace `{{name}}` and `${name}` in a shader by the value of that name, if there is one."""
    text = _PLACE.sub(lambda place: values.get(place[1] or place[2], place[0]), shader.text)
    return replace(shader, text=text)


_PLACE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}|\$\{\s*([\w.]+)\s*\}")

# ---- literals by language: each function yields the offsets and texts of their contents --------------------

Literals = Callable[[str], Iterator[tuple[int, str]]]


def _matches(pattern: str, flags: re.RegexFlag = re.S, decode: Callable[[str], str] = str) -> Literals:
    """Make a function that yields every match of a pattern, whose group `text` has the contents."""
    compiled = re.compile(pattern, flags)

    def literals(text: str) -> Iterator[tuple[int, str]]:
        for match in compiled.finditer(text):
            yield match.start("text"), decode(match["text"])

    return literals


_SKIPPED = re.compile(r"//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"", re.S)
_ESCAPE = re.compile(r"\\([`$\\])")


def _templates(text: str) -> Iterator[tuple[int, str]]:
    """Yield JavaScript's template literals, outermost ones only. `${…}` stays in the text."""
    at = 0
    while at < len(text):
        if text[at] == "`":
            end = _template_end(text, at + 1)
            yield at + 1, _ESCAPE.sub(r"\1", text[at + 1 : end])
            at = end + 1
        elif skipped := _SKIPPED.match(text, at):
            at = skipped.end()
        else:
            at += 1


def _template_end(text: str, at: int) -> int:
    """Return the offset of the backtick that closes the template whose contents start at `at`."""
    while at < len(text) and text[at] != "`":
        if text[at] == "\\":
            at += 1
        elif text.startswith("${", at):
            at = _substitution_end(text, at + 2)
        at += 1
    return at


def _substitution_end(text: str, at: int) -> int:
    """Return the offset of the brace that closes the `${` whose contents start at `at`; templates may be nested."""
    depth = 0
    while at < len(text):
        if text[at] == "`":
            at = _template_end(text, at + 1)
        elif text[at] == "}":
            if depth == 0:
                return at
            depth -= 1
        elif text[at] == "{":
            depth += 1
        at += 1
    return at


_CPP_RAW = _matches(r'R"(?P<mark>[^()\\\s]{0,16})\((?P<text>.*?)\)(?P=mark)"')
_RUST_RAW = _matches(r'\br(?P<mark>#*)"(?P<text>.*?)"(?P=mark)')
_RUST_PLAIN = _matches(r'(?<![r#\\])"(?P<text>\s*\n(?:[^"\\]|\\.)*)"')
_PYTHON = _matches(r'(?P<mark>"""|\'\'\')(?P<text>.*?)(?P=mark)')
_SCRIPT = _matches(r"<script\b[^>]*(?:wgsl|x-shader)[^>]*>(?P<text>.*?)</script", re.S | re.I, decode=unescape)

LITERALS: dict[str, tuple[Literals, ...]] = {
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx"), (_templates,)),
    **dict.fromkeys((".html", ".htm"), (_SCRIPT, _templates)),
    **dict.fromkeys((".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh"), (_CPP_RAW,)),
    ".rs": (_RUST_RAW, _RUST_PLAIN),
    ".py": (_PYTHON,),
}
