"""The builtin table: one row, one builtin; one row, one operator. All that is known of it stands in that row.

`BUILTINS[name]` are the functions, `OPERATORS[name]` the operators (`"+"`, `"unary -"`, …), `CONSTRUCTORS[name]` the
value constructors of scalars, vectors and matrices (`"f32"`, `"vec3"`, `"mat4x2"`). See `row.Builtin` for the columns
and `signature` for how signatures are written.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import constructors, machine_functions, numeric_functions, operators, texture_functions
from .row import Builtin
from .signature import Candidate, Signature, result_struct

BUILTINS: Mapping[str, Builtin] = {
    row.name: row for table in (numeric_functions, machine_functions, texture_functions) for row in table.ROWS
}
OPERATORS: Mapping[str, Builtin] = {row.name: row for row in operators.ROWS}
CONSTRUCTORS: Mapping[str, Builtin] = {row.name: row for row in constructors.ROWS}

__all__ = ["BUILTINS", "CONSTRUCTORS", "OPERATORS", "Builtin", "Candidate", "Signature", "result_struct"]
