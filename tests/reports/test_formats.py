"""Formats of audit reports: the folder lists them, and each follows the protocol."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import click
import pytest

from bankshot.oracle.cli.audit import audit
from bankshot.oracle.exit_codes import Failure
from bankshot.oracle.judge.coverage import CaseOutcome
from bankshot.oracle.reports import audit_text, formats, kernel_rows
from bankshot.oracle.reports.audited import AuditReport
from bankshot.oracle.reports.formats import text
from bankshot.oracle.reports.protocol import (
    OUTPUTS,
    AuditedCase,
    AuditFormat,
    Before,
    CaseFailure,
    CaseResult,
    Outcome,
    ReportOptions,
)
from bankshot.oracle.reports.remarks import Entry

FOLDER = Path(formats.__file__).parent


def options(stdout="text", **files):
    return ReportOptions(stdout, "auto", files, 120, False)


def names(chosen):
    return [each.name for each in chosen]


def test_every_file_of_the_folder_is_a_format():
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert set(names(formats.formats())) == files
    for each in formats.formats():
        assert AuditFormat in each.__mro__
        assert each.output in OUTPUTS
        assert each.help


def test_the_command_has_an_option_for_every_format():
    parameters = {parameter.name: parameter for parameter in audit.params}
    assert parameters["stdout"].type.choices == tuple(names(formats.printed()))
    assert set(names(formats.written())) <= parameters.keys()
    assert set(names(formats.formats())) == {*names(formats.printed()), *names(formats.written())}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (options("text"), ["github", "text"]),
        (options("github"), ["github", "text"]),
        (options("table"), ["github", "table"]),
        (replace(options("text"), before=Before("main", Path("b.json"))), ["github", "text"]),
        (replace(options("text"), before=Before("", Path("b.json"), keep=True)), ["github", "changes", "text"]),
        (replace(options("changes"), before=Before("main", Path("b.json"))), ["github", "changes"]),
        (options("json", html=Path("p.html"), sarif=Path("s.sarif")), ["html", "sarif", "github", "json"]),
    ],
)
def test_files_are_finished_before_stdout(given, expected):
    assert names(formats.enabled(given)) == expected


def test_a_new_format_is_one_module(monkeypatch):
    """A module in the folder is enough: the report is chosen by its name, and gets every case and the outcome."""
    seen = []

    class Format(AuditFormat):
        name = "count"
        help = "the number of cases"
        output = "stdout"

        def add(self, result):
            seen.append(result.kernel)

        def finish(self, outcome):
            seen.append(outcome.ok)

    module = ModuleType(f"{formats.__name__}.count")
    module.Format = Format
    monkeypatch.setitem(sys.modules, module.__name__, module)
    listed = [*formats.pkgutil.iter_modules(formats.__path__), formats.pkgutil.ModuleInfo(None, "count", False)]
    monkeypatch.setattr(formats.pkgutil, "iter_modules", lambda path: listed)
    formats.formats.cache_clear()
    try:
        report = AuditReport(options("count"), [])
        report.add(AuditedCase("k", True, Entry("k", True), {}))
        report.finish(Outcome("audit", True))
    finally:
        formats.formats.cache_clear()
    assert seen == ["k", True]


@pytest.mark.parametrize(
    ("detail", "part"),
    [("none", ""), ("full", "k  N=1\n  ERROR    no such file\n\n"), ("rows", "a row")],
)
def test_how_much_is_printed_of_a_case_that_cannot_run(detail, part):
    failure = CaseFailure("k", Path("k.wgsl"), "N=1", 1, Failure("error: no such file\nmore", 2), {})
    made = text.Format.failed_part(failure, ReportOptions("text", "auto", {}, 120, False, detail))
    if part == "a row":
        assert (made.kernel, made.shape, made.word) == ("k", "N=1", CaseOutcome.ERROR)
        assert click.unstyle(made.text) == "k  N=1\n  ERROR    no such file\n\n"
    else:
        assert click.unstyle(made) == part


@pytest.mark.parametrize(
    ("detail", "outcome", "part"),
    [
        ("none", "clean", ""), ("none", "failed", ""),
        ("full", "clean", "whole, full"), ("full", "failed", "whole, full"),
        ("rows", "clean", ("row", "")), ("rows", "failed", ("row", "in short")),
    ],
)  # fmt: skip
def test_how_much_is_printed_of_a_case(monkeypatch, detail, outcome, part):
    monkeypatch.setattr(audit_text, "audit_text", lambda audit, options, listing: f"whole, {listing}")
    monkeypatch.setattr(audit_text, "failure_text", lambda audit, options: "in short")
    monkeypatch.setattr(kernel_rows, "case_row", lambda audit, words: ("row", words))
    monkeypatch.setattr(kernel_rows, "word_of", lambda audit: CaseOutcome[outcome.upper()])
    case = CaseResult(object(), 1, True)
    assert text.Format.part(case, ReportOptions("text", "auto", {}, 120, False, detail)) == part


@pytest.mark.parametrize(
    ("stdout", "printed"), [("text", True), ("github", True), ("table", False), ("json", False), ("markdown", False)]
)
def test_the_formats_that_print_text(stdout, printed):
    assert text.Format.enabled(options(stdout)) == printed


def test_texts_are_printed_at_once_and_rows_at_the_end(capsys):
    made = text.Format(options(), (), ())
    rows = [kernel_rows.CaseRow("k", f"N={n}", word, text=words) for n, word, words in
            ((1, CaseOutcome.CLEAN, ""), (2, CaseOutcome.FAILED, "wrong\n"))]  # fmt: skip
    made.add(AuditedCase("k", True, {}, {"text": "all of it\n"}))
    assert capsys.readouterr().out == "all of it\n"
    for row in rows:
        made.add(AuditedCase("k", True, {}, {"text": row}))
    assert capsys.readouterr().out == ""
    made._show_rows()
    printed = capsys.readouterr().out
    assert printed.index("k ") < printed.index("wrong\n")
    made._rows = [kernel_rows.CaseRow("k", "N=1", CaseOutcome.ERROR, text="cannot run\n")]
    made._show_rows()
    assert capsys.readouterr().out == "cannot run\n"  # without a table
