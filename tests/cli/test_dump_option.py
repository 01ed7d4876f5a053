"""`bankshot run --dump`: the text of stages on stdout, and nothing is run."""

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.sim.dump import STAGES
from tests.scaling import PARAMS, manifest
from tests.scaling import SHADER as SCALE


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr("bankshot.sim.run.prepared.measure", lambda *_, **__: pytest.fail("runs"))
    (tmp_path / "scale.wgsl").write_text(SCALE)
    (tmp_path / "scale.toml").write_text(manifest(PARAMS))
    return tmp_path / "scale.toml"


def bankshot(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.mark.parametrize(
    ("stage", "start"),
    [("syntax", "struct "), ("typed", "module "), ("ir", "access #0: "), ("program", "program: "), ("machine", "comp")],
)
def test_one_stage_is_printed_as_it_is(path, stage, start):
    result = bankshot("run", path, "--dump", stage)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(start)


def test_several_stages_have_headings(path):
    options = [part for stage in STAGES for part in ("--dump", stage)]
    lines = bankshot("run", path, *options).stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("---- ")] == [f"{s}:" for s in STAGES]


def test_probes_decide_which_instructions_there_are(path):
    counted, bare = (
        bankshot("run", path, "--dump", "program", "--probes", probes).stdout for probes in ("counters", "none")
    )
    assert "  sectors  " in counted
    assert "  sectors  " not in bare


def test_options_of_a_run_are_refused(path):
    result = bankshot("run", path, "--dump", "ir", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--dump prints text and runs nothing: leave out --json" in result.stderr


def test_a_stage_must_exist(path):
    result = bankshot("run", path, "--dump", "llvm")
    assert result.exit_code == 2
    assert "'syntax', 'typed', 'ir', 'program', 'machine'" in result.stderr
