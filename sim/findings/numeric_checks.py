"""Findings from the machine's numeric checks: results that are not finite, divisions by zero, shift counts and
conversions out of range."""

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
from .table import BY_CHECK


def find_numeric(launch: Launch, outcome: Outcome) -> list[Finding]:
    """Return a finding for each operation of the source and each kind of failed check."""
    program = launch.program
    if not program.value_checks:
        return []
    findings: dict[tuple[SourceSite, str], Finding] = {}
    for number in np.flatnonzero(outcome.checks[:, at.CHECK_TIMES]).tolist():
        check, row = program.value_checks[number], outcome.checks[number]
        site, kind = program.sites[check.site], BY_CHECK[check.kind]
        known = findings.get((site, kind.code))
        if known is not None:  # another component, or another inlined copy of the place
            findings[site, kind.code] = replace(known, count=known.count + int(row[at.CHECK_TIMES]))
            continue
        lane = int(row[at.CHECK_LANE])
        findings[site, kind.code] = kind.make(
            site.span,
            count=int(row[at.CHECK_TIMES]),
            workgroup=launch.workgroup(int(row[at.CHECK_WORKGROUP])),
            lanes=(lane,),
            lane=lane,
            operation=_words(site.name or "", check, row),
        )
    return list(findings.values())


def _words(name: str, check: ValueCheck, row: NDArray[np.int64]) -> str:
    """Say what was computed: `1.0 / 0.0 = inf`, `f32: exp(100.0) = inf`."""
    row_of = OPS[check.op]
    operands = [
        register(kind, int(bits))
        for kind, bits in zip(row_of.args, row[[at.CHECK_A, at.CHECK_B, at.CHECK_C]], strict=False)
    ]
    result = register(row_of.result, int(row[at.CHECK_RESULT]))
    stem = check.op.rpartition("_")[0]
    written = _SYMBOLS.get(stem)
    if written:
        what = f"{operands[0]} {written} {operands[1]}"
    else:
        what = f"{name if stem.startswith('convert') else stem}({', '.join(operands)})"
    inside = f" in {name}" if stem != name and written != name and not stem.startswith("convert") else ""
    kind = "f16: " if row_of.result == "f16" else ""
    return f"{kind}{what} = {result}{inside}"


_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "shl": "<<", "shr": ">>"}
