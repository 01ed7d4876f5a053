"""The benchmark of many calls in one process."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from benchmarks import calls, memory
from benchmarks.calls import ALLOWED, TENTHS, Tenth, summary

ON_LINUX = pytest.mark.skipif(not memory.readable(), reason="only Linux reports resident memory")


def test_a_tenth_has_the_median_and_the_99th_percentile_in_milliseconds():
    """Of 0 to 200 us in steps of 1 us, they are 100 us and 198 us."""
    tenth = Tenth.of(201, np.arange(201) * 1e-6, 5_000_000)
    assert (tenth.median, tenth.high) == pytest.approx((0.1, 0.198))
    assert str(tenth).split() == ["201", "0.1000", "0.1980", "5.00"]


@pytest.mark.parametrize(
    ("first", "last", "says"),
    [
        (95, 100, "did not grow in the second half of the calls (95.00 MB after 100,000"),
        (100, 95, "did not grow in the second half of the calls (100.00 MB after 100,000"),
        (100, 100 + ALLOWED / 1e6, "did not grow in the second half of the calls (100.00 MB after 100,000"),
        (100, 105, "grew by 10 bytes a call in the second half of the calls (100.00 MB after 100,000"),
    ],
)
def test_the_summary_compares_the_end_with_the_first_half(first, last, says):
    """What the first calls allocate once is no growth."""
    megabytes = [first, *[100] * (TENTHS - 2), last]
    tenths = [Tenth(100_000 * n, 0.1, 0.2, int(1e6 * each)) for n, each in enumerate(megabytes, 1)]
    ends = f"100.00 MB after 500,000, {last:.2f} MB after 1,000,000); median of all calls: 0.1235 ms"
    assert summary(tenths, 0.12345) == f"memory {says}, {ends}"


@ON_LINUX
@pytest.mark.parametrize("probes", ["none", "races,bounds"])
def test_the_command_prints_every_tenth_and_saves_it(monkeypatch, tmp_path, probes):
    monkeypatch.setattr(calls, "OUTPUT", tmp_path / "output")
    done = CliRunner().invoke(calls.main, ["--count", "25", "--probes", probes])
    assert done.exit_code == 0, done.output
    _, *tenths, memory_line, written = done.stdout.splitlines()
    assert [int(line.split()[0]) for line in tenths] == [2, 5, 7, 10, 12, 15, 17, 20, 22, 25]
    assert memory_line.startswith("memory ")
    path = tmp_path / "output" / f"calls_{probes.replace(',', '_')}.json"
    assert written == f"written to {path}"
    figures = json.loads(path.read_text())
    assert figures["count"] == 25
    assert len(figures["tenths"]) == TENTHS


@ON_LINUX
def test_every_call_has_other_numbers_and_a_wrong_output_ends_the_benchmark():
    prepared = bankshot.prepare(calls.WGSL, grid=calls.GRID, probes="none")
    seen = []

    def run(bindings):
        seen.append((float(bindings["factor"]), bindings["x"].tobytes()))
        return prepared.run(bindings)

    assert len(list(calls.calls(run, np.empty(40)))) == TENTHS
    assert len(set(seen)) == 40

    def wrong(bindings):
        return prepared.run(bindings | {"factor": bindings["factor"] + np.float32(1)})

    with pytest.raises(SystemExit, match="call 1 has another output than NumPy"):
        list(calls.calls(wrong, np.empty(40)))


@pytest.mark.parametrize("wrong", [["--count", "9"], ["--probes", "nothing"]])
def test_wrong_options_are_refused(wrong):
    assert CliRunner().invoke(calls.main, wrong).exit_code == 2


def test_a_system_without_the_figure_is_an_error(monkeypatch):
    monkeypatch.setattr(memory, "readable", lambda: False)
    done = CliRunner().invoke(calls.main, ["--count", "10"])
    assert done.exit_code == 2
    assert "does not report the resident memory" in done.output
