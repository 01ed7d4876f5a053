"""A profile is found by name, by file, or is itself; a changed file is read again."""

import os

import pytest

from bankshot.sim.device_files import find, is_file, shipped
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
