"""Profiles with published costs: the costs agree with what their sources give, rank kernels, and claim no time."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle.cli.main import main
from bankshot.oracle.judge.time_check import no_time
from bankshot.sim import device_files
from bankshot.sim.device_files import find
from bankshot.sim.models.occupancy import occupancy
from bankshot.sim.models.time_model import COSTS, completed

FOLDER = Path(device_files.__file__).parent / "profiles"
NAMES = ("a100", "l40", "rx-6900-xt", "rx-7900-xtx", "apple-m1")

# What the sources say, in their units: lanes a cycle of F32 and of exp2, GB/s of the L2 cache and of memory, and the
# cycles of a load from the core's cache, the L2 cache and what is behind it. None: not published.
PUBLISHED = {
    "a100": (64, 16, 5420.1, 1490, (36.0, 213.0, 574.5)),
    "l40": (128, 16, 5229.8, 844, (36.0, 276.5, 631.7)),
    "rx-6900-xt": (64, 16, 4645.1, 505, (73.1, 210.2, 404.5)),
    "rx-7900-xtx": (64, 16, 3072 * 2.498, 895, None),
    "apple-m1": (128, 32, 8 * 32 * 1.278, 50.4, (40.0, 76.3 * 1.278, 311 * 1.278)),
}
CORES = {"a100": (108, 1410), "l40": (142, 2490), "rx-6900-xt": (80, 2570), "rx-7900-xtx": (96, 2498),
         "apple-m1": (8, 1278)}  # fmt: skip


def cost(name: str, key: str) -> float:
    costs = find(name).costs
    assert costs is not None
    return completed(costs).value(key)


@pytest.mark.parametrize("name", NAMES)
def test_each_cost_in_a_file_is_one_of_the_model_and_names_its_source(name: str) -> None:
    costs = tomllib.loads((FOLDER / f"{name}.toml").read_text())["costs"]
    assert costs
    assert costs.keys() <= COSTS.keys()  # the model would ignore another name
    for each in costs.values():
        assert each.keys() == {"value", "source"}  # nothing measures it again
        assert re.match(r"[\w./+ -]{4,}", each["source"])
        assert "not published" not in each["source"]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_says_how_many_costs_were_published(name: str) -> None:
    given = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    page = (Path(__file__).parents[2] / "docs" / "devices.md").read_text()
    (row,) = (line.split(" | ") for line in page.splitlines() if line.startswith(f"| `{name}` | "))
    _, _, base, _, costs, *_ = row
    assert (base, costs) == (f"`{given['base']}`", f"{len(given['costs'])} of {len(COSTS)}")


@pytest.mark.parametrize("name", NAMES)
def test_rates_are_those_of_the_sources(name: str) -> None:
    fp32, special, l2, memory, _ = PUBLISHED[name]
    cores, mhz = CORES[name]
    assert (find(name).cores, cost(name, "clock_mhz")) == (cores, mhz)
    assert 32 / cost(name, "issue_fp32") == fp32
    assert 32 / cost(name, "issue_special") == special
    cycles = cores * mhz * 1e6  # of all cores, a second
    assert find(name).sector_bytes / cost(name, "l2_load_sector") * cycles == pytest.approx(l2 * 1e9, rel=0.005)
    assert cycles / cost(name, "dram_byte") == pytest.approx(memory * 1e9, rel=0.005)


@pytest.mark.parametrize("name", NAMES)
def test_latencies_add_up_to_those_of_the_sources(name: str) -> None:
    wanted = PUBLISHED[name][-1]
    parts = [cost(name, f"latency_{level}") for level in ("storage_load", "l2", "dram")]
    if wanted is None:
        assert parts == [40.0, 230.0, 350.0]  # where a fit begins
    else:
        assert np.cumsum(parts) == pytest.approx(wanted, rel=0.002)


def test_residency_of_rdna_is_that_of_two_simds_of_16_waves() -> None:
    old, new = find("rx-6900-xt"), find("rx-7900-xtx")
    assert occupancy(old, 256).subgroups == occupancy(new, 256).subgroups == 2 * 16
    assert occupancy(old, 32, registers_per_lane=120).subgroups == 2 * (1024 // 128)  # in steps of 16
    assert occupancy(new, 32, registers_per_lane=96).subgroups == 2 * (1536 // 96)
    assert occupancy(new, 32, registers_per_lane=145).subgroups == 2 * (1536 // 168)  # in steps of 24
    assert occupancy(old, 256, 33 * 1024).workgroups == 1  # of 64 KiB beside a compute unit


def test_workgroup_memory_of_rdna_has_32_banks_of_4_bytes() -> None:
    for name in ("rx-6900-xt", "rx-7900-xtx"):
        lanes = range(find(name).subgroup_size)
        assert find(name).shared_wavefronts([4 * lane for lane in lanes], 4) == 1
        assert find(name).shared_wavefronts([32 * 4 * lane for lane in lanes], 4) == 32


def test_an_m1_holds_one_workgroup_with_all_memory_that_it_may_have() -> None:
    assert occupancy(find("apple-m1"), 1024).subgroups == 3072 // 32
    assert occupancy(find("apple-m1"), 256, 32 * 1024).workgroups == 1  # of about 60 KB


# ---- ranking -----------------------------------------------------------------------------------------

IN_WORKGROUPS = """\
const STRIDE = 1u;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<workgroup> t: array<f32, 2048>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) g: vec3u) {
  for (var k = 0u; k < 64u; k++) { t[(i * STRIDE + k) % 2048u] = f32(k); workgroupBarrier(); }
  y[g.x] = t[i * STRIDE];
}
"""
IN_STORAGE = """\
const STRIDE = 1u;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3u) {
  var sum = 0.0;
  for (var k = 0u; k < 4u; k++) { sum += y[(g.x * STRIDE + k * 4096u) % 128000u]; }
  if (sum == 1.0) { y[g.x] = sum; }
}
"""


def strided(text: str) -> str:
    return text.replace("const STRIDE = 1u;", "const STRIDE = 32u;")


CONFLICTS = strided(IN_WORKGROUPS)


def predicted(text: str, device: str) -> float:
    y = np.zeros(128_000, np.float32)
    return bankshot.simulate(text, grid=2000, bindings={"y": y}, device=device).predicted_time.us


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", [IN_WORKGROUPS, IN_STORAGE])
def test_a_strided_access_ranks_behind_one_of_unit_stride(name: str, text: str) -> None:
    assert predicted(strided(text), name) > 1.2 * predicted(text, name)


TIME = re.compile(r"\d (?:us|µs)\b")


def texts(data: Any, key: str = "") -> Iterator[tuple[str, object]]:
    """Each value in JSON-like data, with its key."""
    if isinstance(data, dict):
        for name, each in data.items():
            yield from texts(each, name)
    elif isinstance(data, list):
        for each in data:
            yield from texts(each, key)
    else:
        yield key, data


def report(folder: Path, name: str, *options: str, text: str = CONFLICTS) -> str:
    (folder / "k.wgsl").write_text(text)
    command, *more = options
    asked = [command, str(folder / "k.wgsl"), "--grid", "2000", "--bind", "y=zeros:f32:128000", "--device", name]
    return CliRunner().invoke(main, [*asked, *more]).stdout


@pytest.mark.parametrize("name", NAMES)
def test_texts_and_pages_claim_no_time(name: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    shown = report(tmp_path, name, "audit", "--no-gpu", "-v", "--html", str(page))
    for text in (shown, page.read_text(), report(tmp_path, name, "run"), report(tmp_path, name, "advise")):
        assert "for ranking only" in text
        assert not TIME.search(re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.DOTALL))
    assert TIME.search(report(tmp_path, "nvidia-h200", "run"))


def microseconds(shown: str) -> list[object]:
    found = texts(json.loads(shown))
    return [value for key, value in found if (key == "us" or key.endswith("_us")) and value is not None]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", [("audit", "--no-gpu"), ("run",), ("advise",)])
def test_json_claims_no_time(name: str, command: tuple[str, ...], tmp_path: Path) -> None:
    shown = report(tmp_path, name, *command, "--json")
    assert "calibrated" in shown
    assert microseconds(shown) == []


@pytest.mark.parametrize("command", [("audit", "--no-gpu"), ("run",), ("advise",)])
def test_json_of_a_calibrated_profile_claims_one(command: tuple[str, ...], tmp_path: Path) -> None:
    assert microseconds(report(tmp_path, "nvidia-h200", *command, "--json"))


def test_json_ranks_by_a_number_without_a_unit(tmp_path: Path) -> None:
    (entry,), (fast,) = (
        _entries(json.loads(report(tmp_path, "rx-6900-xt", "run", "--json", text=text)))
        for text in (CONFLICTS, IN_WORKGROUPS)
    )
    assert entry["relative"] > 1.2 * fast["relative"] > 0
    assert sum(entry["shares"].values()) == pytest.approx(1.0)
    assert entry["limiter"] == max(entry["shares"], key=entry["shares"].__getitem__) == "workgroup memory"
    assert 0 < entry["savings"]["no bank conflicts"] < 1
    assert {"us", "low", "high", "parts", "roofline"}.isdisjoint(entry)
    assert next(line["line"] for line in entry["lines"]) == 6
    assert not entry["calibrated"]


def _entries(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        if "predicted_time" in data:
            yield data["predicted_time"]
        for each in data.values():
            yield from _entries(each)
    elif isinstance(data, list):
        for each in data:
            yield from _entries(each)


@pytest.mark.parametrize("name", NAMES)
def test_a_bound_on_the_time_is_refused(name: str) -> None:
    assert no_time(find(name)) == f"the profile {name} was not calibrated, so that its times only rank kernels"
