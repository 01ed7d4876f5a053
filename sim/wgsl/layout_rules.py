"""What an address space demands of the layout of a type. Spec: "Address Space Layout Constraints"."""

from __future__ import annotations

from itertools import pairwise

from .types import Array, Member, Struct, Type, align_of, round_up, size_of, stride_of


def required_align(t: Type, *, uniform: bool) -> int:
    """Return RequiredAlignOf; `uniform`: in the uniform address space without `uniform_buffer_standard_layout`."""
    return round_up(16, align_of(t)) if uniform and isinstance(t, Array | Struct) else align_of(t)


def layout_problem(t: Type, *, uniform: bool) -> str | None:
    """Explain why a type violates the layout rules of an address space, or return None.

    `uniform` adds the stricter rules of the uniform address space, which `uniform_buffer_standard_layout` lifts. The
    others (offsets and strides are multiples of the alignment) apply everywhere. Spec: "Address Space Layout
    Constraints".
    """
    match t:
        case Array():
            stride, need = stride_of(t), 16 if uniform else required_align(t.elem, uniform=uniform)
            if stride % need:
                return f"the element stride of {t} is {stride} bytes, which is not a multiple of {need}"
            return layout_problem(t.elem, uniform=uniform)
        case Struct():
            problems = (_member_problem(t, m, uniform) or layout_problem(m.type, uniform=uniform) for m in t.members)
            return next(filter(None, problems), None) or (_struct_gap_problem(t) if uniform else None)
        case _:
            return None


def _member_problem(struct: Struct, member: Member, uniform: bool) -> str | None:
    need = required_align(member.type, uniform=uniform)
    if member.offset % need == 0:
        return None
    return f"member '{member.name}' of {struct} is at byte {member.offset}, which is not a multiple of {need}"


def _struct_gap_problem(struct: Struct) -> str | None:
    for member, after in pairwise(struct.members):
        need = round_up(16, size_of(member.type)) if isinstance(member.type, Struct) else 0
        if after.offset - member.offset < need:
            gap = after.offset - member.offset
            return f"member '{after.name}' of {struct} is {gap} bytes after the struct '{member.name}', not {need}"
    return None
