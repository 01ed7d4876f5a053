"""`--limit`: one option of all commands that run drivers or references."""

import pytest
from click.testing import CliRunner

from bankshot.oracle import errors
from bankshot.oracle.cli.main import main

COMMANDS = {
    "run": ["missing.toml"],
    "audit": ["missing.toml"],
    "diff": ["missing.toml"],
    "sweep": ["missing.toml"],
    "advise": ["missing.toml"],
    "time": ["missing.toml"],
    "adapters": [],
}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv(errors.LIMIT, "7")  # so that it is restored
    monkeypatch.setattr("bankshot.oracle.wgpu_client.adapter_survey.survey", list)
    monkeypatch.setattr("bankshot.oracle.wgpu_client.adapter_survey.added", lambda: ((), ()))


@pytest.mark.parametrize(("command", "arguments"), COMMANDS.items())
def test_the_limit_of_a_command(command, arguments):
    CliRunner().invoke(main, [command, *arguments])
    assert errors.time_limit() == 7.0
    CliRunner().invoke(main, [command, "--limit", "2.5", *arguments])
    assert errors.time_limit() == 2.5


@pytest.mark.parametrize(("command", "arguments"), COMMANDS.items())
def test_a_limit_of_no_time_is_wrong(command, arguments):
    result = CliRunner().invoke(main, [command, "--limit", "0", *arguments])
    assert result.exit_code == 2
    assert "--limit" in result.output
