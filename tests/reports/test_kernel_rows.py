"""`bankshot audit` of many cases: a row for each kernel, and what is wrong below, the worst first."""

import re
from io import StringIO
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from rich.console import Console

from bankshot.oracle.cli.main import main
from bankshot.oracle.reports.cost_places import CostTotals
from bankshot.oracle.reports.kernel_rows import MOST_TEXTS, CaseRow, failures, kernel_rows, show_kernels
from bankshot.oracle.workers import progress
from tests.scaling import PARAMS, SHADER, manifest

SWEEP = '\n[[sweep]]\nN = [32, 40, 64]\n\n[expect]\nflops = "N"\nunchecked = { y = "its costs matter" }\n'
RACY = SHADER.replace("if id.x < params.n {", "y[0] = f32(id.x); if id.x < params.n {")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, shader in (("fine", SHADER), ("racy", RACY)):
        (tmp_path / f"{name}.wgsl").write_text(shader)
        (tmp_path / f"{name}.toml").write_text(manifest(PARAMS, SWEEP, source=f"{name}.wgsl"))
    return tmp_path


def audit(*options):
    return CliRunner().invoke(main, ["audit", ".", "--no-gpu", *options])


def test_a_row_for_each_kernel_failures_first_and_in_full_below(folder):
    (folder / "gone.toml").write_text(manifest(PARAMS, SWEEP, source="gone.wgsl"))
    done = audit()
    lines = done.stdout.splitlines()
    assert done.exit_code == 2
    assert [line.split()[:3] for line in lines[1:4]] == [["error", "gone", "1"], ["failed", "racy", "3"],
                                                         ["clean", "fine", "3"]]  # fmt: skip
    assert lines[1].endswith("could not be run: gone.toml:2: source gone.wgsl does not exist")
    below = done.stdout.partition("\n\n")[2]
    assert below.index("gone\n  ERROR") < below.index("racy  N=32")
    assert below.count("charged as") == 1  # only the first shape in full
    assert "error[race]: " in below
    assert "failed in 2 more cases of racy: N=40, N=64" in below
    assert "fine" not in below


@pytest.mark.parametrize("width", [72, 80, 120])
def test_the_table_is_aligned_and_no_wider_than_the_terminal(width):
    place = SimpleNamespace(at="tiles.wgsl:102", why="2 wavefronts per request, where 1 would do")
    cost = CostTotals(excess_wavefronts=1.2e6, sectors=3, ideal_sectors=2, active_lanes=9, issued_lanes=10, worst=place)
    rows = kernel_rows([CaseRow("multiply", "", "clean", cost),
                        CaseRow("gone", "", "error", reason="k.toml:2: source k.wgsl does not exist")])  # fmt: skip
    out = StringIO()
    show_kernels(Console(file=out, width=width), rows)
    lines = out.getvalue().splitlines()
    heading = next(line for line in lines if "worst line" in line)
    error, clean = lines[-2:]
    assert max(map(len, lines)) <= width
    for column, text in (("kernel", "multiply"), ("worst line", "tiles")):
        assert heading.index(column) == clean.index(text)
    for column, text in (("cases", " 1 "), ("lanes", "90%"), ("wavefronts", "1.20M"), ("ideal", "x1.50")):
        end = heading.index(column) + len(column)
        assert clean[:end].endswith(text.rstrip())
    assert error[: heading.index("cases") + 5].split() == ["error", "gone", "1"]
    assert error[heading.index("cases") + 5 :].startswith("  could not be run: k.toml:2")


def test_the_last_line_has_the_counts_the_time_and_where_there_is_more(folder):
    last = audit().stdout.splitlines()[-1]
    assert re.fullmatch(
        r"audit: 3 of 6 cases clean; 3 failed; compared with expected counters \(6\); 6 not compared with wgpu: not "
        r"asked for; 6 outputs unchecked, with a reason in the manifest; took [\d.]+ m?s; -v shows each case in full",
        last,
    )
    assert audit("--html", "page.html").stdout.splitlines()[-1].endswith("; full report: page.html")


def test_quiet_prints_the_last_line_and_verbose_every_case(folder):
    (only,) = audit("-q").stdout.splitlines()
    assert only.startswith("audit: 3 of 6 cases clean")
    assert audit("-v").stdout.count("charged as nvidia") == 6
    assert len(audit("-q", "--format", "table").stdout.splitlines()) == 1


def test_one_case_is_shown_in_full(folder):
    done = audit("--kernel", "fine", "--set", "N=32")
    assert "workgroup memory wavefronts" in CliRunner().invoke(main, ["audit", "fine.toml", "--set", "N=32"]).stdout
    assert done.exit_code in (0, 2)


def test_nothing_is_printed_to_stderr_unless_it_takes_long(folder, monkeypatch):
    assert audit().stderr == ""
    monkeypatch.setattr(progress, "PERIOD", 0.0)
    assert "[1/6] fine N=32: simulating as nvidia with all counters" in audit().stderr


def test_the_least_severity_that_fails_is_chosen(folder):
    (folder / "racy.wgsl").unlink()
    (folder / "racy.toml").unlink()
    (folder / "fine.wgsl").write_text(SHADER.replace("* x[id.x]", "* x[id.x + 1000u]"))
    assert audit().exit_code == 1
    warned = audit("--fail-on", "error")
    assert warned.exit_code == 0
    assert warned.stdout.splitlines()[1].split()[:2] == ["warns", "fine"]
    assert "warning[out-of-bounds]: " in warned.stdout


def row(kernel, word, weight=0.0):
    return CaseRow(kernel, "N=1", word, CostTotals(passes=100, excess=100 * weight), text=f"{kernel} {word}\n")


def test_rows_are_ranked_by_outcome_then_by_cost():
    cases = [row("cheap", "clean", 0.1), row("dear", "clean", 0.9), row("odd", "unchecked"), row("warned", "warns"),
             row("bad", "clean", 0.5), row("bad", "failed"), row("gone", "error")]  # fmt: skip
    assert [each.kernel for each in kernel_rows(cases)] == ["gone", "bad", "odd", "warned", "dear", "cheap"]


def test_every_outcome_of_a_kernel_is_shown_and_their_number_is_limited():
    rows = kernel_rows([row("k", "failed"), row("k", "error"), row("k", "failed"), row("j", "unchecked")])
    assert "".join(failures(rows)) == (
        "k error\nk failed\n  failed in 1 more case of k: N=1\n\nj unchecked\n"
    )  # fmt: skip
    many = list(failures(kernel_rows([row(f"k{n}", "failed") for n in range(MOST_TEXTS + 3)])))
    assert len(many) == MOST_TEXTS + 1
    assert many[-1] == "3 more kernels not shown here\n\n"
