"""What a binding becomes on a GPU, without one: the entries of its layout and the arguments that create it.

Spec: WebGPU, "GPUSamplerDescriptor", "GPUBindGroupLayoutEntry" and "GPUTextureDescriptor".
"""

import numpy as np
import pytest

import bankshot
from bankshot.oracle.errors import TooLarge, UsageError
from bankshot.oracle.wgpu_client.adapter_choice import dashed
from bankshot.oracle.wgpu_client.binding_resources import as_given, describe
from bankshot.oracle.wgpu_client.gpu_run import GpuRun, PendingRun, slots_of
from bankshot.oracle.wgpu_worker.messages import Abilities, AdapterInfo

INFO = AdapterInfo("a card", "CPU", "Vulkan", "driver", "1", "0")
LIMITS = {"max-storage-buffer-binding-size": 64, "max-uniform-buffer-binding-size": 32}


def described(declaration, data, use="_ = &x;", features=()):
    """The resource of `declaration`, which declares x at group 2, binding 5."""
    head = "requires readonly_and_readwrite_storage_textures;"
    text = f"{head} @group(2) @binding(5) {declaration}; @compute @workgroup_size(1) fn main() {{ {use} }}"
    (slot,) = slots_of(bankshot.check(text).pipeline().entry)
    made = describe(slot, data, INFO, Abilities(frozenset(features), LIMITS))
    assert (made.group, made.binding) == (2, 5)
    return made


BUFFERS = {
    "var<uniform> x: vec4u": "uniform",
    "var<storage> x: vec4u": "read-only-storage",
    "var<storage, read> x: array<u32>": "read-only-storage",
    "var<storage, read_write> x: array<u32>": "storage",
}


@pytest.mark.parametrize("declaration", BUFFERS)
@pytest.mark.parametrize("data", [np.arange(4, dtype=np.uint32), bytes(range(16))], ids=["array", "bytes"])
def test_a_buffer_has_the_type_of_its_address_space(declaration, data):
    made = described(declaration, data)
    assert made.layout == {"buffer": {"type": BUFFERS[declaration]}}
    assert bytes(made.data) == bytes(data)


@pytest.mark.parametrize(("declaration", "most"), [(name, 32 if "uniform" in name else 64) for name in BUFFERS])
def test_a_buffer_has_a_size_that_the_device_binds(declaration, most):
    assert len(described(declaration, bytes(most)).data) == most
    with pytest.raises(TooLarge, match=rf"^binding x holds {most + 4} bytes, and a card binds at most {most}$"):
        described(declaration, bytes(most + 4))
    for size in (0, 6):
        with pytest.raises(UsageError, match=rf"^binding x holds {size} bytes, WebGPU needs a positive multiple of 4$"):
            described(declaration, np.zeros(size, np.uint8))


SAMPLERS = {
    "the default": ({}, "non-filtering", {}),
    "linear mag": ({"mag": "linear"}, "filtering", {"mag_filter": "linear"}),
    "linear min": ({"min": "linear"}, "filtering", {"min_filter": "linear"}),
    "linear mip": ({"mip": "linear"}, "filtering", {"mipmap_filter": "linear"}),
    "levels of detail": ({"lod": (1.5, 4.0)}, "non-filtering", {"lod_min_clamp": 1.5, "lod_max_clamp": 4.0}),
    "one address mode": ({"address": "repeat"}, "non-filtering",
                         dict.fromkeys(("address_mode_u", "address_mode_v", "address_mode_w"), "repeat")),
    "address modes": ({"address": ("repeat", "mirror-repeat")}, "non-filtering",
                      {"address_mode_u": "repeat", "address_mode_v": "mirror-repeat"}),
    "a comparison": ({"compare": "less", "min": "linear"}, "comparison", {"compare": "less", "min_filter": "linear"}),
}  # fmt: skip
DEFAULT = {
    **dict.fromkeys(("mag_filter", "min_filter", "mipmap_filter"), "nearest"),
    **dict.fromkeys(("address_mode_u", "address_mode_v", "address_mode_w"), "clamp-to-edge"),
    **{"lod_min_clamp": 0.0, "lod_max_clamp": 32.0, "compare": None},
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_has_the_fields_of_webgpu(name):
    given, kind, fields = SAMPLERS[name]
    made = described(f"var x: sampler{'_comparison' * (kind == 'comparison')}", bankshot.Sampler(**given), "_ = x;")
    assert made.layout == {"sampler": {"type": kind}}
    assert made.how == DEFAULT | fields


# By type: the shape and dtype bound, the entry of the layout, and the format, dimension, size and levels created.
SAMPLED = {
    "texture_1d<f32>": ((8, 4), "u1", ("float", "1d"), ("rgba8unorm", "1d", (8, 1, 1))),
    "texture_2d<u32>": ((3, 5, 1), "u4", ("uint", "2d"), ("r32uint", "2d", (5, 3, 1))),
    "texture_2d_array<i32>": ((2, 3, 5, 2), "i2", ("sint", "2d-array"), ("rg16sint", "2d", (5, 3, 2))),
    "texture_3d<f32>": ((2, 3, 5, 4), "f2", ("float", "3d"), ("rgba16float", "3d", (5, 3, 2))),
    "texture_cube<f32>": ((6, 4, 4, 4), "i1", ("float", "cube"), ("rgba8snorm", "2d", (4, 4, 6))),
    "texture_cube_array<f32>": ((12, 4, 4, 1), "u1", ("float", "cube-array"), ("r8unorm", "2d", (4, 4, 12))),
    "texture_depth_2d": ((3, 5), "u2", ("depth", "2d"), ("depth16unorm", "2d", (5, 3, 1))),
    "texture_depth_cube": ((6, 4, 4), "u2", ("depth", "cube"), ("depth16unorm", "2d", (4, 4, 6))),
}


@pytest.mark.parametrize("type_", SAMPLED)
def test_a_sampled_texture(type_):
    shape, dtype, (sample, view), (format_, dimension, size) = SAMPLED[type_]
    array = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    made = described(f"var x: {type_}", array, "_ = x;")
    assert made.layout == {"texture": {"sample_type": sample, "view_dimension": view}}
    assert made.how == {"size": size, "format": format_, "dimension": dimension, "mip_level_count": 1,
                        "usage": "TEXTURE_BINDING|COPY_DST"}  # fmt: skip
    row = array.nbytes // (size[1] * size[2])
    ((content, rows, extent),) = made.levels
    assert (bytes(content), extent) == (array.tobytes(), size)
    assert rows == {"offset": 0, "bytes_per_row": row, "rows_per_image": size[1]}
    assert (made.view, made.written) == (view, False)


@pytest.mark.parametrize(("access", "name", "written"), [
    ("read", "read-only", False), ("write", "write-only", True), ("read_write", "read-write", True),
])  # fmt: skip
def test_a_storage_texture(access, name, written):
    made = described(f"var x: texture_storage_2d<r32uint, {access}>", np.zeros((3, 5), np.uint32), "_ = x;")
    assert made.layout == {"storage_texture": {"access": name, "format": "r32uint", "view_dimension": "2d"}}
    assert made.how["usage"] == "STORAGE_BINDING|COPY_SRC|COPY_DST"
    assert made.written == written


def test_each_level_of_a_texture_has_rows_of_its_own():
    levels = [np.full((8 >> n, 4 >> n, 4), n, np.uint8) for n in range(3)]
    made = described("var x: texture_2d<f32>", levels, "_ = x;")
    assert made.how["mip_level_count"] == 3
    assert [(rows["bytes_per_row"], rows["rows_per_image"], extent) for _, rows, extent in made.levels] == [
        (16, 8, (4, 8, 1)), (8, 4, (2, 4, 1)), (4, 2, (1, 2, 1)),
    ]  # fmt: skip
    assert [bytes(content) for content, _, _ in made.levels] == [level.tobytes() for level in levels]


@pytest.mark.parametrize(("features", "dtype", "kind"), [
    ((), "f4", "unfilterable-float"), (("float32-filterable",), "f4", "float"), ((), "f2", "float"),
    ((), "u4", "uint"),
])  # fmt: skip
def test_floats_of_32_bits_are_filtered_only_by_some_devices(features, dtype, kind):
    channel = "u32" if dtype == "u4" else "f32"
    made = described(f"var x: texture_2d<{channel}>", np.zeros((2, 2, 4), dtype), "_ = x;", features)
    assert made.layout["texture"]["sample_type"] == kind


@pytest.mark.parametrize(("type_", "shape", "message"), [
    ("texture_multisampled_2d<f32>", (4, 2, 2),
     "binding x is a texture_multisampled_2d<f32>, and samples cannot be uploaded to a GPU"),
    ("texture_depth_2d", (2, 2), "binding x is float32, and only uint16 depth can be uploaded to a GPU"),
])  # fmt: skip
def test_a_texture_that_cannot_be_uploaded(type_, shape, message):
    with pytest.raises(UsageError) as caught:
        described(f"var x: {type_}", np.zeros(shape, np.float32), "_ = x;")
    assert str(caught.value) == message


def test_contents_come_back_as_they_were_given():
    array = as_given(np.arange(6, dtype=np.int16).tobytes(), np.zeros((2, 3), np.int16))
    assert (array.dtype, array.tolist(), array.flags.writeable) == (np.int16, [[0, 1, 2], [3, 4, 5]], True)
    assert as_given(memoryview(b"abcd"), b"....") == b"abcd"


def test_only_what_a_shader_can_write_is_an_output():
    class Done:
        def answer(self):
            return self

        contents = (None, b"\1\0\0\0")
        seconds, kernel_seconds, took = (3.0, 4.0), (2.0, 1.5, 1.75), 9.0

    text = "@group(0) @binding(0) var<uniform> n: u32; @group(0) @binding(1) var<storage, read_write> y: array<u32>;"
    slots = slots_of(bankshot.check(f"{text} @compute @workgroup_size(1) fn f() {{ y[0] = n; }}").pipeline().entry)
    given = [(slots[0], "n", b"...."), (slots[1], (0, 1), np.zeros(1, np.uint32))]
    found = PendingRun(Done(), INFO, given).done()
    assert {key: each.tolist() for key, each in found.outputs.items()} == {(0, 1): [1]}
    assert (found.seconds, found.kernel_seconds, found.took) == ((3.0, 4.0), (2.0, 1.5, 1.75), 9.0)
    assert found.clocked == {"kernel on a card": 1.5}


def test_an_adapter_without_a_clock_has_no_time_of_the_kernel():
    assert GpuRun({}, INFO, (1.0,)).clocked == {}


def test_limits_have_the_names_of_wgpu():
    assert {dashed("maxStorageBufferBindingSize"), dashed("maxUniformBufferBindingSize")} == set(LIMITS)
