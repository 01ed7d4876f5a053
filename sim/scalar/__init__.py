"""The meaning of every scalar operation of WGSL, defined once, for const-evaluation and for the machine.

`OPS["add_f32"]` is a row (`ScalarOp`): a plain Python function on NumPy scalars, its kinds and its cost in flops.
Const-evaluation calls `fn`; the machine compiles the same function into loops over lanes. Names are `{stem}_{kind}`
with the kind of the first argument, and `convert_{from}_{to}`, `bitcast_{from}_{to}`. The kinds and their values:

    f32   np.float32            i32   np.int32          bool  np.uint32, 0 or 1
    f16   np.float32 that       u32   np.uint32         af    float or np.float64  } in constants
          f16 represents                                ai    int                  } only

Every function of concrete kinds is total: infinities, NaNs, zero divisors and shifts by any amount have a result that
the spec requires or allows, and denormals are kept. The payload of a NaN is unspecified. NumPy warns of overflow:
callers of the plain functions use `np.errstate(all="ignore")`. Nothing here imports Numba.
"""

from __future__ import annotations

from . import abstract, convert, f16, f32, generic, integers, packing, transcendental
from .registry import OPS, ScalarOp

TABLES = (generic, integers, f32, f16, transcendental, convert, packing, abstract)  # importing them fills OPS

__all__ = ["OPS", "ScalarOp"]
