"""Kernels with endless loops are stopped, reported, and not run on GPUs."""

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.judge import case_run
from tests.scaling import PARAMS, SHADER, manifest

TURNS = SHADER.replace("    if id.x", "    for (var i = 0u; i < 1000u; i++) { if x[0] == 1e9 { break; } }\n    if id.x")
ENDLESS = TURNS.replace("i < 1000u; i++", "i < 1000u;")


@pytest.fixture
def no_gpu(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("this must not run on the GPU")

    monkeypatch.setattr(case_run, "begin_on_gpu", refuse)


@pytest.fixture
def judged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def judge(verb, text, budget="", *options):
        (tmp_path / "scale.wgsl").write_text(text)
        (tmp_path / "scale.toml").write_text(manifest(PARAMS, kernel=budget))
        return CliRunner().invoke(main, [verb, "scale.toml", *options])

    return judge


@pytest.mark.usefixtures("adapter", "no_gpu")
@pytest.mark.parametrize("verb", ["audit", "diff"])
def test_an_endless_kernel_is_not_run_on_a_gpu(judged, verb):
    result = judged(verb, ENDLESS)
    assert result.exit_code == 1, result.output
    assert "a loop spent its budget, and one that does not end may hang a GPU" in result.output


def test_an_endless_loop_is_reported_with_its_line(judged):
    result = judged("run", ENDLESS)
    assert result.exit_code == 1, result.output
    assert "scale.wgsl:7:5: error[endless-loop]: this loop does not end: its state repeats" in result.output


def test_a_manifest_sets_the_budget(judged):
    assert judged("run", TURNS).exit_code == 0
    assert judged("run", TURNS, "budget = 1000").exit_code == 0
    result = judged("run", TURNS, "budget = 999")
    assert result.exit_code == 1
    assert "exceeded 999 loop iterations" in result.output
    assert "`budget` must be a positive integer, not -1" in judged("run", TURNS, "budget = -1").output


@pytest.mark.parametrize("verb", ["run", "audit", "diff"])
def test_the_budget_is_an_option_that_overrides_the_manifest(judged, verb):
    gpu = ["--no-gpu"] if verb == "audit" else []
    assert "endless-loop" not in judged(verb, TURNS, "budget = 1", "--budget", "1000", *gpu).output
    result = judged(verb, TURNS, "budget = 1000", "--budget", "999", *gpu)
    assert result.exit_code == 1, result.output
    assert "--budget" in judged(verb, TURNS, "", "--budget", "0").output
