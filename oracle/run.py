"""`bankshot run`: one simulated run, its outputs in short, its totals and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .audit import Say, side_by_side, simulate
from .devices import Charged
from .errors import UsageError
from .manifest import Case

FIRST = 6  # elements of an output that are shown


@dataclass(frozen=True, slots=True)
class RunResult:
    """`changed` summarizes the bindings that the run wrote to. `devices`: several side by side."""

    case: Case
    device: str
    run: Any  # sim.Run
    changed: dict[str, dict[str, Any]]
    devices: tuple[Charged, ...] = ()

    @property
    def ok(self) -> bool:
        return all(f.severity == "info" or f.code in self.case.kernel.allow for f in self.run.findings)


def run(
    case: Case,
    devices: Sequence[str],
    probes: str,
    saves: Mapping[str, Path],
    say: Say = lambda stage: None,
) -> RunResult:
    """Simulate, and write the outputs that `saves` names. `probes`: all, none, or names with commas between.

    `devices`: the profile to run as, and others that it is charged for as well, which takes all probes.
    """
    device, *others = devices
    if others and probes != "all":
        raise UsageError(f"--probes {probes}: several devices are set side by side with all probes only")
    result = simulate(case, device, probes if probes in ("all", "none") else probes.split(","), say)
    for name, path in saves.items():
        if name not in result.outputs:
            raise UsageError(f"--save: no binding is named {name}; there are {', '.join(map(str, result.outputs))}")
        try:
            np.save(path, result.outputs[name])
        except OSError as error:
            raise UsageError(f"--save {name}: {path} cannot be written: {error}") from None
    before = case.bindings
    changed = {n: summary(after) for n, after in result.outputs.items() if before[n].tobytes() != after.tobytes()}
    return RunResult(case, device, result, changed, side_by_side(case, result, tuple(others), say))


def summary(array: np.ndarray) -> dict[str, Any]:
    """Shape, dtype, extremes, how many are NaN, and the first elements."""
    flat = array.reshape(-1)
    numbers = flat[~np.isnan(flat)] if array.dtype.kind == "f" else flat
    return {
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "min": numbers.min().item() if numbers.size else None,
        "max": numbers.max().item() if numbers.size else None,
        "nan": int(flat.size - numbers.size),
        "first": flat[:FIRST].tolist(),
    }
