"""The text of a source file as bytes, with the place of each node of its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Edit:
    """A replacement of the bytes from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Mutant:
    """One fault: an edit of a file, made by an operator of the table."""

    file: str  # from the root of the repository, with "/"
    operator: str
    line: int
    edit: Edit
    before: str  # the line, without the blanks around it
    after: str
    lines: tuple[int, ...] = ()  # of the statement, of an `if`, a loop or a function its header
    in_function: bool = False
    users: tuple[int, ...] = ()  # of what a statement outside functions defines: lines in functions

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What identifies the mutant while lines above it change."""
        return self.file, self.operator, self.before, self.after

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.operator}\n    - {self.before}\n    + {self.after}"


class Code:
    """A source file."""

    def __init__(self, path: Path, name: str) -> None:
        self.name, self.source = name, path.read_bytes()
        self.tree = ast.parse(self.source)
        self._lines = [0]
        for line in self.source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    @cached_property
    def _dump(self) -> str:
        return ast.dump(self.tree)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The parent of each node."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, start: int, end: int) -> str:
        return self.source[start:end].decode()

    def of(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        return self.text(self.start(node), self.end(node))

    def changed(self, edit: Edit) -> bytes:
        """The file after an edit."""
        return self.source[: edit.start] + edit.text.encode() + self.source[edit.end :]

    def around(self, edit: Edit) -> tuple[str, str]:
        """The text of the lines of an edit before it, and after it."""
        first, last = self._whole_lines(edit)
        return self.text(first, edit.start).lstrip(), self.text(edit.end, last)

    def _whole_lines(self, edit: Edit) -> tuple[int, int]:
        """Where the lines of an edit start and end, without the newline."""
        last = self.source.find(b"\n", edit.end)
        return self.source.rfind(b"\n", 0, edit.start) + 1, len(self.source) if last < 0 else last

    def mutant(self, operator: str, edit: Edit) -> Mutant | None:
        """The mutant that an edit makes, or None where the result is no Python, or the same program."""
        changed = self.changed(edit)
        try:
            if ast.dump(ast.parse(changed)) == self._dump:
                return None
        except SyntaxError:
            return None
        first, last = self._whole_lines(edit)
        before, after = self.text(first, last), changed[first : last + len(changed) - len(self.source)].decode()
        line = 1 + self.source.count(b"\n", 0, first)
        place = self._statement(line, edit)
        return Mutant(self.name, operator, line, edit, _one_line(before), _one_line(after), *place)

    def _statement(self, line: int, edit: Edit) -> tuple[tuple[int, ...], bool, tuple[int, ...]]:
        """The lines of the smallest statement around an edit, whether it is in a function, and otherwise its users."""
        around = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.stmt) and self.start(node) <= edit.start and edit.end <= self.end(node)
        ]
        if not around:
            return (line,), False, ()
        inner = min(around, key=lambda node: self.end(node) - self.start(node))
        body = getattr(inner, "body", None)
        last = max(inner.lineno, body[0].lineno - 1) if body else inner.end_lineno or inner.lineno
        in_function = any(isinstance(node, ast.FunctionDef) for node in around if node is not inner)
        users = () if in_function else tuple(sorted(self._users(inner, set())))
        return tuple(range(inner.lineno, last + 1)), in_function, users

    def _users(self, statement: ast.stmt, seen: set[str]) -> set[int]:
        """The lines in functions that use a statement outside them: the body of a function, or names that it binds."""
        if isinstance(statement, ast.FunctionDef):
            return {each.lineno for each in statement.body}
        bound = {
            node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        } - seen
        seen |= bound
        found = set[int]()
        for name in bound:
            for user in self._loads.get(name, ()):
                inside = isinstance(user, ast.expr)
                found |= {user.lineno} if inside else self._users(user, seen)
        return found

    @cached_property
    def _loads(self) -> dict[str, list[ast.expr | ast.stmt]]:
        """Where each name is loaded: in a function the name, elsewhere the statement outside functions."""
        found: dict[str, list[ast.expr | ast.stmt]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(self._user(node))
        return found

    def _user(self, name: ast.Name) -> ast.expr | ast.stmt:
        around = [*self._ancestors(name)]
        if any(isinstance(node, ast.FunctionDef) for node in around):
            return name
        return next((node for node in around if isinstance(node, ast.stmt)), name)

    def _ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, from the smallest on."""
        while node in self.parents:
            node = self.parents[node]
            yield node


def _one_line(text: str) -> str:
    """Return a text with single blanks between its words."""
    return " ".join(text.split())
