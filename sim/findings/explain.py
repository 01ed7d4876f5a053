"""Findings from what the machine recorded in a run: its integers become sentences with a place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..ir.access import Access
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.long_loops import UNLIMITED, Stopped
from ..launch.partition import Outcome
from ..machine import layout as at
from ..wgsl.diagnostics import Note, listed
from ..wgsl.source import Span
from .finding import Finding
from .grouping import AtPlaces
from .numeric_checks import find_numeric
from .races import find_races, find_unwritten
from .running_loops import endless_loop, not_begun, waits
from .table import BARRIER_DIVERGENCE, ENDLESS_LOOP, OUT_OF_BOUNDS

_NO_TEXEL = {
    "load": "WebGPU returns zeros, or an unspecified texel of the texture",
    "store": "WebGPU discards the store",
}
_ALL_WAIT = "does not end: it waits for others, which have ended or wait, too, and the state of all repeats"
_TOO_MANY = (
    "does not end with {beside:,} workgroups side by side, the most that Bankshot runs here: they all wait, and the "
    "state repeats, while {left:,} workgroups have not begun"
)
_FEWER = "launch no more workgroups than run at once: WGSL does not guarantee that a GPU begins others while these wait"
_REPEATS = "does not end: its state repeats{period}"
_STILL_RUNS = "was still running when its workgroup exceeded {spent}"
_RAISE = "if it ends later, raise the budget: `--budget`, or `budget` in a manifest's [kernel]"
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
        *_diverged(launch, outcome),
        *_endless(launch, outcome),
    ]


def _out_of_bounds(launch: Launch, outcome: Outcome) -> list[Finding]:
    program = launch.program
    if not program.memory_probes or not outcome.bounds[:, at.OUTSIDE].any():
        return []
    found = AtPlaces()
    for probe, row in zip(program.memory_probes, outcome.bounds, strict=False):
        site, access = program.sites[probe.site], program.accesses[probe.access]
        if probe.kind == "bounds" and found.counts(site, int(row[at.OUTSIDE])):
            words, consequence = (
                _texel(site) if site.space == "texture" else _element(launch, site, access, int(row[at.ADDRESS]))
            )
            found.first[site.place] = OUT_OF_BOUNDS.make(
                site.span,
                workgroup=launch.workgroup(int(row[at.WORKGROUP])),
                lanes=(int(row[at.LANE]),),
                access=words,
                consequence=consequence,
            )
    return found.findings()


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


def _diverged(launch: Launch, outcome: Outcome) -> list[Finding]:
    program = launch.program
    if not outcome.events[at.HEADER, at.RECORDED]:
        return []
    findings: dict[int, Finding] = {}
    for row in outcome.events[1 : 1 + int(outcome.events[at.HEADER, at.RECORDED])]:
        place = int(row[at.SITE])
        known = findings.get(place)
        if known is not None:
            findings[place] = replace(known, count=known.count + int(row[at.TIMES]))
            continue
        absent = _absent(row)
        findings[place] = BARRIER_DIVERGENCE.make(
            program.sites[place].span,
            count=int(row[at.TIMES]),
            workgroup=launch.workgroup(int(row[at.EVENT_WORKGROUP])),
            lanes=absent,
            epoch=int(row[at.EPOCH]),
            absent=int(row[at.DETAIL]),
            invocations=_lanes(launch),
            lanes_absent=ranges(absent),
        )
    return list(findings.values())


def _endless(launch: Launch, outcome: Outcome) -> list[Finding]:
    stopped = outcome.stopped
    if stopped is None:
        return []
    loop, period = endless_loop(launch, stopped)
    span, awaited = launch.program.loops[loop]
    sites = [launch.program.sites[site] for site in awaited]
    named = dict.fromkeys((site.name, site.variable, site.span) for site in sites)
    notes = [Note(f"the result of this {name} of {of} decides whether it ends", where) for name, of, where in named]
    if stopped.units:
        return [_deadlock(launch, stopped, span)]
    repeats = stopped.turned is not None
    finding = ENDLESS_LOOP.make(
        span,
        workgroup=launch.workgroup(stopped.workgroup),
        epoch=int(stopped.progress[at.BARRIERS_PASSED]),
        notes=notes,
        what=_REPEATS.format(period=_period(period)) if repeats else _STILL_RUNS.format(spent=_spent(launch, stopped)),
        waiting=_WAITING if sites and not repeats else "",
        advice=(_NO_LOCK if sites and not repeats else "") + ("" if repeats else _RAISE),
    )
    return [finding]


def _deadlock(launch: Launch, stopped: Stopped, span: Span) -> Finding:
    """Make the finding of a loop that waits for invocations none of which goes on."""
    first = next(unit for unit in stopped.units if unit.loop is not None)
    left = not_begun(launch, stopped)
    return ENDLESS_LOOP.make(
        span,
        workgroup=launch.workgroup(first.place),
        lanes=tuple(first.lanes),
        epoch=int(stopped.progress[at.BARRIERS_PASSED]),
        notes=waits(launch, stopped),
        what=_TOO_MANY.format(left=left, beside=launch.program.workgroups_per_batch) if left else _ALL_WAIT,
        waiting="",
        advice=_FEWER if left else "let an invocation store what this one waits for before it waits itself",
    )


def _period(iterations: int | None) -> str:
    if iterations is None:
        return ""
    return " every iteration" if iterations == 1 else f" every {iterations:,} iterations"


def _spent(launch: Launch, stopped: Stopped) -> str:
    if launch.options.budget < UNLIMITED:
        return f"{launch.options.budget:,} loop iterations"
    return f"the default budget, after {stopped.iterations:,} loop iterations"


def _absent(row: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the invocations that did not reach the barrier."""
    words = row[at.ABSENT :].astype("<u4")  # a bit for each
    return tuple(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


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
    return listed(words)


def _lanes(launch: Launch) -> int:
    x, y, z = launch.program.workgroup_size
    return x * y * z
