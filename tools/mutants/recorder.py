"""A pytest plugin that writes which tests failed, and how long each took, to the file in `BANKSHOT_MUTANTS_RECORD`.

It runs only the test functions that the file in `BANKSHOT_MUTANTS_TESTS` lists, in that order, and begins none after
`BANKSHOT_MUTANTS_SECONDS` of CPU time; after `BANKSHOT_MUTANTS_LIMIT` seconds of it, SIGXCPU ends the process. Each
test is the context of the lines that it runs, for coverage.py. The memory of the process is limited, because a mutant
may allocate without end.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

import hypothesis
import pytest

_BYTES = 32 << 30
_record: dict[str, list[object]] = {"failed": [], "seconds": [], "skipped": [], "why": []}


def pytest_configure() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    seconds = int(float(os.environ["BANKSHOT_MUTANTS_LIMIT"]))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    hypothesis.settings.register_profile("mutants", deadline=None)  # others use the processors, too
    hypothesis.settings.load_profile("mutants")


def function(nodeid: str) -> str:
    """The test function of a test: its parameters are left out."""
    return nodeid.partition("[")[0]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = json.loads(Path(os.environ["BANKSHOT_MUTANTS_TESTS"]).read_text(encoding="utf-8"))
    place = {test: number for number, test in enumerate(chosen["tests"])}
    skipped = set(chosen["skipped"])
    kept = [each for each in items if each.nodeid not in skipped and (not place or function(each.nodeid) in place)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=list(set(items) - set(kept)))
    items[:] = sorted(kept, key=lambda each: place.get(function(each.nodeid), 0))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    if time.process_time() > float(os.environ["BANKSHOT_MUTANTS_SECONDS"]):
        item.session.shouldstop = "out of time"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid: str) -> None:
    if "coverage" in sys.modules and (measured := sys.modules["coverage"].Coverage.current()):
        measured.switch_context(function(nodeid))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _record["seconds"].append((report.nodeid, report.duration))
    if report.failed:
        _record["failed"].append(report.nodeid)
        _record["why"].append(report.longreprtext[-400:])
    elif report.skipped:
        _record["skipped"].append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _record["failed"].append(report.nodeid)


def pytest_sessionfinish() -> None:
    Path(os.environ["BANKSHOT_MUTANTS_RECORD"]).write_text(json.dumps(_record), encoding="utf-8")
