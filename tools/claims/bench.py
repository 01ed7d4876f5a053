"""Runs the kernels of `shaders/`, by name and sizes, as they are or with a few words of their text exchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bankshot.oracle import references
from bankshot.oracle.comparison.compare import Comparison, compare
from bankshot.oracle.comparison.rules import Rule
from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.manifests.manifest import Case, Kernel
from bankshot.oracle.manifests.reflection import check_module
from bankshot.sim.wgsl.diagnostics import Crash

if TYPE_CHECKING:
    from bankshot import Run
    from bankshot.sim.run.site import Site

SHADERS = Path(__file__).parents[2] / "shaders"

COUNTERS = ("lanes", "banks", "sectors", "barriers", "flops")

Edits = Sequence[tuple[str, str]]


@cache
def kernels() -> dict[str, Kernel]:
    """Every kernel by name. Raises `UsageError` where the package was installed without them."""
    if not SHADERS.is_dir():
        raise UsageError(f"the claims are about the kernels in {SHADERS}, which is not there; run in a checkout")
    return {plan.kernel.name: plan.kernel for plan in plans([SHADERS], Request())}


def case(kernel: str, sizes: Mapping[str, int], given: Mapping[str, np.ndarray] | None = None) -> Case:
    """A kernel at these sizes, with some arrays replaced."""
    found = kernels()[kernel]
    made = found.case(found.shape(sizes))
    return replace(made, arrays={**made.arrays, **(given or {})})


def run(kernel: str, sizes: Mapping[str, int], *, given: Mapping[str, np.ndarray] | None = None, **options: Any) -> Run:
    """Simulate a kernel at these sizes, with some arrays replaced; the options are those of `run_case`."""
    return run_case(case(kernel, sizes, given), **options)


def run_case(
    made: Case,
    *,
    edits: Edits = (),
    overrides: Mapping[str, Any] | None = None,
    probes: str | Sequence[str] = COUNTERS,
    device: str = "nvidia",
    out_of_bounds: str = "clamp",
) -> Run:
    """Simulate a case, with each of `edits` made wherever it fits. It counts, and looks for no findings unless
    `probes` says so."""
    import bankshot

    module = check_module(made.kernel)
    return bankshot.simulate(
        edited(module.source.text, edits) if edits else module,
        entry=made.kernel.entry,
        grid=made.grid,
        bindings=made.bindings,
        overrides=made.overrides | dict(overrides or {}),
        device=device,
        probes=probes,
        out_of_bounds=out_of_bounds,
    )


def edited(text: str, edits: Edits) -> str:
    """The text of a twin. An edit that fits nowhere is our fault: the kernel has changed under it."""
    for old, new in edits:
        if old not in text:
            raise Crash(f"a claim edits `{old}`, which the kernel no longer has")
        text = text.replace(old, new)
    return text


def truth_of(made: Case) -> references.Expected:
    """The kernel's only output in float64, with the largest error that float32 may make of it."""
    reference = references.find(made.kernel.reference or "")
    (truth,) = reference(made.arrays, made.shape.dims).values()
    return truth


def bound_of(made: Case) -> np.ndarray:
    """That error, element by element."""
    bound = truth_of(made).bound
    assert bound is not None
    return bound


def against_reference(made: Case, output: np.ndarray) -> Comparison:
    """The kernel's only output against the truth, within that error."""
    return compare(output, truth_of(made).value, Rule("bound"), bound=bound_of(made))


def only_output(done: Run) -> np.ndarray:
    (output,) = done.outputs.values()
    return np.asarray(output)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def sites(done: Run, kind: str, name: str) -> list[Site]:
    """The loads, stores or operations of one name, in the order of the text."""
    return [site for site in done.sites if (site.kind, site.name) == (kind, name)]


def total(done: Run, counter: str, kind: str, *names: str) -> int:
    """A counter, summed over the sites of one kind and of these names."""
    return sum(getattr(site, counter) for name in names for site in sites(done, kind, name))


def share(done: Run, kind: str, name: str, counter: str, of: str) -> float:
    """One counter of some sites per another: wavefronts per request, sectors per request."""
    return total(done, counter, kind, name) / total(done, of, kind, name)


def idlest(done: Run) -> str:
    """Words about the place at which most lanes of issuing subgroups idle; none where no lane does."""
    size = done.device.subgroup_size
    places = [site for site in done.sites if site.space != "uniform"]
    worst = max(places, key=lambda site: site.executions * size - site.active_lanes)
    if worst.executions * size == worst.active_lanes:
        return ""
    text, lanes = " ".join(worst.span.text.split()), worst.active_lanes / worst.executions
    return f"; fewest lanes are active at `{text}` ({lanes:.3g} of {size})"
