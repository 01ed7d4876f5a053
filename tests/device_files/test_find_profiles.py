"""A profile is found by name, by file, or is itself; a changed file is read again."""

import os

import pytest

from bankshot.sim.device_files import find, is_file, shipped, with_times
from bankshot.sim.models.devices import DEVICES, NVIDIA, get


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "nvidia"\nbanks = 16\n')
    return path


def test_names_files_and_profiles(mine):
    assert find("NVIDIA") is find(NVIDIA) is NVIDIA
    assert find(mine) == find(str(mine)) == NVIDIA.with_(name="mine", banks=16)


def test_a_path_without_a_suffix_is_a_file(mine):
    bare = mine.rename(mine.with_suffix(""))
    assert find(bare) == find(str(bare)) == NVIDIA.with_(name="mine", banks=16)
    assert (is_file("mine"), is_file("mine.toml"), is_file("mine.toml+merged")) == (False, True, True)


def test_adjacent_accesses_of_a_file_can_merge(mine):
    device = find(f"{mine}+merged")
    assert (device.name, device.merge_adjacent, device.banks) == ("mine+merged", True, 16)
    mine.write_text('base = "nvidia+merged"')
    assert find(mine) == get("nvidia+merged").with_(name="mine")


def test_a_file_that_changes_is_read_again(mine):
    assert find(mine).banks == 16
    mine.write_text('base = "nvidia"\nbanks = 64\n')
    os.utime(mine, ns=(1, 1))
    assert find(mine).banks == 64


def test_unknown_names_list_all_profiles():
    with pytest.raises(ValueError, match="there is no device 'nvidea', did you mean 'nvidia'") as error:
        find("nvidea")
    for name in (*DEVICES, *shipped()):
        assert name in str(error.value)


# Figures that say nothing of memory, of residency or of what is counted.
OF_ONE_DEVICE = {"name": "mine", "cores": None, "peak_flops": 1.0, "peak_bandwidth": 1.0, "webgpu_limits": {}}
COUNTED = {
    "banks": 64,
    "line_bytes": 64,
    "workgroup_bytes_per_core": 1 << 17,
    "threads_per_core": 512,
    "fma": "separate",
}


@pytest.mark.parametrize("figure", OF_ONE_DEVICE)
def test_times_are_those_of_a_calibrated_device_that_counts_the_same(figure):
    found = with_times(NVIDIA.with_(**{figure: OF_ONE_DEVICE[figure]}))  # which also changes the sources of the figure
    assert found is not None
    assert (found.name, found.calibrated) == ("nvidia-h200", True)


@pytest.mark.parametrize("figure", COUNTED)
def test_a_device_that_counts_otherwise_has_no_times(figure):
    assert getattr(NVIDIA, figure) != COUNTED[figure]
    assert with_times(NVIDIA.with_(**{figure: COUNTED[figure]})) is None


def test_a_device_with_costs_has_its_own_times_if_its_cores_are_known():
    h200 = find("nvidia-h200").with_(banks=64)
    assert with_times(h200) is h200
    assert with_times(h200.with_(cores=None)) is None
