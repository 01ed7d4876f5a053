"""A pytest plugin that writes which tests failed, and how long each took, to the file in `BANKSHOT_MUTANTS_RECORD`.

It leaves out the tests that the file in `BANKSHOT_MUTANTS_SKIP` lists, and limits the memory of the process, because a
mutant may allocate without end.
"""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest

_BYTES = 32 << 30
_record: dict[str, list[object]] = {"failed": [], "seconds": [], "skipped": [], "why": []}


def pytest_configure() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    file = Path(os.environ["BANKSHOT_MUTANTS_SKIP"])
    skipped = set(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else set[str]()
    left_out = [item for item in items if item.nodeid in skipped]
    if left_out:
        items[:] = [item for item in items if item.nodeid not in skipped]
        config.hook.pytest_deselected(items=left_out)


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
