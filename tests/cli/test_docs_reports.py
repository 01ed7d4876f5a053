"""docs/reports.md shows what the command on it prints."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.judge.coverage import CaseOutcome

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def printed():
    (command,) = re.findall(r"^    bankshot (.*)$", PAGE, re.MULTILINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        result = CliRunner().invoke(main, shlex.split(command))
    assert result.exit_code == 0, result.output
    return [line.rstrip() for line in result.stdout.splitlines()]


@pytest.mark.parametrize("block", re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL))
def test_a_block_of_the_page_is_printed(printed, block):
    """Line by line, in order; the page leaves lines out."""
    rest = iter(printed)
    for line in block.splitlines():
        assert any(each.startswith(line) for each in rest), line


def test_the_page_has_every_outcome():
    assert set(re.findall(r"^\| (\w+) \|", PAGE, re.MULTILINE)) - {"outcome"} == {each.value for each in CaseOutcome}
