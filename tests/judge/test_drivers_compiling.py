"""Drivers compile a shader while the simulator runs, and an audit does not end before they have."""

from contextlib import suppress
from types import SimpleNamespace

import pytest

from bankshot.oracle.judge import audit


@pytest.mark.parametrize("gpu", [True, False])
@pytest.mark.parametrize("error", [None, ValueError("wrong")])
def test_an_audit_waits_for_what_it_has_begun(monkeypatch, gpu, error):
    order = []

    def prepare(case, adapter):
        order.append(("begin", case, adapter))
        return SimpleNamespace(join=lambda: order.append("end"))

    monkeypatch.setattr(audit, "prepare_on_gpu", prepare)
    with suppress(ValueError), audit._drivers_compiling("case", SimpleNamespace(gpu=gpu, adapter="a")):
        order.append("audit")
        if error:
            raise error
    assert order == ([("begin", "case", "a"), "audit", "end"] if gpu else ["audit"])


def test_nothing_is_awaited_where_nothing_was_begun(monkeypatch):
    monkeypatch.setattr(audit, "prepare_on_gpu", lambda case, adapter: None)
    order = []
    with audit._drivers_compiling("case", SimpleNamespace(gpu=True, adapter=None)):
        order.append("audit")
    assert order == ["audit"]
