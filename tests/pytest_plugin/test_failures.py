"""What pytest prints for kernels that fail: a screen for each, wrong outputs first, as --tb says; and for updates."""

import pkgutil
from importlib import import_module

import pytest

from bankshot.sim.disk_cache import cache_home
from tests.scaling import PARAMS, SHADER, manifest

pytest_plugins = ["pytester"]

CACHE = str(cache_home().parent)  # of this process: pytester changes HOME
EXPECT = '\n[[sweep]]\nN = [40]\n\n[expect]\nflops = "{flops}"\ngolden = true\n'
REFERENCE = """
def scale(arrays, dims):
    return {"y": 2.5 * arrays["x"]}
"""
WRONG = SHADER.replace("params.factor * x[id.x]", "params.factor * x[id.x] + 1.0")
RACY = SHADER.replace("if id.x < params.n {", "y[0] = f32(id.x); if id.x < params.n {")


@pytest.fixture(autouse=True, scope="module")
def _imported():
    """Import what an audit imports: pytester removes what a run within the process imports anew."""
    for package in ("sim", "oracle.judge", "oracle.reports", "oracle.references", "oracle.wgpu_client"):
        found = import_module(f"bankshot.{package}")
        for each in pkgutil.walk_packages(found.__path__, f"{found.__name__}."):
            import_module(each.name)


@pytest.fixture
def kernels(pytester, monkeypatch):
    """Three kernels: one whose output is wrong, one with a race, and one whose cost is not as expected."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("BANKSHOT_CACHE", CACHE)
    pytester.makepyfile(reference=REFERENCE)
    for name, shader, flops in (("wrong", WRONG, "N"), ("racy", RACY, "N"), ("costly", SHADER, "N + 1")):
        path = pytester.path / f"{name}.wgsl"
        path.write_text(shader)
        kernel = 'reference = "reference.py:scale"'
        text = manifest(PARAMS, EXPECT.format(flops=flops), source=path.name, kernel=kernel)
        (pytester.path / f"{name}.toml").write_text(text)
    return pytester


def run(kernels, *options):
    return kernels.runpytest_inprocess("-p", "no:cacheprovider", *options).outlines


def test_three_failures_end_within_sixty_lines_and_each_fits_a_screen(kernels):
    lines = run(kernels, "-q")
    assert len(lines) <= 60
    starts = [number for number, line in enumerate(lines) if line.startswith("____")]
    assert len(starts) == 3
    assert max(after - before for before, after in zip(starts, [*starts[1:], len(lines)], strict=True)) <= 40


def test_a_wrong_output_comes_before_counters_and_goldens(kernels):
    text = "\n".join(run(kernels, "wrong.toml"))
    order = ("DIFFERS  y against reference", "DIFFERS  flops", "DIFFERS  golden", "in full: bankshot audit")
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_the_summary_and_tb_line_name_the_place_that_wrote_the_wrong_element(kernels):
    lines = run(kernels, "wrong.toml", "--tb=line")
    assert any(line.startswith(f"{kernels.path}/wrong.wgsl:8: output: y against reference") for line in lines)
    assert not any("written by" in line and "lane" in line and "[" in line[:14] for line in lines)
    assert any(line.startswith("FAILED wrong.toml::wrong[N=40] - output: y against ref") for line in lines)


def test_tb_no_prints_nothing_of_a_failure_and_tb_short_no_cost(kernels):
    assert not any("DIFFERS" in line for line in run(kernels, "wrong.toml", "--tb=no"))
    short = run(kernels, "wrong.toml", "--tb=short")
    assert any("DIFFERS" in line for line in short)
    assert not any(line.startswith("  cost  ") for line in short)


def test_an_update_says_how_many_goldens_it_wrote_and_why_not_others(kernels):
    first = run(kernels, "--bankshot-update")
    words = "0 goldens written; 0 unchanged; not written, because another check fails: "
    assert f"bankshot: {words}costly N=40, racy N=40, wrong N=40" in first
    (kernels.path / "wrong.wgsl").write_text(SHADER)
    again = run(kernels, "wrong.toml", "--bankshot-update")
    assert "bankshot: 1 golden written; 0 unchanged" in again
    assert "bankshot: 0 goldens written; 1 unchanged" in run(kernels, "wrong.toml", "--bankshot-update")
    assert not any("goldens written" in line for line in run(kernels, "wrong.toml"))
