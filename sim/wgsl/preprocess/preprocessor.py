"""The C-style preprocessor that many kernels are written for: text with `#` lines to plain WGSL.

It supports `#include "file"`, object-like `#define` and `#undef`, `#if` `#ifdef` `#ifndef` `#elif` `#else` `#endif`
with `defined(…)`, `#error`, and `#line 7 "file"`, also in the form that C preprocessors write, `# 7 "file"`. A
directive is a line outside comments whose first character after blanks is `#`; a `\\` at its end continues it on the
next line. Macros replace whole identifiers outside comments. The caller's definitions take precedence, so that a
`#define` in the text is a default. A directive leaves an empty line, so that line numbers are those of the file up to
the first include; `Source.origin` always has the file and line of every line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ...fast_dataclass import entity
from ..diagnostics import Note, fail
from ..regular_files import require_regular
from ..source import LINE_BREAKS, Source, Span
from ..syntax.lexer import WORD
from .conditions import evaluate

# More text than this, from includes or macros that multiply, must be a mistake.
_MOST_CHARACTERS = 1 << 24
_MOST_EXPANSION = 1 << 22  # characters of macro text inserted, plus `_REPLACEMENT` for each replacement
_REPLACEMENT = 16  # the cost of one replacement, in characters
_MOST_NESTED_MACROS = 64
_MOST_OPEN_FILES = 64

_INSTEAD_OF_PARAMETERS = (
    "put a blank before the '(', write a function, or let a C preprocessor expand it: "
    "--preprocess 'cpp -w {includes} {defines}', also `preprocess` in a manifest and in bankshot.check"
)

_DIRECTIVE = re.compile(r"\s*#\s*(\w*)\s*")
_WORD_OR_NUMBER = re.compile(rf"(?P<number>\.?[0-9][\w.]*)|(?P<word>{WORD})")
_DEFINED = re.compile(rf"\bdefined\b(?:\s*\(\s*({WORD})\s*\)|\s*({WORD}))?")
_MARK_IN_CODE = re.compile(r"//|/\*")
_MARK_IN_COMMENT = re.compile(r"/\*|\*/")
_CONTINUED = re.compile(rf"\\[ \t]*(\r\n|[{LINE_BREAKS}])\Z")
MARKER = re.compile(r'\s*#\s*(?:line\s+)?(\d{1,9})(?:\s+"((?:[^"\\]|\\.)*)"[\s\d]*)?\s*')
_STDIN = ("", "-", "<stdin>")  # names that C preprocessors give to their standard input


def preprocess(
    text: str,
    name: str,
    *,
    defines: Mapping[str, str | int | float | bool] | None = None,
    include_dirs: Sequence[str | Path] = (),
    base_dir: str | Path | None = None,
) -> Source:
    """Preprocess a text to plain WGSL with a line map.

    Includes are searched for in the folder of the including file (`base_dir` for `text`), then in `include_dirs`. Text
    without `#` lines is returned unchanged if there are no `defines`. Raises `WgslError` with spans in the original
    file.
    """
    if not defines and not _has_directives(text):
        return Source(text, name)
    run = _Preprocessor(name, defines or {}, [Path(directory) for directory in include_dirs])
    run.file(text, name, None if base_dir is None else Path(base_dir))
    return Source("".join(run.output), name, run.origin)


def _has_directives(text: str) -> bool:
    """Whether there are `#` lines."""
    return "#" in text and any(line.lstrip().startswith("#") for line in Source(text).lines())


def macro_text(name: str, value: str | int | float | bool) -> str:
    """Format a Python value as WGSL. Raises `WgslError` where it has no such form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise fail("bad-define", f"the value {value} of '{name}' cannot be written in WGSL", None)
    text = str(value)
    if any(c in text for c in LINE_BREAKS):
        raise fail("bad-define", f"the value of '{name}' is more than one line", None)
    return text


@entity
class _Conditional:
    """An open `#if` … `#endif`."""

    opened: Span
    reachable: bool  # the enclosing text is kept
    kept: bool  # the current branch is kept
    settled: bool  # a branch has been kept
    in_else: bool = False


class _Preprocessor:
    def __init__(self, name: str, defines: Mapping[str, str | int | float | bool], include_dirs: list[Path]) -> None:
        self.name = name
        self.macros: dict[str, str] = {}
        for name, value in defines.items():
            if not name.isidentifier():
                raise fail("bad-define", f"'{name}' is not a name that can be defined", None)
            self.macros[name] = macro_text(name, value)
        self.given = frozenset(self.macros)
        self.include_dirs = include_dirs
        self.output: list[str] = []
        self.origin: list[tuple[str, int]] = []
        self.next_line = (name, 1)  # the original file and line of the next line
        self.characters = 0
        self.expansion = 0
        self.conditionals: list[_Conditional] = []
        self.open_files: list[tuple[Path | None, Path | None]] = []  # (resolved path, directory)
        self.comment_depth = 0

    # ---- lines -----------------------------------------------------------------------------------------

    def file(self, text: str, name: str, directory: Path | None, path: Path | None = None) -> None:
        """Preprocess one file. Conditionals and comments must end in the file in which they began."""
        self.open_files.append((path, directory))
        outer, self.conditionals, self.next_line = (self.conditionals, self.next_line), [], (name, 1)
        source = Source(text, name, origin=[])
        lines = source.lines()
        if path is not None and not lines[-1]:
            lines.pop()  # the text after the last line break belongs to the including file
        start = 0
        for group in self.groups(lines):
            self.group(group, source, start)
            start += sum(map(len, group))
        if self.conditionals:
            raise fail("unterminated-if", "this conditional has no '#endif'", self.conditionals[-1].opened)
        if self.comment_depth and path is not None:
            end = Span(source, start, start)
            raise fail("unterminated-comment", "the included file ends within a block comment", end)
        self.conditionals, self.next_line = outer
        self.open_files.pop()

    def groups(self, lines: list[str]) -> Iterator[list[str]]:
        """Iterate over the lines, a directive together with its continuation lines."""
        rest = iter(lines)
        for line in rest:
            group = [line]
            if self.comment_depth == 0 and _DIRECTIVE.match(line):
                while _CONTINUED.search(group[-1]) and (following := next(rest, None)) is not None:
                    group.append(following)
            yield group

    def group(self, lines: list[str], source: Source, start: int) -> None:
        """Preprocess lines that form one, from character `start` on, into as many lines."""
        assert source.origin is not None
        file, number = self.next_line
        source.origin += [(file, number + i) for i in range(len(lines))]
        self.next_line = (file, number + len(lines))
        position = start
        for line in lines[:-1]:
            self.put("\n", Span(source, position, position + len(line)))
            position += len(line)
        one = "".join(_CONTINUED.sub(lambda end: " " * len(end[0]), line) for line in lines[:-1]) + lines[-1]
        self.line(one, Span(source, start, start + len(one)))

    def line(self, line: str, span: Span) -> None:
        """Preprocess one line."""
        in_comment = self.comment_depth > 0
        kept = not self.conditionals or self.conditionals[-1].kept
        ending = line[len(line.rstrip(LINE_BREAKS)) :]
        if kept and not in_comment and (marker := MARKER.fullmatch(line)):
            self.next_line = (self.marked_file(marker[2]), int(marker[1]))
            self.put(ending, span)
            return
        directive = None if in_comment else _DIRECTIVE.match(line)
        pieces = list(self.pieces(line))
        if directive:
            inside = Span(span.source, span.start + line.index("#"), span.start + len(line.rstrip()))
            code = "".join(piece if is_code else " " for is_code, piece in pieces)
            self.directive(directive.group(1), code[directive.end(1) :].strip(), inside, kept)
            if kept and directive.group(1) == "include" and ending:
                return  # the lines of the file replace it
        if directive or not kept:
            # A comment that spans lines stays, since the other lines may be kept.
            lasting = in_comment or self.comment_depth > 0
            comments = "".join(piece for is_code, piece in pieces if lasting and not is_code)
            last = Span(span.source, max(span.start, span.end - 1), span.end)  # of several lines of a directive
            self.put(comments if comments.endswith(ending) else comments + ending, last)
        else:
            self.put("".join(self.expand(piece, span) if is_code else piece for is_code, piece in pieces), span)

    def marked_file(self, written: str | None) -> str:
        """Return the file that a line marker names, or the current file where it has no name."""
        if written is None:
            return self.next_line[0]
        return self.name if written in _STDIN else re.sub(r"\\(.)", r"\1", written)

    def put(self, text: str, span: Span) -> None:
        """Output a line, with the origin of `span`."""
        self.characters += len(text)
        if self.characters > _MOST_CHARACTERS:
            raise fail("too-large", f"the preprocessed text has more than {_MOST_CHARACTERS} characters", span)
        self.output.append(text)
        self.origin.append(span.place[:2])

    def pieces(self, line: str) -> Iterator[tuple[bool, str]]:
        """Split the line into code (True) and comments (False); block comments continue from line to line."""
        begin = position = 0
        while mark := (_MARK_IN_COMMENT if self.comment_depth else _MARK_IN_CODE).search(line, position):
            if self.comment_depth == 0:
                yield True, line[begin : mark.start()]
                begin = mark.start()
                if mark.group() == "//":
                    yield False, line[begin:]
                    return
            position = mark.end()
            self.comment_depth += 1 if mark.group() == "/*" else -1
            if self.comment_depth == 0:
                yield False, line[begin:position]
                begin = position
        yield self.comment_depth == 0, line[begin:]

    # ---- macros ----------------------------------------------------------------------------------------

    def expand(self, text: str, span: Span, hidden: frozenset[str] = frozenset()) -> str:
        """Replace the macros in `text`, recursively, but no macro within itself."""
        if not self.macros:
            return text

        def replaced(match: re.Match[str]) -> str:
            word = match.group()
            value = None if match.lastgroup == "number" or word in hidden else self.macros.get(word)
            if value is None:
                return word
            self.expansion += len(value) + _REPLACEMENT
            if self.expansion > _MOST_EXPANSION or len(hidden) == _MOST_NESTED_MACROS:
                raise fail("too-large", f"macros expand to too much text, here by way of '{word}'", span)
            return self.expand(value, span, hidden | {word})

        return _WORD_OR_NUMBER.sub(replaced, text)

    # ---- directives ------------------------------------------------------------------------------------

    def directive(self, word: str, rest: str, span: Span, kept: bool) -> None:
        """Execute a directive; only conditionals count where the text is not `kept`."""
        if word in _CONDITIONALS:
            _CONDITIONALS[word](self, rest, span, kept)
        elif kept:
            if word not in _DIRECTIVES:
                known = ", ".join(f"#{each}" for each in [*_DIRECTIVES, *_CONDITIONALS])
                raise fail("unknown-directive", f"there is no directive '#{word}'", span, hint=f"known are {known}")
            _DIRECTIVES[word](self, rest, span)

    def define(self, rest: str, span: Span) -> None:
        name, value = self.leading_name("define", rest, span)
        if value.startswith("("):
            message = f"'{name}' is a macro with parameters, which are not supported"
            raise fail("unsupported-macro", message, span, hint=_INSTEAD_OF_PARAMETERS)
        if name in self.given:
            return
        value = value.strip()
        if self.macros.get(name, value) != value:
            message = f"'{name}' is defined already, as '{self.macros[name]}'"
            raise fail("macro-redefined", message, span, hint=f"put it between '#ifndef {name}' and '#endif'")
        self.macros[name] = value

    def undef(self, rest: str, span: Span) -> None:
        name, _ = self.leading_name("undef", rest, span, alone=True)
        if name not in self.given:
            self.macros.pop(name, None)

    def error(self, rest: str, span: Span) -> None:
        raise fail("error-directive", rest or "#error", span)

    def bad_marker(self, rest: str, span: Span) -> None:
        message = "'#line' takes a line number, and a file name in quotes"
        raise fail("bad-directive", message, span, hint='write #line 7 "file.wgsl"')

    def include(self, rest: str, span: Span) -> None:
        if len(rest) < 3 or (rest[0], rest[-1]) != ('"', '"'):
            raise fail("bad-directive", "'#include' takes a file name in quotes: #include \"file.wgsl\"", span)
        if self.comment_depth:
            raise fail("bad-directive", "the comment after '#include' must end on its line", span)
        wanted = rest[1:-1]
        directory = self.open_files[-1][1]
        folders = ([] if directory is None else [directory]) + self.include_dirs
        path = next((folder / wanted for folder in folders if (folder / wanted).is_file()), None)
        if path is None:
            looked = ", ".join(f"'{folder}'" for folder in folders) or "no folder, for none was given"
            raise fail("include-not-found", f"there is no file '{wanted}'", span, hint=f"looked in {looked}")
        resolved = path.resolve()
        if any(resolved == open_path for open_path, _ in self.open_files):
            raise fail("include-cycle", f"'{wanted}' includes itself", span)
        try:
            text = require_regular(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as problem:
            raise fail("include-unreadable", f"'{wanted}' cannot be read: {problem}", span) from None
        if len(self.open_files) > _MOST_OPEN_FILES:
            raise fail("include-too-deep", f"more than {_MOST_OPEN_FILES} files include each other", span)
        # The next line of the including file must begin on a line of its own.
        self.file(text if text.endswith("\n") else text + "\n", str(path), path.parent, resolved)

    # ---- conditionals ----------------------------------------------------------------------------------

    def if_(self, rest: str, span: Span, kept: bool) -> None:
        holds = kept and self.holds("if", rest, span)
        self.conditionals.append(_Conditional(span, kept, holds, holds))

    def ifdef(self, rest: str, span: Span, kept: bool, *, wanted: bool = True) -> None:
        word = "ifdef" if wanted else "ifndef"
        holds = kept and (self.leading_name(word, rest, span, alone=True)[0] in self.macros) == wanted
        self.conditionals.append(_Conditional(span, kept, holds, holds))

    def ifndef(self, rest: str, span: Span, kept: bool) -> None:
        self.ifdef(rest, span, kept, wanted=False)

    def elif_(self, rest: str, span: Span, kept: bool) -> None:
        current = self.innermost("elif", span)
        open_question = current.reachable and not current.settled
        current.kept = open_question and self.holds("elif", rest, span)
        current.settled |= current.kept

    def else_(self, rest: str, span: Span, kept: bool) -> None:
        current = self.innermost("else", span)
        current.kept = current.reachable and not current.settled
        current.in_else = True

    def endif(self, rest: str, span: Span, kept: bool) -> None:
        self.innermost("endif", span)
        self.conditionals.pop()

    def innermost(self, word: str, span: Span) -> _Conditional:
        if not self.conditionals:
            raise fail("unmatched-directive", f"'#{word}' without '#if'", span)
        current = self.conditionals[-1]
        if current.in_else and word != "endif":
            note = Note("the conditional begins here", current.opened)
            raise fail("unmatched-directive", f"'#{word}' after '#else'", span, note)
        return current

    def holds(self, word: str, rest: str, span: Span) -> bool:
        """Evaluate the condition of an `#if` or `#elif`."""
        if not rest:
            raise fail("bad-directive", f"'#{word}' takes a condition", span)

        def answer(match: re.Match[str]) -> str:
            name = match.group(1) or match.group(2)
            if name is None:
                raise fail("bad-condition", "'defined' takes a name", span)
            return " 1 " if name in self.macros else " 0 "

        return evaluate(self.expand(_DEFINED.sub(answer, rest), span), span) != 0

    def leading_name(self, word: str, rest: str, span: Span, *, alone: bool = False) -> tuple[str, str]:
        """Split the arguments of a directive into the leading name and the rest."""
        found = _WORD_OR_NUMBER.match(rest)
        if found is None or found.lastgroup != "word" or (alone and found.end() != len(rest)):
            raise fail("bad-directive", f"'#{word}' takes a name", span)
        return found.group(), rest[found.end() :]


_DIRECTIVES: dict[str, Callable[[_Preprocessor, str, Span], None]] = {
    "include": _Preprocessor.include,
    "define": _Preprocessor.define,
    "undef": _Preprocessor.undef,
    "error": _Preprocessor.error,
    "line": _Preprocessor.bad_marker,  # `line` has handled the valid ones
}
_CONDITIONALS: dict[str, Callable[[_Preprocessor, str, Span, bool], None]] = {
    "if": _Preprocessor.if_,
    "ifdef": _Preprocessor.ifdef,
    "ifndef": _Preprocessor.ifndef,
    "elif": _Preprocessor.elif_,
    "else": _Preprocessor.else_,
    "endif": _Preprocessor.endif,
}
