"""`bankshot time`: cases timed on an adapter."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle import kernel_timing, wgpu_client
from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import Lacking, TooLarge
from bankshot.oracle.judge.coverage import CaseOutcome
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.wgpu_client import KernelTimes
from tests.scaling import PARAMS, SHADER, manifest

INFO = wgpu_client.AdapterInfo("card", "DiscreteGPU", "Vulkan", "driver", "1.2", "0.32")
TIMES = KernelTimes((5e-6, 3e-6, 4e-6), 1e-6)


def run(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["time", *args])
    return result.exit_code, result.stdout


@pytest.fixture
def card(monkeypatch):
    """An adapter that takes 3 us for every dispatch. Returns the requests it was given, in groups."""
    asked: list[list[Any]] = []

    def times(requests, **how):
        asked.append([*requests])
        return [TIMES] * len(requests)

    monkeypatch.setattr(wgpu_client, "require_adapter", lambda _: INFO)
    monkeypatch.setattr(wgpu_client, "parse_adapters", lambda _: ("card",))
    monkeypatch.setattr(wgpu_client, "dispatch_request", lambda *args, **how: (args, how))
    monkeypatch.setattr(wgpu_client, "time_dispatches", times)
    return asked


@pytest.fixture
def path(tmp_path):
    """A manifest with one case."""
    (tmp_path / "scale.wgsl").write_text(SHADER)
    (tmp_path / "scale.toml").write_text(manifest(PARAMS))
    return tmp_path / "scale.toml"


def test_a_line_gives_the_median_the_quartiles_and_the_adapter_once(card, path):
    assert run(str(path), str(path)) == (
        0,
        "card (DiscreteGPU, Vulkan), driver driver 1.2, wgpu 0.32: median and quartiles by its clock, warm caches, "
        "launch 1 us taken off\n"
        "      3 us  scale  N=40  (2 us to 4 us, 3 passes)\n"
        "      3 us  scale  N=40  (2 us to 4 us, 3 passes)\n"
        "time: 2 of 2 cases timed; nothing compared\n",
    )


def test_json_has_the_figures_in_microseconds_and_what_they_were_taken_on(card, path):
    code, text = run(str(path), "--json", "--cold")
    (case,) = json.loads(text)["cases"]
    assert code == 0
    assert (case["median_us"], case["least_us"], case["launch_us"]) == pytest.approx((3, 2, 1))
    assert case["quartiles_us"] == pytest.approx([2.5, 3.5])
    assert case["passes_us"] == pytest.approx([5, 3, 4])
    assert (case["caches"], case["not_timed"], case["gpu"]["driver"], case["gpu"]["version"]) == (
        *("cold", None, "driver", "1.2"),
    )


@pytest.mark.parametrize("error", [Lacking("it has no f16"), TooLarge("x is too large")])
def test_a_case_that_cannot_be_timed_is_listed_with_its_reason(card, path, monkeypatch, error):
    plain = wgpu_client.dispatch_request
    refused = iter([True, False])

    def request(*args, **how):
        if next(refused):
            raise error
        return plain(*args, **how)

    monkeypatch.setattr(wgpu_client, "dispatch_request", request)
    code, text = run(str(path), str(path))
    assert code == 1
    assert f"NOT TIMED  scale  N=40: {error}" in text
    assert text.splitlines()[-1] == "time: 1 of 2 cases timed; nothing compared"
    assert [len(group) for group in card] == [1]


@pytest.mark.parametrize(("times", "outcome"), [(TIMES, CaseOutcome.CLEAN), (None, CaseOutcome.UNCHECKED)])
def test_a_case_is_clean_if_it_was_timed(times, outcome):
    timed = kernel_timing.CaseTime(cast(Any, None), INFO, False, times, None if times else "no clock")
    assert (timed.outcome, timed.ok) == (outcome, times is not None)


def test_an_adapter_without_a_clock_times_nothing(card, path, monkeypatch):
    def times(*_, **__):
        raise Lacking("the adapter has no clock")

    monkeypatch.setattr(wgpu_client, "time_dispatches", times)
    code, text = run(str(path), "--json")
    (case,) = json.loads(text)["cases"]
    assert (code, case["ok"], case["median_us"], case["not_timed"]) == (1, False, None, "the adapter has no clock")


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([1] * 16, [16]),
        ([1] * 17, [16, 1]),
        ([1 << 29, 1 << 29], [2]),
        ([1 << 29, 1 << 29, 1], [2, 1]),
        ([1 << 31, 1], [1, 1]),
        ([], []),
    ],
)
def test_cases_are_timed_together_while_they_fit(sizes, groups):
    cases = [SimpleNamespace(bindings={"x": SimpleNamespace(nbytes=size)}) for size in sizes]
    found = [*kernel_timing.groups(cast("Any", cases), kernel_timing._size)]
    assert [len(group) for group in found] == groups
    assert [case for group in found for case in group] == cases


def test_bytes_and_arrays_count_by_their_size():
    data = (b"four", np.zeros(3, np.float32), {"compare": "less"})
    cases = [SimpleNamespace(bindings={"x": each}) for each in data]
    assert [kernel_timing._size(cast("Any", case)) for case in cases] == [4, 12, 0]


@pytest.mark.usefixtures("adapter")
def test_on_an_adapter(path):
    (plan,) = plans([path], Request())
    (timed,) = kernel_timing.time_cases(plan.cases(), None, kernel_timing.Options(rounds=2), lambda _: None)
    assert timed.ok
    assert timed.times is not None
    assert 2 <= len(timed.times.passes) <= 10
    assert timed.times.least > 0 or timed.times.launch > 0


def test_a_case_that_cannot_be_prepared_has_its_reason_and_is_not_given_to_the_adapter(card, path, monkeypatch):
    (plan,) = plans([path], Request())
    (shape,) = plan.shapes
    answers = iter([("ready", 4), ("no such file", 0), ("ready", 4)])

    def prepared(*_):
        words, size = next(answers)
        return ((words,) if words == "ready" else words), size

    said = []
    monkeypatch.setattr(kernel_timing, "_prepared", prepared)
    found = kernel_timing.time_beside([(plan, shape)] * 3, None, kernel_timing.Options(), said.append)
    assert card == [[("ready",), ("ready",)]]
    assert [(each.times, each.not_timed) for (each,) in found] == [(TIMES, None), (None, "no such file"), (TIMES, None)]
    assert said == ["timing 3 cases on card"]
