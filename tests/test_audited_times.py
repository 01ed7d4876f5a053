"""`bankshot audit --time`: times beside counts, which are no part of the verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from bankshot.oracle import wgpu_client
from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import GpuError, Lacking, NoAdapter
from bankshot.oracle.wgpu_client import KernelTimes
from tests.scaling import PARAMS, SHADER, manifest

INFO = wgpu_client.AdapterInfo("card", "DiscreteGPU", "Vulkan", "driver", "1.2", "0.32")
TIMES = KernelTimes((5e-6, 3e-6, 4e-6), 1e-6)
EXPECT = '[expect]\nbank_conflicts = 0\nunchecked = { y = "times matter" }\n'
WORDS = "measured time  3 us (2 us to 4 us, 3 passes) on card"


def audit(*args: object, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["audit", "--no-gpu", *map(str, args)])
    assert result.exit_code == code, result.output
    return result.output


def entries(*args: object, code: int = 0) -> list[dict[str, Any]]:
    result = CliRunner().invoke(main, ["audit", "--no-gpu", "--json", *map(str, args)])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)["cases"]


@pytest.fixture
def card(monkeypatch):
    """An adapter that takes 3 us for every dispatch. Returns how it was asked, for each group of dispatches."""
    asked: list[dict[str, Any]] = []

    def times(requests, **how):
        asked.append({"count": len(requests), **how})
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
    (tmp_path / "scale.toml").write_text(manifest(PARAMS, EXPECT))
    return tmp_path / "scale.toml"


def verdicts(cases):
    return [{key: each for key, each in case.items() if key not in ("times", "seconds")} for case in cases]


def test_json_has_times_beside_an_unchanged_verdict(card, path):
    (case,) = entries(path, "--time")
    (time,) = case["times"]
    assert (time["median_us"], time["launch_us"], time["gpu"]["name"]) == (pytest.approx(3), pytest.approx(1), "card")
    assert time["quartiles_us"] == pytest.approx([2.5, 3.5])
    plain = entries(path)
    assert (plain[0]["times"], verdicts([case])) == ([], verdicts(plain))


def test_a_case_in_full_has_a_line_for_each_adapter(card, path, monkeypatch):
    assert WORDS in audit(path, "--time")
    assert "measured time" not in audit(path)
    monkeypatch.setattr(wgpu_client, "parse_adapters", lambda _: ("card", "again"))
    assert audit(path, "--time").count(WORDS) == 2


def test_many_cases_have_a_line_each_below_their_rows(card, path):
    lines = audit(path, path, "--time").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("card (DiscreteGPU"))
    assert lines[first + 1 : first + 3] == ["      3 us  scale  N=40  (2 us to 4 us, 3 passes)"] * 2


def test_a_table_has_a_column(card, path):
    heading, row, *_ = audit(path, "--time", "--format", "table").splitlines()
    assert (heading.split()[-1], row.split()[-2:]) == ("time", ["3", "us"])
    assert "time" not in audit(path, "--format", "table").splitlines()[0].split()


def test_a_page_has_the_line(card, path, tmp_path):
    page = tmp_path / "page.html"
    audit(path, "--time", "--html", page)
    assert "Measured time: 3 us (2 us to 4 us, 3 passes) on card" in page.read_text()
    audit(path, "--html", page)
    assert "Measured time" not in page.read_text()


def test_all_cases_are_timed_together_in_the_rounds_that_are_asked_for(card, path):
    audit(path, path, "--time")
    audit(path, path, path, "--time", "--rounds", 3)
    assert card == [{"count": 2, "rounds": 10, "cold": False}, {"count": 3, "rounds": 3, "cold": False}]


def test_without_an_adapter_counts_are_shown_and_the_reason(path, monkeypatch):
    def none(_):
        raise NoAdapter("wgpu finds no adapter")

    monkeypatch.setattr(wgpu_client, "parse_adapters", lambda _: (None,))
    monkeypatch.setattr(wgpu_client, "require_adapter", none)
    assert "measured time  not timed: wgpu finds no adapter" in audit(path, "--time")
    (case,) = entries(path, "--time")
    assert (case["times"][0]["not_timed"], case["times"][0]["gpu"]) == ("wgpu finds no adapter", None)
    assert verdicts([case]) == verdicts(entries(path))
    assert "error: wgpu finds no adapter" in audit(path, "--time", "--adapter", "card", code=2)


def test_an_adapter_without_a_clock_is_named(card, path, monkeypatch):
    def times(*_, **__):
        raise Lacking("the adapter has no clock")

    monkeypatch.setattr(wgpu_client, "time_dispatches", times)
    assert "measured time  not timed on card: the adapter has no clock" in audit(path, "--time")
    assert "NOT TIMED  scale  N=40: the adapter has no clock" in audit(path, path, "--time")


def test_a_dispatch_that_wgpu_refuses_does_not_keep_the_others_from_being_timed(card, path, tmp_path, monkeypatch):
    (tmp_path / "other.wgsl").write_text(f"// refused\n{SHADER}")
    (tmp_path / "other.toml").write_text(manifest(PARAMS, EXPECT).replace("scale.wgsl", "other.wgsl"))
    plain = wgpu_client.time_dispatches

    def times(requests, **how):
        if any("// refused" in request[0][0] for request in requests):
            raise GpuError("no such feature\nsecond line")
        return plain(requests, **how)

    monkeypatch.setattr(wgpu_client, "time_dispatches", times)
    cases = entries(path, tmp_path / "other.toml", path, "--time")
    assert [case["times"][0]["not_timed"] for case in cases] == [None, "no such feature", None]


def test_a_case_that_cannot_be_run_does_not_keep_the_others_from_being_timed(card, path, tmp_path):
    (tmp_path / "bad.wgsl").write_text("fn f() { let x = y; }")
    (tmp_path / "bad.toml").write_text(manifest(PARAMS, EXPECT).replace("scale.wgsl", "bad.wgsl"))
    cases = entries(tmp_path / "bad.toml", path, "--time", code=2)
    assert (cases[0]["outcome"], cases[1]["times"][0]["median_us"]) == ("error", pytest.approx(3))


@pytest.mark.parametrize("more", [["--rounds", "3"], ["--time", "--watch"]])
def test_options_that_do_not_go_together(path, more):
    assert "--time" in audit(path, *more, code=2)


@pytest.mark.usefixtures("adapter")
def test_on_an_adapter(path):
    (case,) = entries(path, "--time", "--rounds", 2)
    (time,) = case["times"]
    assert (time["not_timed"], len(time["passes_us"]) >= 2) == (None, True)
    assert time["median_us"] >= 0
