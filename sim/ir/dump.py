"""A lowered program as text, for people: what `--dump ir` shows.

One line per item, `%result:kind = operation operands`, indented by region, under the source line that it was lowered
from. A value is shown where it is computed: one that was hoisted out of a loop, or shared by several expressions, is
under the first line that needed it. Constants are written where they are used. Nothing parses the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..wgsl.source import Place, Span
from . import ir
from .access import Access
from .ir import Block, Region, Slot, Value
from .lowered import Lowered
from .register_bits import from_bits
from .sites import SourceSite

_INDENT = "  "
_SUFFIXES = {"f32": "f", "f16": "h", "i32": "i", "u32": "u"}
_LARGEST_DECIMAL = 1 << 20  # larger u32 constants are usually masks or bit patterns


def to_text(lowered: Lowered) -> str:
    """Print the accesses and the body of a program. The text is the same in every run and ends with a line break."""
    lines = [*_accesses(lowered.accesses), "", *_Printer(lowered).body()]
    return "\n".join(lines) + "\n"


def literal(kind: str, bits: int) -> str:
    """The register bits of a constant, as WGSL writes a literal of this kind."""
    if kind == "bool":
        return "true" if bits else "false"
    if kind == "u32" and bits > _LARGEST_DECIMAL:
        return f"{bits:#x}u"
    number = from_bits(kind, bits)
    return f"{int(number) if kind in ('i32', 'u32') else _shortest(float(number))}{_SUFFIXES[kind]}"


def _shortest(number: float) -> str:
    """The fewest digits that give the f32 number back."""
    texts = (f"{number:.{digits}g}" for digits in range(1, 10))
    return next((text for text in texts if _rounds_to(text, number)), repr(number))


def _rounds_to(text: str, number: float) -> bool:
    from numpy import float32

    return float(float32(text)) == number


class SourceLines:
    """Prints each source line once, above the lines of text that belong to it."""

    def __init__(self) -> None:
        self._shown: Place | None = None

    def heading(self, span: Span | None) -> str | None:
        """`// file:line: text` if the line of `span` is not the one shown last, else None."""
        if span is None:
            return None
        place = span.place._replace(column=0)
        if place == self._shown or not span.source.text:
            return None
        self._shown = place
        text = span.line_text.strip()
        return f"// {place.file}:{place.line}: {text}"


def _accesses(accesses: Sequence[Access]) -> Iterator[str]:
    for number, access in enumerate(accesses):
        units = f"{access.units} x {access.unit} bytes"
        offset = f" at offset {access.offset * access.unit}" if access.offset else ""
        length = "runtime-sized" if access.count is None else f"{access.count} elements"
        stride = f", {length}, {access.stride * access.unit} bytes apart" if access.stride else ""
        store = "store" if access.writes else "load"
        verb = "index of" if access.space == "index" else store
        yield f"access #{number}: {verb} {access.space} {access.variable.name}, {units}{offset}{stride}".replace(
            "index of index", "index of"
        )


class _Printer:
    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._lines: list[str] = []
        self._depth = 0
        self._source = SourceLines()
        self._names: dict[Value, str] = {}
        self._taken: set[str] = set()
        self._blocks: dict[Block | Slot, str] = {}
        self._labels: dict[int, str] = {}  # of loops and scopes, by identity

    def body(self) -> list[str]:
        self._line("program {")
        self._region(self._lowered.body)
        self._line("}")
        return self._lines

    def _line(self, text: str) -> None:
        self._lines.append(f"{_INDENT * self._depth}{text}")

    def _region(self, region: Region) -> None:
        self._depth += 1
        for item in region.items:
            if not (isinstance(item, Value) and item.op == "const"):
                if heading := self._source.heading(self._span(item)):
                    self._line(heading)
                self._item(item)
        self._depth -= 1

    def _span(self, item: ir.Item) -> Span | None:
        return ir.span_of(item, self._lowered.sites.rows) or self._lowered.spans.get(id(item))

    def _site(self, number: int) -> SourceSite:
        return self._lowered.sites.rows[number]

    # ---- names ----

    def _define(self, value: Value) -> str:
        name = f"%{value.id}"
        while name in self._taken:  # a pass may give a new value the id of the one it is computed for
            name += "'"
        self._taken.add(name)
        self._names[value] = name
        return f"{name}:{value.kind}"

    def _use(self, value: Value) -> str:
        if value.op == "const":
            return literal(value.kind, value.imm)
        return self._names.get(value) or f"%{value.id}"

    def _uses(self, values: Iterable[Value]) -> str:
        return ", ".join(map(self._use, values))

    def _block(self, block: Block | Slot) -> str:
        if block not in self._blocks:
            first = block.slots[0] if isinstance(block, Block) else block
            names = set(self._blocks.values())
            name = stem = f"${first.name.replace(' ', '_')}"
            number = 1
            while name in names:
                number += 1
                name = f"{stem}.{number}"
            self._blocks[block] = name
        return self._blocks[block]

    def _slot(self, slot: Slot) -> str:
        block = slot.block
        if block is None or len(block.slots) == 1:
            return self._block(block or slot)
        return f"{self._block(block)}[{block.slots.index(slot)}]"

    def _place(self, access: int, address: Value | None) -> str:
        index = "" if address is None else f"[{self._use(address)}]"
        return f"#{access} {self._lowered.accesses[access].variable.name}{index}"

    # ---- items ----

    def _item(self, item: ir.Item) -> None:
        match item:
            case Value():
                self._line(f"{self._define(item)} = {self._operation(item)}")
            case ir.Pick(result=result, block=block, index=index):
                self._line(f"{self._define(result)} = pick {self._block(block)}[{self._use(index)}]")
            case ir.Load(results=results) | ir.Atomic(results=results) | ir.Collective(results=results):
                names = ", ".join(map(self._define, results))
                self._line(f"{names} = {self._effect(item)}")
            case ir.If(condition=condition, then=then, orelse=orelse):
                self._line(f"if {self._use(condition)} {{")
                self._region(then)
                if orelse.items:
                    self._line("} else {")
                    self._region(orelse)
                self._line("}")
            case ir.Loop():
                self._loop(item)
            case ir.Scope(body=body):
                self._line(f"scope {self._label(item)} {{")
                self._region(body)
                self._line("}")
            case _:
                self._line(self._effect(item))

    def _operation(self, value: Value) -> str:
        match value.op:
            case "get":
                return f"get {self._slot(value.imm)}"
            case "input":
                return f"input {value.imm}"
            case "length":
                return f"length {self._place(value.imm, None)}"
            case op:
                return f"{op} {self._uses(value.args)}".rstrip()

    def _effect(self, item: ir.Item) -> str:
        rule = _EFFECTS.get(type(item))
        return type(item).__name__.lower() if rule is None else rule(self, item)

    def _loop(self, loop: ir.Loop) -> None:
        self._line(f"loop {self._label(loop)} {{")
        self._region(loop.header)
        if loop.condition is not None:
            self._line(f"{_INDENT}while {self._use(loop.condition)}")
        self._line("} body {")
        self._region(loop.body)
        if loop.continuing.items or loop.break_if is not None:
            self._line("} continuing {")
            self._region(loop.continuing)
        if loop.break_if is not None:
            self._line(f"{_INDENT}break if {self._use(loop.break_if)}")
        self._line("}")

    def _label(self, node: ir.Loop | ir.Scope | None) -> str:
        return self._labels.setdefault(id(node), f"@{len(self._labels)}")

    # ---- one line for each kind of effect ----

    def _set(self, item: ir.Set) -> str:
        rows = f"[0..{item.slot.rows - 1}]" if item.slot.rows > 1 else ""
        return f"set {self._slot(item.slot)}{rows} = {self._use(item.value)}"

    def _put(self, item: ir.Put) -> str:
        return f"put {self._block(item.block)}[{self._use(item.index)}] = {self._use(item.value)}"

    def _load(self, item: ir.Load) -> str:
        return f"load {self._place(item.access, item.address)}"

    def _store(self, item: ir.Store) -> str:
        return f"store {self._place(item.access, item.address)} = {self._uses(item.values)}"

    def _atomic(self, item: ir.Atomic) -> str:
        operands = f", {self._uses(item.args)}" if item.args else ""
        return f"atomic {item.op} {self._place(item.access, item.address)}{operands}"

    def _check(self, item: ir.Check) -> str:
        return f"check {self._place(item.access, item.address)}"

    def _barrier(self, item: ir.Barrier) -> str:
        return f"barrier {item.kind}"

    def _collective(self, item: ir.Collective) -> str:
        scalar = f" {item.scalar}" if item.scalar else ""
        return f"subgroup {item.op}{scalar} {self._uses(item.args)}".rstrip()

    def _note(self, item: ir.Note) -> str:
        where = "" if item.access < 0 else f" in #{item.access}"
        address = "" if item.address is None else f" at {self._use(item.address)}"
        return f"trace point {item.point}: {self._uses(item.values)}{address}{where}"

    def _inspect(self, item: ir.Inspect) -> str:
        return f"inspect {self._use(item.result)}, kind {item.kind}{'' if item.active else ' (off)'}"

    def _margin(self, item: ir.Margin) -> str:
        comparison = "<" if item.least else "<="
        return f"margin {item.place}: {self._use(item.one)} {comparison} {self._use(item.other)}"

    def _jump(self, item: ir.Jump) -> str:
        return f"{item.kind} {self._label(item.target.node)}"

    def _count(self, item: ir.Count) -> str:
        classes: dict[str, int] = {}
        for name, _, _ in item.computed:
            classes[name] = classes.get(name, 0) + 1
        parts = [f"{count} {name}" for name, count in classes.items()]
        parts += [f"{self._site(site).kind} at line {self._site(site).line}" for site in item.sites]
        return f"count {', '.join(parts)}".rstrip()


_EFFECTS: dict[type, Callable[[_Printer, ir.Item], str]] = {
    getattr(ir, name.strip("_").capitalize()): getattr(_Printer, name)
    for name in (
        *("_set", "_put", "_load", "_store", "_atomic", "_check", "_barrier"),
        *("_collective", "_note", "_inspect", "_margin", "_jump", "_count"),
    )
}
