"""The order of adapters, the features requested of devices, and versions that are refused, with fakes of wgpu."""

import sys
from types import SimpleNamespace

import pytest

from bankshot.oracle.errors import NoAdapter
from bankshot.oracle.wgpu_worker import wgpu_library
from bankshot.oracle.wgpu_worker.messages import TIMESTAMPS


class Adapter(SimpleNamespace):
    __hash__ = object.__hash__


def adapter(name, kind, *features, **sizes):
    info = {"device": name, "adapter_type": kind, "backend_type": "Vulkan", "vendor": "driver", "description": "1\x1b",
            **sizes}  # fmt: skip
    asked = []
    return Adapter(info=info, features={*features}, limits={"a": 5, "b": 7}, asked=asked,
                           request_device_sync=lambda **given: asked.append(given) or "device")  # fmt: skip


@pytest.fixture
def wgpu(monkeypatch):
    """`wgpu(*adapters)`: a wgpu that has these."""

    def use(*adapters):
        made = SimpleNamespace(__version__="0.32.0", gpu=SimpleNamespace(enumerate_adapters_sync=lambda: [*adapters]))
        monkeypatch.setattr(wgpu_library, "library", lambda: made)

    kept = (wgpu_library._adapters, wgpu_library.device_of, wgpu_library._limited)
    for each in kept:
        each.cache_clear()
    yield use
    for each in kept:
        each.cache_clear()


def test_hardware_comes_before_software_and_more_features_before_fewer(wgpu):
    kinds = ("CPU", "strange", "VirtualGPU", "IntegratedGPU", "DiscreteGPU")
    more = adapter("more", "IntegratedGPU", "subgroup", "shader-f16")
    wgpu(*(adapter(kind, kind, "subgroup", "unknown-1", "unknown-2") for kind in kinds), more)
    offers = wgpu_library.offers()
    assert [(offer.info.name, offer.info.kind) for offer in offers] == [
        ("DiscreteGPU", "DiscreteGPU"), ("more", "IntegratedGPU"), ("IntegratedGPU", "IntegratedGPU"),
        ("VirtualGPU", "VirtualGPU"), ("CPU", "CPU"), ("strange", "Unknown"),
    ]  # fmt: skip
    info = offers[0].info
    assert (info.backend, info.driver, info.version) == ("Vulkan", "driver", "1\\x1b")


ALL = ("shader-f16", "subgroup", "subgroup-barrier", "float32-filterable", "bgra8unorm-storage",
       "texture-format16bit-norm", "texture-adapter-specific-format-features", TIMESTAMPS)  # fmt: skip


@pytest.mark.parametrize("missing", [None, *ALL])
def test_a_device_has_all_features_that_kernels_use_and_the_largest_limits(wgpu, missing):
    one = adapter("a", "CPU", *(name for name in ALL if name != missing), "texture-compression-bc")
    wgpu(one)
    assert wgpu_library.device_of(0) == "device"
    (asked,) = one.asked
    assert asked == {"required_features": [name for name in ALL if name != missing], "required_limits": one.limits}
    assert wgpu_library.limited_device(0, (("a", 3), ("c", 4))) == "device"
    assert one.asked[1:] == [{"required_limits": {"a": 3}}]


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ({"subgroup_min_size": 8, "subgroup_max_size": 32}, (8, 32)),
        ({"stackgroup_min_size": 4, "stackgroup_max_size": 64}, (4, 64)),
        ({}, (0, 0)),
    ],
)
def test_the_sizes_of_subgroups(wgpu, sizes, found):
    wgpu(adapter("a", "CPU", **sizes))
    (offer,) = wgpu_library.offers()
    assert offer.subgroup_sizes == found
    assert offer.limits == {"a": 5, "b": 7}


@pytest.mark.parametrize(("version", "refused"), [((0, 30, 9), True), ((0, 31), False), ((1, 0), False)])
def test_versions_that_are_too_old(monkeypatch, version, refused):
    extras = []
    made = SimpleNamespace(version_info=version, __version__=".".join(map(str, version)))
    native = SimpleNamespace(extras=SimpleNamespace(set_instance_extras=lambda **given: extras.append(given)))
    for name, module in {"wgpu": made, "wgpu.backends": native, "wgpu.backends.wgpu_native": native}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(wgpu_library.vulkan_drivers, "offer", lambda: None)
    plain = wgpu_library.library.__wrapped__
    if refused:
        with pytest.raises(NoAdapter, match=r"^wgpu 0\.30\.9 is too old, 0\.31 is needed; install it with: pip "):
            plain()
    else:
        assert plain() is made
        assert extras == [{"backends": ["Vulkan", "Metal", "DX12"]}]
