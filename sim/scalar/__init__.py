"""What a scalar operation of WGSL means: the only place where that is said.

`OPS["add_f32"]` is a row (`ScalarOp`): a plain Python function on NumPy scalars, its kinds and its cost.
Const-evaluation calls `fn`; the machine makes loops over lanes of the same function (`translation`). Names are
`{stem}_{kind}` with the kind of the first argument, and `convert_{from}_{to}`, `bitcast_{from}_{to}`. A value of each
kind is

    f32   np.float32            i32   np.int32          bool  np.uint32, 0 or 1
    f16   np.float32 that       u32   np.uint32         af    float or np.float64  } in constants
          f16 represents                                ai    int                  } only

Every function of concrete kinds is total: infinities, NaNs, zero divisors and shifts by any amount have a result that
the spec gives or allows, and denormals are kept. Which NaN a NaN is, is left open. NumPy warns where something
overflows: callers of the plain functions use `np.errstate(all="ignore")`. Only `translation`
and `jit` import Numba.
"""

from __future__ import annotations

from . import abstract, convert, f16, f32, generic, integers, packing, transcendental  # noqa: F401  (they fill OPS)
from .registry import OPS, ScalarOp

__all__ = ["OPS", "ScalarOp"]
