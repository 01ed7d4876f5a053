"""Every barrier of every kernel in shaders/ is deleted in turn: the race is found, or it was called redundant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bankshot
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.manifests.reflection import check_module

SHADERS = Path(__file__).parents[2] / "shaders"
PLANS = {plan.kernel.name: plan for plan in plans([SHADERS], Request(quick=True))}
BARRIER = re.compile(r"\b(?:workgroup|storage)Barrier\(\)")


def barriers() -> dict[tuple[str, int, str | None], tuple[str, int]]:
    """The barriers in the sources, by file, line and entry point: a kernel that has each, and where in its text."""
    found = {}
    for name, plan in PLANS.items():
        source = check_module(plan.kernel).source
        for match in BARRIER.finditer(source.text):
            place = source.place(match.start())
            found.setdefault((place.file, place.line, plan.kernel.entry), (name, match.start()))
    return found


CASES = [(name, at) for name, at in barriers().values()]


def findings(module: bankshot.Module, name: str, case, probes: list[str]) -> list[bankshot.Finding]:
    kernel = PLANS[name].kernel
    return bankshot.simulate(
        module,
        entry=kernel.entry,
        grid=case.grid,
        bindings=case.bindings,
        overrides=kernel.overrides,
        probes=probes,
        replay=False,
    ).findings


@pytest.mark.parametrize(("name", "at"), CASES, ids=[f"{name}-{at}" for name, at in CASES])
def test_no_barrier_goes_unnoticed(name: str, at: int) -> None:
    text = check_module(PLANS[name].kernel).source.text
    end = text.index(")", at) + 1
    module = bankshot.check(text, uniformity="off")
    without = bankshot.check(text[:at] + "_ = 0" + text[end:], uniformity="off")
    redundant = set()
    for case in PLANS[name].cases():
        if any(f.code == "race" for f in findings(without, name, case, ["races"])):
            return
        found = findings(module, name, case, ["redundant"])
        redundant.add(any(f.code == "redundant-barrier" and f.span.start == at for f in found))
    if redundant == {True}:
        return
    assert not any(
        s.kind == "barrier" and s.span.start == at
        for case in PLANS[name].cases()
        for s in bankshot.simulate(
            module, entry=case.kernel.entry, grid=case.grid, bindings=case.bindings,
            overrides=case.kernel.overrides, probes="none",
        ).sites
    )  # fmt: skip
