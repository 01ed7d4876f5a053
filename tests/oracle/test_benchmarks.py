"""The benchmark's arithmetic, and that its command runs."""

import pytest
from click.testing import CliRunner

from benchmarks import __main__ as bench


def test_figures_are_medians_and_ratios():
    seconds = {
        "simulator, plain": [1, 2, 9],
        "simulator, all counters": [3, 3, 2],
        "simulator, all probes": [4, 4, 4],
        "wgpu": [6, 6, 7],
        "BLAS": [0.5],
    }
    figures = bench._figures(seconds, 4e9)
    assert figures["seconds"]["simulator, plain"] == {"min": 1, "median": 2, "max": 9, "gflops": 2.0}
    assert figures["speed_ratios"] == {
        "simulator, plain / wgpu": 3.0,
        "simulator, all counters / wgpu": 2.0,
        "simulator, all probes / wgpu": 1.5,
        "simulator, plain / simulator, all counters": 1.5,
        "simulator, plain / simulator, all probes": 2.0,
        "BLAS / simulator, plain": 4.0,
    }


@pytest.mark.usefixtures("adapter")
def test_the_command_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "OUTPUT", tmp_path)
    cases = [f"{bench.ROOT}/shaders/{each}" for each in ("matmul.toml:matmul:M=64,K=16,N=64", "swiglu.toml::M=1,K=4")]
    result = CliRunner().invoke(bench.main, [*cases, "--rounds", "1"])
    assert result.exit_code == 0, result.output
    assert "speed ratios" in result.stdout
    assert "BLAS" in (tmp_path / "matmul_64x16x64.json").read_text()
    assert "BLAS" not in (tmp_path / "swiglu_1x4.json").read_text()
    assert CliRunner().invoke(bench.main, [f"{cases[0]},K=x"]).exit_code == 2
