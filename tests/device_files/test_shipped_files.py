"""Profiles that are shipped as files: each figure has a source, and what was published is not called measured."""

import tomllib
from pathlib import Path

import pytest

from bankshot.sim import device_files
from bankshot.sim.device_files import find, shipped
from bankshot.sim.device_files.figures import FIGURES

FOLDER = Path(device_files.__file__).parent / "profiles"

# From the tables of the documents that the files name: subgroups, threads, workgroups and registers of a core.
PUBLISHED = {"a100": (64, 2048, 32, 65536), "l40": (48, 1536, 24, 65536)}


@pytest.mark.parametrize("name", shipped())
def test_every_figure_has_a_source(name):
    data = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    assert (data["name"], find(name.upper()).name) == (name, name)
    assert data["sources"].keys() == data.keys() & {*FIGURES, "webgpu_limits"}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_figures(name):
    device = find(name)
    figures = (device.subgroups_per_core, device.threads_per_core, device.workgroups_per_core)
    assert (*figures, device.registers_per_core) == PUBLISHED[name]
    assert not device.calibrated
    data = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    assert "measured" not in {mark for source in data["sources"].values() for mark in source}


@pytest.mark.parametrize("name", PUBLISHED)
def test_peaks_of_the_base_are_not_those_of_another_gpu(name):
    assert (find(name).cores, find(name).peak_flops) == (None, None)
    assert find(name).peak_bandwidth in (None, 1.55e12)
