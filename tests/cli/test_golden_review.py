"""`bankshot golden review`: what it shows, asks, writes and refuses."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from tests.scaling import manifest

ROOT = Path(__file__).parents[2]
SHADER = """
@group(0) @binding(0) var<storage> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32) fn scale(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&x) {
        y[id.x] = 2.0 * x[id.x];
    }
}
"""
MANIFEST = manifest("\n[[sweep]]\nN = [32, 33, 64, 65]\n", '\n[expect]\ngolden = "outputs"\n', n=32, y="unwritten")
SLOWER = ("y[id.x] = 2.0 * x[id.x]", "y[id.x] = x[id.x] + x[id.x ^ 0u]")  # another load, and the same outputs
WRONG = ("2.0 * x", "3.0 * x")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Four goldens, accepted."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("scale.wgsl").write_text(SHADER)
    Path("scale.toml").write_text(MANIFEST)
    done = review("--accept")
    assert done.exit_code == 0, done.output
    return tmp_path


def review(*options, path="scale.toml"):
    return CliRunner().invoke(main, ["golden", "review", path, "--no-gpu", *options])


def edit(old, new, name="scale.wgsl"):
    text = Path(name).read_text()
    assert old in text
    Path(name).write_text(text.replace(old, new))


def stored():
    return {path.name: path.read_bytes() for path in sorted(Path("golden").iterdir())}


def test_goldens_that_hold_are_not_asked_about(folder):
    before = stored()
    assert len(before) == 8  # .json and .npz of each
    done = review("--accept")
    assert (done.exit_code, stored()) == (0, before)
    assert done.output == "golden review: 4 goldens compared; none has changed\n"


def test_a_new_golden_is_offered(folder):
    for path in Path("golden").glob("scale-N65.*"):
        path.unlink()
    done = review("--reject")
    assert done.exit_code == 1
    assert "[1/1] scale N=65" in done.output
    assert "there is none" in done.output
    assert "global_sectors 18, barriers 0, flops 65; outputs: y" in done.output  # 2 * (65 floats in 9 sectors)
    assert "4 goldens compared; 1 rejected" in done.output
    assert len(stored()) == 6


def test_costs_and_outputs_are_shown_and_accepted(folder):
    before = stored()
    edit(*WRONG)
    done = review("--reject", "--kernel", "scale")
    assert (done.exit_code, stored()) == (1, before)
    assert "32 of 32 elements differ from the golden" in done.output
    kept = np.load("golden/scale-N32.npz")["y"]
    apart = [abs(int(a) - int(b)) for a, b in zip(kept.view(np.int32), (kept * 1.5).view(np.int32), strict=True)]
    assert f"[{np.argmax(apart)}]" in done.output.split("[2/4]")[0]
    assert "4 goldens compared; 4 rejected" in done.output

    done = review("--accept")
    assert done.exit_code == 0
    for size in (32, 33, 64, 65):
        assert f"wrote {Path('golden', f'scale-N{size}.json')}\n" in done.output
    assert "4 goldens compared; 4 accepted" in done.output
    assert review("--reject").exit_code == 0  # nothing is left to review


def test_counters_are_shown_by_line(folder):
    edit(*SLOWER)
    done = review("--reject")
    assert "scale.wgsl:6: " in done.output
    assert "elements differ" not in done.output


def test_a_digest_alone_says_how_to_see_elements(folder):
    edit('"outputs"', "true", "scale.toml")
    CliRunner().invoke(main, ["audit", "scale.toml", "--no-gpu", "--update-golden"])
    edit(*WRONG)
    assert 'with [expect] golden = "outputs"' in review("--reject").output


def test_a_change_is_not_offered_where_another_check_fails(folder):
    before = stored()
    edit(*SLOWER)
    edit("[expect]", "[expect]\nflops = 0", "scale.toml")
    done = review("--accept")
    assert (done.exit_code, stored()) == (1, before)
    assert "not offered: scale N=32: another check fails: flops  32, the manifest expects 0" in done.output
    assert "4 goldens compared; 4 not offered" in done.output


def test_another_device_is_not_offered(folder):
    before = stored()
    done = review("--accept", "--device", "amd")
    assert (done.exit_code, stored()) == (1, before)
    assert "it was made for device nvidia" in done.output


def test_a_case_that_cannot_run_is_an_error_beside_the_others(folder):
    Path("broken.toml").write_text(MANIFEST.replace("scale.wgsl", "missing.wgsl"))
    edit(*WRONG)
    done = review("--accept", path=".")
    assert done.exit_code == 2
    assert "missing.wgsl" in done.output
    assert done.output.splitlines()[-1] == "golden review: 4 goldens compared; 4 accepted; 1 case could not be run"


def test_json_has_every_decision(folder):
    edit(*WRONG)
    done = review("--reject", "--json")
    document = json.loads(done.stdout)
    assert (document["verb"], document["ok"]) == ("golden review", False)
    assert [(case["title"], case["decision"]) for case in document["cases"]] == [
        (f"scale N={size}", "rejected") for size in (32, 33, 64, 65)
    ]
    assert document["cases"][0]["changes"][0] == "y: 32 of 32 elements differ from the golden"


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        ((), {}, "stdin is no terminal, so that nothing can be asked; pass --accept or --reject"),
        (("--json",), {}, "--json does not ask; pass --accept or --reject"),
        (("--accept",), {"CI": "true"}, "CI is set, and goldens are never written there"),
        (("--accept",), {"BANKSHOT_REQUIRE_GPU": "1"}, "which requires a comparison with wgpu"),
    ],
    ids=str,
)
def test_what_is_refused(folder, monkeypatch, options, environment, message):
    before = stored()
    edit(*WRONG)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = review(*options)
    assert (done.exit_code, stored()) == (2, before)
    assert message in done.output


def test_a_manifest_without_goldens_is_refused(folder):
    edit('golden = "outputs"', "", "scale.toml")
    done = review("--accept")
    assert (done.exit_code, done.output) == (
        2,
        "error: no kernel has a golden; `golden = true` in [expect] asks for one\n",
    )


def test_unused_goldens_are_listed_and_pruned(folder):
    """A shape that is gone, a kernel that was renamed, an owner that is gone; goldens of others stay."""
    edit("N = [32, 33, 64, 65]", "N = [32, 33, 64]", "scale.toml")
    gone = json.loads(Path("golden/scale-N32.json").read_text()) | {"owner": "test_gone.py"}
    Path("golden/gone.json").write_text(json.dumps(gone))
    Path("test_here.py").write_text("")
    Path("golden/here.json").write_text(json.dumps(gone | {"owner": "test_here.py"}))
    Path("golden/notes.json").write_text("{}")
    before = stored()
    done = review("--reject")
    assert (done.exit_code, stored()) == (0, before)
    assert done.output.splitlines() == [
        "unused: golden/gone.json, of test_gone.py (scale N=32)",
        "unused: golden/scale-N65.json, of scale.toml (scale N=65)",
        "golden review: 3 goldens compared; none has changed; 2 unused, --prune removes them",
    ]
    assert "unused" not in review("--reject", "--kernel", "scale").output

    done = review("--prune")
    assert done.exit_code == 0
    assert "removed golden/scale-N65.json, of scale.toml (scale N=65)\n" in done.output
    assert before.keys() - stored().keys() == {"gone.json", "scale-N65.json", "scale-N65.npz"}
    assert "unused" not in review("--reject").output


def test_a_heavy_shape_and_a_broken_manifest_keep_their_goldens(folder):
    with Path("scale.toml").open("a") as file:
        file.write('\n[[sweep]]\ncost = "heavy"\nN = [96]\n')
    assert review("--accept", "--sweep").exit_code == 0
    before = stored()
    assert "scale-N96.json" in before
    assert review("--prune").exit_code == 0
    Path("scale.toml").rename("held.toml")
    Path("other.toml").write_text(MANIFEST.replace("scale.wgsl", "missing.wgsl"))
    Path("scale.toml").write_text("[kernel]\nsource = 1\n")
    review("--prune", path=".")
    assert stored() == before


def test_json_has_unused_goldens(folder):
    edit("N = [32, 33, 64, 65]", "N = [32, 33, 64]", "scale.toml")
    for options, decision in ((("--reject",), ""), (("--prune",), "removed")):
        (case,) = json.loads(review(*options, "--json").stdout)["cases"]
        assert (case["golden"], case["state"], case["decision"]) == ("golden/scale-N65.json", "unused", decision)


def test_pruning_goes_with_all_kernels(folder):
    done = review("--prune", "--kernel", "scale")
    assert done.exit_code == 2
    assert "--prune looks at all kernels" in done.output


def test_a_manifest_that_asks_for_no_golden_any_more_can_be_pruned(folder):
    edit('golden = "outputs"', "", "scale.toml")
    assert review("--prune").exit_code == 0
    assert stored() == {}


def test_a_golden_that_cannot_be_written(folder):
    """What was written before is reported."""
    before = stored()
    edit(*WRONG)
    Path("golden/scale-N33.npz").unlink()
    Path("golden/scale-N33.npz").symlink_to("no/such/folder.npz")
    done = review("--accept")
    assert done.exit_code == 2
    assert "wrote golden/scale-N32.json" in done.output
    assert "1 accepted, 3 skipped" in done.output
    assert "no such file or directory" in done.output
    assert Path("golden/scale-N64.json").read_bytes() == before["scale-N64.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of Unix")
def test_each_change_is_asked_about(folder):
    """On a terminal: accept, reject, quit."""
    import pty  # of Unix alone
    import termios

    before = stored()
    edit(*WRONG)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "bankshot", "golden", "review", "scale.toml", "--no-gpu"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as run:
        assert run.stdout is not None
        limit = Timer(60, run.kill)
        limit.start()
        said = b""
        for key in (b"A", b"r", b"q"):
            while not said.endswith(b"[q] quit  "):
                byte = run.stdout.read(1)
                assert byte, said
                said += byte
            while termios.tcgetattr(theirs)[3] & termios.ICANON:
                time.sleep(0.01)  # a key that is pressed before the command reads is discarded
            os.write(ours, key)
            said += b"\n"
        said += run.stdout.read()
        limit.cancel()
    os.close(ours)
    os.close(theirs)
    text = said.decode()
    assert run.returncode == 1
    assert text.index("[1/4] scale N=32") < text.index("-> accept") < text.index("[2/4]") < text.index("-> reject")
    assert "4 goldens compared; 1 accepted, 1 rejected, 2 skipped" in text
    after = stored()
    assert [name for name in after if after[name] != before[name]] == ["scale-N32.json", "scale-N32.npz"]
