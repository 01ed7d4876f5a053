"""Words of C, CUDA, GLSL, HLSL, Metal, OpenCL, Python and Rust have a hint: listed here by what WGSL has for them."""

from __future__ import annotations

import pytest

from bankshot.sim.wgsl.syntax import other_languages as other

# What WGSL calls it -> the names that others have for it.
CALLED = {
    "f32": "float double f64 __half2float",
    "f16": "half __float2half",
    "i32": "int char short long int32_t i64 i8 i16",
    "u32": "uint unsigned size_t uint32_t u64 u8 u16 usize",
    "bool": "boolean",
    **{f"vec{n}<f32>": f"float{n} make_float{n}" for n in (2, 3, 4)},
    **{f"vec{n}<f16>": f"half{n}" for n in (2, 3, 4)},
    **{f"vec{n}<i32>": f"int{n} ivec{n} make_int{n}" for n in (2, 3, 4)},
    **{f"vec{n}<u32>": f"uint{n} uvec{n} make_uint{n}" for n in (2, 3, 4)},
    **{f"vec{n}<bool>": f"bvec{n}" for n in (2, 3, 4)},
    **{f"mat{n}x{n}<f32>": f"float{n}x{n} mat{n}" for n in (2, 3, 4)},
    "mix": "lerp",
    "inverseSqrt": "rsqrt rsqrtf inversesqrt",
    "fract": "frac",
    "fma": "fmaf mad",
    "abs": "fabs fabsf",
    "exp": "expf __expf",
    "log": "logf __logf",
    "pow": "powf",
    "sqrt": "sqrtf",
    "max": "fmax fmaxf",
    "min": "fmin fminf",
    "tanh": "tanhf",
    "sin": "sinf",
    "cos": "cosf",
    "dpdx": "ddx dFdx",
    "dpdy": "ddy dFdy",
    "countOneBits": "countbits popcount __popc bitCount",
    "countLeadingZeros": "clz",
    "reverseBits": "reversebits bitfieldReverse",
    "bitcast<f32>": "asfloat uintBitsToFloat",
    "bitcast<u32>": "asuint floatBitsToUint __float_as_uint",
    "bitcast<i32>": "asint",
    "atomicAdd": "InterlockedAdd",
    "atomicExchange": "atomicExch",
    "atomicCompareExchangeWeak": "atomicCAS atomicCompSwap",
    "subgroupAdd": "subgroupSum simd_sum WaveActiveSum",
    "subgroupMax": "simd_max",
    "textureSampleLevel": "texture2D tex2D",
    "textureLoad": "texelFetch imageLoad",
    "textureStore": "imageStore",
    "workgroupBarrier(), or storageBarrier() for storage": (
        "__syncthreads barrier GroupMemoryBarrierWithGroupSync threadgroup_barrier memoryBarrierShared"
    ),
}
# A builtin value -> the names that others have for it.
BUILTIN_VALUES = {
    "local_invocation_id": "threadIdx gl_LocalInvocationID SV_GroupThreadID",
    "global_invocation_id": "gl_GlobalInvocationID SV_DispatchThreadID thread_position_in_grid",
    "workgroup_id": "blockIdx gl_WorkGroupID SV_GroupID",
    "num_workgroups": "gridDim gl_NumWorkGroups",
    "local_invocation_index": "gl_LocalInvocationIndex SV_GroupIndex",
    "subgroup_invocation_id": "gl_SubgroupInvocationID",
    "subgroup_size": "gl_SubgroupSize warpSize",
}
# Part of the hint -> words that have it.
WORDS = {
    "write a * b": "mul",
    "write a % b": "mod fmod",
    "@workgroup_size;": "blockDim",
    "var<workgroup> name: array<f32, 64>;": "shared groupshared __shared__ threadgroup",
    "declared with var": "mut",
    "like a call: f32(x)": "as",
    "no null": "null",
    "has #include": "import use",
    "break if": "do",
    "no goto": "goto",
    "there are no NaNs": "isnan",
    "there are no infinities": "isinf",
    "-3.4028234e38": "INFINITY",
    "write 3.4028234e38": "FLT_MAX",
    "1.1754944e-38": "FLT_MIN",
    "write 2147483647": "INT_MAX",
    "write -2147483648": "INT_MIN",
    "4294967295u": "UINT_MAX",
    "1.0 / x": "rcp",
    "log2(x) * 0.30103": "log10",
    "atomicAdd(&x, 1)": "atomicInc",
    "atomicSub(&x, 1)": "atomicDec",
    "no strings": "string",
    "no methods": "this self",
    "Type(…)": "new",
    "write let name": "auto",
    "does not run into the next": "fallthrough",
    "no exceptions": "try catch throw",
    "sees each declaration": "pub public export extern",
    "one set of names": "namespace module",
    "alias Name = Type;": "typedef type using",
    "write struct Name": "class interface",
    "a const for each value": "enum",
    "a function for each type": "template",
    "const_assert": "static_assert",
    "var<storage, read_write> name: Type;": "layout",
    "infers types": "typeof",
    "leave it out": "volatile coherent restrict readonly writeonly inline void __device__",
    "@compute @workgroup_size(64) fn name": "__global__ __kernel",
    "--trace NAME": "print printf println",
    "arrayLength(&name)": "sizeof",
    "var<private> outside": "static",
    "var<uniform> name: Type;": "uniform",
    "write true": "True TRUE",
    "write false": "False FALSE",
}
# Table -> part of the hint -> words that have it, where the table is read.
ELSEWHERE = {
    "METHODS": {"arrayLength(&{0})": "length size len", "length({0})": "length", "atomicLoad": "load",
                "atomicStore": "store", "fixed size": "push push_back append", "{0}[i]": "get at",
                "textureSample(": "sample"},
    "STATEMENTS": {"write else if": "elif elseif elsif", "follows the '}'": "else", "in a 'switch'": "case default",
                   "--trace NAME": "print"},
    "EXPRESSIONS": {"array(1, 2, 3)": "[", "like a call of its type": "{", "outside of functions": "fn",
                    "a statement of its own": "let var const"},
    "FOREIGN_TYPES": {"array<f32, 4>": "[", "ptr<function, f32>": "* & &&", "members of a struct": "(",
                      "leave out 'const'": "const"},
    "CHARACTERS": {"select(": "?", "no characters": "'", "no strings": '"', "written '/'": "\\"},
    "OPERATORS": {"write &&": "and", "write ||": "or", "write ^": "xor", "write !": "not", "f32(x)": "as"},
    "DECLARATIONS": {"'const' or 'override'": "let", "more '}'": "}", "preprocessor": "#", "@compute": "[",
                     "fn name(…)": "function func def void kernel proc",
                     "var<storage, read_write>": "buffer RWStructuredBuffer RWByteAddressBuffer",
                     "var<storage> name": "StructuredBuffer ByteAddressBuffer",
                     "var<uniform>": "uniform cbuffer ConstantBuffer", "texture_2d<f32>": "Texture2D sampler2D",
                     "texture_storage_2d<rgba8unorm, write>": "RWTexture2D", "name: sampler;": "SamplerState",
                     "parameters and results": "in out inout"},
    "ATTRIBUTES": {"@compute": "stage kernel shader", "@workgroup_size(64)": "numthreads local_size threads",
                   "@group": "set", "@binding": "bind", "leave it out": "inline"},
    "SYMBOLS": {"write ==": "===", "write !=": "!== <> ^^", "pow(x, y)": "**=", "a = a || b": "||=",
                "a = a && b": "&&=", "write >>": ">>>", "no '=>'": "=>", "write let name": ":=",
                "with '.'": "->", "names have one part": "::", "no ranges": ".."},
}  # fmt: skip
# A text that begins like a number -> the hint.
NUMBERS = {
    "0b101": "WGSL has no binary literals: write 0x5",
    "0B" + "1" * 32: "WGSL has no binary literals: write 0xffffffff",
    "0777": "a number has no leading 0: write 777",
    "00": "a number has no leading 0: write 0",
    "0..3": "WGSL has no ranges: write for (var i = 0; i < 3; i++)",
    "1_000": "write it without '_'",
    "1.5u": "'u' is a suffix of integers",
    ".5i": "'i' is a suffix of integers",
    "1.0d": "the suffixes are i, u, f and h",
    "1ull": "the suffixes are i, u, f and h",
    "1.0f64": "the suffixes are i, u, f and h",
    "1.2.3": "a number has at most one '.'",
}


def test_names_of_what_wgsl_has():
    wanted = {name: f"WGSL calls it {called}" for called, names in CALLED.items() for name in names.split()}
    assert wanted == {name: hint for name, hint in other.HABITS.items() if hint.startswith("WGSL calls it ")}


def test_names_of_builtin_values():
    start = "take it as a parameter of the entry point: @builtin("
    wanted = {name: f"{start}{called})" for called, names in BUILTIN_VALUES.items() for name in names.split()}
    assert wanted == {name: hint for name, hint in other.HABITS.items() if hint.startswith(start)}


@pytest.mark.parametrize(("part", "words"), WORDS.items())
def test_words(part, words):
    for word in words.split():
        assert part in other.HABITS[word], word


def test_every_word_is_listed():
    lists = (*CALLED.values(), *BUILTIN_VALUES.values(), *WORDS.values())
    assert other.HABITS.keys() == {word for words in lists for word in words.split()}


@pytest.mark.parametrize("table", ELSEWHERE)
def test_words_elsewhere(table):
    found = getattr(other, table)
    for part, words in ELSEWHERE[table].items():
        for word in words.split():
            assert part in found[word], word
    assert found.keys() == {word for words in ELSEWHERE[table].values() for word in words.split()}


@pytest.mark.parametrize(("text", "hint"), NUMBERS.items())
def test_numbers(text, hint):
    assert other.number(text) == hint
