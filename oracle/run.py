"""`bankshot run`: one simulated run, its outputs in short, its totals and findings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from .audit import Say, simulate
from .errors import UsageError
from .manifest import Case
from .report_json import run_entry
from .report_text import show_run

FIRST = 6  # elements of an output that are shown


def run_case(
    case: Case, device: str, probes: str, saves: Mapping[str, Path], out: Console | None, say: Say
) -> tuple[bool, dict[str, Any]]:
    """Whether the run is clean, and its JSON entry; the text report goes to `out`."""
    say(f"simulating as {device}")
    run = simulate(case, device, probes if probes in ("all", "none") else probes.split(","))
    for name, path in saves.items():
        if name not in run.outputs:
            raise UsageError(f"--save: no binding is named {name}; there are {', '.join(map(str, run.outputs))}")
        try:
            np.save(path, run.outputs[name])
        except OSError as error:
            raise UsageError(f"--save {name}: {path} cannot be written: {error}") from None
    summaries = {name: summary(array) for name, array in run.outputs.items() if not _same(case.bindings[name], array)}
    if out is not None:
        show_run(out, case, device, run, summaries)
    return not any(f.severity != "info" for f in run.findings), run_entry(case, device, run, summaries)


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


def _same(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether the run left the binding as it was, bit for bit."""
    return before.tobytes() == after.tobytes()
