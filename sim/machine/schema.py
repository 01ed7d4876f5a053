"""How the machine's tables are declared: one row per field, from which offsets, sizes, NumPy arrays and docs follow.

`layout`, `instruction` and `opcodes` hold the declarations; `tools.machine_page` turns them into docs/machine.md. Each
declaration returns a plain int, in the order of the rows, so that Numba compiles it as a constant. To add a column, a
code or an opcode, add one row.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..fast_dataclass import frozen


@frozen
class Field:
    """A column, or `count` adjacent columns, of a table. `constant`: its name in Python."""

    constant: str
    offset: int
    count: int
    unit: str
    meaning: str
    initial: int


@frozen
class Alias:
    """Another name for a field, in the rows that `used_by` describes."""

    constant: str
    field: Field
    used_by: str
    meaning: str


class Table:
    """An array whose rows all have the same fields.

    `rows` says what a row describes, `meaning` what the table is for. The Python constant of a field is `prefix` and
    the field's name. A table with a `base` begins with the fields of that table.
    """

    def __init__(
        self,
        name: str,
        rows: str,
        meaning: str,
        *,
        prefix: str = "",
        dtype: DTypeLike = np.int64,
        base: Table | None = None,
    ) -> None:
        self.name, self.rows, self.meaning = name, rows, meaning
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.base = base
        self.aliases: list[Alias] = []
        self._prefix = prefix
        self._fields: list[Field] = [] if base is None else list(base.fields)
        self._is_complete = False

    def field(self, name: str, unit: str, meaning: str, *, count: int = 1, initial: int = 0) -> int:
        """Append a field. Returns its offset.

        `unit` is what the number counts ("lanes", "bytes", "flag"); `initial` is its value in a new row. Raises
        ValueError if the size of the table has already been used.
        """
        if self._is_complete:
            raise ValueError(f"declare {name!r} before the size of {self.name!r} is used")
        offset = self._end
        self._fields.append(Field(self._prefix + name.upper(), offset, count, unit, meaning, initial))
        return offset

    def alias(self, name: str, offset: int, used_by: str, meaning: str) -> int:
        """Give the field at `offset` another name. Returns the offset."""
        field = next(each for each in self._fields if each.offset == offset)
        self.aliases.append(Alias(self._prefix + name.upper(), field, used_by, meaning))
        return offset

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields, in the order of their offsets."""
        return tuple(self._fields)

    @property
    def size(self) -> int:
        """Numbers in a row."""
        self._is_complete = True
        return self._end

    @property
    def _end(self) -> int:
        return self._fields[-1].offset + self._fields[-1].count if self._fields else 0

    def new(self, *shape: int) -> NDArray[Any]:
        """An array of this shape of new rows: `[*shape, size]`."""
        array = np.zeros((*shape, self.size), self.dtype)  # pages that stay zero take no memory
        if self._new_row is not None:
            array[...] = self._new_row
        return array

    @cached_property
    def _new_row(self) -> NDArray[Any] | None:
        """A new row; None if it is all zeros."""
        row = np.repeat([each.initial for each in self._fields], [each.count for each in self._fields])
        return row if row.any() else None


@frozen
class Code:
    """One value of an enumeration."""

    name: str
    constant: str
    value: int
    meaning: str


class Codes:
    """An enumeration: numbers counted up from `start`."""

    def __init__(self, name: str, meaning: str, *, prefix: str = "", start: int = 0) -> None:
        self.name, self.meaning = name, meaning
        self.codes: list[Code] = []
        self._prefix, self._start = prefix, start

    def code(self, name: str, meaning: str) -> int:
        """Append a value. Returns its number."""
        number = self._start + len(self.codes)
        self.codes.append(Code(name, self._prefix + name.upper(), number, meaning))
        return number
