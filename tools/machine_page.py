"""The reference of the machine, docs/machine.md: `python -m tools.machine_page` writes it.

The page lists the tables, fields, codes and opcodes that `sim.machine` declares. tests/machine/test_schema.py fails
while it differs from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from bankshot.sim.machine import instruction, layout, opcodes
from bankshot.sim.machine.schema import Codes, Field, Table

PAGE = Path(__file__).parents[1] / "docs" / "machine.md"

_INTRODUCTION = """\
# The machine

Bankshot translates a kernel to instructions for a machine of its own, which runs them on all lanes of a batch of
workgroups. This page lists the fields of an instruction, the operations, and the tables that the machine shares with
Python. It is generated: edit the declarations in `sim/machine/` and run `python -m tools.machine_page`.

A field's constant is its offset in a row: `row[field.MASK]` of an instruction, `access[row[field.ACCESS], at.LIMIT]`
of a table. To add a column, a code or an opcode, add one row to its declaration.
"""
_OTHER_NAMES = "These fields have other names in some operations:"
_SCALAR = "Opcodes from {first} on are the scalar operations of `sim/scalar/`, lane by lane, on rows A to E."


def page() -> str:
    """The page, as Markdown."""
    return "\n".join([_INTRODUCTION, *_instructions(), *_opcodes(), *_tables(), *_codes()])


def _instructions() -> Iterator[str]:
    yield "## Instructions\n"
    shape = f"`{instruction.ROW.dtype}[n, {instruction.ROW.size}]`"
    yield f"A program is an array {shape}. Fields that name a register row are -1 for none.\n"
    yield from _fields(instruction.ROW.fields)
    yield f"{_OTHER_NAMES}\n"
    yield from _aliases(instruction.ROW)
    for table in (instruction.OPERANDS, instruction.COLLECTIVE):
        yield from _table(table)


def _opcodes() -> Iterator[str]:
    yield "## Opcodes\n"
    rows = ((f"{each.value}", f"`{each.name}`", each.meaning) for each in opcodes.MACHINE_OPS.codes)
    yield from _markdown(("Opcode", "Operation", "Meaning"), rows)
    yield _SCALAR.format(first=opcodes.SCALAR) + "\n"


def _tables() -> Iterator[str]:
    yield "## Tables\n"
    yield "All tables are arrays of int64.\n"
    for table in layout.TABLES:
        yield from _table(table)


def _codes() -> Iterator[str]:
    yield "## Codes\n"
    for codes in (*layout.CODES, *opcodes.CODES):
        if codes is not opcodes.MACHINE_OPS:
            yield from _code_table(codes)


def _code_table(codes: Codes) -> Iterator[str]:
    yield f"### {codes.name.capitalize()}\n"
    yield f"{_sentence(codes.meaning)}\n"
    rows = ((f"{each.value}", f"`{each.constant}`", each.meaning) for each in codes.codes)
    yield from _markdown(("Code", "Constant", "Meaning"), rows)


def _table(table: Table) -> Iterator[str]:
    yield f"### {table.name.capitalize()}\n"
    shape = f" {_sentence(f'one row per {table.rows}')}" if table.rows else ""
    yield f"{_sentence(table.meaning)}{shape}\n"
    yield from _fields(table.fields)
    if table.aliases:
        yield from _aliases(table)


def _fields(fields: Iterable[Field]) -> Iterator[str]:
    rows = ((_offsets(each), f"`{each.constant}`", each.unit, each.meaning) for each in fields)
    yield from _markdown(("Offset", "Field", "Unit", "Meaning"), rows)


def _aliases(table: Table) -> Iterator[str]:
    rows = ((f"`{each.constant}`", f"`{each.field.constant}`", each.used_by, each.meaning) for each in table.aliases)
    yield from _markdown(("Name", "Field", "Used by", "Meaning"), rows)


def _offsets(field: Field) -> str:
    return f"{field.offset}" if field.count == 1 else f"{field.offset} to {field.offset + field.count - 1}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _markdown(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
