"""Builtins with effects: buffers, atomics, barriers, subgroups, quads and derivatives.

Spec: WGSL, "Array", "Atomic", "Synchronization", "Subgroup", "Quad" and "Derivative Built-in Functions".
"""

from __future__ import annotations

from .accuracy import CORRECT, UNBOUNDED, Accuracy, inherits
from .row import Builtin

_COMPUTE = frozenset(("compute",))
_FRAGMENT = frozenset(("fragment",))
_BOTH = _COMPUTE | _FRAGMENT

_ATOMIC = "ptr<S, atomic<T>, read_write>"
_ATOMIC_OVER = "S: storage | workgroup; T: int"
_NUMBER = "T: num | vecN<num>"
_INTEGER = "T: int | vecN<int>"


def _atomic(name: str, anchor: str, params: str = ", T", result: str = " -> T") -> Builtin:
    signature = f"({_ATOMIC}{params}){result}; {_ATOMIC_OVER}"
    return Builtin(name, (signature,), anchor, kind="effect", const=False, must_use=False, stages=_BOTH)


def _barrier(name: str, requires: str | None = None) -> Builtin:
    return Builtin(
        name,
        ("()",),
        f"{name}-builtin",
        kind="effect",
        const=False,
        must_use=False,
        stages=_COMPUTE,
        requires=requires,
        uniform="error",
    )


def _subgroup(
    name: str, signature: str, uniform_args: tuple[int, ...] = (), accuracy: Accuracy | None = CORRECT
) -> Builtin:
    return Builtin(
        name,
        (signature,),
        f"{name.lower()}-builtin",
        kind="effect",
        const=False,
        stages=_BOTH,
        requires="subgroups",
        uniform="subgroup_uniformity",
        uniform_args=uniform_args,
        nonuniform_result=True,
        accuracy=accuracy,
    )


def _derivative(name: str) -> Builtin:
    return Builtin(
        name,
        ("(T) -> T; T: f32 | vecN<f32>",),
        f"{name}-builtin",
        kind="effect",
        const=False,
        stages=_FRAGMENT,
        uniform="derivative_uniformity",
        nonuniform_result=True,
        accuracy=UNBOUNDED,
    )


_MEMORY = (
    Builtin(
        "arrayLength",
        (
            "(ptr<storage, array<E>, A>) -> u32; A: read | read_write; E: element",
            "(ptr<uniform, array<E>, A>) -> u32; A: read; E: element",
            "(ptr<workgroup, array<E>>) -> u32; E: element",
        ),
        "arrayLength-builtin",
        kind="effect",
        const=False,
    ),
    *(
        Builtin(name, (), f"{name.lower()}-builtin", kind="effect", const=False, requires="buffer_view")
        for name in ("bufferView", "bufferArrayView", "bufferLength")  # check.buffer_views checks their calls
    ),
    Builtin(
        "workgroupUniformLoad",
        ("(ptr<workgroup, T>) -> T; T: constructible", "(ptr<workgroup, atomic<T>>) -> T; T: int"),
        "workgroupUniformLoad-builtin",
        kind="effect",
        const=False,
        stages=_COMPUTE,
        uniform="error",
        uniform_args=(0,),
    ),
    _barrier("storageBarrier"),
    _barrier("textureBarrier", "readonly_and_readwrite_storage_textures"),
    _barrier("workgroupBarrier"),
    _atomic("atomicLoad", "atomic-load", ""),
    _atomic("atomicStore", "atomic-store", result=""),
    _atomic("atomicAdd", "atomic-add"),
    _atomic("atomicSub", "atomic-sub"),
    _atomic("atomicMax", "atomic-max"),
    _atomic("atomicMin", "atomic-min"),
    _atomic("atomicAnd", "atomic-and"),
    _atomic("atomicOr", "atomic-or"),
    _atomic("atomicXor", "atomic-xor"),
    _atomic("atomicExchange", "atomic-exchange"),
    _atomic("atomicCompareExchangeWeak", "atomic-compare-exchange-weak", ", T, T", " -> exchange<T>"),
)

_SUBGROUPS = (
    _subgroup("subgroupAdd", f"(T) -> T; {_NUMBER}", accuracy=inherits("sum over active invocations")),
    _subgroup("subgroupExclusiveAdd", f"(T) -> T; {_NUMBER}", accuracy=inherits("sum over lower active invocations")),
    _subgroup("subgroupInclusiveAdd", f"(T) -> T; {_NUMBER}", accuracy=inherits("sum up to this active invocation")),
    _subgroup("subgroupAll", "(bool) -> bool", accuracy=None),
    _subgroup("subgroupAnd", f"(T) -> T; {_INTEGER}", accuracy=None),
    _subgroup("subgroupAny", "(bool) -> bool", accuracy=None),
    _subgroup("subgroupBallot", "(bool) -> vec4<u32>", accuracy=None),
    _subgroup("subgroupBroadcast", f"(T, const int) -> T; {_NUMBER}"),
    _subgroup("subgroupBroadcastFirst", f"(T) -> T; {_NUMBER}"),
    _subgroup("subgroupElect", "() -> bool", accuracy=None),
    _subgroup("subgroupMax", f"(T) -> T; {_NUMBER}", accuracy=inherits("max over active invocations")),
    _subgroup("subgroupMin", f"(T) -> T; {_NUMBER}", accuracy=inherits("min over active invocations")),
    _subgroup("subgroupMul", f"(T) -> T; {_NUMBER}", accuracy=inherits("product over active invocations")),
    _subgroup(
        "subgroupExclusiveMul", f"(T) -> T; {_NUMBER}", accuracy=inherits("product over lower active invocations")
    ),
    _subgroup(
        "subgroupInclusiveMul", f"(T) -> T; {_NUMBER}", accuracy=inherits("product up to this active invocation")
    ),
    _subgroup("subgroupOr", f"(T) -> T; {_INTEGER}", accuracy=None),
    _subgroup("subgroupShuffle", f"(T, int) -> T; {_NUMBER}"),
    _subgroup("subgroupShuffleDown", f"(T, u32) -> T; {_NUMBER}", uniform_args=(1,)),
    _subgroup("subgroupShuffleUp", f"(T, u32) -> T; {_NUMBER}", uniform_args=(1,)),
    _subgroup("subgroupShuffleXor", f"(T, u32) -> T; {_NUMBER}", uniform_args=(1,)),
    _subgroup("subgroupXor", f"(T) -> T; {_INTEGER}", accuracy=None),
    _subgroup("quadBroadcast", f"(T, const int) -> T; {_NUMBER}"),
    _subgroup("quadSwapDiagonal", f"(T) -> T; {_NUMBER}"),
    _subgroup("quadSwapX", f"(T) -> T; {_NUMBER}"),
    _subgroup("quadSwapY", f"(T) -> T; {_NUMBER}"),
)

_DERIVATIVES = tuple(
    _derivative(f"{stem}{how}") for stem in ("dpdx", "dpdy", "fwidth") for how in ("", "Coarse", "Fine")
)

ROWS = (*_MEMORY, *_SUBGROUPS, *_DERIVATIVES)
