"""`bankshot sweep --time`: each row with the time of its shape, which changes no verdict."""

from __future__ import annotations

import csv
import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from bankshot.oracle import wgpu_client
from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import NoAdapter
from bankshot.oracle.sweep.columns import TIMES
from bankshot.oracle.wgpu_client import KernelTimes
from tests.scaling import PARAMS, SHADER, manifest

EXPECT = '[expect]\nbank_conflicts = 0\nunchecked = { y = "times matter" }\n'


def times_of(size):
    """Times that tell the size of a shape."""
    return KernelTimes(((size + 5) * 1e-6, (size + 3) * 1e-6, (size + 4) * 1e-6), 1e-6)


@pytest.fixture
def card(monkeypatch):
    """An adapter that takes N + 3 us for N elements. Returns the sizes that it was given, in groups."""
    asked = []

    def times(requests, *, rounds, cold):
        asked.append((rounds, [request.size for request in requests]))
        return [times_of(request.size) for request in requests]

    def request(text, entry, grid, bindings, **how):
        return SimpleNamespace(size=len(bindings["x"]))

    info = wgpu_client.AdapterInfo("card", "DiscreteGPU", "Vulkan", "driver", "1.2", "0.32")
    monkeypatch.setattr(wgpu_client, "require_adapter", lambda _: info)
    monkeypatch.setattr(wgpu_client, "dispatch_request", request)
    monkeypatch.setattr(wgpu_client, "time_dispatches", times)
    return asked


@pytest.fixture
def sweep(tmp_path):
    """Sweep a kernel over three sizes, in an order of their own. Returns the exit code, the JSON and the CSV."""
    (tmp_path / "scale.wgsl").write_text(SHADER)
    (tmp_path / "scale.toml").write_text(manifest(PARAMS, EXPECT))
    out = tmp_path / "rows.csv"
    words = ["sweep", str(tmp_path / "scale.toml"), "--dims", "N=64,32,96", "--out", str(out), "--jobs", "1", "--json"]

    def run(*more):
        result = CliRunner().invoke(main, [*words, *map(str, more)])
        rows = json.loads(result.stdout)["cases"] if result.stdout.startswith("{") else result.output
        with out.open() as file:
            return result.exit_code, rows, [*csv.DictReader(file)]

    return run


def test_each_row_has_the_time_of_its_own_shape(card, sweep):
    code, rows, table = sweep("--time", "--device", "nvidia,lavapipe")
    assert code == 0
    assert [(row["dims.N"], row["device"]) for row in rows] == [
        (size, device) for size in (64, 32, 96) for device in ("nvidia", "lavapipe")
    ]
    for row, written in zip(rows, table, strict=True):
        size = row["dims.N"]
        assert row["time_us"] == pytest.approx(size + 3)
        assert (row["time_q1_us"], row["time_q3_us"]) == pytest.approx((size + 2.5, size + 3.5))
        assert (row["time_adapter"], row["not_timed"]) == ("card", None)
        assert float(written["time_us"]) == pytest.approx(size + 3)
        assert [*written][-len(TIMES) :] == [*TIMES]


def test_shapes_are_timed_side_by_side_and_once(card, sweep):
    sweep("--time", "--device", "nvidia,lavapipe", "--rounds", 3)
    assert card == [(3, [64, 32, 96])]


def test_rows_of_the_journal_are_timed_again_and_others_have_no_columns(card, sweep):
    code, rows, table = sweep()
    assert (code, card, TIMES.keys() & table[0].keys(), TIMES.keys() & rows[0].keys()) == (0, [], set(), set())
    assert [row["time_us"] for row in sweep("--time")[1]] == pytest.approx([67, 35, 99])
    assert TIMES.keys() & sweep()[2][0].keys() == set()


def test_without_an_adapter_rows_have_the_reason(sweep, monkeypatch):
    def none(_=None):
        raise NoAdapter("wgpu finds no adapter")

    monkeypatch.setattr(wgpu_client, "require_adapter", none)
    code, rows, table = sweep("--time")
    assert (code, {row["verdict"] for row in rows}) == (0, {"clean"})
    assert {(row["time_us"], row["not_timed"]) for row in rows} == {(None, "wgpu finds no adapter")}
    assert {(row["time_us"], row["not_timed"]) for row in table} == {("", "wgpu finds no adapter")}


@pytest.mark.parametrize("more", [["--rounds", "3"], ["--adapter", "card"]])
def test_options_of_time_need_it(tmp_path, more):
    out = str(tmp_path / "rows.csv")
    result = CliRunner().invoke(main, ["sweep", str(tmp_path), "--out", out, *more])
    assert (result.exit_code, f"{more[0]} is for --time" in result.output) == (2, True)


def test_a_sweep_is_timed_on_one_adapter(tmp_path, monkeypatch):
    monkeypatch.setattr(wgpu_client, "parse_adapters", lambda text: text.split(","))
    out = str(tmp_path / "rows.csv")
    result = CliRunner().invoke(main, ["sweep", str(tmp_path), "--out", out, "--time", "--adapter", "one,other"])
    assert result.exit_code == 2
    assert "--adapter one,other: a sweep is timed on one adapter" in result.output


@pytest.mark.usefixtures("adapter")
def test_on_an_adapter(sweep):
    code, rows, _ = sweep("--time", "--rounds", 2)
    assert (code, {row["not_timed"] for row in rows}) == (0, {None})
    assert all(row["time_q1_us"] <= row["time_us"] <= row["time_q3_us"] for row in rows)
