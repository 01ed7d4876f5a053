"""The benchmark of growing cost: its arithmetic, its dispatches and their memory, and its section of the page."""

import math
from dataclasses import astuple
from math import prod

import numpy as np
import pytest

from bankshot.oracle.manifests.dimension_arithmetic import evaluate
from benchmarks import growth, growth_page, memory
from benchmarks.cases import SHADERS, case, size
from benchmarks.figures import Summary
from benchmarks.growth import LARGE, Growth, Line
from tests.benchmarks.test_calls import ON_LINUX


def grown(workgroups, seconds, peaks=None):
    """Dispatches of a kernel `ffn_project`, with 1,000 bytes of bindings for each workgroup."""
    spreads = {kind: tuple(Summary(s, 2 * s, 3 * s) for s in each) for kind, each in seconds.items()}
    return Growth("ffn_project", tuple(workgroups), tuple(1_000 * n for n in workgroups), spreads, peaks or {})


@pytest.mark.parametrize(
    ("workgroups", "seconds", "expected"),
    [
        ((10, 20, 40), (1.5, 2.0, 3.0), Line(fixed=1.0, each=0.05, off=0.0)),
        ((12,), (0.3,), Line(fixed=0.3, each=0.0, off=0.0)),
        ((1, 2, 3), (1.0, 4.0, 9.0), None),  # squares are no line
    ],
)
def test_the_cost_line_comes_with_its_deviation(workgroups, seconds, expected):
    line = grown(workgroups, {"plain": seconds}).line("plain")
    if expected is None:
        assert 0.1 < line.off < 0.5
    else:
        assert astuple(line) == pytest.approx(astuple(expected), abs=1e-12)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_the_exponent_is_that_of_large_dispatches(exponent):
    """Small ones, whose cost is mostly fixed, do not count."""
    counts = (LARGE // 10, LARGE, 10 * LARGE, 100 * LARGE)
    seconds = (1e6, *(1e-6 * n**exponent for n in counts[1:]))
    assert grown(counts, {"plain": seconds}).exponent("plain") == pytest.approx(exponent)


def test_one_large_dispatch_has_no_exponent():
    assert math.isnan(grown((LARGE // 2, LARGE), {"plain": (1.0, 2.0)}).exponent("plain"))


def test_memory_is_the_peak_in_bytes_of_bindings():
    each = grown((1, 4), {"plain": (1.0, 2.0)}, {"plain": (5_000, 8_000)})
    assert each.memory("plain") == (5.0, 2.0)


@pytest.mark.parametrize("name", growth.KERNELS)
@pytest.mark.parametrize("count", growth.WORKGROUPS[:3])
def test_a_kernel_has_the_workgroups_and_bindings_that_grow(name, count):
    made = case(f"{SHADERS / growth.KERNELS[name].at(count)}")
    assert made.kernel.name == name
    assert prod(made.grid) == count
    assert 1_000 * count < growth._bytes(made) < 2_500 * count + 500_000


@pytest.mark.parametrize("name", growth.KERNELS)
def test_the_largest_dispatch_has_the_workgroups_too(name):
    text = growth.KERNELS[name].at(growth.WORKGROUPS[-1])
    path, _, sizes = text.rpartition(":")
    kernel = case(f"{SHADERS / path}").kernel
    dims = kernel.dims | dict(size(text, each) for each in sizes.split(","))
    assert prod(evaluate(each, dims) for each in kernel.dispatch) == growth.WORKGROUPS[-1]


@ON_LINUX
def test_the_peak_is_that_of_the_dispatch_alone():
    """The bindings and one copy of them at least; not the memory of this process, nor that of Python."""
    here = np.ones(1 << 26)  # 512 MiB, which are resident
    text = f"{SHADERS / growth.KERNELS['gemv_subgroup'].at(9_600)}"
    bindings = growth._bytes(case(text))
    assert bindings < memory.peak(text, "nvidia", "none") < 4 * bindings < here.nbytes // 4


@ON_LINUX
def test_resident_memory_is_in_bytes():
    before = memory.resident()
    here = np.ones(1 << 23)
    assert 0.9 * here.nbytes < memory.resident() - before < 1.5 * here.nbytes


def test_dispatches_are_timed_and_saved(monkeypatch, tmp_path):
    monkeypatch.setattr(growth, "WORKGROUPS", (96, 288))
    monkeypatch.setattr(memory, "peak", lambda text, device, probes: 7 if probes == "all" else 5)
    monkeypatch.setattr(memory, "readable", lambda: True)
    done = growth.growth("nvidia", 1)
    assert [each.kernel for each in done] == list(growth.KERNELS)
    for each in done:
        assert each.workgroups == (96, 288)
        assert each.bindings[0] < each.bindings[1]
        assert each.peaks == {"plain": (5, 5), "all probes": (7, 7)}
        assert all(taken.least > 0 for kind in growth.PROBES for taken in each.seconds[kind])
    growth.save(done, tmp_path / "output")
    assert '"kernel": "gemv_subgroup"' in (tmp_path / "output" / "growth.json").read_text()


def test_other_systems_have_no_peaks(monkeypatch):
    monkeypatch.setattr(memory, "readable", lambda: False)
    assert growth._peaks(["k.toml:k:N=1"], "nvidia") == {}


COUNTS = (1_000, 10_000, 100_000)
COSTS = {"plain": (0.003, 0.012, 0.102), "all probes": (0.03, 0.21, 2.01)}  # 2 ms and 1 µs each; 10 ms and 20 µs
PEAKS = {"plain": (2_500_000, 20_000_000, 200_000_000), "all probes": (3_000_000, 21_000_000, 210_000_000)}


def test_the_section_has_the_lines_and_every_dispatch(tmp_path):
    """Seconds in the table are medians; the line is that of the minimum, which is half of it here."""
    each = grown(COUNTS, COSTS, PEAKS)
    text = "\n".join(growth_page.section([each], "p.svg"))
    assert "Dispatches of 1,000 to 100,000 workgroups" in text
    assert "| `ffn_project` | plain | 2 | 1 | 0% | 0.77 |" in text
    assert "| `ffn_project` | all probes | 10 | 20 | 0% | 0.91 |" in text
    assert "| `ffn_project` | 1,000 | 1 | 0.006 | 0.06 | 2.5 | 3 |" in text
    assert "| `ffn_project` | 100,000 | 100 | 0.204 | 4.02 | 2 | 2.1 |" in text
    growth_page.draw(tmp_path / "p.svg", [each])
    plot = (tmp_path / "p.svg").read_text()
    assert "ffn_project, plain: 1 µs a workgroup" in plot
    assert "peak memory / bytes of bindings" in plot


def test_the_section_without_memory_says_so(tmp_path):
    each = grown(COUNTS, COSTS)
    text = "\n".join(growth_page.section([each], "p.svg"))
    assert growth_page.NO_MEMORY in text
    assert "| `ffn_project` | 1,000 | 1 | 0.006 | 0.06 |\n" in text
    growth_page.draw(tmp_path / "p.svg", [each])
    assert "peak memory" not in (tmp_path / "p.svg").read_text()
