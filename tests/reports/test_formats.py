"""Formats of audit reports: the folder lists them, and each follows the protocol."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from bankshot.oracle.cli.audit import audit
from bankshot.oracle.reports import formats
from bankshot.oracle.reports.audited import AuditReport
from bankshot.oracle.reports.protocol import OUTPUTS, AuditedCase, AuditFormat, Outcome, ReportOptions
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
