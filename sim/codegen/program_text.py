"""A program as text, for people: what `--dump program` shows.

One line per instruction, under the source line that it was generated from:

    position  operation  what it does  | lanes that do it

`r7` is a register row; a row with an input or a constant in it is shown as that. `{r7}` is a mask row, `{first}` the
first lane alone; without either, all lanes take part. `L2` is a place that is jumped to. Nothing parses the text.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.access import UNITS_PER_ACCESS
from ..ir.dump import SourceLines, literal
from ..machine import instruction as field
from ..machine import opcodes as op
from ..scalar import OPS
from .program import Program
from .virtual_registers import FIELDS

# Operation -> what it does. In braces a field, and how to show it: as a register row (r, or f for f32), a number (n),
# a label (l), a place in memory (m), an array (u) or a scalar operation (o). The mask is printed behind the template.
_MEMORY = {
    **dict.fromkeys(("load", "load_known"), "{dest:r} = {e:m}"),
    **dict.fromkeys(("store", "store_known", "store_four"), "{e:m} = {dest:r}"),
    **{f"atomic_{name}": "{dest:r} = {e:m}, operands after {dest:r}" for name in op.ATOMICS},
    **dict.fromkeys(("banks", "sectors", "bounds", "writers", "meets"), "{e:m}, probe {x:n}"),
    "loaded": "{e:m}",
    **dict.fromkeys(("touched", "sampled", "cached"), "{e:m}, probe {x:n}"),
    **dict.fromkeys(("watch_read", "watch_write", "watch_order", "reach"), "{e:m}, probe {x:n}"),
}
_REDUCTIONS = ("reduce", "inclusive", "exclusive")
TEMPLATES = {
    **_MEMORY,
    **{f"subgroup_{name}": "{dest:r}, operands after it" for name in op.COLLECTIVES},
    **{f"subgroup_{name}": "{dest:r}, operands after it, by {a:o}" for name in _REDUCTIONS},
    "halt": "",
    "jump": "to {a:l}",
    "jump_zero": "to {a:l} if {b:r} is 0",
    "jump_none": "to {a:l} if no lane is active",
    "narrow": "to {a:l} if no lane is active, else level {dest:n}",
    "restore": "to level {dest:n}",
    "barrier": "of site {a:n}, memory {b:n}",
    "copy": "{dest:r} = {a:r}",
    "blend": "{dest:r} = {a:r}",
    "broadcast": "{dest:r} = first lane of {a:r}",
    "pick": "{dest:r} = {a:r}[{b:r}], of {c:n} rows",
    "put": "{a:r}[{b:r}], of {c:n} rows, = {dest:r}",
    "put_all": "{a:r}, and all of {c:n} rows, = {dest:r}",
    "mask": "{dest:r} = {a:r} and {b:r}",
    "learn": "addresses {a:r}",
    "length": "{dest:r} = length of #{e:u}",
    "tile": "{a:n} x {b:n}, sums {dest:n}, may wait {e:n}",
    "add_up": "",
    "checked": "{dest:r} = {a:f} * {b:f} + {c:f}, rounding {e:n}, check {x:n}",
    "count": "basic block {a:n}, lanes past the guards {b:r}",
    "check": "{dest:r} of {a:r} {b:r} {c:r}, kind {e:n}, check {x:n}",
    "margin": "{a:r} and {b:r}, margin {x:n}",
    "trace": "{dest:r}, point {x:n}",
}
_NARROW = 1  # in `mask` of an operation without a mask: the first lane only
_FOUR = 4
_UNMASKED = ("copy", "load", "load_known", "broadcast", "length")  # and scalar operations: `mask` says how many lanes


def to_text(program: Program) -> str:
    """Print a program. The text is the same in every run and ends with a line break."""
    printer, source = _Printer(program), SourceLines()
    lines = [*printer.header(), ""]
    for position, span in enumerate(program.instruction_spans):
        if heading := source.heading(span):
            lines.append(f"       {heading}")
        if position in printer.labels:
            lines.append(f"{printer.labels[position]}:")
        lines.append(printer.line(position))
    return "\n".join(lines) + "\n"


class _Printer:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = op.opcode_names()
        self._inputs = {row: name for name, row in program.inputs.items()}
        self._constants = {row: bits for bits, row in program.constants.items()}
        targets = {t for position in range(len(program.code)) if (t := self._target(position)) is not None}
        self.labels = {position: f"L{number}" for number, position in enumerate(sorted(targets))}

    def _target(self, position: int) -> int | None:
        """Where an instruction may jump to."""
        fields = self._fields(position)
        template = TEMPLATES.get(self._name(position), "")
        return fields["a"] if "{a:l}" in template and fields["a"] >= 0 else None

    def _name(self, position: int) -> str:
        return self._names[int(self._program.code[position, field.OP])]

    def _fields(self, position: int) -> dict[str, int]:
        return dict(zip(FIELDS, self._program.code[position, field.DEST :].tolist(), strict=True))

    def header(self) -> Iterator[str]:
        program = self._program
        batch = f"{program.workgroups_per_batch} workgroup{'s' if program.workgroups_per_batch > 1 else ''} per batch"
        order = ", lanes interleaved" if program.interleaved else ""
        yield f"program: {len(program.code)} instructions, {program.rows} register rows, {batch}{order}"
        rows = [*self._inputs.items(), *((row, f"{bits:#010x}") for row, bits in self._constants.items())]
        for row, name in sorted(rows):
            yield f"r{row}: {name}"

    def line(self, position: int) -> str:
        name, fields = self._name(position), self._fields(position)
        template = TEMPLATES.get(name)
        text = self._scalar(name, fields) if template is None else self._formatted(template, fields)
        return f"{position:5}  {name:<18} {text}{self._lanes(name, fields['mask'])}".rstrip()

    def _scalar(self, name: str, fields: dict[str, int]) -> str:
        kinds = OPS[name].args
        operands = (self._row(fields[field], kind) for field, kind in zip("abce", kinds, strict=False))
        return f"{self._row(fields['dest'])} = {', '.join(operands)}"

    def _formatted(self, template: str, fields: dict[str, int]) -> str:
        return template.format_map({name: _Field(self, number, fields) for name, number in fields.items()})

    def _lanes(self, name: str, mask: int) -> str:
        if name in _UNMASKED or name not in TEMPLATES:
            return {_NARROW: "  {first}", _FOUR: ", and three more"}.get(mask, "")
        return "" if mask < 0 else f"  {{{self._row(mask)}}}"

    def _row(self, row: int, kind: str | None = None) -> str:
        """A register row; `kind`: what the operation takes its bits for."""
        if row < 0:
            return "-"
        if row in self._inputs:
            return self._inputs[row]
        if row not in self._constants:
            return f"r{row}"
        bits = self._constants[row]
        return f"{bits:#x}" if kind is None else literal(kind, bits)

    def shown(self, number: int, how: str, fields: dict[str, int]) -> str:
        match how:
            case "r":
                return self._row(number)
            case "f":
                return self._row(number, "f32")
            case "l":
                return self.labels.get(number, "next")
            case "o":
                return self._names.get(number, "-")
            case "u":
                access, _ = divmod(number, UNITS_PER_ACCESS)
                return f"{access} {self._program.accesses[access].variable.name}"
            case "m":
                return self._memory(number, fields)
            case _:
                return str(number)

    def _memory(self, number: int, fields: dict[str, int]) -> str:
        """`variable[address]`: the sum of a row per lane, the first lane of another, and a constant."""
        access, unit = divmod(number, UNITS_PER_ACCESS)
        terms = [self._row(fields[field]) for field in "ab" if fields[field] >= 0]
        terms += [str(fields["c"])] if fields["c"] or not terms else []
        component = f".{unit}" if self._program.accesses[access].units > 1 else ""
        return f"#{access} {self._program.accesses[access].variable.name}[{' + '.join(terms)}]{component}"


class _Field:
    """A field of an instruction, for `str.format`."""

    def __init__(self, printer: _Printer, number: int, fields: dict[str, int]) -> None:
        self._printer, self._number, self._fields = printer, number, fields

    def __format__(self, how: str) -> str:
        return self._printer.shown(self._number, how, self._fields)
