"""A program as text: one instruction a line, with the source it is about. For people who work on Bankshot."""

from __future__ import annotations

from ..machine.opcodes import A, opcode_names
from .program import Program


def disassemble(program: Program) -> str:
    """`position  opcode  D A B C E M X  ; line: source`, fields that are not used left out as dots."""
    names = opcode_names()
    inputs = {row: name for name, row in program.inputs.items()}
    header = [f"; {program.rows} rows, {program.workgroups_per_batch} workgroups a batch"]
    header += [f"; row {row}: {name}" for row, name in sorted(inputs.items())]
    header += [f"; row {row}: {bits:#x}" for bits, row in program.constants.items()]
    lines = []
    for position, (row, place) in enumerate(zip(program.code, program.instruction_sites, strict=True)):
        fields = " ".join("." if field == -1 else str(field) for field in row[A - 1 :])
        text = f"{position:5}  {names[int(row[0])]:<14} {fields}"
        if place >= 0:
            span = program.sites[place].span
            text = f"{text:<48} ; {span.line}: {' '.join(span.text.split())}"
        lines.append(text)
    return "\n".join([*header, *lines]) + "\n"
