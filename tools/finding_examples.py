"""The examples of `docs/findings/`: for each finding a kernel that has it, and the same kernel cured.

`CODE.wgsl` and `CODE.cured.wgsl` run as one workgroup, on buffers that hold 0, 1, 2, …, with all probes and the
searches that commands make on request.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bankshot
from bankshot import Finding
from bankshot.sim.explore.reduced import find_weak_orders
from bankshot.sim.findings.table import KINDS
from bankshot.sim.wgsl.types import F32, U32, Array, Atomic, Scalar, Type

FOLDER = Path(__file__).parents[1] / "docs" / "findings"
_ALL: dict[str, Any] = {"probes": bankshot.PROBES}
_OPTIONS: dict[str, dict[str, Any]] = {"schedule-dependent": {"probes": "none", "schedules": 4}}
_SECONDS = 60.0  # more than a search takes
_DTYPES = {F32: np.float32, U32: np.uint32}


@dataclass(frozen=True)
class Example:
    """The text of a file, and what Bankshot finds in it."""

    text: str
    findings: tuple[Finding, ...]


def examples() -> dict[str, tuple[Example, Example]]:
    """Return for each finding, by its code, the example and the cured kernel."""
    return {code: (_run(code, f"{code}.wgsl"), _run(code, f"{code}.cured.wgsl")) for code in KINDS}


def _run(code: str, name: str) -> Example:
    module = bankshot.check(FOLDER / name, name=name, uniformity="warning")
    data = {each.name: _numbers(each.type) for each in module.globals if each.binding}
    run = bankshot.simulate(module, grid=1, bindings=data, **_OPTIONS.get(code, _ALL))
    weak, _ = find_weak_orders(run.dispatch, run.program, _SECONDS)
    return Example(module.source.text, (*run.findings, *weak, *run.bounds.findings))


def _numbers(type: Type) -> NDArray[Any]:
    """Return 0, 1, 2, … for an array of scalars or an atomic."""
    element = type.elem if isinstance(type, Array | Atomic) else type
    count = type.count if isinstance(type, Array) else 1
    assert isinstance(element, Scalar), f"no numbers for {type}"
    assert isinstance(count, int), f"no fixed size: {type}"
    return np.arange(count).astype(_DTYPES[element])
