"""From the integers that the machine recorded to findings with a place and a sentence."""

from __future__ import annotations

from dataclasses import replace

from .findings import Finding
from .launch import Launch, Outcome
from .machine import layout as at
from .program.access import Access
from .program.sites import Site

_NO_TEXEL = {
    "load": "WebGPU gives zeros, or some texel of the texture",
    "store": "WebGPU does not store it",
}


def explain(launch: Launch, outcome: Outcome) -> list[Finding]:
    """The findings of a run, in the order of the source within each kind."""
    return [*_out_of_bounds(launch, outcome), *_events(launch, outcome)]


def _out_of_bounds(launch: Launch, outcome: Outcome) -> list[Finding]:
    program = launch.program
    findings: dict[int, Finding] = {}
    for probe, row in zip(program.probes, outcome.bounds, strict=False):
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
            _workgroup(launch, int(row[at.WORKGROUP])),
            (int(row[at.LANE]),),
            hint=hint,
        )
    return list(findings.values())


def _element(launch: Launch, site: Site, access: Access, address: int) -> tuple[str, str]:
    """What an access past the end of an array did, and what becomes of it."""
    signed = address - (1 << 32) if address >= 1 << 31 else address
    index = signed // access.stride
    if site.kind == "index":
        what = f"index {index} of {site.variable}, which has {launch.elements(access)} elements"
        return what, "WGSL takes some element instead, but not one that you can count on"
    what = f"{site.kind} of {site.variable}[{index}], which has {launch.elements(access)} elements"
    return what, "WebGPU keeps such an access inside the buffer, but not at a place you can count on"


def _texel(site: Site) -> tuple[str, str]:
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
        workgroup = _workgroup(launch, int(row[at.EVENT_WORKGROUP]))
        if kind == at.DIVERGED:
            site = program.sites[place]
            absent, lane = int(row[at.DETAIL]), int(row[at.EVENT_LANE])
            findings[kind, place] = Finding(
                "barrier-divergence",
                "error",
                f"{absent} of {_lanes(launch)} invocations do not reach this barrier, the first is {lane}",
                site.span,
                int(row[at.TIMES]),
                workgroup,
                (lane,),
                int(row[at.EPOCH]),
                hint="every invocation of a workgroup must reach each barrier",
            )
        elif kind == at.BUDGET_SPENT:
            findings[kind, place] = Finding(
                "endless-loop",
                "error",
                "this loop was still running when the budget of jumps was spent; the run was stopped",
                program.loops[place],
                int(row[at.TIMES]),
                workgroup,
                (),
                int(row[at.EPOCH]),
            )
    return list(findings.values())


def _lanes(launch: Launch) -> int:
    x, y, z = launch.program.workgroup_size
    return x * y * z


def _workgroup(launch: Launch, index: int) -> tuple[int, int, int]:
    x, y, _ = launch.grid
    return index % x, index // x % y, index // (x * y)
