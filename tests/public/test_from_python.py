"""Kernels by a manifest, and with the call of wgpu-py's `compute_with_buffers`."""

import ctypes
import struct
import subprocess
import sys

import numpy as np
import pytest

import bankshot
from tests.scaling import PARAMS, SHADER, manifest

TWICE = """
override factor = 2.0;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = factor * x[id.x]; }
"""
X = np.arange(6, dtype=np.float32)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "scale.wgsl").write_text(SHADER)
    (tmp_path / "scale.toml").write_text(manifest(PARAMS))
    return tmp_path / "scale.toml"


def test_a_manifest_runs_at_its_sizes_or_others(path):
    assert bankshot.run_manifest(path).output("y").shape == (40,)
    run = bankshot.run_manifest(str(path), N=65)
    assert (run.output("y").shape, run.grid) == ((65,), (3, 1, 1))
    assert run.total.flops == 65


@pytest.mark.parametrize(
    ("arguments", "dims", "words"),
    [
        ((), {"M": 1}, "no dimension is named M; there are N"),
        (("other",), {}, "no kernel is named other|takes|there are"),
    ],
)
def test_wrong_names_are_errors_of_the_manifest(path, arguments, dims, words):
    if arguments:
        path.write_text(manifest(PARAMS) + '[[variant]]\nkernel.name = "a"\n[[variant]]\nkernel.name = "b"\n')
    with pytest.raises(bankshot.UsageError, match=words):
        bankshot.run_manifest(path, *arguments, **dims)


@pytest.mark.parametrize("shape", [24, (6, "f"), (2, 3, "f"), "6xf", ctypes.c_float * 6], ids=str)
def test_outputs_have_the_form_that_wgpu_gives_them(shape):
    n = None if shape in ((6, "f"), "6xf") else 6
    out = bankshot.compute_with_buffers({0: X}, {1: shape}, TWICE, n=n)
    assert [*out] == [1]
    if isinstance(shape, type):
        assert [*out[1]] == (2 * X).tolist()
    else:
        assert isinstance(out[1], memoryview)
        assert out[1].shape == {24: (24,), (2, 3, "f"): (2, 3)}.get(shape, (6,))
        np.testing.assert_array_equal(np.frombuffer(out[1].tobytes(), np.float32), 2 * X)


@pytest.mark.parametrize(("size", "formats"), [(1, "bB"), (2, "hHe"), (4, "iIf")])
def test_the_size_of_an_output_follows_from_its_format(size, formats):
    for each in formats:
        (out,) = bankshot.compute_with_buffers({0: X}, {1: (24 // size, each)}, TWICE, n=6).values()
        assert (out.format, out.nbytes) == (each, 24)


def test_constants_and_workgroups():
    out = bankshot.compute_with_buffers({0: X.tobytes()}, {1: (6, "f")}, TWICE, {"factor": 3.0}, (4, 1, 1))
    assert out[1].tolist() == [0.0, 3.0, 6.0, 9.0, 0.0, 0.0]


LENGTHS = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> lengths: array<u32>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    y[id.x] = x[id.x];
    lengths[0] = arrayLength(&y);
    lengths[1] = groups.x;
}
"""


@pytest.mark.parametrize("format_", "bBhHeiIf")
def test_an_output_is_a_memoryview_of_its_format(format_):
    """Its buffer has no more bytes than the numbers of that format, which start as zeros."""
    data = bytes(range(1, 13)) + bytes(4)
    count = len(data) // struct.calcsize(format_)
    out = bankshot.compute_with_buffers({0: data}, {1: (2, count // 2, format_), 2: (2, "I")}, LENGTHS, n=3)
    assert (out[1].format, out[1].shape) == (format_, (2, count // 2))
    assert out[1].tobytes() == data
    assert np.asarray(out[1]).reshape(-1).tolist() == [*struct.unpack(f"={count}{format_}", data)]
    assert out[2].tolist() == [len(data) // 4, 3]


def test_the_length_of_the_first_output_is_the_number_of_workgroups():
    out = bankshot.compute_with_buffers({0: bytes(16)}, {2: (5, "I"), 1: (4, "I")}, LENGTHS)
    assert out[2].tolist() == [4, 5, 0, 0, 0]
    out = bankshot.compute_with_buffers({0: bytes(16)}, {1: (1, 4, "I"), 2: (2, "I")}, LENGTHS)
    assert out[2].tolist() == [4, 1]


@pytest.mark.parametrize(
    "shape",
    [0, -4, (0, "f"), (2, 0, "f"), (0, 2, "f"), (-1, "f"), ("f",), (), "f", "", "0xf", "6xq", (6, "q"), (6, 4), "6x4",
     (2.5, "f"), (6, ["f"]), None, "x6xf", "six", 1.5],
    ids=repr,
)  # fmt: skip
def test_what_is_no_shape_is_named(shape):
    with pytest.raises(bankshot.UsageError) as caught:
        bankshot.compute_with_buffers({0: X}, {1: shape}, TWICE, n=1)
    assert str(caught.value) == f"output_arrays: binding 1 is {shape!r}; write (sizes, format), as in (8, 4, 'f')"


@pytest.mark.parametrize(("shape", "sizes"), [(4, (4,)), ((1, "f"), (1,)), ((1, 1, "f"), (1, 1)), ("02x1xf", (2, 1))])
def test_the_least_shapes(shape, sizes):
    out = bankshot.compute_with_buffers({0: X}, {1: shape}, TWICE, n=1)
    assert out[1].shape == sizes


def test_a_manifest_that_does_not_fit_its_shader_is_named(path):
    path.write_text(path.read_text().replace("[bind.x]", "[bind.z]"))
    with pytest.raises(bankshot.UsageError, match=r"scale\.toml: \[bind\.z\]: the shader has no binding z"):
        bankshot.run_manifest(path)


@pytest.mark.parametrize(
    ("outputs", "words"),
    [({}, "must name a binding"), ({1: (6, "q")}, "binding 1 is"), ({0: 24}, "binding 0, which the shader does not")],
)
def test_wrong_outputs_are_named(outputs, words):
    with pytest.raises(bankshot.UsageError, match=words):
        bankshot.compute_with_buffers({0: X, 1: X} if 0 in outputs else {0: X}, outputs, TWICE, n=1)


WGPU = """
import sys
from wgpu.utils.compute import compute_with_buffers
out = compute_with_buffers({0: bytes.fromhex(sys.argv[1])}, {1: (2, 3, "f")}, sys.argv[2], n=6)[1]
print(out.format, out.shape, out.tolist())
"""


@pytest.mark.usefixtures("adapter")
def test_wgpu_gives_the_same():
    """In a process of its own: wgpu's settings can be made only before its first use in a process."""
    command = [sys.executable, "-c", WGPU, X.tobytes().hex(), TWICE]
    theirs = subprocess.run(command, capture_output=True, text=True)
    assert theirs.returncode == 0, theirs.stderr
    ours = bankshot.compute_with_buffers({0: X}, {1: (2, 3, "f")}, TWICE, n=6)[1]
    assert theirs.stdout.strip() == f"{ours.format} {ours.shape} {ours.tolist()}"


def test_an_output_can_be_asked_for_in_bytes():
    out = bankshot.compute_with_buffers({0: X}, {1: (24, "B")}, TWICE, n=6)
    assert (out[1].shape, out[1].tobytes()) == ((24,), (2 * X).tobytes())
