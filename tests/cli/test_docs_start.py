"""docs/start.md is followed exactly, in a folder of its own."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bankshot.sim.disk_cache import cache_home

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
KERNEL, FIXED = re.findall(r"```wgsl\n(.*?)```", PAGE, re.DOTALL)
WRITTEN, EXPECT = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
(REFERENCE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
RACE, CLEAN = (text.strip() for text in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture
def run(tmp_path):
    """Run a command of the page."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p bankshot.oracle.pytest_plugin.hooks -p no:cacheprovider",
        "BANKSHOT_CACHE": str(cache_home().parent),
    }

    def run(line):
        assert f"    {line}\n" in PAGE
        command = [sys.executable, "-m", *shlex.split(line)]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run


@pytest.mark.usefixtures("adapter")
def test_the_page_is_true(run, tmp_path):
    kernel, manifest, reference = (tmp_path / name for name in ("sums.wgsl", "sums.toml", "sums_reference.py"))
    kernel.write_text(KERNEL)
    assert run("bankshot check sums.wgsl").returncode == 0
    assert run("bankshot init sums.wgsl").returncode == 0
    assert WRITTEN in manifest.read_text()
    assert "questions" not in manifest.read_text()

    *kept, _ = reference.read_text().splitlines(keepends=True)
    reference.write_text("".join(kept) + REFERENCE)
    audit = run("bankshot audit sums.toml")
    assert (audit.returncode, RACE in audit.stdout) == (1, True), audit.stdout + audit.stderr

    start = KERNEL.index(FIXED.splitlines()[0])
    end = KERNEL.index("    if lane == 0u")
    kernel.write_text(KERNEL[:start] + FIXED + KERNEL[end:])
    audit = run("bankshot audit sums.toml")
    assert (audit.returncode, CLEAN in audit.stdout) == (0, True), audit.stdout + audit.stderr

    manifest.write_text(manifest.read_text() + "\n" + EXPECT)
    assert run("bankshot audit sums.toml").returncode == 1  # there is no golden yet
    assert run("bankshot audit sums.toml --update-golden").returncode == 0
    assert run("bankshot audit sums.toml").returncode == 0
    tests = run("pytest .")
    assert tests.returncode == 0, tests.stdout
    kernel.write_text(kernel.read_text().replace("step = 64u", "step = 32u"))
    assert run("bankshot audit sums.toml").returncode == 1
