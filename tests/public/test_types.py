"""The public interface as users and their type checkers see it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bankshot

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


def pyright(names: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Check files in strict mode, against this checkout in the layout of a wheel."""
    package = folder / "layout" / "bankshot"
    package.mkdir(parents=True)
    for path in (*(ROOT / "bankshot").iterdir(), ROOT / "sim", ROOT / "oracle"):
        (package / path.name).symlink_to(path)
    for name in names:
        shutil.copy(HERE / name, folder)
    settings = {"include": names, "strict": names, "extraPaths": ["layout"]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [Path(sys.executable).with_name("pyright"), "-p", folder, "--pythonpath", sys.executable]
    return subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False)


def test_a_type_checker_finds_each_error_and_nothing_in_a_right_program(tmp_path):
    """In one run, which reads the package once."""
    done = pyright(["snippet.py", "wrong.py"], tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "snippet.py" not in done.stdout
    wrong = [n for n, line in enumerate((HERE / "wrong.py").read_text().splitlines(), 1) if "#" in line]
    assert {n for n in wrong if f"wrong.py:{n}:" not in done.stdout} == set()


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
