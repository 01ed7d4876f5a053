"""Alternative layouts of a workgroup array, as changes of the shader's text that only move its elements.

Rows can be moved apart by changing the *pitch*, the number of elements from one row to the next, if the pitch is

    an override or const that only sizes and indexes the array      override PITCH = 17u; … tile[row * PITCH + k]
    the inner length of an array of arrays                          var<workgroup> tile: array<array<f32, 32>, 32>;
    one factor, a constant, in every index of the array             tile[row * TILE + column]

Columns can be swizzled, `column ^ (row & mask)`, if every index of the array has one of the last two forms. A change
preserves the meaning only if rows do not overlap, which the search checks by running it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from ...sim.fast_dataclass import frozen
from ...sim.wgsl.check.check_module import check
from ...sim.wgsl.check.fold import Substitution
from ...sim.wgsl.source import Source, Span
from ...sim.wgsl.syntax import tree as s
from ...sim.wgsl.syntax.parser import parse
from ...sim.wgsl.text_edits import Replacement, replaced
from ...sim.wgsl.typed import Const, Module, OverrideRef, Pipeline, expressions
from .value_flow import Flow, nodes

MASKS = (1, 3, 7, 15, 31)
_PROBE = "bankshot_value_of_constant"

Edits = tuple[tuple[Span, str], ...]


@frozen
class Change:
    """A change of a shader: spans of the text to replace, and override values by name."""

    edits: Edits = ()
    overrides: Mapping[str, int] = field(default_factory=dict[str, int])

    def __add__(self, other: Change) -> Change:
        return Change(self.edits + other.edits, {**self.overrides, **other.overrides})

    def module(self, module: Module) -> Module:
        """Apply the edits to a module and check the result. Raises `WgslError`."""
        if not self.edits:
            return module
        source = module.source
        text = replaced(source.text, (Replacement(span.start, span.end, words) for span, words in self.edits))
        return check(Source(text, source.name, source.origin))


@frozen
class Pitch:
    """A quantity in the text that determines the pitch of an array.

    `now` is its value as written, in elements. `to` makes the change of declarations that sets another value. `factor`
    makes the expression for the pitch in indices; None leaves the expression as it is.
    """

    name: str
    now: int
    to: Callable[[int], Change]
    factor: Callable[[int], str] | None = None


@frozen
class Access:
    """One index of the array, as `row * pitch + column`.

    `edit` rewrites it from the texts of row, pitch and column. `pitch` is None in an array of arrays.
    """

    row: str
    column: str
    pitch: str | None
    span: Span
    edit: Callable[[str, str | None, str], Edits]


class Layouts:
    """The possible layouts of the workgroup array `array`. `reasons` collects sentences that say why others are not."""

    def __init__(self, module: Module, pipeline: Pipeline, array: str) -> None:
        self.module = module
        self.pipeline = pipeline
        self.array = array
        self.reasons: list[str] = []
        self.tree = parse(module.source)
        decls = [d for d in self.tree.decls if isinstance(d, s.GlobalDecl)]
        self.decl = next(d for d in decls if d.name == array and d.keyword == "var")
        self._constants = {d.name: d for d in decls if d.keyword in ("const", "override")}

    # ---- pitches ----

    def pitches(self, only: str | None = None) -> list[Pitch]:
        """Return every pitch of the array. With `only`, return the integer constant of that name, whatever its uses."""
        if only is not None:
            made = self._folded(only) if only in self._constants else None
            return [self._named(only)] if made and type(made.value) is int else []
        named = [self._named(name) for name in self._pure_constants()]
        inner = self._inner_length()
        written = None if named or inner else self._written()
        return [*named, *(p for p in (inner, written) if p)]

    def _pure_constants(self) -> list[str]:
        flow = Flow(self.tree)
        reach = {name: flow.reach(name, self.array) for name in self._constants}
        found = [n for n, r in reach.items() if r.sized and r.indexed and r.multiplied and not r.elsewhere]
        if not found:
            for name, r in reach.items():
                if r.sized and r.indexed and r.multiplied:
                    place = r.elsewhere[0].place
                    self.reasons.append(
                        f"{name} is not only a pitch of {self.array}: {place.file}:{place.line} uses it otherwise"
                    )
        return found

    def _named(self, name: str) -> Pitch:
        decl = self._constants[name]
        if decl.keyword == "override":
            return Pitch(name, self.value(name), lambda value: Change(overrides={name: value}))
        init = decl.init
        assert init is not None
        declared = decl.type is not None
        return Pitch(name, self.value(name), lambda value: Change(((init.span, self._number(init, declared, value)),)))

    def _inner_length(self) -> Pitch | None:
        """Return the inner length of `array<array<T, length>, rows>` as a pitch, None for other types."""
        outer = self.decl.type
        inner = outer.args[0] if outer is not None and outer.name == "array" and outer.args else None
        if not (isinstance(inner, s.Ident) and inner.name == "array" and inner.args and len(inner.args) == 2):
            return None
        span = inner.args[1].span
        return Pitch(f"row length of {self.array}", self.value(span.text), lambda to: Change(((span, str(to)),)))

    def _written(self) -> Pitch | None:
        """Return the common factor of every index as a pitch, for a module without a constant for the pitch alone."""
        accesses = self.accesses
        size = self.decl.type.args[1] if self.decl.type and self.decl.type.args and self.decl.type.args[1:] else None
        if not accesses or accesses[0].pitch is None or size is None:
            return None
        text, written = accesses[0].pitch, size.span.text
        now = self.value(text)

        def factor(value: int) -> str:
            return f"({text} {'+' if value >= now else '-'} {abs(value - now)})"

        def to(value: int) -> Change:
            return Change(((size.span, f"({written}) / {text} * {factor(value)}"),))

        return Pitch(f"{text} in indices of {self.array}", now, to, factor)

    def change(self, pitch: Pitch, value: int, mask: int = 0) -> Change:
        """Return the change that sets `pitch` to a value and swizzles columns by `mask`."""
        change = Change() if value == pitch.now else pitch.to(value)
        factor = None if pitch.factor is None or value == pitch.now else pitch.factor(value)
        if factor is None and not mask:
            return change
        edits: list[tuple[Span, str]] = []
        for access in self.accesses:
            column = f"(({access.column}) ^ (({access.row}) & {mask}))" if mask else access.column
            edits += access.edit(access.row, factor or access.pitch, column)
        return change + Change(tuple(edits))

    def masks(self, pitch: Pitch, value: int) -> list[int]:
        """Return the masks that keep columns in their row if `pitch` is `value`; none if an index has another form."""
        if not self.accesses:
            return []
        text = self.accesses[0].pitch
        row = value if text is None else self.value(text) + value - pitch.now
        return [mask for mask in MASKS if row % (mask + 1) == 0]

    def value(self, text: str) -> int:
        """Evaluate an integer expression of module-scope constants in the pipeline."""
        made = self._folded(text)
        assert made is not None, text
        return made.value

    def _folded(self, text: str) -> Const | None:
        """Evaluate an expression with every declaration of the module in scope.

        The result is None if the expression uses an override that the entry point does not, which has no value.
        """
        source = self.module.source
        probed = check(Source(f"{source.text}\noverride {_PROBE} = {text};", source.name, source.origin))
        values = {override.name: value for override, value in self.pipeline.values.items()}
        known = {o: values[o.name] for o in probed.overrides if o.name in values}
        init = next(o.init for o in probed.overrides if o.name == _PROBE)
        assert init is not None
        asked = {part.override for part in expressions(init) if isinstance(part, OverrideRef)}
        made = Substitution(known).expr(init) if asked <= known.keys() else None
        return made if isinstance(made, Const) else None

    def _number(self, init: s.Expr, declared: bool, value: int) -> str:
        """Format `value` as a literal that can replace `init`, of the same type."""
        if declared:
            return str(value)
        made = None if isinstance(init, s.Literal) else self._folded(init.span.text)
        kind = init.kind if isinstance(init, s.Literal) else str(made and made.type)
        return f"{value}{'u' if kind == 'u32' else ''}"

    # ---- swizzles ----

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """Every index of the array by row and column; empty, with a reason, if any index has another form."""
        nested = self._inner_length() is not None
        depth = 2 if nested else 1
        found = [n for n in nodes(self.tree) if isinstance(n, s.Index) and _depth(n, self.array) == depth]
        mentions = sum(isinstance(n, s.Ident) and n.name == self.array for n in nodes(self.tree))
        if mentions != len(found):
            self.reasons.append(f"not every use of {self.array} has {depth} ind{'ices' if nested else 'ex'}")
            return ()
        if any(inner is not n and inner in found for n in found for inner in nodes(n.index)):
            self.reasons.append(f"an index of {self.array} is itself read from {self.array}")
            return ()
        if nested:
            return tuple(_nested(n) for n in found)
        pitch = self._common_factor(found)
        return () if pitch is None else tuple(_flat(n, pitch) for n in found)

    def _common_factor(self, indices: Sequence[s.Index]) -> str | None:
        """Return the one constant that is a factor in each index, None with a reason if there is none or several."""
        common: set[str] = set()
        for number, node in enumerate(indices):
            factors = {f.span.text for term in _terms(node.index) for f in _factors(term) if self._is_constant(f, term)}
            common = common & factors if number else factors
            if not common:
                place, what = node.span.place, node.span.text
                self.reasons.append(f"{place.file}:{place.line}: the index of {what} is not row * PITCH + column")
                return None
        if len(common) > 1:
            self.reasons.append(f"several constants could be the pitch of {self.array}: {', '.join(sorted(common))}")
            return None
        return next(iter(common), None)

    def _is_constant(self, factor: s.Expr, term: s.Expr) -> bool:
        """Return whether it is one of several factors, made of literals and module-scope constants only."""
        parts = [n for n in nodes(factor) if not isinstance(n, s.Binary | s.Paren | s.Literal)]
        return factor is not term and all(isinstance(n, s.Ident) and n.name in self._constants for n in parts)


# ---- splitting and rewriting indices -----------------------------------------------------------------


def _nested(node: s.Index) -> Access:
    assert isinstance(node.base, s.Index)
    row, column = node.base.index.span, node.index.span

    def edit(new_row: str, pitch: str | None, new_column: str) -> Edits:
        return ((row, new_row), (column, new_column))

    return Access(f"u32({row.text})", f"u32({column.text})", None, node.span, edit)


def _flat(node: s.Index, pitch: str) -> Access:
    rows: list[str] = []
    columns: list[str] = []
    for term in _terms(node.index):
        factors = [f"({f.span.text})" for f in _factors(term)]
        if f"({pitch})" in factors and len(factors) > 1:
            factors.remove(f"({pitch})")
            rows.append(" * ".join(factors))
        else:
            columns.append(term.span.text)
    span = node.index.span

    def edit(row: str, pitch: str | None, column: str) -> Edits:
        return ((span, f"({row}) * {pitch} + {column}"),)

    return Access(" + ".join(rows), " + ".join(columns) or "0", pitch, node.span, edit)


def _terms(node: s.Expr) -> list[s.Expr]:
    """Return the terms of a sum."""
    return _operands(node, "+")


def _factors(node: s.Expr) -> list[s.Expr]:
    """Return the factors of a product."""
    return _operands(node, "*")


def _operands(node: s.Expr, op: str) -> list[s.Expr]:
    bare = node
    while isinstance(bare, s.Paren):
        bare = bare.inner
    if isinstance(bare, s.Binary) and bare.op == op:
        return _operands(bare.left, op) + _operands(bare.right, op)
    return [node]


def _depth(node: s.Expr, array: str) -> int | None:
    """Return how many indices follow `array`, None if the expression does not index `array`."""
    depth = 0
    while isinstance(node, s.Index):
        node, depth = node.base, depth + 1
    return depth if isinstance(node, s.Ident) and node.name == array else None
