"""Bindings whose small numbers are packed into u32 words: what the shader gets, and what a reference gets."""

from dataclasses import replace

import numpy as np
import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.judge.case_run import simulate
from bankshot.oracle.manifests import inputs, manifest_loader

WGSL = """\
@group(0) @binding(0) var<storage, read> W: array<{words}>;
@group(0) @binding(1) var<storage, read_write> Y: array<f32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) group: vec3<u32>) {{
    let i = group.x;
    Y[i] = {value};
}}
"""
MANIFEST = """\
[kernel]
source = "kernel.wgsl"
dims = {{ N = {n} }}
dispatch = ["N"]
[bind.W]
{made}
packed = true
[bind.Y]
dtype = "f32"
shape = ["N"]
init = "unwritten"
"""
# What takes element i out of its word.
F16 = "unpack2x16float(W[i / 2u])[i % 2u]"
I4 = "f32(i32(W[i / 8u] << (28u - i % 8u * 4u)) >> 28u)"
U4 = "f32((W[i / 8u] >> (i % 8u * 4u)) & 15u)"
I8 = "f32(unpack4xI8(W[i / 4u])[i % 4u])"
U16 = "f32((W[i / 2u] >> (i % 2u * 16u)) & 0xffffu)"


def case_of(folder, value, made, words="u32", n=13):
    (folder / "kernel.wgsl").write_text(WGSL.format(words=words, value=value))
    path = folder / "kernel.toml"
    path.write_text(MANIFEST.format(made=made, n=n))
    kernel = manifest_loader.load(path)
    return kernel.case(kernel.shape({}))


@pytest.mark.parametrize(
    ("dtype", "value", "words"),
    [
        ("f16", F16, "u32"),
        ("f16", "unpack2x16float(W[i / 4u][i / 2u % 2u])[i % 2u]", "vec2<u32>"),
        ("i4", I4, "u32"),
        ("u4", U4, "u32"),
        ("f16", "unpack2x16float(W[i / 8u][i / 2u % 4u])[i % 2u]", "vec4<u32>"),
        ("i4", "f32(i32(W[i / 16u][i / 8u % 2u] << (28u - i % 8u * 4u)) >> 28u)", "vec2<u32>"),
        ("i8", I8, "u32"),
        ("u8", "f32(unpack4xU8(W[i / 4u])[i % 4u])", "u32"),
        ("i16", "f32(extractBits(bitcast<i32>(W[i / 2u]), i % 2u * 16u, 16u))", "u32"),
        ("u16", U16, "u32"),
    ],
)
@pytest.mark.parametrize("init", ["uniform", "arange", "ones"])
def test_the_shader_takes_out_what_the_reference_gets(dtype, value, words, init, tmp_path):
    made = f'dtype = "{dtype}"\nshape = ["N"]\ninit = "{init}"'
    case = case_of(tmp_path, value, made, words, n=16)
    numbers = case.arrays["W"]
    assert simulate(case, "nvidia", "none").outputs["Y"].tolist() == numbers.astype(np.float32).tolist()
    assert np.unique(numbers).size == 1 if init == "ones" else np.unique(numbers).size > 4


def test_a_uniform_buffer_is_packed(tmp_path):
    value = "unpack2x16float(W[i / 8u][i / 2u % 4u])[i % 2u]"
    made = 'dtype = "f16"\nshape = ["N"]\ninit = "normal"'
    text = WGSL.replace("storage, read>", "uniform>").replace("array<{words}>", "array<{words}, 2>")
    (tmp_path / "kernel.wgsl").write_text(text.format(words="vec4<u32>", value=value))
    (tmp_path / "kernel.toml").write_text(MANIFEST.format(made=made, n=16))
    kernel = manifest_loader.load(tmp_path / "kernel.toml")
    case = kernel.case(kernel.shape({}))
    assert simulate(case, "nvidia", "none").outputs["Y"].tolist() == case.arrays["W"].astype(np.float32).tolist()


def test_nibbles_go_into_a_word_from_its_lowest_bits(tmp_path):
    case = case_of(tmp_path, I4, 'dtype = "i4"\nvalues = [1, -1, 7, -8, 0, 2, 3, 4, 5]', n=9)
    assert [hex(word) for word in case.bindings["W"]] == ["0x432087f1", "0x5"]
    assert case.arrays["W"].tolist() == [1, -1, 7, -8, 0, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("words", "value", "size"),
    [
        ("u32", F16, 7),
        ("vec2<u32>", "unpack2x16float(W[i / 4u][i / 2u % 2u])[i % 2u]", 8),
        ("vec4<u32>", "unpack2x16float(W[i / 8u][i / 2u % 4u])[i % 2u]", 8),
    ],
)
def test_zeros_fill_the_last_element(words, value, size, tmp_path):
    """13 numbers take 7 words, and the last of them is in the fourth vector of two, or the second of four."""
    case = case_of(tmp_path, value, 'dtype = "f16"\nshape = ["N"]\ninit = "normal"', words)
    assert case.bindings["W"].size == size
    assert case.bindings["W"][7:].tolist() == [0] * (size - 7)
    run = simulate(case, "nvidia", "bounds")
    assert run.outputs["Y"].tolist() == case.arrays["W"].astype(np.float32).tolist()
    assert run.findings == []


def test_zeros_fill_the_last_element_of_a_uniform_buffer(tmp_path):
    """WGSL lays uniform arrays out in vectors, and a binding must have the size of its type."""
    value = "unpack2x16float(W[i / 8u][i / 2u % 4u])[i % 2u]"
    text = WGSL.replace("storage, read>", "uniform>").replace("array<{words}>", "array<{words}, 3>")
    (tmp_path / "kernel.wgsl").write_text(text.format(words="vec4<u32>", value=value))
    (tmp_path / "kernel.toml").write_text(MANIFEST.format(made='dtype = "i8"\nshape = [41]\ninit = "ones"', n=1))
    kernel = manifest_loader.load(tmp_path / "kernel.toml")
    assert kernel.case(kernel.shape({})).bindings["W"].tolist() == [0x01010101] * 10 + [1, 0]


def test_a_file_is_packed(tmp_path):
    np.save(tmp_path / "w.npy", np.array([[1.0, -2.0, 0.5]], np.float16))
    case = case_of(tmp_path, F16, 'dtype = "f16"\nshape = [1, "N"]\nfile = "w.npy"', n=3)
    assert [hex(word) for word in case.bindings["W"]] == ["0xc0003c00", "0x3800"]


@pytest.mark.parametrize(("dtype", "least", "most"), [("i4", -8, 7), ("u4", 0, 15)])
def test_generated_nibbles_have_their_whole_range(dtype, least, most):
    made = inputs.generate("uniform", "W", (1000,), dtype)
    assert (made.min(), made.max(), np.unique(made).size) == (least, most, 16)


WRONG = {
    "a number that does not fit": (
        'dtype = "i4"\nvalues = [8]',
        "binding W holds a number that is no i4, which are -8 to 7",
    ),
    "a dtype of 32 bits": (
        'dtype = "f32"\nshape = ["N"]\ninit = "normal"',
        "`packed` takes a `dtype` of f16, i16, u16",
    ),
    "a structure": ("struct = { a = 1 }", "`packed` takes a `dtype` of f16, i16, u16"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_manifests_are_explained(name, tmp_path):
    made, message = WRONG[name]
    with pytest.raises(UsageError) as raised:
        _ = case_of(tmp_path, I4, made).bindings
    assert message in str(raised.value)


def test_four_bits_are_never_a_binding_of_their_own(tmp_path):
    (tmp_path / "kernel.wgsl").write_text(WGSL.format(words="u32", value=I4))
    text = MANIFEST.format(made='dtype = "i4"\nshape = ["N"]\ninit = "normal"', n=8).replace("packed = true\n", "")
    (tmp_path / "kernel.toml").write_text(text)
    with pytest.raises(UsageError, match="i4 takes `packed = true`: WGSL has no such numbers"):
        manifest_loader.load(tmp_path / "kernel.toml")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("array<u32>", "array<i32>", "W is array<i32>; packed numbers are u32 words"),
        ("read> W", "read_write> W", 'W is read_write; only inputs are packed, so it takes `dtype = "u32"`'),
    ],
)
def test_only_words_that_are_read_are_packed(before, after, message, tmp_path):
    value = "f32(W[i])"
    case = case_of(tmp_path, value, 'dtype = "i8"\nshape = ["N"]\ninit = "normal"')
    file = tmp_path / "kernel.wgsl"
    file.write_text(file.read_text().replace(before, after))
    with pytest.raises(UsageError) as raised:
        simulate(case, "nvidia", "none")
    assert message in str(raised.value)


def test_pairs_in_words_are_pointed_to(tmp_path):
    case = case_of(tmp_path, F16, 'dtype = "f16"\nshape = ["N"]\ninit = "normal"')
    plain = tuple(replace(each, packed=False) for each in case.kernel.bindings)
    case = replace(case, kernel=replace(case.kernel, bindings=plain))
    with pytest.raises(UsageError, match=r"W is array<u32>; it takes .*, or `packed = true` for pairs$"):
        simulate(case, "nvidia", "none")


@pytest.mark.parametrize(
    ("dtype", "numbers", "words"),
    [
        ("u4", [0, 15, 1], 0x1F0),
        ("i4", [-8, 7, -1], 0xF78),
        ("u4", [0, 16, 1], None),
        ("u4", [0, -1, 1], None),
        ("i4", [0, 8, 1], None),
        ("i4", [-9, 7, 1], None),
    ],
)
def test_each_number_of_four_bits_must_fit(dtype, numbers, words):
    array = np.array(numbers, np.int8)
    if words is None:
        with pytest.raises(UsageError, match=f"^binding w holds a number that is no {dtype}, which are "):
            inputs.pack("w", array, dtype)
    else:
        assert inputs.pack("w", array, dtype).tolist() == [words]


def test_what_is_no_number_has_bits_that_are_packed():
    assert inputs.pack("w", np.array([np.nan, 1], np.float16), "f16").tolist() == [0x3C007E00]
