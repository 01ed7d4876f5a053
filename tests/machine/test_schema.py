"""The declarations of the machine's tables, instructions and codes, and that the code and docs use them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from bankshot.sim.machine import instruction, layout, opcodes
from bankshot.sim.machine.schema import Codes, Table
from tools.machine_page import PAGE, page

ROOT = Path(__file__).parents[2]
# The folders in sim/machine see no instructions and no tables.
FILES = sorted(path for room in ("machine", "launch") for path in (ROOT / "sim" / room).glob("*.py"))
TABLES = [*layout.TABLES, *instruction.TABLES]
CODES = [*layout.CODES, *opcodes.CODES]
CONSTANTS = {**vars(layout), **vars(opcodes)}

# The arrays that digits may index, as the source names them, and why; `file: array` holds for one file only. Everything
# else is indexed by the constants of a field.
ALLOWED = {
    "args": "operands of an LLVM intrinsic, by position",
    "signature.args": "operands of an LLVM intrinsic, by position",
    "workgroup_classes.py: values": "the first of several alike",
    "workgroup_classes.py: members": "the first of several alike",
    "partition.py: outcomes": "the first of several alike",
    "partition.py: tables": "the first of several alike",
    "shadow_blocks.py: addresses": "the second of several lanes",
    "partition.py: counts.shape": "a shape has no names",
    "schedules.py: drawn": "a group of a regular expression",
    "workspace.py: self._registers": "the registers of the first of several workspaces, all alike",
    "workspace.py: groups": "the first of several that paused",
    "workspace.py: self._configs": "the first of several rows, all alike",
    "lanes.py: rows": "the first of several vectors of LLVM, all alike",
}


def digits(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, array and text of each subscript of a file that has a digit, alone or added to something.

    `array[-1]`, the last of a list, is none of them.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Subscript):
            indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(_is_digit(each) for each in indices):
                yield node.lineno, ast.unparse(node.value), ast.unparse(node)


def _is_digit(index: ast.expr) -> bool:
    if isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add):
        return _is_digit(index.left) or _is_digit(index.right)
    return isinstance(index, ast.Constant) and isinstance(index.value, int)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_digit_indexes_a_field(path):
    found = [
        f"{path.name}:{line}: {text}"
        for line, array, text in digits(path)
        if array not in ALLOWED and f"{path.name}: {array}" not in ALLOWED
    ]
    assert not found, found


def test_every_exception_is_used():
    used = {name for path in FILES for _, array, _ in digits(path) for name in (array, f"{path.name}: {array}")}
    assert set(ALLOWED) <= used


def test_digits_are_found(tmp_path):
    file = tmp_path / "code.py"
    file.write_text("row[0]; code[place, 1]; row[start + 2]; row[field.MASK]; rows[-1]; rows[1:]; table[i]")
    assert [text for _, _, text in digits(file)] == ["row[0]", "code[place, 1]", "row[start + 2]"]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_fields_follow_each_other_and_have_a_constant_each(table):
    constants = vars(instruction) if table in instruction.TABLES else vars(layout)
    end = 0
    for each in table.fields:
        assert each.offset == end
        assert constants[each.constant] == each.offset
        end += each.count
    assert table.size == end
    assert len({each.constant for each in table.fields}) == len(table.fields)
    for alias in table.aliases:
        assert constants[alias.constant] == alias.field.offset


@pytest.mark.parametrize("codes", CODES, ids=lambda codes: codes.name)
def test_codes_count_up_and_have_a_constant_each(codes):
    values = [each.value for each in codes.codes]
    assert values == list(range(values[0], values[0] + len(values)))
    for each in codes.codes:
        assert CONSTANTS[each.constant] == each.value


def test_every_declaration_is_on_the_page():
    text = page()
    fields = [each.constant for table in TABLES for each in table.fields]
    assert not [name for name in fields if f"`{name}`" not in text]
    assert not [each.name for each in opcodes.MACHINE_OPS.codes if f"`{each.name}`" not in text]


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tools.machine_page`"


def test_machine_operations_end_before_scalar_ones():
    assert max(each.value for each in opcodes.MACHINE_OPS.codes) < opcodes.SCALAR
    assert min(opcodes.scalar_opcodes().values()) == opcodes.SCALAR


def test_new_rows_hold_the_initial_values():
    table = Table("example", "example", "shows initial values")
    first = table.field("first", "count", "0")
    second = table.field("second", "count", "7 twice", count=2, initial=7)
    assert (first, second, table.size) == (0, 1, 3)
    assert table.new(2).tolist() == [[0, 7, 7], [0, 7, 7]]
    assert table.new().tolist() == [0, 7, 7]


def test_a_table_with_a_base_begins_with_its_fields():
    base = Table("base", "row", "a base")
    base.field("one", "count", "a field")
    longer = Table("longer", "row", "one more field", base=base)
    assert longer.field("two", "count", "another field") == 1
    assert [each.constant for each in longer.fields] == ["ONE", "TWO"]
    assert base.size == 1


def test_a_field_cannot_follow_the_use_of_the_size():
    table = Table("example", "example", "has no more fields")
    table.field("first", "count", "a field")
    assert table.size == 1
    with pytest.raises(ValueError, match="before the size of 'example' is used"):
        table.field("second", "count", "too late")


def test_codes_start_where_they_say():
    codes = Codes("example", "counts from 3", prefix="SOME_", start=3)
    assert (codes.code("one", "first"), codes.code("two", "second")) == (3, 4)
    assert [each.constant for each in codes.codes] == ["SOME_ONE", "SOME_TWO"]
