"""What a type checker sees of the public interface: `test_wheel.py` checks this file."""

import array
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import bankshot
from bankshot.testing import Bankshot, MeasuredRun

x: NDArray[np.float32] = np.zeros(4, np.float32)
named: dict[str, NDArray[np.float32]] = {"x": x}
module = bankshot.check(Path("k.wgsl"))
assert_type(module, bankshot.Module)

run = bankshot.simulate(module, grid=(1, 2), bindings=named, overrides={"WG": 64}, probes=["races"], workgroups=3)
assert_type(run, bankshot.Run)
bankshot.simulate("", grid=1, bindings={(0, 1): x, "dims": (1, 2, 3), "s": bankshot.Sampler(mag="linear")})
bankshot.simulate("", grid=1, bindings={"p": {"a": 1, "b": [1.0, 2.0]}, "raw": b"0123"}, overrides={1: True})

assert_type(run.sites, list[bankshot.Site])
assert_type(run.findings, list[bankshot.Finding])
assert_type(run.trace, list[bankshot.TraceRow])
assert_type(run.counters, dict[str, float])
output = run.outputs["x"]
if not isinstance(output, bytes):
    assert_type(output, NDArray[Any])
assert_type(run.output("x"), NDArray[Any])
assert_type(run.total.shared_wavefronts, int)
assert_type(run.excess_wavefronts, int)
assert_type(run.utilization.lane_efficiency, float | None)
assert_type(run.predicted_time.us, float)
assert_type(run.work.wavefronts, float)
bankshot.simulate("", grid=1, bindings={"a": array.array("f", [1.0]), "b": [1.0, 2.0], "c": memoryview(b"0123")})
assert_type(bankshot.run_manifest("k.toml", M=65), bankshot.Run)
bankshot.compute_with_buffers({0: x, 1: b"0123"}, {2: (4, "f"), 3: 16}, "", constants={"WG": 8}, n=(1, 2, 3))
for site in run.sites:
    assert_type(site.shared_wavefronts, int)
    assert_type(site.name, str | None)
    assert_type(site.line, int)
for finding in run.findings:
    assert_type(finding.code, str)
    assert_type(finding.lanes, tuple[int, ...])
    assert_type(finding.notes, tuple[bankshot.Note, ...])
device: bankshot.Device = bankshot.devices.NVIDIA
bankshot.simulate("", grid=1, device=Path("mine.toml"))
bankshot.simulate("", grid=1, device=device)
assert_type(device.shared_wavefronts([0, 4], 4), int)


def test_kernel(bankshot: Bankshot) -> None:
    measured = bankshot.run("k.wgsl", grid=1, bindings=named)
    assert_type(measured, MeasuredRun)
    assert_type(measured.excess_wavefronts, int)
    assert_type(measured.findings[0].message, str)
    assert_type(measured.sites[0].flops, int)
