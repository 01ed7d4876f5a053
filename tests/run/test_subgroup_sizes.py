"""The subgroup size that an entry point asks for: every size from the device's least to its greatest."""

from __future__ import annotations

import pytest

import bankshot
from bankshot.sim.models.devices import get
from bankshot.sim.run.prepared import dispatch_of

SOURCE = """
enable subgroups;
enable subgroup_size_control;
@compute @workgroup_size(128) @subgroup_size({size}) fn main() {{}}
"""


def device_of(size: int) -> bankshot.Device:
    flexible = get("nvidia").with_(subgroup_sizes=(8, 16, 32), subgroup_size=16)
    return dispatch_of(SOURCE.format(size=size), grid=1, device=flexible).device


@pytest.mark.parametrize("size", [8, 16, 32])
def test_a_size_that_the_device_has(size: int) -> None:
    assert device_of(size).subgroup_size == size


@pytest.mark.parametrize("size", [4, 64])
def test_a_size_that_the_device_lacks(size: int) -> None:
    with pytest.raises(bankshot.WgslError, match=f"requests subgroups of {size}, but the device nvidia has 8 or 16 or"):
        device_of(size)
