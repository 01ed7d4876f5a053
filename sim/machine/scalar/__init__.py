"""What each scalar operation of WGSL means. It stands here and nowhere else.

Const-evaluation calls the plain functions on NumPy scalars, the machine compiles the same functions (`jit.py`) inside its
loops over lanes, and tests hold both against independent arithmetic. `OPS` is the registry; a name is `stem_kind`.
"""

from __future__ import annotations

from . import abstract, convert, floats, integers
from .define import HELPERS, OPS, ScalarOp

__all__ = ["HELPERS", "OPS", "ScalarOp", "abstract", "convert", "floats", "integers"]
