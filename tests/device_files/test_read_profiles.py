"""A device file gives figures, sources and costs; what is wrong in one is named with its place."""

import pickle
from dataclasses import fields

import pytest

from bankshot.sim.device_files import find, read_profile
from bankshot.sim.device_files.figures import FIGURES
from bankshot.sim.models import Cost, Device, MissingCost
from bankshot.sim.models.device import Source
from bankshot.sim.models.devices import NVIDIA
from bankshot.sim.wgsl.diagnostics import WgslError


@pytest.fixture
def read(tmp_path):
    """Read a text as the device file `mine.toml`."""

    def read_text(text):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return read_profile(path)

    return read_text


def test_a_file_can_give_every_figure():
    assert {*FIGURES, "webgpu_limits", "name", "costs", "sources"} == {field.name for field in fields(Device)}


def test_figures_that_the_file_does_not_give_are_those_of_its_base(read):
    device = read('base = "nvidia"\nbanks = 64\ncores = "none"\n[webgpu_limits]\nmaxBindGroups = 8\n')
    limits = {**NVIDIA.webgpu_limits, "maxBindGroups": 8}
    assert device == NVIDIA.with_(name="mine", banks=64, cores=None, webgpu_limits=limits)
    assert device.sources["line_bytes"] == NVIDIA.sources["line_bytes"]


WHOLE = """
name = "small core"
subgroup_size = 16
subgroup_sizes = [8, 16]
workgroup_bytes_per_core = 65536
workgroup_bytes_max = 32768
registers_per_core = 16384
threads_per_core = 512
subgroups_per_core = 64
"""


def test_a_file_without_a_base_needs_only_what_no_device_shares(read):
    device = read(WHOLE)
    assert (device.name, device.subgroup_sizes, device.registers_per_core) == ("small core", (8, 16), 16384)
    assert (device.banks, device.cores, device.costs, device.calibrated) == (32, None, None, False)
    for line in WHOLE.strip().splitlines()[1:]:
        name = line.split()[0]
        with pytest.raises(WgslError, match=rf"the file lacks `{name}`"):
            read(WHOLE.replace(line, ""))


def test_a_figure_has_the_source_that_the_file_gives(read, tmp_path):
    device = read('base = "nvidia"\nbanks = 64\ncores = 1\n[sources]\ncores = { documented = "its data sheet" }\n')
    assert device.sources["cores"] == Source("documented", "its data sheet")
    assert device.sources["banks"] == Source("assumed", f"given in {tmp_path / 'mine.toml'}")
    assert device.sources["fma"] == NVIDIA.sources["fma"]
    assert set(device.sources) == {field.name for field in fields(Device)}


def test_a_lane_order_belongs_to_one_subgroup_size(read):
    assert read('base = "amd-cdna"\nsubgroup_size = 32\nsubgroup_sizes = [32]\n').lane_order == {}
    order = f"[lane_order]\n16 = {[*range(31, -1, -1)]}\n"
    assert read(f'base = "nvidia"\n{order}').lane_order == {16: tuple(range(31, -1, -1))}


COSTS = """base = "nvidia"
[measured]
adapter = "NVIDIA H200"
driver = "580"
date = 2026-11-23
[costs]
issue = { value = 1, spread = 0.25, source = "a chain of adds", command = "measure it" }
"dram latency" = { value = 6.5e2, source = "a paper" }
"""


def test_costs_and_what_they_were_measured_on(read):
    device = read(COSTS)
    costs = device.costs
    assert (costs.adapter, costs.driver, costs.date, costs.command) == ("NVIDIA H200", "580", "2026-11-23", "")
    assert costs.costs == {
        "issue": Cost(1.0, 0.25, "a chain of adds", "measure it"),
        "dram latency": Cost(650.0, None, "a paper"),
    }
    assert costs.value("dram latency") == 650.0
    assert device.calibrated
    assert pickle.loads(pickle.dumps(device)) == device


def test_costs_that_were_not_measured_on_the_device(read):
    assert not read(f"calibrated = false\n{COSTS}").calibrated
    with pytest.raises(WgslError, match=r"mine.toml:1:14: error: a device without \[costs\] is not calibrated"):
        read('calibrated = true\nbase = "nvidia"')


def test_a_missing_cost_names_the_file(read, tmp_path):
    with pytest.raises(MissingCost) as error:
        read(COSTS).costs.value("isue")
    assert str(error.value) == f"{tmp_path / 'mine.toml'}: [costs] lacks 'isue', did you mean 'issue'?"


WRONG = {
    "line 3\nbank = 32": ("mine.toml:1:6: error: expected '=' after a key in a key/value pair", None),
    'base = "nvidia"\nbank = 32': ("mine.toml:2:1: error: a device file has no key 'bank'", "did you mean 'banks'?"),
    'base = "nvidea"': ("mine.toml:1:8: error: there is no device 'nvidea', did you mean 'nvidia'?", None),
    'base = "nvidia"\nbanks = 24': ("mine.toml:2:9: error: `banks` must be a power of two, 4 to 64", None),
    'base = "nvidia"\nbanks = "32"': ("mine.toml:2:9: error: `banks` must be a power of two, 4 to 64", None),
    'base = "nvidia"\nbanks = true': ("mine.toml:2:9: error: `banks` must be a power of two, 4 to 64", None),
    'base = "nvidia"\ncores = 0': (
        'mine.toml:2:9: error: `cores` must be an integer, 1 to 2,147,483,647, or "none" where no figure is claimed',
        None,
    ),
    'base = "nvidia"\npeak_flops = inf': (
        'mine.toml:2:14: error: `peak_flops` must be a number above 0, or "none" where no figure is claimed',
        None,
    ),
    'base = "nvidia"\npeak_flops = "many"': (
        'mine.toml:2:14: error: `peak_flops` must be a number above 0, or "none" where no figure is claimed',
        None,
    ),
    'base = "nvidia"\nsubgroups_per_core = 0': (
        "mine.toml:2:22: error: `subgroups_per_core` must be an integer, 1 to 2,147,483,647",
        None,
    ),
    'base = "nvidia"\npair_merge = 1': ("mine.toml:2:14: error: `pair_merge` must be true or false", None),
    'base = "nvidia"\nfma = "never"': (
        'mine.toml:2:7: error: `fma` must be one of "separate", "fused", "contracted"',
        None,
    ),
    'base = "nvidia"\nfma = []': ("mine.toml:2:7: error: `fma` must be one of", None),
    'base = "nvidia"\nsubgroup_sizes = [32, 33]': (
        "mine.toml:2:18: error: `subgroup_sizes` must be a list of powers of two, 1 to 128",
        None,
    ),
    'base = "nvidia"\nsubgroup_sizes = [33]': (
        "mine.toml:2:18: error: `subgroup_sizes` must be a list of powers of two, 1 to 128",
        None,
    ),
    'base = "nvidia"\nsubgroup_size = 64': (
        "mine.toml:2:17: error: `subgroup_sizes` must contain `subgroup_size`, which is 64",
        None,
    ),
    'base = "nvidia"\nworkgroup_bytes_max = 65536': (
        "mine.toml:2:23: error: `workgroup_bytes_max` must be at most `workgroup_bytes_per_core`, which is 49152",
        None,
    ),
    'base = "nvidia"\nworkgroup_bytes_max = 1024': (
        "mine.toml:2:23: error: `workgroup_bytes_max` must be at least the limit maxComputeWorkgroupStorageSize",
        None,
    ),
    'base = "nvidia"\nsector_bytes = 256': (
        "mine.toml:2:16: error: `line_bytes` must be a multiple of `sector_bytes`, which is 256",
        None,
    ),
    'base = "nvidia"\nthreads_per_core = 16': (
        "mine.toml:2:20: error: `threads_per_core` must be at least `subgroup_size`, which is 32",
        None,
    ),
    'base = "nvidia"\nlane_order = { 16 = [0, 1] }': (
        "mine.toml:2:14: error: `lane_order` must list each of the 32 lanes of a subgroup once",
        None,
    ),
    'base = "nvidia"\nlane_order = { 3 = [0, 1] }': ("mine.toml:2:14: error: `lane_order` must be a table", None),
    'base = "nvidia"\n[webgpu_limits]\nmaxBindGroup = 3': (
        "mine.toml:3:1: error: [webgpu_limits] has no key 'maxBindGroup'",
        "did you mean 'maxBindGroups'?",
    ),
    'base = "nvidia"\nwebgpu_limits = 3': ("mine.toml:2:17: error: `webgpu_limits` must be a table", None),
    'base = "nvidia"\n[sources]\nbanks = "mine"': ("mine.toml:3:9: error: `banks` must be a table", None),
    'base = "nvidia"\n[sources]\nbanks = {}': (
        "mine.toml:3:9: error: the source of `banks` must be one of measured, documented, assumed",
        'write banks = { measured = "on what" }',
    ),
    'base = "nvidia"\n[sources]\nbanks = { guessed = "" }': (
        "mine.toml:3:11: error: [sources.banks] has no key 'guessed'",
        "known are measured, documented, assumed",
    ),
    'base = "nvidia"\n[costs]\nload = { value = -1, source = "" }': (
        "mine.toml:3:18: error: `value` must be a number, 0 or more",
        None,
    ),
    'base = "nvidia"\n[costs.load]\nvalue = 1': ("mine.toml:2:2: error: cost `load` lacks `source`", None),
    'base = "nvidia"\n[costs]\nload = 3': ("mine.toml:3:8: error: `load` must be a table", None),
    'base = "nvidia"\n[measured]\nadaptor = ""': (
        "mine.toml:3:1: error: [measured] has no key 'adaptor'",
        "did you mean 'adapter'?",
    ),
    'base = "nvidia"\nname = "a,b"': ("mine.toml:2:8: error: `name` must be a name of 1 to 80 characters", None),
    "banks = 32": ("mine.toml:1:1: error: the file lacks `subgroup_size`", "give it, or start from a shipped profile"),
    "": ("mine.toml:1:1: error: the file lacks `subgroup_size`", "give it, or start from a shipped profile"),
    "banks = [": ("mine.toml:1:10: error: invalid value", None),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named_with_its_place_and_a_hint(read, text):
    message, hint = WRONG[text]
    with pytest.raises(WgslError) as error:
        read(text)
    rendered = str(error.value)
    assert message in rendered
    assert hint is None or f"hint: {hint}" in rendered
    assert len(rendered.splitlines()) >= 3  # the line, and a caret under it


def test_the_caret_is_under_the_value(read):
    with pytest.raises(WgslError) as error:
        read('base = "nvidia"\nbanks =  240 # many\n')
    assert str(error.value).splitlines()[1:] == ["banks =  240 # many", "         ^^^"]


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(WgslError, match=r"none.toml: there is no such file"):
        find(tmp_path / "none.toml")
    with pytest.raises(WgslError, match="Is a directory"):
        find(f"{tmp_path}/")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(WgslError, match="is not UTF-8 text"):
        find(tmp_path / "bytes.toml")
    with pytest.raises(WgslError, match="cannot be read"):
        find("a\0.toml")
    (tmp_path / "deep.toml").write_text("a = " + "[" * 5_000 + "]" * 5_000)
    with pytest.raises(WgslError, match=r"nested too deeply|no key 'a'"):  # by the recursion limit
        find(tmp_path / "deep.toml")


def test_the_lanes_of_a_width_are_a_list(read):
    with pytest.raises(WgslError, match="lane_order"):
        read('base = "nvidia"\nlane_order = { 8 = 3 }\n')


def test_a_fault_of_the_format_is_shown_in_its_line(read):
    with pytest.raises(WgslError) as error:
        read('base = "nvidia"\n# wide\nbanks = 1x\ncores = 4\n')
    first, line, caret = str(error.value).splitlines()[:3]
    assert "mine.toml:3:10: error: " in first
    assert (line, caret) == ("banks = 1x", "         ^")
