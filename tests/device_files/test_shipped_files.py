"""Profiles that are shipped as files: each figure has a source, and what was published is not called measured."""

import tomllib
from pathlib import Path

import pytest

from bankshot.sim import device_files
from bankshot.sim.device_files import find, shipped
from bankshot.sim.device_files.figures import FIGURES
from bankshot.sim.models.time_model import GPU, SOFTWARE

FOLDER = Path(device_files.__file__).parent / "profiles"

# From the tables of the documents that the files name: subgroups, threads, workgroups and registers of a core. The
# registers of two cores of RDNA fill 512 and 768 KiB, those of a core of an M1 208 KiB.
PUBLISHED = {
    "a100": (64, 2048, 32, 65536),
    "l40": (48, 1536, 24, 65536),
    "rx-6900-xt": (32, 1024, 32, 512 * 1024 // 2 // 4),
    "rx-7900-xtx": (32, 1024, 32, 768 * 1024 // 2 // 4),
    "apple-m1": (96, 3072, 32, 208 * 1024 // 4),
}


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


CALIBRATED = {"nvidia-h200": "nvidia", "lavapipe-epyc": "lavapipe", "swiftshader-epyc": "swiftshader"}


def test_all_profiles_but_the_calibrated_ones_are_published_ones():
    assert {*shipped()} == {*PUBLISHED, *CALIBRATED}


@pytest.mark.parametrize(("name", "base"), CALIBRATED.items())
def test_a_calibrated_profile_has_each_cost_of_its_model_and_the_figures_of_its_base(name, base):
    device = find(name)
    assert device.calibrated
    assert device.costs is not None
    assert device.costs.costs.keys() == (GPU if base == "nvidia" else SOFTWARE).costs.keys()
    assert {each: getattr(device, each) for each in FIGURES if each != "cores"} == {
        each: getattr(find(base), each) for each in FIGURES if each != "cores"
    }


@pytest.mark.parametrize("name", PUBLISHED)
def test_peaks_of_the_base_are_not_those_of_another_gpu(name):
    flops = 8 * 128 * 2 * 1.278e9 if name == "apple-m1" else None  # cores, lanes, a product and a sum, Hz
    assert find(name).peak_flops == (flops and pytest.approx(flops, rel=0.001))
    assert find(name).peak_bandwidth in (None, 1.55e12)
