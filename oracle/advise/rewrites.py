"""Changes of a shader's text that are not layouts of one array, and may take fewer wavefronts or sectors.

    members apart       an array of structures becomes an array for each member
    wider accesses      adjacent elements that one invocation accesses become one vector
    threads transposed  x and y of the invocations of a workgroup change places

Nothing here proves that a change keeps the outputs: `layout_search` runs it. A change that the text does not allow is
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import types as t
from ...sim.wgsl.source import Span
from ...sim.wgsl.syntax import tree as s
from ...sim.wgsl.typed import Pipeline
from .array_layouts import BREAK, Change, Layouts
from .index_terms import terms_of
from .value_flow import nodes

_WIDTHS = (4, 2)
_VECTORS = {f"vec{width}{suffix}": width for width in _WIDTHS for suffix in ("", "f", "u", "i")}
_COMPONENTS = "xyzw"
_LONGEST = 100  # characters of a store in one line
_SCALARS = (t.F32, t.I32, t.U32)


@frozen
class Rewrite:
    """A change, and what it does, in words."""

    words: str
    change: Change


def rewrites(layouts: Sequence[Layouts], pipeline: Pipeline) -> Iterator[Rewrite]:
    """Return every rewrite of a module that its text allows. `layouts`: of the arrays that the entry point uses."""
    for each in layouts:
        if made := _members_apart(each):
            yield made
        for width in _WIDTHS:
            if made := _wider(each, width):
                yield made
    if layouts and (made := _transposed(layouts[0].tree, pipeline)):
        yield made


def _free(tree: s.Module, name: str) -> str:
    """Return a name that the module does not use, this one if possible."""
    taken = {
        n.name
        for n in nodes(tree)
        if isinstance(n, s.Ident | s.GlobalDecl | s.LocalDecl | s.Function | s.Param | s.Struct)
    }
    return next(each for n in count() if (each := f"{name}{n or ''}") not in taken)


def _before(span: Span) -> Span:
    return _between(span.start, span.start, span)


def _after(span: Span) -> Span:
    return _between(span.end, span.end, span)


def _between(start: int, end: int, like: Span) -> Span:
    return Span(like.source, start, end)


def _break(span: Span) -> str:
    """Return a line break and the indentation of the line that a span begins, "" where it begins none."""
    start = span.source.line_start(span.source.line_index(span.start))
    indent = span.source.text[start : span.start]
    return "" if indent.strip() else f"{BREAK}{indent}"


# ---- members apart -----------------------------------------------------------------------------------


def _members_apart(layouts: Layouts) -> Rewrite | None:
    """Return the change of `var<workgroup> a: array<S, N>` to an array for each member of S."""
    tree, decl, array = layouts.tree, layouts.decl, layouts.array
    args = decl.type.args if decl.type and decl.type.name == "array" else None
    structs = {each.name: each for each in tree.decls if isinstance(each, s.Struct)}
    if not args or not args[1:] or not isinstance(args[0], s.Ident) or args[0].name not in structs:
        return None
    struct = structs[args[0].name]
    names = {member.name: _free(tree, f"{array}_{member.name}") for member in struct.members}
    if len(names) < 2 or not layouts.indices:
        return None
    get, put = _free(tree, f"{array}_get"), _free(tree, f"{array}_set")
    edits = [edit for node in nodes(tree) for edit in _member_edits(node, set(layouts.indices), names, put)]
    done = {node for node in layouts.indices if any(span.start <= node.span.start < span.end for span, _ in edits)}
    edits += [edit for node in layouts.indices if node not in done for edit in _called(node, get)]
    declared = (
        f"var<workgroup> {names[m.name]}: array<{m.type.span.text}, {args[1].span.text}>" for m in struct.members
    )
    edits.append((decl.span, "; ".join(declared) + (";" if decl.span.text.endswith(";") else "")))
    whole = {name: f"{names[name]}[index]" for name in names}
    functions = [
        f"fn {get}(index: u32) -> {struct.name} {{ return {struct.name}({', '.join(whole.values())}); }}",
        f"fn {put}(index: u32, value: {struct.name}) {{ "
        + "".join(f"{place} = value.{name}; " for name, place in whole.items())
        + "}",
    ]
    used = "".join(text for _, text in edits)
    added = tuple(
        (decl.span.start, text) for name, text in zip((get, put), functions, strict=True) if f"{name}(" in used
    )
    return Rewrite(f"{array} as one array for each member of {struct.name}", Change(tuple(edits), added))


def _member_edits(node: s.Node, indices: set[s.Index], names: dict[str, str], put: str) -> list[tuple[Span, str]]:
    """Return the edits of `a[i].member`, or of `a[i] = value`; none for another node."""
    match node:
        case s.Member(base=s.Index(base=base) as index, name=name) if index in indices and name in names:
            return [(base.span, names[name]), (_between(index.span.end, node.span.end, node.span), "")]
        case s.Assign(target=s.Index() as index, op="=", value=value) if index in indices:
            start = _between(index.span.start, index.index.span.start, node.span)
            middle = _between(index.index.span.end, value.span.start, node.span)
            return [(start, f"{put}(u32("), (middle, "), "), (_after(value.span), ")")]
        case _:
            return []


def _called(node: s.Index, function: str) -> list[tuple[Span, str]]:
    start = _between(node.span.start, node.index.span.start, node.span)
    return [(start, f"{function}(u32("), (_between(node.index.span.end, node.span.end, node.span), "))")]


# ---- wider accesses ----------------------------------------------------------------------------------


def _wider(layouts: Layouts, width: int) -> Rewrite | None:
    """Return the change of an array of scalars to one of vectors, where an invocation accesses `width` adjacent
    elements at once: as arguments of a vector, or in statements that follow each other."""
    array, decl = layouts.array, layouts.decl
    args = decl.type.args if decl.type and decl.type.name == "array" else None
    if not args or not args[1:] or not layouts.indices or _calls(layouts):
        return None
    scalar = args[0].span.text
    if scalar not in map(str, _SCALARS):
        return None
    wide = _Wide(layouts, width, f"vec{width}<{scalar}>")
    edits = [edit for node in nodes(layouts.tree) for edit in wide.edits(node)]
    if not edits:
        return None
    for node in layouts.indices:
        if node not in wide.done:
            edits += [(_before(node.index.span), "("), (_after(node.index.span), f") / {width}")]
            edits.append((_after(node.span), f"[({node.index.span.text}) % {width}]"))
    edits += [(args[0].span, wide.vector), (args[1].span, f"({args[1].span.text}) / {width}")]
    return Rewrite(f"{array} in vectors of {width}", Change(tuple(edits), removed=tuple(wide.removed)))


def _calls(layouts: Layouts) -> bool:
    """Whether an index of the array calls a function of the module or reads the array, so that it cannot be written
    twice."""
    functions = {d.name for d in layouts.tree.decls if isinstance(d, s.Function)}
    inner = (n for index in layouts.indices for n in nodes(index.index))
    return any(
        (isinstance(n, s.Call) and n.callee.name in functions) or (isinstance(n, s.Ident) and n.name == layouts.array)
        for n in inner
    )


class _Wide:
    """The edits that make vectors of adjacent accesses. `done` are the indices in them, `removed` the statements that
    the first of a group replaces."""

    def __init__(self, layouts: Layouts, width: int, vector: str) -> None:
        self.width = width
        self.vector = vector
        self.done: set[s.Index] = set()
        self.removed: list[Span] = []
        self._array = layouts.array
        self._indices = set(layouts.indices)
        self._names = (_free(layouts.tree, f"{layouts.array}_wide{n}") for n in count())

    def edits(self, node: s.Node) -> list[tuple[Span, str]]:
        match node:
            case s.Call(callee=callee, args=args) if _VECTORS.get(callee.name) == self.width == len(args):
                return self._loaded(node, args)
            case s.Block(body=body):
                groups = (body[at : at + self.width] for at in range(len(body) - self.width + 1))
                return [edit for group in groups for edit in (*self._declared(group), *self._stored(group))]
            case _:
                return []

    def _adjacent(self, found: Sequence[s.Expr | None]) -> list[s.Index]:
        """Return accesses to elements that follow each other, none where they do not."""
        known = [each for each in found if isinstance(each, s.Index) and each in self._indices - self.done]
        if len(known) != self.width:
            return []
        (first, start), *others = (_place(each.index) for each in known)
        follow = all(place == (first, start + n) for n, place in enumerate(others, 1))
        self.done |= set(known if follow else ())
        return known if follow else []

    def _element(self, index: s.Index) -> str:
        return f"{self._array}[({index.index.span.text}) / {self.width}]"

    def _loaded(self, node: s.Call, args: list[s.Expr]) -> list[tuple[Span, str]]:
        found = self._adjacent(args)
        return [(node.span, self._element(found[0]))] if found else []

    def _declared(self, group: list[s.Stmt]) -> list[tuple[Span, str]]:
        found = self._adjacent([each.init if isinstance(each, s.LocalDecl) else None for each in group])
        if not found:
            return []
        name = next(self._names)
        loaded = (_before(group[0].span), f"let {name} = {self._element(found[0])};{_break(group[0].span) or ' '}")
        return [loaded, *((each.span, f"{name}.{part}") for each, part in zip(found, _COMPONENTS, strict=False))]

    def _stored(self, group: list[s.Stmt]) -> list[tuple[Span, str]]:
        stores = [each for each in group if isinstance(each, s.Assign) and each.op == "="]
        if len(stores) < self.width or any(isinstance(n, s.Ident) and n.name == self._array
                                           for each in stores for n in nodes(each.value)):  # fmt: skip
            return []
        found = self._adjacent([each.target for each in stores])
        if not found:
            return []
        values = [each.value.span.text for each in stores]
        store = f"{self._element(found[0])} = {self.vector}({', '.join(values)})"
        if len(store) > _LONGEST and (line := _break(group[0].span)):
            inner = "".join(f"{line}    {value}," for value in values)
            store = f"{self._element(found[0])} = {self.vector}({inner}{line})"
        self.removed += [each.span for each in group[1:]]
        return [(group[0].span, store)]


def _place(index: s.Expr) -> tuple[list[str], int]:
    """Return the terms of an index that are no literals, sorted, and the sum of its literals."""
    parts = terms_of(index)
    literals = [each.value for each in parts if isinstance(each, s.Literal) and type(each.value) is int]
    return sorted(each.span.text for each in parts if not isinstance(each, s.Literal)), sum(literals)


# ---- threads transposed ------------------------------------------------------------------------------

# The value that an invocation at (y, x) of a workgroup of Y x X has for a builtin in one of X x Y, by the builtin.
_TRANSPOSED: dict[str, Callable[[str, int, int], str]] = {
    "local_invocation_id": lambda was, x, y: f"{was}.yxz",
    "local_invocation_index": lambda was, x, y: (
        f"{was} % {y}u * {x}u + {was} / {y}u % {x}u + {was} / {x * y}u * {x * y}u"
    ),
    "global_invocation_id": lambda was, x, y: (
        f"vec3<u32>({was}.x / {y}u * {x}u + {was}.y % {x}u, {was}.y / {x}u * {y}u + {was}.x % {y}u, {was}.z)"
    ),
}
_OF_SUBGROUPS = ("subgroup", "quad")


def _transposed(tree: s.Module, pipeline: Pipeline) -> Rewrite | None:
    """Return the change that exchanges x and y of the invocations of a workgroup, None for a workgroup with one of them
    alone, or where the lanes of a subgroup matter."""
    x, y, _ = pipeline.workgroup_size
    entry = next(d for d in tree.decls if isinstance(d, s.Function) and d.name == pipeline.entry.name)
    size = next(each.args for each in entry.attributes if each.name == "workgroup_size")
    builtins = [(param, name) for param in entry.params if (name := _builtin(param))]
    names = {n.name for n in nodes(tree) if isinstance(n, s.Ident)}
    known = all(isinstance(each, s.Literal) for each in size[:2]) and len(builtins) == len(entry.params)
    if min(x, y) < 2 or not known or any(name.startswith(_OF_SUBGROUPS) for name in names):
        return None
    edits = [(size[0].span, size[1].span.text), (size[1].span, size[0].span.text)] if x != y else []
    values: list[str] = []
    for param, name in builtins:
        if name in _TRANSPOSED:
            was = _free(tree, f"{param.name}_before")
            edits.append((param.name_span, was))
            values.append(f" let {param.name} = {_TRANSPOSED[name](was, x, y)};")
    start = entry.body.span.start + 1
    edits.append((_between(start, start, entry.span), "".join(values)))
    return Rewrite("x and y of the invocations exchanged", Change(tuple(edits))) if values else None


def _builtin(param: s.Param) -> str | None:
    """Return the builtin that a parameter is."""
    return next((each.args[0].span.text for each in param.attributes if each.name == "builtin"), None)
