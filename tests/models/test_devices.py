"""Device profiles: every figure has a source, names are found, and a device can be changed."""

import pickle
from dataclasses import fields

import pytest

from bankshot.sim.models import devices
from bankshot.sim.models.devices import AMD_CDNA, DEVICES, LAVAPIPE, NVIDIA, SWIFTSHADER, get


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_every_field_says_where_it_comes_from(device):
    assert {field.name for field in fields(device)} == set(device.sources)
    for source in device.sources.values():
        assert source.mark in ("measured", "documented", "assumed")
        assert source.where


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_profiles_hang_together(device):
    assert device.subgroup_size in device.subgroup_sizes
    assert device.threads_per_core >= device.subgroup_size
    assert device.workgroup_bytes_max <= device.workgroup_bytes_per_core
    assert device.workgroup_bytes_max >= device.webgpu_limits["maxComputeWorkgroupStorageSize"]
    assert device.line_bytes % device.sector_bytes == 0
    assert hash(device)


def test_what_was_measured_is_marked_so():
    assert NVIDIA.sources["banks"].mark == "measured"
    assert (NVIDIA.fma, NVIDIA.sources["fma"].mark) == ("contracted", "measured")
    assert (LAVAPIPE.fma, LAVAPIPE.sources["fma"].mark) == ("separate", "measured")
    assert (LAVAPIPE.subgroup_size, SWIFTSHADER.subgroup_size) == (8, 4)


def test_names_are_found():
    assert get("nvidia") is get("NVIDIA") is NVIDIA
    assert get("AMD_CDNA") is AMD_CDNA
    with pytest.raises(ValueError, match="there is no device 'nvidea', did you mean 'nvidia'"):
        get("nvidea")
    assert get("amd") is get("amd_rdna")
    with pytest.raises(ValueError, match="the devices are nvidia, amd-rdna"):
        get("abacus")


def test_a_changed_device_says_who_changed_it():
    wide = NVIDIA.with_(name="wide", banks=64)
    assert (wide.banks, wide.sources["banks"].mark) == (64, "assumed")
    assert (NVIDIA.banks, wide.sources["fma"]) == (32, NVIDIA.sources["fma"])
    assert AMD_CDNA.with_(subgroup_size=32).lane_order == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bank": 16}, "no 'bank', did you mean 'banks'"),
        ({"banks": 24}, "banks of device nvidia is 24: it must be a power of two"),
        ({"banks": 128}, "4 to 64"),
        ({"subgroup_size": 256}, "1 to 128"),
        ({"fma": "sometimes"}, "'separate' or 'fused' or 'contracted'"),
        ({"texel_outside": "mirror"}, "'zero' or 'nearest'"),
        ({"texel_f16": "up"}, "'nearest' or 'zero'"),
        ({"lane_order": {16: (0, 1)}}, "not an order of its lanes"),
    ],
)
def test_devices_that_cannot_be(change, words):
    with pytest.raises(ValueError, match=words):
        NVIDIA.with_(**change)


def test_cdna_loads_16_bytes_in_the_documented_phases():
    """Two of the eight phases that the source lists."""
    order = AMD_CDNA.lane_order[16]
    phases = [set(order[i : i + 8]) for i in range(0, 64, 8)]
    assert {4, 5, 6, 7, 16, 17, 18, 19} in phases
    assert {44, 45, 46, 47, 56, 57, 58, 59} in phases


def test_every_profile_is_listed():
    profiles = {value.name for value in vars(devices).values() if isinstance(value, devices.Device)}
    assert profiles == set(devices.DEVICES)


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_figures_that_are_assumed_as_on_nvidia_are_those_of_nvidia(device):
    assumed = [name for name, source in device.sources.items() if source.where.startswith("as on NVIDIA")]
    assert {name: getattr(device, name) for name in assumed} == {name: getattr(NVIDIA, name) for name in assumed}
    assert "as on NVIDIA: nothing better is known" in {fact.source.where for fact in devices.ANYWHERE.values()}


KIB = 1024
# KiB of workgroup memory per core, and at most per workgroup; KiB of 32-bit registers, threads and subgroups per core.
CAPACITIES = {
    "nvidia": (48, 48, 256, 2048, 64),
    "amd-cdna": (64, 64, 512, 2048, 32),
    "amd-rdna": (64, 64, 384, 1024, 32),
    "apple": (64, 32, 384, 3072, 96),
    "intel": (128, 64, 512, 2048, 128),
    "adreno": (32, 32, 256, 2048, 32),
}


@pytest.mark.parametrize("name", CAPACITIES)
def test_capacities_of_a_core(name):
    device = DEVICES[name]
    sizes = (device.workgroup_bytes_per_core, device.workgroup_bytes_max, 4 * device.registers_per_core)
    assert (*(size / KIB for size in sizes), device.threads_per_core, device.subgroups_per_core) == CAPACITIES[name]


def test_how_many_cores_a_device_has():
    """H200: 132 multiprocessors; MI300X: 304 compute units, by their data sheets. The others are families."""
    assert {name: DEVICES[name].cores for name in CAPACITIES if DEVICES[name].cores} == {"nvidia": 132, "amd-cdna": 304}


def test_a_device_can_be_sent_to_another_process():
    for device in DEVICES.values():
        assert pickle.loads(pickle.dumps(device)) == device
