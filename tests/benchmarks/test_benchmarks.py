"""The arithmetic of benchmarks, their commands, and the results of the peers."""

import os

import pytest
from click.testing import CliRunner

from bankshot.sim.launch.threads import THREADS
from benchmarks import __main__ as bench
from benchmarks import cases, control, growth, kernels, threads
from benchmarks.figures import Summary, rates, ratios
from benchmarks.growth import Growth
from benchmarks.page import Document, write
from benchmarks.peers import HERE, PEERS, peers, way
from benchmarks.ways import Way


def test_rates_use_the_work_of_each_way():
    """A peer that does 1/100 of the work in the same time is 100 times as slow."""
    seconds = {"simulator, races": [1.0, 2.0, 4.0], "Oclgrind, races": [2.0, 2.0, 2.0]}
    per_second = rates(seconds, {"simulator, races": 4e9, "Oclgrind, races": 4e7})
    assert per_second == {"simulator, races": [4e9, 2e9, 1e9], "Oclgrind, races": [2e7, 2e7, 2e7]}
    assert ratios(per_second) == {("simulator, races", "Oclgrind, races"): Summary(50, 100, 200)}


def test_ratios_are_computed_within_rounds():
    """Rounds that are slow for both ways do not change the ratio."""
    (ratio,) = ratios({"simulator, plain": [8.0, 2.0, 4.0], "wgpu": [4.0, 1.0, 2.0]}).values()
    assert ratio == Summary(2, 2, 2)


def test_the_control_measures_the_speedup_of_processors(monkeypatch):
    """Both ways do the same work, so that the ratio of their rates is the speedup."""
    monkeypatch.setattr(control, "processors", lambda: 3)
    several, one = control.control(turns=10)
    assert several.flops == one.flops == 3 * 10 * 2 * control.WORDS
    assert several.seconds() > 0
    assert one.seconds() > 0
    per_second = rates({several.name: [2.0, 1.0], one.name: [3.0, 3.0]}, {w.name: w.flops for w in (several, one)})
    assert ratios(per_second) == {(several.name, one.name): Summary(1.5, 2.25, 3)}


def test_gains_of_threads_and_processes():
    """Two processors that slow each other down: two processes are done in the time of three halves."""
    rounds = [threads.Round(threads=1.0, alone=1.5, beside=2.0), threads.Round(threads=2.0, alone=4.0, beside=5.0)]
    gains = threads.Gains.of(rounds, processors=2)
    assert gains.threads == Summary(1.5, 1.75, 2.0)
    assert gains.processes == Summary(1.5, 1.55, 1.6)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="run it on Linux: this system lacks sched_setaffinity")
def test_threads_and_processes_are_timed(monkeypatch):
    monkeypatch.setattr(threads, "WARM", 1)
    before = os.sched_getaffinity(0)
    done = CliRunner().invoke(threads.main, [f"{cases.SHADERS}/ffn/silu.toml:silu:N=512", "--rounds", "1"])
    assert done.exit_code == 0, done.output
    assert [line.split()[0] for line in done.output.splitlines()] == ["kernel", "silu", "silu", "silu"]
    assert os.environ.get(THREADS) is None
    assert os.sched_getaffinity(0) == before


@pytest.mark.usefixtures("lavapipe")  # what it compares with, unless told otherwise
def test_the_command_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "OUTPUT", tmp_path)
    monkeypatch.setattr(growth, "WORKGROUPS", (96, 192))
    monkeypatch.setattr(growth, "KERNELS", {"ffn_project": growth.KERNELS["ffn_project"]})
    kernels = ["shaders/matmul.toml:matmul:M=128,K=16,N=64", "shaders/swiglu.toml::M=4,K=64"]
    page = tmp_path / "page.md"
    result = CliRunner().invoke(bench.main, [*kernels, "--rounds", "1", "--page", str(page)])
    assert result.exit_code == 0, result.output
    assert "times as fast" in result.stdout
    assert (tmp_path / "matmul_128x16x64.json").exists()
    assert "BLAS / simulator, plain" in page.read_text()
    assert "a loop, every processor / a loop, one processor" in page.read_text()
    assert "Dispatches of 96 to 192 workgroups" in page.read_text()
    assert (tmp_path / "growth.json").exists()
    for wrong in (["shaders/matmul.toml:matmul:M=x"], ["--page", "none/page.md"]):
        assert CliRunner().invoke(bench.main, wrong).exit_code == 2


def test_the_page_shows_medians_with_extremes(tmp_path):
    way = Way("simulator, plain", 2e9, lambda: 1.0, "outputs only")
    spread = Summary(0.5, 1.0, 2000.0)
    machine = {"cores": 2, "processor": "abacus", "python": "3.11", "load": 0.5}
    document = Document("k", "N=1", machine, 3, (way,), {way.name: spread}, {way.name: Summary(1e9, 2e9, 4e9)},
                        {("simulator, plain", "wgpu"): spread}, ("Oclgrind: no",))  # fmt: skip
    seconds = {"plain": (Summary(1, 1, 1), Summary(2, 2, 2))}
    write(tmp_path / "p.md", document, [Growth("ffn_project", (1, 2), (4, 8), seconds, {})])
    text = (tmp_path / "p.md").read_text()
    assert "| simulator, plain | 1 (0.5 to 2,000) | 2,000 (1,000 to 4,000) | outputs only |" in text
    assert "| simulator, plain / wgpu | 1 (0.5 to 2,000) |" in text
    assert "- Oclgrind: no" in text
    assert "a load average of\n0.5 in the minute before" in text
    assert "## Cost against work\n\n![Seconds and memory by workgroups](p.svg)" in text
    assert "ffn_project, plain" in (tmp_path / "p.svg").read_text()


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_peer_computes_the_same_as_the_kernel(peer):
    """`way` compares its result with the reference."""
    why = peer.missing()
    if why is not None:
        pytest.skip(why)
    case = cases.case("shaders/matmul.toml:matmul")
    # Two workgroups of 64 x 64, as many fused multiply-adds for each unit of depth.
    assert way(peer, case, HERE / f"matmul{peer.suffix}").flops == 2 * 2 * 64 * 64 * (peer.depths[1] - peer.depths[0])


def test_a_kernel_without_transliterations_has_no_such_peers():
    found, absent = peers(cases.case("shaders/swiglu.toml"))
    assert [why for why in absent if why.startswith("Oclgrind:")] == ["Oclgrind: there is no swiglu.cl"]
    assert not any("Oclgrind" in way.name for way in found)


@pytest.mark.usefixtures("lavapipe")
def test_kernels_are_timed_and_profiled(tmp_path):
    page = tmp_path / "page.md"
    named = ["shaders/ffn/silu.toml::N=256", "shaders/q4_k/q4_fused.toml:q4_fused_small_k:N=1,K=4"]
    result = CliRunner().invoke(kernels.main, [*named, "--rounds", "1", "--page", str(page)])
    assert result.exit_code == 0, result.output
    lines = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    rows = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in lines]
    assert [row[0] for row in rows] == ["kernel", "---", "silu", "q4_fused_small_k"]
    for _, _, ours, theirs, ratio, *parts, _, _, why in rows[2:]:
        assert float(ratio) == pytest.approx(float(theirs) / float(ours), rel=0.02, abs=0.01)
        assert all(float(part) >= 0 for part in parts)
        assert (why == "") == (float(theirs) >= float(ours))


@pytest.mark.parametrize(
    ("seconds", "at_work", "largest"),
    [
        ((3.0, 2.0, 1.0), (1.0, 1.0), "Python"),
        ((1.0, 3.0, 2.0), (1.0, 1.0), "copies"),
        ((1.0, 2.0, 3.0), (1.0, 0.9), "instructions"),
        ((1.0, 2.0, 3.0), (0.1, 0.9), "idle lanes"),
        ((1.0, 2.0, 3.0), (0.9, 0.1), "idle lanes"),
    ],
)
def test_slow_kernels_show_their_largest_part(seconds, at_work, largest):
    profile = kernels.Profile(*seconds, 1 << 20, at_work)
    assert profile.largest == largest
    slow, fast = (str(kernels.Row("one", "N=1", 6.0, on_gpu, profile)) for on_gpu in (3.0, 12.0))
    assert slow.endswith(f"| {largest} |")
    assert fast.endswith("|  |")
