"""Timelines as Chrome traces: JSON files that https://ui.perfetto.dev and chrome://tracing open.

Each array is a process and each of its regions a thread, whose slices are writes and reads. Every epoch lasts one
millisecond; the slices of a region share it in the order in which they began. Barriers are instants across the whole
trace. Format: "Trace Event Format" (Google), complete (`X`), instant (`i`) and metadata (`M`) events; times are in
microseconds.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..gpu_counters.timeline import Slice, Timeline
    from ..manifests.manifest import Case

Event = dict[str, Any]

EPOCH = 1000  # microseconds
SHARE = 0.9  # of an epoch that its slices fill, so that epochs are visibly apart


def text(timeline: Timeline, case: Case, workgroup: tuple[int, int, int]) -> str:
    """The timeline of one workgroup, as the text of a file."""
    title = f"{case.kernel.name} {case.shape}".strip()
    about = {"kernel": title, "workgroup": list(workgroup), "cut": timeline.cut, "time": "one epoch is 1 ms"}
    whole = {"traceEvents": list(events(timeline)), "displayTimeUnit": "ms", "otherData": about}
    return json.dumps(whole, indent=1)


def events(timeline: Timeline) -> Iterator[Event]:
    """The events of a trace: names, slices, and then barriers."""
    threads = itertools.count(1)  # some viewers expect thread ids that are unique among all processes
    for pid, (array, regions) in enumerate(timeline.regions.items(), 1):
        yield _name("process_name", pid, 0, array)
        for region, tid in zip(range(regions), threads, strict=False):
            yield _name("thread_name", pid, tid, f"slot {region}" if regions > 1 else "whole")
            for epoch in range(timeline.epochs):
                here = [each for each in timeline.of(array, region) if each.epoch == epoch]
                yield from _slices(here, pid, tid)
    for barrier in timeline.barriers:
        yield {
            "ph": "i",
            "s": "g",  # across all processes
            "name": barrier.name,
            "cat": "barrier",
            "ts": EPOCH * (barrier.epoch + 1),
            "pid": 1,
            "tid": 1,
            "args": {"place": barrier.place, "epoch": barrier.epoch},
        }


def _name(what: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _slices(here: Sequence[Slice], pid: int, tid: int) -> Iterator[Event]:
    """The slices of one region in one epoch, side by side."""
    for number, each in enumerate(here):
        width = SHARE * EPOCH / len(here)
        yield {
            "ph": "X",
            "name": each.kind,
            "cat": "memory",
            "ts": EPOCH * each.epoch + number * width,
            "dur": width,
            "pid": pid,
            "tid": tid,
            "args": {"lanes": each.lanes, "places": list(each.places), "requests": each.requests, "epoch": each.epoch},
        }
