"""Alternative layouts of a workgroup array, as changes of the shader's text that only move its elements.

Rows can be moved apart by changing the *pitch*, the number of elements from one row to the next, if the pitch is

    an override or const that only sizes and indexes the array      override PITCH = 17u; … tile[row * PITCH + k]
    the inner length of an array of arrays                          var<workgroup> tile: array<array<f32, 32>, 32>;
    one factor, a constant, in every index of the array             tile[row * TILE + column]

Whatever brings an index about, a function of it can move rows, too: `index / 17u * 18u + index % 17u`. That keeps the
meaning of every text, but adds a division. It is for pitches that the text states otherwise, as in a helper function.

Elements can be swizzled (see `swizzles`) if every use of the array is an index, of any form: each goes through a
function that the change adds to the module. A swizzle permutes elements, whatever the indices mean. A pitch preserves
the meaning only if rows do not overlap, which the search checks by running it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import count, pairwise
from math import prod

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import types as t
from ...sim.wgsl.check.check_module import check
from ...sim.wgsl.check.fold import Substitution
from ...sim.wgsl.source import Source, Span
from ...sim.wgsl.syntax import tree as s
from ...sim.wgsl.syntax.parser import parse
from ...sim.wgsl.text_edits import Replacement, replaced
from ...sim.wgsl.typed import Const, Index, Module, OverrideRef, Pipeline, every_expression, expressions
from .index_terms import factors_of, levels, terms_of
from .swizzles import Swizzle
from .value_flow import Flow, nodes

_PROBE = "bankshot_value_of_constant"

BREAK = "\0"  # in an edit: a line break in the files, a space in the text that runs, which keeps its line numbers

Edits = tuple[tuple[Span, str], ...]


@frozen
class Change:
    """A change of a shader: spans of the text to replace, functions to add before a place, override values by name, and
    statements to remove."""

    edits: Edits = ()
    functions: tuple[tuple[int, str], ...] = ()
    overrides: Mapping[str, int] = field(default_factory=dict[str, int])
    removed: tuple[Span, ...] = ()

    def __add__(self, other: Change) -> Change:
        replaced_too = {span for span, _ in self.edits if span.start < span.end}  # two arrays may have one pitch
        edits = tuple(edit for edit in other.edits if edit[0] not in replaced_too)
        overrides = {**self.overrides, **other.overrides}
        return Change(self.edits + edits, self.functions + other.functions, overrides, self.removed + other.removed)

    @property
    def overlaps(self) -> bool:
        """Whether an edit is within the span that another replaces."""
        spans = sorted((span.start, span.end) for span in (*(span for span, _ in self.edits), *self.removed))
        return any(after[0] < before[1] for before, after in pairwise(spans))

    def module(self, module: Module) -> Module:
        """Apply the edits to a module, keeping its line numbers, and check the result. Raises `WgslError`."""
        if not self.edits and not self.functions:
            return module
        source = module.source
        return check(Source(replaced(source.text, self.replacements(" ")), source.name, source.origin))

    def replacements(self, line_break: str = "\n") -> tuple[Replacement, ...]:
        """The changes of the text, without overrides. With another `line_break` they keep line numbers."""
        in_files = line_break == "\n"
        break_ = BREAK if in_files else rf"{BREAK}[ \t]*"
        edits = (Replacement(span.start, span.end, re.sub(break_, line_break, words)) for span, words in self.edits)
        added = (Replacement(place, place, text + line_break) for place, text in self.functions)
        spans = (_with_lines(span) if in_files else span for span in self.removed)
        return (*edits, *added, *(Replacement(span.start, span.end, "") for span in spans))


def _with_lines(span: Span) -> Span:
    """Return the span of a statement with its semicolon and the blanks beside it, and with its lines where they hold
    nothing else."""
    source, text = span.source, span.source.text
    end = text.index(";", span.end) + 1
    first, line = source.line_start(source.line_index(span.start)), source.line_index(end - 1) + 1
    after = source.line_start(line) if line < source.line_count else len(text)
    before, behind = text[first : span.start].rstrip(), text[end:after].lstrip(" \t")
    if behind.strip():
        return Span(source, span.start, after - len(behind))
    return Span(source, first + len(before), after - len(behind)) if before else Span(source, first, after)


@frozen
class Pitch:
    """A quantity in the text that determines the pitch of an array.

    `now` is its value as written, in elements. `to` makes the change that sets another value, of at least `least`.
    `moved` sets it by a function of each index, None where the text does not allow that, or the quantity is a pad.
    `of_rows`: it is the length of the innermost arrays of an array of arrays. `is_hidden`: no constant in the indices
    tells it.
    """

    name: str
    now: int
    to: Callable[[int], Change]
    least: int = 0
    moved: Callable[[int], Change] | None = None
    of_rows: bool = False
    is_hidden: bool = False

    @property
    def by_function(self) -> Pitch | None:
        """This pitch, set by a function of each index."""
        return Pitch(self.name, self.now, self.moved, self.least) if self.moved else None


class Layouts:
    """The possible layouts of the workgroup array `array`. `reasons` collects sentences that say why others are not."""

    def __init__(self, module: Module, pipeline: Pipeline, array: str) -> None:
        self.module = module
        self.pipeline = pipeline
        self.array = array
        self.reasons: list[str] = []
        self._values: dict[str, Const | None] = {}
        self.tree = parse(module.source)
        decls = [d for d in self.tree.decls if isinstance(d, s.GlobalDecl)]
        self.decl = next(d for d in decls if d.name == array and d.keyword == "var")
        self._constants = {d.name: d for d in decls if d.keyword in ("const", "override")}
        held = next(type_ for v, type_ in pipeline.store_types.items() if v.name == array)
        assert isinstance(held, t.Array)
        self.counts = counts_of(held)
        if has_arrays(rows_of(held)[0].elem):
            self.reasons.append(f"{array} has structures: layouts of arrays in a structure are not searched")

    # ---- pitches ----

    def pitches(self, only: str | None = None) -> list[Pitch]:
        """Return every pitch of the array. With `only`, return the integer constant of that name, whatever its uses."""
        if only is not None:
            made = self._folded(only) if only in self._constants else None
            return [self._named(only)] if made and type(made.value) is int else []
        named = [self._named(name) for name in self._pure_constants()]
        inner = self._inner_length()
        written = self._written(named)
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
        now = self.value(name)
        init = decl.init
        moved = self._mover(now) if name in self._factor_texts else None
        if decl.keyword == "override":
            return Pitch(name, now, lambda value: Change(overrides={name: value}), moved=moved)
        assert init is not None
        declared = decl.type is not None

        def to(value: int) -> Change:
            return Change(((init.span, self._number(init, declared, value)),))

        return Pitch(name, now, to, moved=moved)

    def _inner_length(self) -> Pitch | None:
        """Return the length of the innermost arrays of an array of arrays as a pitch, None for other types."""
        size = self._size
        if len(self.counts) < 2 or size is None:
            return None
        span = size.span
        return Pitch(
            f"row length of {self.array}", self.counts[-1], lambda to: Change(((span, str(to)),)), least=1, of_rows=True
        )

    @property
    def _size(self) -> s.Expr | None:
        """The number of elements of the innermost arrays in the declaration, None where an alias has it."""
        type_, size = self.decl.type, None
        for _ in self.counts:
            if not (isinstance(type_, s.Ident) and type_.name == "array" and type_.args and type_.args[1:]):
                return None
            type_, size = type_.args
        return size

    def _written(self, named: Sequence[Pitch]) -> Pitch | None:
        """Return the common factor of every index as a pitch, unless a constant for the pitch alone is as small."""
        size = self._size
        if not self.indices or size is None:
            return None
        if any(inner is not n and inner in self.indices for n in self.indices for inner in nodes(n.index)):
            if not named:
                self.reasons.append(
                    f"an index of {self.array} is itself read from {self.array}, so its pitch is not varied"
                )
            return None
        text = self._common_factor(self.indices, quiet=bool(named or self.reasons) or len(self.counts) > 1)
        if text is None or any(pitch.now <= self.value(text) for pitch in named):
            return None
        now, written = self.value(text), size.span.text
        offsets = {node.span: node for node in Flow(self.tree).offsets(self.array)}
        placed = [n.index for n in self.indices]
        placed += [node for node in offsets.values() if any(self._scaled(each, now) for each in terms_of(node))]

        def to(value: int) -> Change:
            factor = f"({text} {'+' if value >= now else '-'} {abs(value - now)})"
            edits = tuple((node.span, self._with_factor(node, text, factor)) for node in placed)
            return Change((*edits, (size.span, f"({written}) / {text} * {factor}")))

        return Pitch(f"{text} in indices of {self.array}", now, to, least=1, moved=self._mover(now))

    def hidden(self, pitch: int, width: int) -> list[Pitch]:
        """Return the pitch of an array whose rows of `pitch` elements, `width` of them in use, no constant in its
        indices tells; none where the text does not allow a change."""
        to = self._mover(pitch)
        return [Pitch(f"pitch of {self.array}", pitch, to, width, is_hidden=True)] if to else []

    def _mover(self, pitch: int) -> Callable[[int], Change] | None:
        """Return what moves rows of `pitch` elements apart by a function of each index, None where it cannot."""
        size = self._size
        if not self.indices or size is None or pitch < 1:
            return None
        rows, written = -(-self.counts[-1] // pitch), size.span.text
        literal = not any(isinstance(each, s.Ident) for each in nodes(size))
        up = "" if self.counts[-1] % pitch == 0 else f" + {pitch - 1}"

        def to(value: int) -> Change:
            packed = f"index / {pitch}u * {value}u + index % {pitch}u"
            count = f"{rows * value}" if literal else f"(({written}){up}) / {pitch} * {value}"
            return self._through("packed", f"return {packed};") + Change(((size.span, count),))

        return to

    @cached_property
    def _products(self) -> list[s.Binary]:
        """The products and left shifts in expressions that decide an index."""
        found = (node for source in Flow(self.tree).sources(self.array) for node in nodes(source))
        return [node for node in found if isinstance(node, s.Binary) and node.op in ("*", "<<")]

    @property
    def _factor_texts(self) -> set[str]:
        return {side.span.text for each in self._products for side in (each.left, each.right) if each.op == "*"}

    @property
    def factors(self) -> set[int]:
        """The constants that something is multiplied by on its way to an index, by `*` or `<<`."""
        found: set[int | None] = set()
        for each in self._products:
            right = self._constant(each.right)
            found |= {right, self._constant(each.left)} if each.op == "*" else {right and 1 << right % 32}
        return {each for each in found if each}

    def change(self, pitch: Pitch | None, value: int) -> Change:
        """Return the change that sets `pitch` to a value."""
        return Change() if pitch is None or value == pitch.now else pitch.to(value)

    def swizzled(self, change: Change, swizzle: Swizzle, row: int) -> Change:
        """Return a change that also swizzles the elements. `row`: the elements of a row of an array of arrays after
        the change, else 0."""
        if not row:
            return self._through("at", f"return {swizzle.text('index', 'u')};") + change
        body = f"let index = row * {row}u + column; return ({swizzle.text('index', 'u')}) % {row}u;"
        return self._through("at", body, "row: u32, column: u32") + change

    def _through(self, suffix: str, body: str, parameters: str = "index: u32") -> Change:
        """Return the change that sends every index through a function, with the row's before it if there are two."""
        taken = {n.name for n in nodes(self.tree) if isinstance(n, s.Ident | s.GlobalDecl | s.Function)}
        name = next(each for n in count() if (each := f"{self.array}_{suffix}{n or ''}") not in taken)
        edits: list[tuple[Span, str]] = []
        for node in self.indices:
            index = node.index.span
            before, after = self._conversion(index)
            if "," in parameters:
                before = f"{self._row_text(node)}, {before}"
            edits.append((_empty(index.source, index.start), f"{name}({before}"))
            edits.append((_empty(index.source, index.end), f"{after})"))
        return Change(tuple(edits), ((self.decl.span.start, f"fn {name}({parameters}) -> u32 {{ {body} }}"),))

    def _row_text(self, node: s.Index) -> str:
        """Return the text of the number of an element's row, counted over all arrays around it."""
        outer, at = levels(node)[1][:-1], ""
        for level, each in enumerate(outer):
            text = each.index.span.text.join(self._conversion(each.index.span))
            at = f"({at}) * {self.counts[level]}u + {text}" if level else text
        return at

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
        made = self._folded(text)
        assert made is not None, text
        return made.value

    def _folded(self, text: str) -> Const | None:
        """Evaluate an expression with every declaration of the module in scope.

        The result is None if the expression uses an override that the entry point does not, which has no value.
        """
        if text not in self._values:
            self._values[text] = self._evaluated(text)
        return self._values[text]

    def _evaluated(self, text: str) -> Const | None:
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
    def indices(self) -> tuple[s.Index, ...]:
        """Every index of an element of the array; empty, with a reason, if the array is used otherwise."""
        declared = (n for n in nodes(self.tree) if isinstance(n, s.LocalDecl | s.Param) and n.name == self.array)
        if again := next(declared, None):
            self.reasons.append(f"{_line(again.span)} declares another {self.array}, so no index is changed")
            return ()
        names = [n for n in nodes(self.tree) if isinstance(n, s.Ident) and n.name == self.array]
        chains = [levels(n) for n in nodes(self.tree) if isinstance(n, s.Index)]
        found = {name: chain for name, chain in chains if name and len(chain) == len(self.counts)}
        if whole := next((name for name in names if name not in found), None):
            what = f"an array in {self.array}" if len(self.counts) > 1 else self.array
            self.reasons.append(
                f"{_line(whole.span)} uses {what} as a whole, by a pointer or as a value: no index is changed"
            )
            return ()
        return tuple(found[name][-1] for name in names)

    def _common_factor(self, indices: Sequence[s.Index], quiet: bool) -> str | None:
        """Return the one constant that is a factor in each index, None with a reason if there is none or several.

        `quiet`: without a reason, as another pitch is known.
        """
        common: set[str] = set()
        for number, node in enumerate(indices):
            factors = {
                f.span.text for term in terms_of(node.index) for f in factors_of(term) if self._is_constant(f, term)
            }
            common = common & factors if number else factors
            if not common:
                if not quiet:
                    text = node.span.text
                    self.reasons.append(f"{_line(node.span)}: the index of {text} is not row * PITCH + column")
                return None
        least = min(common, key=self.value, default=None)
        if len(common) > 1 and self._share_a_term(indices, common):
            if not quiet:
                self.reasons.append(
                    f"several constants could be the pitch of {self.array}: {', '.join(sorted(common))}"
                )
            return None
        return least  # larger ones are starts of several buffers

    def _share_a_term(self, indices: Sequence[s.Index], constants: Collection[str]) -> bool:
        """Whether two of these constants are factors of one term, or one is no multiple of the least."""
        values = sorted(map(self.value, constants))
        written = ([f.span.text for f in factors_of(term)] for node in indices for term in terms_of(node.index))
        shared = any(sum(text in constants for text in texts) > 1 for texts in written)
        return shared or any(value % values[0] for value in values)

    def _is_constant(self, factor: s.Expr, term: s.Expr) -> bool:
        """Return whether it is one of several factors, made of literals and module-scope constants only."""
        return factor is not term and self._constant(factor) is not None

    def _constant(self, node: s.Expr) -> int | None:
        """Return the positive integer that an expression of literals and module-scope constants is, None for others."""
        parts = [n for n in nodes(node) if not isinstance(n, s.Binary | s.Paren | s.Literal)]
        if not all(isinstance(n, s.Ident) and n.name in self._constants for n in parts):
            return None
        made = self._folded(node.span.text)
        return made.value if made and type(made.value) is int and made.value > 0 else None

    def _with_factor(self, index: s.Expr, pitch: str, factor: str) -> str:
        """Return the text of an index with `factor` for `pitch`, also in constants that are several pitches, such as
        the start of a second buffer."""
        now = self.value(pitch)
        rows: list[str] = []
        columns: list[str] = []
        for term in terms_of(index):
            factors = factors_of(term)
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
        return next((f for f in factors_of(term) if (value := self._constant(f)) and value % pitch == 0), None)


# ---- splitting and rewriting indices -----------------------------------------------------------------


def _empty(source: Source, place: int) -> Span:
    return Span(source, place, place)


def _line(span: Span) -> str:
    place = span.place
    return f"{place.file}:{place.line}"


def counts_of(held: t.Type) -> tuple[int, ...]:
    """Return the lengths of an array and of the arrays that are its elements, outermost first."""
    counts: list[int] = []
    while isinstance(held, t.Array):
        assert isinstance(held.count, int)  # the pipeline has the values of overrides
        counts.append(held.count)
        held = held.elem
    return tuple(counts)


def has_arrays(held: t.Type) -> bool:
    """Whether a type is a structure with an array as a member."""
    return isinstance(held, t.Struct) and any(isinstance(member.type, t.Array) for member in held.members)


def rows_of(held: t.Type) -> tuple[t.Array, int]:
    """Return the innermost array type of an array, and the number of its elements in all."""
    counts = counts_of(held)
    assert isinstance(held, t.Array)
    while isinstance(held.elem, t.Array):
        held = held.elem
    return held, prod(counts)
