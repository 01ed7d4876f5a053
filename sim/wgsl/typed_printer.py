"""Typed module -> text, for people: what `--dump typed` shows.

`to_text(module)` prints declarations, then each function, with the source line above the statements that it became.
Every expression carries its type, so loads, conversions, folded constants and resolved overloads can be read off:
`+(load(x: ref<function, f32, read_write>): f32, 1: f32): f32`. The text is for reading and comparing; nothing parses
it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import cast

from . import typed
from . import types as t
from .diagnostics import Crash
from .source import Span
from .syntax.token_cursor import make_room_to_recurse

_WIDTH = 110  # columns; a longer expression gets one operand a line
_INDENT = "  "
_MARGIN = 8  # columns for the number of a source line, before every statement
_MOST_PARTS = 16  # of a constant array, vector or matrix; the others are counted
_FORMATS = {t.F32: "<f", t.F16: "<e"}  # for `struct`


def to_text(module: typed.Module) -> str:
    """Print a checked module. The text is the same in every run and ends with a line break."""
    make_room_to_recurse()
    blocks = [_head(module)]
    blocks += [_struct(type_) for type_ in module.structs.values()]
    blocks.append([line for override in module.overrides for line in _override(override)])
    blocks.append([line for variable in module.globals for line in _global(variable)])
    blocks += [_Printer(module.source.name).function(function) for function in module.functions.values()]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


# ---- declarations --------------------------------------------------------------------------------------


def _head(module: typed.Module) -> list[str]:
    lines = [f"module {module.source.name}"]
    lines += [f"enable {name}" for name in sorted(module.enables)]
    lines += [f"requires {name}" for name in sorted(module.requires)]
    return [*lines, *_filters(module.diagnostics)]


def _filters(diagnostics: Mapping[str, str]) -> list[str]:
    return [f"diagnostic({severity}, {rule})" for rule, severity in diagnostics.items()]


def _struct(type_: t.Struct) -> list[str]:
    lines = [f"struct {type_}: {type_.size} bytes, align {type_.align}"]
    for member in type_.members:
        place = f"offset {member.offset}, {member.size} bytes, align {member.align}"
        lines.append(f"{_INDENT}{member.name}: {member.type}{_attributes(member.attrs)} ({place})")
    return lines


def _override(override: typed.Override) -> Iterator[str]:
    id_ = "" if override.id is None else f"@id({override.id}) "
    yield from _initialized(f"{id_}override {override.name}: {override.type}", override.init)


def _global(variable: typed.Variable) -> Iterator[str]:
    binding = "" if variable.binding is None else "@group({}) @binding({}) ".format(*variable.binding)
    head = f"{binding}var<{variable.space}, {variable.access}> {variable.name}: {variable.type}"
    yield from _initialized(head, variable.init)
    if isinstance(variable.type, t.Array) and isinstance(variable.type.count, t.OverrideCount):
        yield from _tree("override = ", variable.type.count.expr, _INDENT)


def _initialized(head: str, init: typed.Expr | None) -> Iterator[str]:
    if init is None:
        yield head
    else:
        yield from _tree(f"{head} = ", init, "")


def _attributes(attributes: t.IoAttributes) -> str:
    """The io attributes of a parameter, member or result, each after a space."""
    shown = ""
    for name, value in attributes.items():
        if value is True:
            shown += f" @{name}"
        else:
            values = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
            shown += f" @{name}({', '.join(str(each) for each in values if each is not None)})"
    return shown


# ---- functions and statements --------------------------------------------------------------------------


class _Printer:
    """The lines of one function. A source line is quoted above the first statement that begins on it."""

    def __init__(self, file: str) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.file = file  # of the source lines quoted last
        self.line = 0

    def function(self, function: typed.Function) -> list[str]:
        self.lines += _function_head(function)
        assert function.body is not None
        self._block(function.body)
        return self.lines

    def _block(self, block: typed.Block) -> None:
        """The statements of a block, indented already by whatever it belongs to."""
        self._filters(block.diagnostics)
        for stmt in block.body:
            self._statement(stmt)

    def _nested(self, head: str, block: typed.Block) -> None:
        self._put(head)
        self.depth += 1
        self._block(block)
        self.depth -= 1

    def _statement(self, stmt: typed.Stmt) -> None:
        self._quote(stmt.span)
        match stmt:
            case typed.Block():
                self._nested("block", stmt)
            case typed.If():
                self._filters(stmt.diagnostics)
                self._expression("if ", stmt.condition)
                self._nested("then", stmt.then)
                if stmt.orelse is not None:
                    self._nested("else", stmt.orelse)
            case typed.Switch():
                self._filters(stmt.diagnostics)
                self._expression("switch ", stmt.selector)
                for case in stmt.cases:
                    self._nested(_case(case), case.body)
            case typed.Loop():
                self._loop(stmt)
            case typed.Break() | typed.Continue() | typed.Discard():
                self._put(type(stmt).__name__.lower())
            case _:
                self._simple(stmt)

    def _simple(self, stmt: typed.Stmt) -> None:
        match stmt:
            case typed.VarDecl(var=var, init=None):
                self._put(f"var {var.name}: {var.type}")
            case typed.VarDecl(var=var, init=typed.Expr() as init):
                self._expression(f"var {var.name}: {var.type} = ", init)
            case typed.LetDecl(var=var, init=init):
                self._expression(f"let {var.name}: {var.type} = ", init)
            case typed.Assign(target=target, value=value):
                self._expression("store ", target)
                self._expression("= ", value, deeper=1)
            case typed.CompoundAssign(target=target, builtin=builtin, value=value, result=result):
                self._expression("update ", target)
                self._expression(f"{builtin.name}= ({result}) ", value, deeper=1)
            case typed.Eval(expr=expr):
                self._expression("eval ", expr)
            case typed.Return(value=None):
                self._put("return")
            case typed.Return(value=typed.Expr() as value):
                self._expression("return ", value)
            case _:
                raise Crash(f"the typed printer does not know {type(stmt).__name__}", stmt.span)

    def _loop(self, loop: typed.Loop) -> None:
        self._filters(loop.diagnostics)
        self._put("loop")
        self.depth += 1
        if loop.condition is not None:
            self._expression("while ", loop.condition)
        self._nested("body", loop.body)
        if loop.continuing is not None:
            self._nested("continuing", loop.continuing)
        if loop.break_if is not None:
            self._expression("break if ", loop.break_if)
        self.depth -= 1

    # ---- lines -----------------------------------------------------------------------------------------

    def _expression(self, head: str, expr: typed.Expr, *, deeper: int = 0) -> None:
        self.lines += _tree(head, expr, self._margin + _INDENT * deeper)

    def _filters(self, diagnostics: Mapping[str, str]) -> None:
        for line in _filters(diagnostics):
            self._put(line)

    def _put(self, line: str) -> None:
        self.lines.append(self._margin + line)

    @property
    def _margin(self) -> str:
        return " " * _MARGIN + _INDENT * self.depth

    def _quote(self, span: Span) -> None:
        file, line, _ = span.place
        if file != self.file:
            self.lines.append(f"{_INDENT}in {file}")
        if (file, line) != (self.file, self.line):
            self.lines.append(f"{line:>{_MARGIN - 3}} | {span.line_text.strip()}")
        self.file, self.line = file, line


def _function_head(function: typed.Function) -> Iterator[str]:
    params = ", ".join(f"{p.name}: {p.type}{_attributes(p.attrs)}" for p in function.params)
    result = "" if function.result is None else f" -> {function.result}{_attributes(function.result_attrs)}"
    yield f"fn {function.name}({params}){result}"
    if function.stage:
        yield f"{_INDENT}@{function.stage}"
    for axis, size in zip("xyz", function.workgroup_size or (), strict=False):
        yield from _tree(f"workgroup size {axis} = ", size, _INDENT)
    if function.subgroup_size is not None:
        yield from _tree("subgroup size = ", function.subgroup_size, _INDENT)
    if function.must_use:
        yield f"{_INDENT}@must_use"
    yield from (_INDENT + line for line in _filters(function.diagnostics))
    for label, named in (("calls", function.calls), ("uses", [*function.globals, *function.overrides])):
        if named:
            yield f"{_INDENT}{label} {', '.join(each.name for each in named)}"


def _case(case: typed.Case) -> str:
    return f"case {', '.join([*map(str, case.values), *['default'] * case.default])}"


# ---- expressions ---------------------------------------------------------------------------------------


def _tree(head: str, expr: typed.Expr, margin: str) -> Iterator[str]:
    """An expression after `head`: on one line where it fits, else one operand a line."""
    line = margin + head + _inline(expr)
    parts = typed.children(expr)
    if len(line) <= _WIDTH or not parts:
        yield line
        return
    yield f"{margin}{head}{_name(expr)}("
    for part in parts:
        yield from _tree("", part, margin + _INDENT)
    yield f"{margin}): {expr.type}"


def _inline(expr: typed.Expr) -> str:
    parts = typed.children(expr)
    if parts or isinstance(expr, _APPLIED):
        return f"{_name(expr)}({', '.join(map(_inline, parts))}): {expr.type}"
    return f"{_name(expr)}: {expr.type}"


_APPLIED = (typed.BuiltinCall, typed.Construct, typed.Call)  # what has parentheses even without operands


def _name(expr: typed.Expr) -> str:
    """The operation of an expression, or the name or value that it is."""
    match expr:
        case typed.Const(value=value, type=type_):
            return "unevaluated" if value is None else _constant(value, type_)
        case typed.OverrideRef(override=override):
            return override.name
        case typed.VarRef(var=var) | typed.ValueRef(var=var):
            return var.name
        case typed.AddressOf():
            return "address_of"
        case typed.Load() | typed.Deref() | typed.Index() | typed.Convert() | typed.Construct():
            return type(expr).__name__.lower()
        case typed.Member(base=base, index=index):
            return f"member .{_member_name(base.type, index)}"
        case typed.Swizzle(components=components):
            return f"swizzle .{''.join('xyzw'[c] for c in components)}"
        case typed.ShortCircuit(op=op):
            return op
        case typed.BuiltinCall(builtin=builtin):
            return builtin.name
        case typed.Call(function=function):
            return f"call {function.name}"
        case _:
            raise Crash(f"the typed printer does not know {type(expr).__name__}", expr.span)


def _member_name(base: t.Type, index: int) -> str:
    whole = base.store if isinstance(base, t.Reference) else base
    assert isinstance(whole, t.Struct)
    return whole.members[index].name


def _constant(value: typed.Value, type_: t.Type) -> str:
    if isinstance(type_, t.Scalar):
        if isinstance(value, bool):
            return str(value).lower()
        return _shortest(value, _FORMATS[type_]) if type_ in _FORMATS else str(value)
    children = t.children(type_)
    shown = [_constant(part, child) for part, child in zip(value[:_MOST_PARTS], children, strict=False)]
    rest = [f"… {len(value) - _MOST_PARTS} more"] if len(value) > _MOST_PARTS else []
    return f"({', '.join(shown + rest)})"


def _shortest(value: float, layout: str) -> str:
    """The fewest digits that round to `value` in its format."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        with suppress(OverflowError):  # rounded up beyond the largest number
            if struct.unpack(layout, struct.pack(layout, float(text))) == (value,):
                return text
    return repr(value)
