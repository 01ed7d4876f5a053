"""From the integers that the machine recorded to findings with a place and a sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..ir.access import Access
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..machine import layout as at
from ..wgsl.diagnostics import Note
from .finding import Finding
from .numeric_checks import find_checked
from .races import find_races, find_unwritten

_NO_TEXEL = {
    "load": "WebGPU gives zeros, or some texel of the texture",
    "store": "WebGPU does not store it",
}


_WAITING = "its end depends on other invocations, and WGSL does not promise that these go on while it spins; "
_NO_WAIT = (
    "invocations of a subgroup run in step, and those of another workgroup may not have begun: do without a lock, by "
    "atomicAdd and the like, or let one invocation of each workgroup do the work after a barrier; "
)
_MORE_TURNS = "`budget` gives it more turns, in a manifest's [kernel] too"


def explain(launch: Launch, outcome: Outcome) -> list[Finding]:
    """The findings of a run, in the order of the source within each kind."""
    return [
        *find_races(launch, outcome),
        *find_unwritten(launch, outcome),
        *find_checked(launch, outcome),
        *_out_of_bounds(launch, outcome),
        *_events(launch, outcome),
    ]


def _out_of_bounds(launch: Launch, outcome: Outcome) -> list[Finding]:
    program = launch.program
    findings: dict[int, Finding] = {}
    if not outcome.bounds[:, at.OUTSIDE].any():
        return []
    for probe, row in zip(program.memory_probes, outcome.bounds, strict=False):
        if probe.kind != "bounds" or row[at.OUTSIDE] == 0:
            continue
        known = findings.get(probe.site)
        if known is not None:  # the same place, inlined once more
            findings[probe.site] = replace(known, count=known.count + int(row[at.OUTSIDE]))
            continue
        site, access = program.sites[probe.site], program.accesses[probe.access]
        what, hint = _texel(site) if site.space == "texture" else _element(launch, site, access, int(row[at.ADDRESS]))
        findings[probe.site] = Finding(
            "out-of-bounds",
            "warning",
            what,
            site.span,
            int(row[at.OUTSIDE]),
            launch.workgroup(int(row[at.WORKGROUP])),
            (int(row[at.LANE]),),
            hint=hint,
        )
    return list(findings.values())


def _element(launch: Launch, site: SourceSite, access: Access, address: int) -> tuple[str, str]:
    """What an access past the end of an array did, and what becomes of it."""
    signed = address - (1 << 32) if address >= 1 << 31 else address
    index = signed // access.stride
    count = launch.elements(access)
    has = f"which has {count:,} element{'s'[: count != 1]}"
    if site.kind == "index":
        return (
            f"index {index} of {site.variable}, {has}",
            "WGSL takes some element instead, but not one that you can count on",
        )
    within = "" if access.of.startswith(site.variable or "") else f" in {site.variable}"
    of = f"({access.of})" if access.of.startswith("*") else access.of
    done = site.name if site.kind == "atomic" else site.kind
    what = f"{done} of {of}[{index}]{within}, {has}"
    return what, "WebGPU keeps such an access inside the buffer, but not at a place you can count on"


def _texel(site: SourceSite) -> tuple[str, str]:
    """The same of a texture."""
    what = f"{site.name} of a texel that {site.variable} does not have"
    return what, _NO_TEXEL[site.kind]


def _events(launch: Launch, outcome: Outcome) -> list[Finding]:
    program = launch.program
    findings: dict[tuple[int, int], Finding] = {}
    for row in outcome.events[1 : 1 + int(outcome.events[0, 0])]:
        kind, place = int(row[at.KIND]), int(row[at.SITE])
        known = findings.get((kind, place))
        if known is not None:
            findings[kind, place] = replace(known, count=known.count + int(row[at.TIMES]))
            continue
        workgroup = launch.workgroup(int(row[at.EVENT_WORKGROUP]))
        if kind == at.DIVERGED:
            site = program.sites[place]
            absent = _absent(row)
            findings[kind, place] = Finding(
                "barrier-divergence",
                "error",
                f"{int(row[at.DETAIL])} of {_lanes(launch)} invocations do not reach this barrier: {ranges(absent)}",
                site.span,
                int(row[at.TIMES]),
                workgroup,
                absent,
                int(row[at.EPOCH]),
                hint="every invocation of a workgroup must reach each barrier",
            )
        elif kind == at.BUDGET_SPENT:
            findings[kind, place] = _endless(launch, place, workgroup, row)
    return list(findings.values())


def _endless(launch: Launch, place: int, workgroup: tuple[int, int, int], row: NDArray[np.int64]) -> Finding:
    span, awaited = launch.program.loops[place]
    sites = [launch.program.sites[site] for site in awaited]
    named = dict.fromkeys((site.name, site.variable, site.span) for site in sites)
    notes = [Note(f"what this {name} of {of} gives decides whether it ends", where) for name, of, where in named]
    return Finding(
        "endless-loop",
        "error",
        f"this loop was still running when its workgroup had gone round loops {launch.how.budget:,} times; "
        f"{_WAITING if sites else ''}the run was stopped",
        span,
        int(row[at.TIMES]),
        workgroup,
        (),
        int(row[at.EPOCH]),
        tuple(notes),
        hint=f"{_NO_WAIT if sites else ''}where it is to end later, {_MORE_TURNS}",
    )


def _absent(row: NDArray[np.int64]) -> tuple[int, ...]:
    """The invocations that a barrier waits for."""
    words = row[at.ABSENT :]
    return tuple(32 * w + bit for w in np.flatnonzero(words).tolist() for bit in range(32) if words[w] >> bit & 1)


def ranges(numbers: tuple[int, ...], most: int = 4) -> str:
    """Ascending numbers in short: `0 to 31, 40 and 48 to 63`; where that takes long, the end is left out."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    words = [f"{a} to {b}" if a != b else f"{a}" for a, b in runs]
    if len(words) > most:
        return f"{', '.join(words[:most])}, … {words[-1]}"
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _lanes(launch: Launch) -> int:
    x, y, z = launch.program.workgroup_size
    return x * y * z
