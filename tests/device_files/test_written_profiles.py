"""A written profile reads back equal, or is refused."""

import string
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankshot.sim.device_files import read_profile, write_profile
from bankshot.sim.device_files.figures import FIGURES
from bankshot.sim.models import DEFAULT_LIMITS, DEVICES, Cost, Device, MeasuredCosts
from bankshot.sim.models.device import Source
from bankshot.sim.models.devices import NVIDIA

TEXTS = st.text(st.characters(categories=["L", "N", "P", "S"], include_characters=" "), max_size=40)
NAMES = st.text(string.ascii_letters + string.digits + " -_.'\"\\#=[]é", min_size=1, max_size=20)
COUNTS = st.integers(1, 2**31 - 1)
AMOUNTS = st.floats(0, 1e300)
PEAKS = st.none() | st.floats(1e-300, 1e300)
COSTS = st.builds(Cost, AMOUNTS, st.none() | AMOUNTS, TEXTS, TEXTS)


@st.composite
def devices(draw) -> Device:
    size = 1 << draw(st.integers(0, 7))
    sector = 1 << draw(st.integers(2, 12))
    most = draw(st.integers(16384, 2**31 - 1))
    orders = st.dictionaries(st.sampled_from([4, 8, 16]), st.permutations(range(size)).map(tuple))
    sources = {f.name: Source(draw(st.sampled_from(["measured", "assumed"])), draw(TEXTS)) for f in fields(Device)}
    return Device(
        name=draw(NAMES),
        subgroup_size=size,
        subgroup_sizes=draw(st.lists(st.sampled_from([1, 32, 128]), max_size=2).map(lambda more: (*more, size))),
        banks=1 << draw(st.integers(2, 6)),
        bank_width=1 << draw(st.integers(2, 4)),
        pair_merge=draw(st.booleans()),
        lane_order=draw(orders),
        sector_bytes=sector,
        line_bytes=min(4096, sector << draw(st.integers(0, 3))),
        merge_adjacent=draw(st.booleans()),
        fma=draw(st.sampled_from(["separate", "fused", "contracted"])),
        out_of_bounds=draw(st.sampled_from(["clamp", "zero", "wrap", "zero-buffers"])),
        texel_outside=draw(st.sampled_from(["zero", "nearest"])),
        loop_turns=draw(st.none() | COUNTS),
        texel_f16=draw(st.sampled_from(["zero", "nearest"])),
        workgroup_bytes_per_core=draw(st.integers(most, 2**31 - 1)),
        workgroup_bytes_max=most,
        workgroup_bytes_unit=draw(COUNTS),
        workgroup_bytes_reserved=draw(st.just(0) | COUNTS),
        registers_per_core=draw(COUNTS),
        register_unit=draw(COUNTS),
        registers_per_lane_max=draw(COUNTS),
        threads_per_core=draw(st.integers(size, 2**31 - 1)),
        subgroups_per_core=draw(COUNTS),
        workgroups_per_core=draw(COUNTS),
        cores=draw(st.none() | COUNTS),
        peak_flops=draw(PEAKS),
        peak_bandwidth=draw(PEAKS),
        webgpu_limits={**DEFAULT_LIMITS, "maxBindGroups": draw(COUNTS)},
        costs=None,
        sources=sources,
    )


@st.composite
def measurements(draw) -> MeasuredCosts:
    costs = draw(st.dictionaries(NAMES, COSTS, max_size=3))
    return MeasuredCosts(costs, draw(st.booleans()) and bool(costs), draw(TEXTS), draw(TEXTS), draw(TEXTS), draw(TEXTS))


def figures_sources(device):
    return {name: device.sources[name] for name in (*FIGURES, "webgpu_limits")}


@given(device=devices(), costs=st.none() | measurements())
def test_a_written_profile_reads_back_equal(tmp_path_factory, device, costs):
    path = tmp_path_factory.mktemp("written") / "device.toml"
    write_profile(path, device, costs)
    again = read_profile(path)
    for field in fields(Device):
        if field.name not in ("costs", "sources"):
            assert getattr(again, field.name) == getattr(device, field.name), field.name
    assert again.costs == costs
    assert figures_sources(again) == figures_sources(device)


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_shipped_profiles_can_be_written(tmp_path, device):
    write_profile(tmp_path / "device.toml", device, None)
    assert read_profile(tmp_path / "device.toml") == device


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "a\nb"}, "`name` must be a name"),
        ({"workgroup_bytes_max": 1}, "`workgroup_bytes_max` must be at least"),
        ({"registers_per_core": 0}, "`registers_per_core` must be an integer"),
        ({"webgpu_limits": {"maxBindGroups": 4}}, "it would not read back equal"),
    ],
)
def test_what_no_file_can_hold_is_refused_and_not_written(tmp_path, change, words):
    path = tmp_path / "device.toml"
    with pytest.raises(ValueError, match=words):
        write_profile(path, NVIDIA.with_(**change), None)
    assert not path.exists()
