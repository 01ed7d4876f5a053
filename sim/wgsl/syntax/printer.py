"""Syntax tree to WGSL text that parses to the same tree: `to_wgsl`.

The layout is normalized (four spaces, one statement a line). Comments and empty statements are not in the tree, so the
text has none. Parentheses appear exactly where the tree has `Paren`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..diagnostics import Crash
from . import tree
from .token_cursor import make_room_to_recurse

_INDENT = "    "


def to_wgsl(node: tree.Node) -> str:
    """Print a module, a declaration or statement (with its semicolon), an expression or an attribute as WGSL."""
    make_room_to_recurse()
    match node:
        case tree.Module(directives=directives, decls=decls):
            head = "".join(_directive(directive) + "\n" for directive in directives)
            body = "\n\n".join(map(_declaration, decls)) + "\n" if decls else ""
            return "\n".join(filter(None, [head, body]))
        case tree.Directive():
            return _directive(node)
        case tree.Expr():
            return _expression(node)
        case tree.Attribute():
            return _attribute(node)
        case tree.Stmt():
            return _statement(node)
        case _:
            return _declaration(node)


# ---- expressions ---------------------------------------------------------------------------------------


def _expression(node: tree.Expr) -> str:
    match node:
        case tree.Literal(text=text):
            return text
        case tree.Ident(name=name, args=args):
            return name + _template(args)
        case tree.Call(callee=callee, args=args):
            return f"{_expression(callee)}({_list(args)})"
        case tree.Index(base=base, index=index):
            return f"{_expression(base)}[{_expression(index)}]"
        case tree.Member(base=base, name=name):
            gap = " " if isinstance(base, tree.Literal) else ""  # `1.x` would not parse
            return f"{_expression(base)}{gap}.{name}"
        case tree.Unary(op=op, operand=operand):
            inner = _expression(operand)
            return f"{op} {inner}" if inner.startswith(op) else op + inner  # two minus signs must not become `--`
        case tree.Binary(op=op, left=left, right=right):
            return f"{_expression(left)} {op} {_expression(right)}"
        case tree.Paren(inner=inner):
            return f"({_expression(inner)})"
        case _:
            raise Crash(f"the printer does not know {type(node).__name__}", node.span)


def _list(nodes: Iterable[tree.Expr]) -> str:
    return ", ".join(map(_expression, nodes))


def _template(args: list[tree.Expr] | None) -> str:
    return "" if args is None else f"<{_list(args)}>"


# ---- attributes and directives -------------------------------------------------------------------------


def _attribute(node: tree.Attribute) -> str:
    return f"@{node.name}({_list(node.args)})" if node.args else f"@{node.name}"


def _attributes(nodes: list[tree.Attribute]) -> str:
    """Print attributes, each followed by a space."""
    return "".join(_attribute(node) + " " for node in nodes)


def _directive(node: tree.Directive) -> str:
    names = ", ".join(name for name, _ in node.names)
    return f"diagnostic({names});" if node.kind == "diagnostic" else f"{node.kind} {names};"


# ---- statements ----------------------------------------------------------------------------------------


def _indented(text: str) -> str:
    return "\n".join(_INDENT + line for line in text.split("\n"))


def _braces(parts: Iterable[str]) -> str:
    inside = "\n".join(map(_indented, parts))
    return f"{{\n{inside}\n}}" if inside else "{}"


def _block(node: tree.Block, *last: str) -> str:
    """Print a block, with `last` at the end of its body."""
    return _attributes(node.attributes) + _braces([*map(_statement, node.body), *last])


def _statement(node: tree.Stmt) -> str:
    match node:
        case tree.Block():
            return _block(node)
        case tree.If():
            return _if(node)
        case tree.Switch():
            head = f"{_attributes(node.attributes)}switch {_expression(node.selector)} "
            return head + _attributes(node.body_attributes) + _braces(map(_case, node.cases))
        case tree.Loop():
            return _loop(node)
        case tree.For(attributes=attributes, init=init, condition=condition, update=update, body=body):
            parts = [_simple(init) if init else "", _expression(condition) if condition else ""]
            header = "; ".join([*parts, _simple(update) if update else ""])
            return f"{_attributes(attributes)}for ({header}) {_block(body)}"
        case tree.While(attributes=attributes, condition=condition, body=body):
            return f"{_attributes(attributes)}while {_expression(condition)} {_block(body)}"
        case _:
            return _simple(node) + ";"


def _if(node: tree.If) -> str:
    text = f"{_attributes(node.attributes)}if {_expression(node.condition)} {_block(node.then)}"
    if node.orelse is None:
        return text
    return f"{text} else {_if(node.orelse) if isinstance(node.orelse, tree.If) else _block(node.orelse)}"


def _case(node: tree.Case) -> str:
    selectors = ", ".join("default" if selector is None else _expression(selector) for selector in node.selectors)
    head = "default" if selectors == "default" else f"case {selectors}:"
    return f"{head} {_block(node.body)}"


def _loop(node: tree.Loop) -> str:
    last = []
    if node.continuing is not None:
        break_if = [] if node.break_if is None else [f"break if {_expression(node.break_if)};"]
        last = [f"continuing {_block(node.continuing, *break_if)}"]
    return f"{_attributes(node.attributes)}loop {_block(node.body, *last)}"


def _simple(node: tree.Stmt) -> str:
    """Print a statement that ends in a semicolon, without that."""
    match node:
        case tree.LocalDecl():
            return _named_value(node)
        case tree.Assign(target=target, op=op, value=value):
            return f"{'_' if target is None else _expression(target)} {op} {_expression(value)}"
        case tree.Increment(target=target, op=op):
            return _expression(target) + op
        case tree.CallStmt(call=call):
            return _expression(call)
        case tree.Return(value=value):
            return "return" if value is None else f"return {_expression(value)}"
        case tree.ConstAssert(condition=condition):
            return f"const_assert {_expression(condition)}"
        case tree.Break() | tree.Continue() | tree.Discard():
            return type(node).__name__.lower()
        case _:
            raise Crash(f"the printer does not know {type(node).__name__}", node.span)


# ---- declarations --------------------------------------------------------------------------------------


def _named_value(node: tree.LocalDecl | tree.GlobalDecl) -> str:
    type_ = "" if node.type is None else f": {_expression(node.type)}"
    init = "" if node.init is None else f" = {_expression(node.init)}"
    return f"{node.keyword}{_template(node.template)} {node.name}{type_}{init}"


def _typed(node: tree.Param | tree.StructMember) -> str:
    return f"{_attributes(node.attributes)}{node.name}: {_expression(node.type)}"


def _declaration(node: tree.Node) -> str:
    match node:
        case tree.Function(params=params, result=result):
            head = f"{_attributes(node.attributes)}fn {node.name}({', '.join(map(_typed, params))})"
            arrow = "" if result is None else f" -> {_attributes(node.result_attributes)}{_expression(result)}"
            return f"{head}{arrow} {_block(node.body)}"
        case tree.GlobalDecl(attributes=attributes):
            return f"{_attributes(attributes)}{_named_value(node)};"
        case tree.Alias(name=name, type=type_):
            return f"alias {name} = {_expression(type_)};"
        case tree.Struct(name=name, members=members):
            return f"struct {name} {_braces(_typed(member) + ',' for member in members)}"
        case tree.ConstAssert():
            return _simple(node) + ";"
        case tree.Param() | tree.StructMember():
            return _typed(node)
        case tree.Case():
            return _case(node)
        case _:
            raise Crash(f"the printer does not know {type(node).__name__}", node.span)
