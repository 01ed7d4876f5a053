"""Findings from what the machine recorded in a run: its integers become sentences with a place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..ir.access import Access
from ..ir.sites import SourceSite
from ..launch.launch import UNLIMITED, Launch
from ..launch.partition import Outcome
from ..machine import layout as at
from ..wgsl.diagnostics import Note
from .finding import Finding
from .numeric_checks import find_numeric
from .races import find_races, find_unwritten
from .running_loops import longest_running
from .table import BARRIER_DIVERGENCE, ENDLESS_LOOP, OUT_OF_BOUNDS

_NO_TEXEL = {
    "load": "WebGPU returns zeros, or an unspecified texel of the texture",
    "store": "WebGPU discards the store",
}
_WAITING = "whether it ends depends on other invocations, and WGSL does not guarantee their progress while it spins; "
_NO_LOCK = (
    "invocations of a subgroup run in lockstep, and other workgroups may not have started: replace a lock by atomicAdd "
    "or similar, or let one invocation of each workgroup do the work after a barrier; "
)


def explain(launch: Launch, outcome: Outcome) -> list[Finding]:
    """Return the findings of a run, each kind in the order of the source."""
    return [
        *find_races(launch, outcome),
        *find_unwritten(launch, outcome),
        *find_numeric(launch, outcome),
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
        if known is not None:  # another inlined copy of the place
            findings[probe.site] = replace(known, count=known.count + int(row[at.OUTSIDE]))
            continue
        site, access = program.sites[probe.site], program.accesses[probe.access]
        words, consequence = (
            _texel(site) if site.space == "texture" else _element(launch, site, access, int(row[at.ADDRESS]))
        )
        findings[probe.site] = OUT_OF_BOUNDS.make(
            site.span,
            count=int(row[at.OUTSIDE]),
            workgroup=launch.workgroup(int(row[at.WORKGROUP])),
            lanes=(int(row[at.LANE]),),
            access=words,
            consequence=consequence,
        )
    return list(findings.values())


def _element(launch: Launch, site: SourceSite, access: Access, address: int) -> tuple[str, str]:
    """Describe an access past the end of an array, and what WebGPU makes of it."""
    signed = address - (1 << 32) if address >= 1 << 31 else address
    index = signed // access.stride
    count = launch.elements(access)
    has = f"which has {count:,} element{'s'[: count != 1]}"
    if site.kind == "index":
        return (
            f"index {index} of {site.variable}, {has}",
            "WGSL accesses an unspecified element instead",
        )
    within = "" if access.of.startswith(site.variable or "") else f" in {site.variable}"
    of = f"({access.of})" if access.of.startswith("*") else access.of
    done = site.name if site.kind == "atomic" else site.kind
    what = f"{done} of {of}[{index}]{within}, {has}"
    return what, "WebGPU keeps the access inside the buffer, at an unspecified element"


def _texel(site: SourceSite) -> tuple[str, str]:
    """Describe an access to a texel outside the texture, and what WebGPU makes of it."""
    what = f"{site.name} of a texel that {site.variable} does not have"
    return what, _NO_TEXEL[site.kind]


def _events(launch: Launch, outcome: Outcome) -> list[Finding]:
    program = launch.program
    findings: dict[tuple[int, int], Finding] = {}
    for row in outcome.events[1 : 1 + int(outcome.events[at.HEADER, at.RECORDED])]:
        kind, place = int(row[at.KIND]), int(row[at.SITE])
        known = findings.get((kind, place))
        if known is not None:
            findings[kind, place] = replace(known, count=known.count + int(row[at.TIMES]))
            continue
        workgroup = launch.workgroup(int(row[at.EVENT_WORKGROUP]))
        if kind == at.DIVERGED:
            site = program.sites[place]
            absent = _absent(row)
            findings[kind, place] = BARRIER_DIVERGENCE.make(
                site.span,
                count=int(row[at.TIMES]),
                workgroup=workgroup,
                lanes=absent,
                epoch=int(row[at.EPOCH]),
                absent=int(row[at.DETAIL]),
                invocations=_lanes(launch),
                lanes_absent=ranges(absent),
            )
        elif kind == at.BUDGET_SPENT:
            loop = place if outcome.stopped is None else longest_running(launch, place, outcome.stopped)
            findings[kind, place] = _endless(launch, loop, workgroup, row)
    return list(findings.values())


def _endless(launch: Launch, place: int, workgroup: tuple[int, int, int], row: NDArray[np.int64]) -> Finding:
    span, awaited = launch.program.loops[place]
    sites = [launch.program.sites[site] for site in awaited]
    named = dict.fromkeys((site.name, site.variable, site.span) for site in sites)
    notes = [Note(f"the result of this {name} of {of} decides whether it ends", where) for name, of, where in named]
    return ENDLESS_LOOP.make(
        span,
        count=int(row[at.TIMES]),
        workgroup=workgroup,
        epoch=int(row[at.EPOCH]),
        notes=notes,
        spent=_spent(launch),
        waiting=_WAITING if sites else "",
        advice=_NO_LOCK if sites else "",
    )


def _spent(launch: Launch) -> str:
    if launch.options.budget < UNLIMITED:
        return f"{launch.options.budget:,} loop iterations"
    return f"the default budget of {launch.work:,} instructions in loops, counted for each lane"


def _absent(row: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the invocations that did not reach the barrier."""
    words = row[at.ABSENT :]
    return tuple(32 * w + bit for w in np.flatnonzero(words).tolist() for bit in range(32) if words[w] >> bit & 1)


def ranges(numbers: tuple[int, ...], most: int = 4) -> str:
    """Abbreviate ascending numbers: `0 to 31, 40 and 48 to 63`; of more than `most` ranges the middle is left out."""
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
