"""The scalar operations that can go wrong silently, and the machine's check for each."""

from __future__ import annotations

from ..machine import layout as at
from ..machine.layout import NON_FINITE
from ..scalar import OPS

# Integer operations, by name.
_KINDS = {
    **{f"{op}_u32": at.DIVIDES_U32 for op in ("div", "rem")},
    **{f"{op}_i32": at.DIVIDES_I32 for op in ("div", "rem")},
    **{f"{op}_{kind}": at.SHIFTS for op in ("shl", "shr") for kind in ("i32", "u32")},
    **{f"convert_{kind}_i32": at.TO_I32 for kind in ("f32", "f16")},
    **{f"convert_{kind}_u32": at.TO_U32 for kind in ("f32", "f16")},
}
# A constant on the right is valid: the front end rejects others.
RIGHT_DECIDES = frozenset((at.DIVIDES_U32, at.DIVIDES_I32, at.SHIFTS))


def inspection(op: str) -> int | None:
    """Return the kind of check for an operation (see `machine.layout`), or None if it cannot go wrong."""
    row = OPS[op]
    if row.flops or op in ("convert_f32_f16", "ldexp_f32", "ldexp_f16"):
        return NON_FINITE
    return _KINDS.get(op)
