"""Alternative layouts of a workgroup array, as changes of the shader's text that only move its elements.

Rows can be moved apart by changing the *pitch*, the number of elements from one row to the next, if the pitch is

    an override or const that only sizes and indexes the array      override PITCH = 17u; … tile[row * PITCH + k]
    the inner length of an array of arrays                          var<workgroup> tile: array<array<f32, 32>, 32>;
    one factor, a constant, in every index of the array             tile[row * TILE + column]

Elements can be swizzled (see `swizzles`) if every use of the array is an index, of any form: each goes through a
function that the change adds to the module. A swizzle permutes elements, whatever the indices mean. A pitch preserves
the meaning only if rows do not overlap, which the search checks by running it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import count

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import types as t
from ...sim.wgsl.check.check_module import check
from ...sim.wgsl.check.fold import Substitution
from ...sim.wgsl.source import Source, Span
from ...sim.wgsl.syntax import tree as s
from ...sim.wgsl.syntax.parser import parse
from ...sim.wgsl.text_edits import Replacement, replaced
from ...sim.wgsl.typed import Const, Index, Module, OverrideRef, Pipeline, every_expression, expressions
from .swizzles import Swizzle
from .value_flow import Flow, nodes

_PROBE = "bankshot_value_of_constant"

Edits = tuple[tuple[Span, str], ...]


@frozen
class Change:
    """A change of a shader: spans of the text to replace, functions to add before a place, and override values by
    name."""

    edits: Edits = ()
    functions: tuple[tuple[int, str], ...] = ()
    overrides: Mapping[str, int] = field(default_factory=dict[str, int])

    def __add__(self, other: Change) -> Change:
        replaced_too = {span for span, _ in self.edits if span.start < span.end}  # two arrays may have one pitch
        edits = tuple(edit for edit in other.edits if edit[0] not in replaced_too)
        return Change(self.edits + edits, self.functions + other.functions, {**self.overrides, **other.overrides})

    def module(self, module: Module) -> Module:
        """Apply the edits to a module, keeping its line numbers, and check the result. Raises `WgslError`."""
        if not self.edits and not self.functions:
            return module
        source = module.source
        return check(Source(replaced(source.text, self.replacements(" ")), source.name, source.origin))

    def replacements(self, after_function: str = "\n") -> tuple[Replacement, ...]:
        """The changes of the text, without overrides."""
        added = (Replacement(place, place, text + after_function) for place, text in self.functions)
        return (*(Replacement(span.start, span.end, words) for span, words in self.edits), *added)


@frozen
class Pitch:
    """A quantity in the text that determines the pitch of an array.

    `now` is its value as written, in elements. `to` makes the change that sets another value, of at least `least`.
    """

    name: str
    now: int
    to: Callable[[int], Change]
    least: int = 0


class Layouts:
    """The possible layouts of the workgroup array `array`. `reasons` collects sentences that say why others are not."""

    def __init__(self, module: Module, pipeline: Pipeline, array: str) -> None:
        self.module = module
        self.pipeline = pipeline
        self.array = array
        self.reasons: list[str] = []
        self._values: dict[str, int] = {}
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
        if not (isinstance(inner, s.Ident) and inner.name == "array" and inner.args):
            return None
        span = inner.args[1].span
        return Pitch(f"row length of {self.array}", self.value(span.text), lambda to: Change(((span, str(to)),)))

    @property
    def _size(self) -> s.Expr | None:
        """The number of elements in the declaration, None where its type is an alias."""
        type_ = self.decl.type
        return type_.args[1] if type_ and type_.args and type_.args[1:] else None

    def _written(self) -> Pitch | None:
        """Return the common factor of every index as a pitch, for a module without a constant for the pitch alone."""
        size = self._size
        if not self.indices or size is None:
            return None
        if any(inner is not n and inner in self.indices for n in self.indices for inner in nodes(n.index)):
            self.reasons.append(
                f"an index of {self.array} is itself read from {self.array}, so its pitch is not varied"
            )
            return None
        text = self._common_factor(self.indices)
        if text is None:
            return None
        now, written = self.value(text), size.span.text
        offsets = {node.span: node for node in Flow(self.tree).offsets(self.array)}
        placed = [n.index for n in self.indices]
        placed += [node for node in offsets.values() if any(self._scaled(each, now) for each in terms_of(node))]

        def to(value: int) -> Change:
            factor = f"({text} {'+' if value >= now else '-'} {abs(value - now)})"
            edits = tuple((node.span, self._with_factor(node, text, factor)) for node in placed)
            return Change((*edits, (size.span, f"({written}) / {text} * {factor}")))

        return Pitch(f"{text} in indices of {self.array}", now, to)

    def padded(self, pitch: int, width: int) -> Pitch | None:
        """Return the pitch of an array whose rows of `pitch` elements, `width` of them in use, are known from its
        accesses alone."""
        size = self._size
        if not self.indices or size is None or self.row:
            return None
        rows = self.value(size.span.text) // pitch

        def to(value: int) -> Change:
            packed = f"index / {pitch}u * {value}u + index % {pitch}u"
            return self._through("packed", f"return {packed};") + Change(((size.span, str(rows * value)),))

        return Pitch(f"pitch of {self.array}", pitch, to, width)

    def change(self, pitch: Pitch | None, value: int, swizzle: Swizzle | None = None) -> Change:
        """Return the change that sets `pitch` to a value and swizzles the elements."""
        change = Change() if pitch is None or value == pitch.now else pitch.to(value)
        return change if swizzle is None else self._swizzled(swizzle, value if self.row else 0) + change

    def _swizzled(self, swizzle: Swizzle, row: int) -> Change:
        """Return the change that swizzles the elements. `row`: the elements of a row of an array of arrays, else 0."""
        if not row:
            return self._through("at", f"return {swizzle.text('index', 'u')};")
        body = f"let index = row * {row}u + column; return ({swizzle.text('index', 'u')}) % {row}u;"
        return self._through("at", body, "row: u32, column: u32")

    def _through(self, suffix: str, body: str, parameters: str = "index: u32") -> Change:
        """Return the change that sends every index through a function, with the row's before it if there are two."""
        taken = {n.name for n in nodes(self.tree) if isinstance(n, s.Ident | s.GlobalDecl | s.Function)}
        name = next(each for n in count() if (each := f"{self.array}_{suffix}{n or ''}") not in taken)
        edits: list[tuple[Span, str]] = []
        for node in self.indices:
            index = node.index.span
            before, after = self._conversion(index)
            if isinstance(node.base, s.Index) and self.row:
                row = node.base.index.span
                before = f"{row.text.join(self._conversion(row))}, {before}"
            edits.append((_empty(index.source, index.start), f"{name}({before}"))
            edits.append((_empty(index.source, index.end), f"{after})"))
        return Change(tuple(edits), ((self.decl.span.start, f"fn {name}({parameters}) -> u32 {{ {body} }}"),))

    def _conversion(self, index: Span) -> tuple[str, str]:
        """Return what to write before and after an index for a u32."""
        return ("", "") if index in self._unsigned else ("u32(", ")")

    @cached_property
    def _unsigned(self) -> set[Span]:
        """Where an index is a u32."""
        functions = self.module.functions.values()
        indices = (e.index for function in functions for e in every_expression(function) if isinstance(e, Index))
        return {index.span for index in indices if index.type == t.U32}

    def defaults(self, overrides: Mapping[str, int]) -> Change:
        """Return the change that makes these the values of overrides that have a default."""
        edits: list[tuple[Span, str]] = []
        for name, value in overrides.items():
            decl = self._constants[name]
            if decl.init is not None:
                edits.append((decl.init.span, self._number(decl.init, decl.type is not None, value)))
        return Change(tuple(edits))

    def value(self, text: str) -> int:
        """Evaluate an integer expression of module-scope constants in the pipeline."""
        if text not in self._values:
            made = self._folded(text)
            assert made is not None, text
            self._values[text] = made.value
        return self._values[text]

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
            return f"{value}{'u' if init.span.text.endswith('u') else ''}"
        made = None if isinstance(init, s.Literal) else self._folded(init.span.text)
        kind = init.kind if isinstance(init, s.Literal) else str(made and made.type)
        return f"{value}{'u' if kind == 'u32' else ''}"

    # ---- indices ----

    @cached_property
    def row(self) -> int | None:
        """The elements of a row of an array of arrays, None for another array."""
        inner = self._inner_length()
        return inner and inner.now

    @cached_property
    def indices(self) -> tuple[s.Index, ...]:
        """Every index of an element of the array; empty, with a reason, if the array is used otherwise."""
        depth = 1 if self._inner_length() is None else 2
        found = [n for n in nodes(self.tree) if isinstance(n, s.Index) and _depth(n, self.array) == depth]
        mentions = sum(isinstance(n, s.Ident) and n.name == self.array for n in nodes(self.tree))
        if mentions != len(found):
            self.reasons.append(f"not every use of {self.array} has {depth} ind{'ices' if depth == 2 else 'ex'}")
            return ()
        return tuple(found)

    def _common_factor(self, indices: Sequence[s.Index]) -> str | None:
        """Return the one constant that is a factor in each index, None with a reason if there is none or several."""
        common: set[str] = set()
        for number, node in enumerate(indices):
            factors = {
                f.span.text for term in terms_of(node.index) for f in _factors(term) if self._is_constant(f, term)
            }
            common = common & factors if number else factors
            if not common:
                place, what = node.span.place, node.span.text
                self.reasons.append(f"{place.file}:{place.line}: the index of {what} is not row * PITCH + column")
                return None
        least = min(common, key=self.value, default=None)
        if len(common) > 1 and self._share_a_term(indices, common):
            self.reasons.append(f"several constants could be the pitch of {self.array}: {', '.join(sorted(common))}")
            return None
        return least  # larger ones are starts of several buffers

    def _share_a_term(self, indices: Sequence[s.Index], constants: Collection[str]) -> bool:
        """Whether two of these constants are factors of one term, or one is no multiple of the least."""
        values = sorted(map(self.value, constants))
        written = ([f.span.text for f in _factors(term)] for node in indices for term in terms_of(node.index))
        shared = any(sum(text in constants for text in texts) > 1 for texts in written)
        return shared or any(value % values[0] for value in values)

    def _is_constant(self, factor: s.Expr, term: s.Expr) -> bool:
        """Return whether it is one of several factors, made of literals and module-scope constants only."""
        return factor is not term and self._is_known(factor)

    def _is_known(self, node: s.Expr) -> bool:
        parts = [n for n in nodes(node) if not isinstance(n, s.Binary | s.Paren | s.Literal)]
        return all(isinstance(n, s.Ident) and n.name in self._constants for n in parts)

    def _with_factor(self, index: s.Expr, pitch: str, factor: str) -> str:
        """Return the text of an index with `factor` for `pitch`, also in constants that are several pitches, such as
        the start of a second buffer."""
        now = self.value(pitch)
        rows: list[str] = []
        columns: list[str] = []
        for term in terms_of(index):
            factors = _factors(term)
            scaled = next((f for f in factors if f.span.text == pitch), None) or self._scaled(term, now)
            if scaled is None:
                columns.append(term.span.text)
                continue
            others = [f"({f.span.text})" for f in factors if f is not scaled]
            times = [] if scaled.span.text == pitch else [f"({scaled.span.text}) / {pitch}"]
            rows.append(" * ".join(others + times) or "1")
        return f"({' + '.join(rows)}) * {factor} + {' + '.join(columns) or '0'}"

    def _scaled(self, term: s.Expr, pitch: int) -> s.Expr | None:
        """Return the factor of a term that is a constant and several pitches, None if there is none."""
        known = (f for f in _factors(term) if self._is_known(f))
        return next((f for f in known if (value := self.value(f.span.text)) and value % pitch == 0), None)


# ---- splitting and rewriting indices -----------------------------------------------------------------


def _empty(source: Source, place: int) -> Span:
    return Span(source, place, place)


def terms_of(node: s.Expr) -> list[s.Expr]:
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


def rows_of(held: t.Type) -> tuple[t.Array, int]:
    """Return an array, or the type of the rows of an array of arrays, and the number of elements in all."""
    assert isinstance(held, t.Array)
    if not isinstance(held.elem, t.Array):
        return held, _count(held)
    return held.elem, _count(held) * _count(held.elem)


def _count(array: t.Array) -> int:
    assert isinstance(array.count, int)  # the pipeline has the values of overrides
    return array.count
