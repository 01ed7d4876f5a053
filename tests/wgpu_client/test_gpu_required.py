"""BANKSHOT_REQUIRE_GPU: the words that require a comparison with wgpu, and those that do not."""

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import UsageError
from bankshot.oracle.judge.options import Options
from bankshot.oracle.wgpu_client.adapter_choice import REQUIRE


@pytest.mark.parametrize("word", ["1", "true", "yes", "on", "TRUE", " Yes "])
def test_words_that_require_one(monkeypatch, word):
    monkeypatch.setenv(REQUIRE, word)
    assert Options().require_gpu


@pytest.mark.parametrize("word", ["", "0", "false", "no", "off", "Off"])
def test_words_that_do_not(monkeypatch, word):
    monkeypatch.setenv(REQUIRE, word)
    assert not Options().require_gpu


@pytest.mark.parametrize("word", ["2", "ture", "1.0", "-"])
def test_other_words_are_errors(monkeypatch, word):
    monkeypatch.setenv(REQUIRE, word)
    with pytest.raises(UsageError, match="BANKSHOT_REQUIRE_GPU must be 1, true, yes or on, or 0"):
        Options()


def test_no_gpu_contradicts_it(monkeypatch, tmp_path):
    (tmp_path / "k.wgsl").write_text("@compute @workgroup_size(1) fn main() {}")
    arguments = ["audit", str(tmp_path / "k.wgsl"), "--no-gpu"]
    monkeypatch.setenv(REQUIRE, "yes")
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 2
    assert "--no-gpu: BANKSHOT_REQUIRE_GPU is set" in refused.stderr
    monkeypatch.setenv(REQUIRE, "no")
    assert "BANKSHOT_REQUIRE_GPU" not in CliRunner().invoke(main, arguments).stderr
