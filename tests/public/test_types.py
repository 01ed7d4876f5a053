"""The public interface as users see it; `tests/package` has what their type checkers see."""

import subprocess
import sys
from pathlib import Path

import pytest

import bankshot

ROOT = Path(__file__).parents[2]


def test_importing_bankshot_imports_no_numpy():
    code = "import sys, bankshot; print([m for m in ('numpy', 'numba', 'wgpu', 'click') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", bankshot.__all__)
def test_every_public_name_is_there(name):
    assert getattr(bankshot, name) is not None


def test_the_row_of_sites_is_called_site():
    run = bankshot.simulate("@compute @workgroup_size(1) fn main() { workgroupBarrier(); }", grid=1)
    assert [type(site) for site in run.sites] == [bankshot.Site]
    assert bankshot.Site.__name__ == "Site"
