"""The table of builtin functions, operators and value constructors: one row each, with everything known about it.

`BUILTINS[name]` has the functions, `OPERATORS[name]` the operators (`"+"`, `"unary -"`, …), `CONSTRUCTORS[name]` the
value constructors of scalars, vectors and matrices (`"f32"`, `"vec3"`, `"mat4x2"`). `row.Builtin` documents the
columns, `signature` the language of signatures. Imports only `types` and `diagnostics`.
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
