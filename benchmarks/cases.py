"""The kernels that commands and benchmarks name, as MANIFEST[:KERNEL[:NAME=SIZE,...]]."""

from __future__ import annotations

from pathlib import Path

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.manifests.manifest import Case

ROOT = Path(__file__).parents[1]
SHADERS = ROOT / "shaders"


def case(text: str) -> Case:
    """Return the case that an argument names."""
    path, kernel, sizes = (*text.split(":"), "", "")[:3]
    dims = dict(size(text, each) for each in sizes.split(",") if each)
    plan = plans([Path(path)], Request(kernel=kernel or None, dims=dims, sweep=False))[0]
    return plan.case(plan.shapes[0])


def size(text: str, each: str) -> tuple[str, int]:
    """Parse `each`, a part of the argument `text`, as NAME=SIZE. Raises `UsageError`."""
    name, _, number = each.partition("=")
    if not number.isdecimal():
        raise UsageError(f"`{each}` in `{text}` must be NAME=SIZE")
    return name, int(number)
