"""What `bankshot adapters` measures and lists, of adapters that are made up here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bankshot.oracle.reports.adapters_report import adapter_entries, adapter_lines
from bankshot.oracle.wgpu_client import AdapterInfo, Offer, adapter_survey
from bankshot.oracle.wgpu_client.binding_resources import Slot

LIMITS = {
    "maxComputeInvocationsPerWorkgroup": 1024,
    "maxComputeWorkgroupStorageSize": 32768,
    "maxStorageBuffersPerShaderStage": 8,
    "maxStorageBufferBindingSize": 134217728,
}


def info(name: str = "Card", driver: str = "mesa", version: str = "1.2") -> AdapterInfo:
    return AdapterInfo(name, "DiscreteGPU", "Vulkan", driver, version, "0.32")


@pytest.fixture
def surveyed(monkeypatch: pytest.MonkeyPatch) -> list[adapter_survey.Adapter]:
    """Two adapters, with and without features; subgroups of 13 lanes."""
    run = {"text": "", "count": 0}

    def measured(text: str, entry: str, grid: tuple[int, ...], given: Any, *, slots: Any, adapter: str) -> Any:
        assert (entry, grid, adapter, slots) == ("main", (1, 1, 1), "GeForce", [Slot("size", 0, 0, "storage-write")])
        assert (given["size"].dtype, given["size"].tolist()) == (np.uint32, [0])
        run["count"] += 1
        return SimpleNamespace(outputs={"size": np.uint32([13])})

    features = ("shader-f16", "subgroup", "timestamp-query")
    offers = [Offer(info("GeForce"), features, (13, 13), LIMITS), Offer(info(version=""), (), (4, 32), LIMITS)]
    monkeypatch.setattr(adapter_survey, "offers", lambda: offers)
    monkeypatch.setattr(adapter_survey, "run", measured)
    found = adapter_survey.survey()
    assert run["count"] == 1  # only of the adapter that has subgroups
    return found


def test_what_adapters_have(surveyed: list[adapter_survey.Adapter]) -> None:
    first, second = surveyed
    assert first.abilities == {"f16": True, "subgroups": True, "timestamps": True}
    assert second.abilities == {"f16": False, "subgroups": False, "timestamps": False}
    assert (first.subgroup_size, first.profile, first.known) == (13, "nvidia", True)
    assert (second.subgroup_size, second.known) == (None, False)
    assert second.profile == adapter_survey.FALLBACK
    one = adapter_survey.Adapter(Offer(info(), ("subgroup",), (4, 4), {}), 4, "", False)
    assert one.abilities == {"f16": False, "subgroups": True, "timestamps": False}


def test_the_list_of_adapters(surveyed: list[adapter_survey.Adapter]) -> None:
    limits = "  1,024 invocations per workgroup, 32,768 bytes of workgroup memory, 8 storage buffers, " \
             "134,217,728 bytes per storage binding"  # fmt: skip
    assert [*adapter_lines(surveyed, ["a.json"], "install one")] == [
        "GeForce, the default",
        "  GeForce (DiscreteGPU, Vulkan), driver mesa 1.2, wgpu 0.32",
        "  f16, subgroups, timestamps, 13 lanes per subgroup",
        limits,
        "  simulated as nvidia, which rounds as it does",
        "Card",
        "  Card (DiscreteGPU, Vulkan), driver mesa (version not reported), wgpu 0.32",
        "  no f16, no subgroups, no timestamps",
        limits,
        f"  simulated as {adapter_survey.FALLBACK}, whose rounding was not measured",
        "driver found beside the installed ones: a.json",
        "note: install one",
    ]
    assert "note" not in " ".join(adapter_lines(surveyed, [], None))


def test_the_entries_of_adapters(surveyed: list[adapter_survey.Adapter]) -> None:
    first, second = adapter_entries(surveyed)
    assert first == {
        "name": "GeForce", "kind": "DiscreteGPU", "backend": "Vulkan", "driver": "mesa", "version": "1.2",
        "wgpu": "0.32", "features": ["shader-f16", "subgroup", "timestamp-query"], "f16": True, "subgroups": True,
        "timestamps": True, "subgroup_size": 13, "limits": LIMITS, "profile": "nvidia", "profile_known": True,
    }  # fmt: skip
    assert (second["subgroup_size"], second["profile_known"]) == (None, False)


@pytest.mark.parametrize("found", [[], ["a.json"]])
def test_how_to_install_a_driver_is_said_where_none_was_added(found: list, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_survey.vulkan_drivers, "found", lambda: found)
    assert adapter_survey.added() == (found, None if found else adapter_survey.vulkan_drivers.HOW_TO_INSTALL)
