"""docs/sweeps.md is whole: it names every column, in order, and its example runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.sweep import COLUMNS
from bankshot.oracle.sweep.columns import TIMES
from bankshot.sim.run.counters import NAMES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sweeps.md").read_text()


def test_every_column_is_in_the_table():
    rows = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]
    counted = [name for name in COLUMNS if name in NAMES]
    assert counted == list(NAMES)  # in one row, which refers to docs/counters.md
    assert [name for name in named if name != "dims.M"] == [name for name in (*COLUMNS, *TIMES) if name not in NAMES]


def test_the_example_runs(tmp_path):
    shutil.copytree(ROOT / "shaders", tmp_path / "shaders", ignore=shutil.ignore_patterns("golden"))
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "example.py").write_text(example)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "example.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = sorted(line.split() for line in done.stdout.splitlines())
    # Two tiles cost twice what one does.
    assert [(row[0], row[2]) for row in printed] == [("128", "clean"), ("64", "clean")]
    assert int(printed[0][1]) == 2 * int(printed[1][1]) > 0


def test_the_options_exist():
    said = CliRunner().invoke(main, ["sweep", "--help"]).stdout
    for option in set(re.findall(r"--[a-z]+", PAGE)):
        assert option in said
