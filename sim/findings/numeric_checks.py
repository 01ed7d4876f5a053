"""From the machine's checks to findings: numbers that are not finite, divisions by zero, shifts and conversions that no
result fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import ValueCheck
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..machine import layout as at
from ..scalar import OPS
from .finding import Finding
from .memory_paths import register

_CODES = {
    at.BORN: "not-finite",
    at.DIVIDES_U32: "division-by-zero",
    at.DIVIDES_I32: "division-by-zero",
    at.SHIFTS: "shift-count",
    at.TO_I32: "conversion",
    at.TO_U32: "conversion",
}
_HINTS = {
    "not-finite": "an implementation may assume that this does not happen, and give any value",
    "division-by-zero": "WGSL gives x / 0 = x and x % 0 = 0, and the quotient that i32 lacks is x",
    "shift-count": "WGSL takes the count modulo 32",
    "conversion": "WGSL gives the nearest value of the type, and some value of it for a NaN",
}


def find_checked(launch: Launch, outcome: Outcome) -> list[Finding]:
    """One finding for each operation of the source and each way in which it went wrong."""
    program = launch.program
    findings: dict[tuple[SourceSite, str], Finding] = {}
    if not outcome.checks[:, at.CHECK_TIMES].any():
        return []
    for check, row in zip(program.value_checks, outcome.checks, strict=False):
        if row[at.CHECK_TIMES] == 0:
            continue
        site, code = program.sites[check.site], _CODES[check.kind]
        known = findings.get((site, code))
        if known is not None:  # another component, or the same place inlined once more
            findings[site, code] = replace(known, count=known.count + int(row[at.CHECK_TIMES]))
            continue
        findings[site, code] = Finding(
            code,
            "warning",
            f"invocation {int(row[at.CHECK_LANE])} has {_words(site.name or '', check, row)}",
            site.span,
            int(row[at.CHECK_TIMES]),
            launch.workgroup(int(row[at.CHECK_WORKGROUP])),
            (int(row[at.CHECK_LANE]),),
            hint=_HINTS[code],
        )
    return list(findings.values())


def _words(name: str, check: ValueCheck, row: NDArray[np.int64]) -> str:
    """What was computed: `1.0 / 0.0 = inf`, `f32: exp(100.0) = inf`."""
    row_of = OPS[check.op]
    operands = [
        register(kind, int(bits))
        for kind, bits in zip(row_of.args, row[[at.CHECK_A, at.CHECK_B, at.CHECK_C]], strict=False)
    ]
    result = register(row_of.result, int(row[at.CHECK_RESULT]))
    stem = check.op.rpartition("_")[0]
    written = _SYMBOLS.get(stem)
    if written and len(operands) == 2:
        what = f"{operands[0]} {written} {operands[1]}"
    else:
        what = f"{name if stem.startswith('convert') else stem}({', '.join(operands)})"
    inside = f" in {name}" if stem != name and written != name and not stem.startswith("convert") else ""
    kind = "f16: " if row_of.result == "f16" else ""
    return f"{kind}{what} = {result}{inside}"


_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "shl": "<<", "shr": ">>"}
