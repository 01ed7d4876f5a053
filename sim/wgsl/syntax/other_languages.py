"""Names from GLSL, HLSL, CUDA, Metal and C, one row each, and what to write in WGSL instead: hints for errors."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SCALARS = {
    "float": "f32", "double": "f32", "half": "f16", "int": "i32", "uint": "u32", "unsigned": "u32", "char": "i32",
    "short": "i32", "long": "i32", "size_t": "u32", "int32_t": "i32", "uint32_t": "u32", "f64": "f32", "i64": "i32",
    "u64": "u32", "i8": "i32", "u8": "u32", "i16": "i32", "u16": "u32", "boolean": "bool", "usize": "u32",
}  # fmt: skip
_SIZES = (2, 3, 4)
_VECTORS = {
    **{f"{name}{n}": f"vec{n}<{_SCALARS[name]}>" for name in ("float", "half", "int", "uint") for n in _SIZES},
    **{f"make_{name}{n}": f"vec{n}<{_SCALARS[name]}>" for name in ("float", "int", "uint") for n in _SIZES},
    **{f"{c}vec{n}": f"vec{n}<{of}>" for c, of in (("i", "i32"), ("u", "u32"), ("b", "bool")) for n in _SIZES},
}
_MATRICES = {name: f"mat{n}x{n}<f32>" for n in _SIZES for name in (f"float{n}x{n}", f"mat{n}")}

TYPES: Mapping[str, str] = {**_SCALARS, **_VECTORS, **_MATRICES}

_FUNCTIONS = {
    "lerp": "mix", "rsqrt": "inverseSqrt", "rsqrtf": "inverseSqrt", "inversesqrt": "inverseSqrt", "frac": "fract",
    "fmaf": "fma", "mad": "fma", "fabs": "abs", "fabsf": "abs", "expf": "exp", "logf": "log", "powf": "pow",
    "sqrtf": "sqrt", "fmax": "max", "fmaxf": "max", "fmin": "min", "fminf": "min", "tanhf": "tanh", "sinf": "sin",
    "cosf": "cos", "__expf": "exp", "__logf": "log", "ddx": "dpdx", "ddy": "dpdy", "countbits": "countOneBits",
    "popcount": "countOneBits", "__popc": "countOneBits", "bitCount": "countOneBits", "clz": "countLeadingZeros",
    "asfloat": "bitcast<f32>", "asuint": "bitcast<u32>", "asint": "bitcast<i32>", "InterlockedAdd": "atomicAdd",
    "floatBitsToUint": "bitcast<u32>", "uintBitsToFloat": "bitcast<f32>", "__float_as_uint": "bitcast<u32>",
    "__float2half": "f16", "__half2float": "f32", "atomicCAS": "atomicCompareExchangeWeak",
    "atomicExch": "atomicExchange", "atomicCompSwap": "atomicCompareExchangeWeak",
    "subgroupSum": "subgroupAdd", "simd_sum": "subgroupAdd", "simd_max": "subgroupMax",
    "WaveActiveSum": "subgroupAdd", "texture2D": "textureSampleLevel", "tex2D": "textureSampleLevel",
    "texelFetch": "textureLoad", "imageLoad": "textureLoad", "imageStore": "textureStore",
    "dFdx": "dpdx", "dFdy": "dpdy", "reversebits": "reverseBits", "bitfieldReverse": "reverseBits",
}  # fmt: skip
RESOURCE = "write @group(0) @binding(0) var<storage, read_write> name: Type;"
ENTRY_POINT = "write @compute @workgroup_size(64) fn name(…) { … }"

_BARRIERS = (
    "__syncthreads",
    "barrier",
    "GroupMemoryBarrierWithGroupSync",
    "threadgroup_barrier",
    "memoryBarrierShared",
)
_BUILTINS = {
    "threadIdx": "local_invocation_id", "blockIdx": "workgroup_id", "gridDim": "num_workgroups",
    "gl_GlobalInvocationID": "global_invocation_id", "gl_LocalInvocationID": "local_invocation_id",
    "gl_WorkGroupID": "workgroup_id", "gl_LocalInvocationIndex": "local_invocation_index",
    "gl_NumWorkGroups": "num_workgroups", "gl_SubgroupInvocationID": "subgroup_invocation_id",
    "gl_SubgroupSize": "subgroup_size", "SV_DispatchThreadID": "global_invocation_id",
    "SV_GroupThreadID": "local_invocation_id", "SV_GroupID": "workgroup_id",
    "SV_GroupIndex": "local_invocation_index",
    "thread_position_in_grid": "global_invocation_id", "warpSize": "subgroup_size",
}  # fmt: skip
PRINTED = "`bankshot run --trace NAME` prints the values of a variable"
_WORDS = {
    "mul": "write a * b",
    "mod": "write a % b, which has the sign of a; or a - b * floor(a / b)",
    "fmod": "write a % b",
    "blockDim": "it is the size in @workgroup_size; declare it as a const or override",
    "shared": "write var<workgroup> name: array<f32, 64>; outside of functions",
    "groupshared": "write var<workgroup> name: array<f32, 64>; outside of functions",
    "__shared__": "write var<workgroup> name: array<f32, 64>; outside of functions",
    "threadgroup": "write var<workgroup> name: array<f32, 64>; outside of functions",
    "mut": "what changes is declared with var",
    "as": "a conversion is written like a call: f32(x)",
    "null": "WGSL has no null; a pointer always points to a variable",
    "import": "a module is one text; Bankshot's preprocessor has #include",
    "do": "write loop { …; break if !condition; } with the break in `continuing`",
    "goto": "WGSL has no goto; loops have break and continue",
    "isnan": "implementations may assume that there are no NaNs; test the bits, bitcast<u32>(x)",
    "isinf": "implementations may assume that there are no infinities; test the bits, bitcast<u32>(x)",
    "INFINITY": "WGSL has no infinite constants; use the lowest f32, -3.4028234e38",
    "FLT_MAX": "write 3.4028234e38",
    "FLT_MIN": "write 1.1754944e-38",
    "INT_MAX": "write 2147483647",
    "INT_MIN": "write -2147483648",
    "UINT_MAX": "write 4294967295u",
    "rcp": "write 1.0 / x",
    "log10": "write log2(x) * 0.30103",
    "atomicInc": "write atomicAdd(&x, 1)",
    "atomicDec": "write atomicSub(&x, 1)",
    "string": "WGSL has no strings",
    "this": "WGSL has no methods: give the function a parameter",
    "self": "WGSL has no methods: give the function a parameter",
    "new": "a value is made by a call of its type: Type(…)",
    "auto": "write let name = …; or var name = …;",
    "fallthrough": "a case has several values, case 1, 2: { … }, and its body does not run into the next",
    **dict.fromkeys(("try", "catch", "throw"), "WGSL has no exceptions"),
    **dict.fromkeys(("pub", "public", "export", "extern"), "leave it out: the whole module sees each declaration"),
    **dict.fromkeys(("namespace", "module"), "leave it out: a module has one set of names"),
    **dict.fromkeys(("typedef", "type", "using"), "write alias Name = Type;"),
    "use": "a module is one text; Bankshot's preprocessor has #include",
    "class": "write struct Name { member: Type }",
    "interface": "write struct Name { member: Type }",
    "enum": "write a const for each value: const NAME = 0;",
    "template": "WGSL has no templates of your own: write a function for each type",
    "static_assert": "write const_assert",
    "layout": RESOURCE,
    "typeof": "WGSL infers types: let name = …;",
    **dict.fromkeys(("volatile", "coherent", "restrict", "readonly", "writeonly"), "leave it out"),
    "__global__": ENTRY_POINT,
    "__kernel": ENTRY_POINT,
    "__device__": "leave it out: fn name(…)",
    **dict.fromkeys(("print", "printf", "println"), PRINTED),
    "sizeof": "for the elements of a buffer, write arrayLength(&name)",
    "static": "write const, or var<private> outside of functions",
    "uniform": "write var<uniform> name: Type;",
    "inline": "leave it out: fn name(…)",
    **dict.fromkeys(("True", "TRUE"), "write true"),
    **dict.fromkeys(("False", "FALSE"), "write false"),
    "void": "leave it out: fn name(…) returns nothing",
}

HABITS: Mapping[str, str] = {
    **{name: f"WGSL calls it {type_}" for name, type_ in TYPES.items()},
    **{name: f"WGSL calls it {other}" for name, other in _FUNCTIONS.items()},
    **dict.fromkeys(_BARRIERS, "WGSL calls it workgroupBarrier(), or storageBarrier() for storage"),
    **{name: f"take it as a parameter of the entry point: @builtin({builtin})" for name, builtin in _BUILTINS.items()},
    **_WORDS,
}
"""Name -> hint."""

METHODS: Mapping[str, str] = {
    "length": "arrayLength(&{0}) for a runtime-sized array, length({0}) for a vector",
    "size": "arrayLength(&{0}) for a runtime-sized array",
    "len": "arrayLength(&{0}) for a runtime-sized array",
    "load": "atomicLoad(&{0})",
    "store": "atomicStore(&{0}{1})",
    **dict.fromkeys(("push", "push_back", "append"), "{0}[i] = …; an array has a fixed size"),
    **dict.fromkeys(("get", "at"), "{0}[i]"),
    "sample": "textureSample({0}{1})",
}
"""Name of a method -> the call to write, with places for the value and for further arguments."""

STATEMENTS: Mapping[str, str] = {
    **dict.fromkeys(("elif", "elseif", "elsif"), "write else if"),
    "else": "an 'else' follows the '}' of its 'if'",
    "case": "a 'case' can only be in a 'switch'",
    "default": "a 'default' can only be in a 'switch'",
    "print": PRINTED,
}
"""First word of a statement that WGSL does not have, or does not have there -> hint."""

VALUE = "a value alone does nothing: name it, let a = …;"
"""Hint for an expression in the place of a statement."""

EXPRESSIONS: Mapping[str, str] = {
    "[": "write array(1, 2, 3)",
    "{": "a value is written like a call of its type: array<f32, 2>(1.0, 2.0)",
    "fn": "a function is declared outside of functions, and is no value",
    **dict.fromkeys(("let", "var", "const"), "a declaration is no expression: make it a statement of its own"),
}
"""First token of an expression that WGSL does not have -> hint."""

FOREIGN_TYPES: Mapping[str, str] = {
    "[": "write array<f32, 4>",
    **dict.fromkeys(("*", "&", "&&"), "write ptr<function, f32>"),
    "(": "several values are the members of a struct",
    "const": "leave out 'const': nothing can assign to a parameter",
}
"""First token of a type that WGSL does not have -> hint."""

OPERATORS: Mapping[str, str] = {
    "and": "write &&",
    "or": "write ||",
    "xor": "write ^, or != for bools",
    "not": "write !",
    "as": "a conversion is written like a call: f32(x)",
}
"""Word that other languages have as an operator -> hint."""

DECLARATIONS: Mapping[str, str] = {
    "let": "declare it with 'const' or 'override'",
    "}": "there are more '}' than '{'",
    **dict.fromkeys(
        ("function", "func", "def", "void", "kernel", "proc"), "a function is declared with fn name(…) { … }"
    ),
    "#": "Bankshot's preprocessor reads lines that start with '#'",
    "[": "attributes are written @compute @workgroup_size(64)",
    **dict.fromkeys(("buffer", "RWStructuredBuffer", "RWByteAddressBuffer"), RESOURCE),
    **dict.fromkeys(
        ("StructuredBuffer", "ByteAddressBuffer"), "write @group(0) @binding(0) var<storage> name: array<Type>;"
    ),
    **dict.fromkeys(("uniform", "cbuffer", "ConstantBuffer"), "write @group(0) @binding(0) var<uniform> name: Type;"),
    **dict.fromkeys(("Texture2D", "sampler2D"), "write @group(0) @binding(0) var name: texture_2d<f32>;"),
    "RWTexture2D": "write @group(0) @binding(0) var name: texture_storage_2d<rgba8unorm, write>;",
    "SamplerState": "write @group(0) @binding(0) var name: sampler;",
    **dict.fromkeys(("in", "out", "inout"), "inputs and outputs are parameters and results of the entry point"),
}
"""First word of a declaration that WGSL does not have -> hint."""

STATEMENT = "statements are in functions"
"""Hint for a statement at module scope."""

ATTRIBUTES: Mapping[str, str] = {
    **dict.fromkeys(("stage", "kernel", "shader"), "write @compute"),
    **dict.fromkeys(("numthreads", "local_size", "threads"), "write @workgroup_size(64)"),
    "set": "write @group",
    "bind": "write @binding",
    "inline": "leave it out",
}
"""Name of an attribute that WGSL does not have -> hint."""

SYMBOLS: Mapping[str, str] = {
    "===": "write ==",
    "!==": "write !=",
    "<>": "write !=",
    "**=": "a power is written pow(x, y)",
    "||=": "write a = a || b",
    "&&=": "write a = a && b",
    ">>>": "write >>, which shifts in zeros for u32 and the sign for i32",
    "^^": "write != for bools",
    "=>": "WGSL has no '=>'",
    ":=": "write let name = …; or var name = …;",
    "->": "a member is written with '.', also that of a pointer",
    "::": "WGSL has no '::': names have one part",
    "..": "WGSL has no ranges: write for (var i = 0; i < 3; i++)",
}
"""Symbols of other languages, which the lexer reads as two or more -> hint."""

RESULT = "the type of the result follows '->'"


def array_type(name: str) -> str:
    """Return the hint for `x[4]` in a declaration."""
    return f"the size is in the type: {name}: array<f32, 4>"


TERNARY = "write select(if_false, if_true, condition), which computes both"

CHARACTERS: Mapping[str, str] = {
    "?": TERNARY,
    "'": "WGSL has no characters",
    '"': "WGSL has no strings",
    "\\": "leave it out; a division is written '/'",
}
"""Character that cannot stand anywhere -> hint."""
STEP = "'++' and '--' are statements of their own: i++;"


_TYPE = re.compile(r"bool|[iuf](?:8|16|32|64)|vec[234].?|mat[234]x[234].?")


def is_type(name: str) -> bool:
    """Whether a name is a type, here or in another language."""
    return name in TYPES or _TYPE.fullmatch(name) is not None


def parameter(type_: str, name: str) -> str | None:
    """Return the hint for a C-style parameter or member, `float x`, or None where the first word is no type."""
    return f"write {name}: {TYPES.get(type_, type_)}" if is_type(type_) else None


def number(text: str) -> str | None:
    """Return the hint for a number that WGSL does not have: `0b101`, `0777`, `1.0d`, `1_000`."""
    if binary := re.fullmatch(r"0[bB]([01]{1,32})", text):
        return f"WGSL has no binary literals: write {int(binary[1], 2):#x}"
    if re.fullmatch(r"0[0-9]+", text):
        return f"a number has no leading 0: write {text.lstrip('0') or '0'}"
    if ".." in text:
        return SYMBOLS[".."]
    if "_" in text:
        return "write it without '_'"
    if text.count(".") > 1:
        return "a number has at most one '.'"
    if re.fullmatch(r"[0-9]*\.[0-9]*[iu]", text):
        return f"'{text[-1]}' is a suffix of integers"
    if re.fullmatch(r"[0-9.]+[a-zA-Z]+[0-9]*", text):
        return "the suffixes are i, u, f and h"
    return None


def declaration(type_: str, name: str, *, is_array: bool = False) -> str | None:
    """Return the hint for a C-style declaration, `float x`, or None where the first word is no type."""
    known = TYPES.get(type_, type_ if is_type(type_) else None)
    if known and is_array:
        return f"write var {name}: array<{known}, 4>"
    return f"write var {name}: {known} = …, or let {name} = … where it does not change" if known else None
