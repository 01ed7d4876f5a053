"""Writes the pages of `docs/` that are made from tables: `python -m tools.pages`. A test compares them.

`PAGES` maps each page to the function that makes its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bankshot.sim.findings.table import KINDS, Kind
from bankshot.sim.run.counters import REPORT_COUNTERS, RUN_COUNTERS, SITE_COUNTERS, Counter

from .finding_examples import Example, examples

DOCS = Path(__file__).parents[1] / "docs"

_COUNTERS = """\
# Counters

Every place in the source has the counters of the first table (`run.sites`); a run has their sums, and the totals of the
second table (`run.counters`). Manifests, sweeps and reports derive the third. The keys are the same in Python, JSON and
CSV. This page is made from `sim/run/counters.py` by `python -m tools.pages`.

Each counter of the first table is counted a second time from what a GPU records, by code that shares nothing with the
simulator: `bankshot diff --counters` compares the two. Those of the last table were compared with NVIDIA's profiler on
a GPU, pattern by pattern (`tests/hardware`).

The lanes of a subgroup that issues are active, or idle for one of three causes: `active_lanes`, `idle_guard`,
`idle_overhang` and `idle_divergence` add up to `executions` times the subgroup size. Counters describe the shader as
written, on the device that is simulated; they are not time. [Counting rules](counting-rules.md) defines what counts as
one access, operation or instruction, and what each costs.
"""

_FINDINGS = """\
# Findings

Each finding names a place in the source, the invocations, and how often it happened. Where it may or may not matter,
the dispatch runs again with what WGSL leaves open changed, and the verdict says whether an output changes: `harmful` or
`unseen`. Where no output depends on what is open, no rerun is needed. Reruns together do at most eight times the work
of the run, or what takes about 10 ms, unless `--thorough` is given: notes say which were not made, and a finding for
which none was made has no verdict. This page is made from `sim/findings/table.py` by `python -m tools.pages`.

Suppress an intended finding with a reason, in a comment on its line or on the line before. It is still counted, and a
comment that suppresses nothing is a finding itself:

```wgsl
// bankshot: allow(race) because every invocation stores the same value
flag = 1u;
```

Races are watched element by element. Of buffers with regular accesses a record serves a whole block, but of irregular
ones each element has a record, and only the first 16,777,216 elements of the bindings can: past them the run is
*watched in part*, which `run.coverage`, reports and the last line of a command say. Each thread has a shadow memory of
its own, and a block that two workgroups share needs a record for each element only where one thread runs both. So past
those elements, how many accesses are left out, and which races are seen, depends on which workgroups each thread runs;
with `BANKSHOT_THREADS=1` it is always the same.

A run that is stopped in a loop (`endless-loop`) leaves what was stored until then. On several threads, workgroups after
the stopped one may have run, and a loop that probes slow down is stopped by time. So outputs and counters of a stopped
run may differ from one run to the next, and commands do not compare its outputs.

Races are one finding for each cause. Bankshot changes the text and runs it again until they end: it inserts a barrier,
uses the right kind, splits a statement, or makes a word atomic. The hint says what ended them, such as
`a workgroupBarrier() after line 23 removes all 19 races`: the changed text passed the check of uniform control flow,
and its run had no other finding. It tries at most 24 changes and says where it gave up. `bankshot fix FILE` shows the
changes as a diff, with the verdict before and after, and `--write` makes them; `bankshot audit --patch FILE` writes the
diff of a whole audit.

Each section below shows a kernel, what Bankshot reports for it, and the kernel cured. The kernels run as one workgroup
on buffers that hold 0, 1, 2, …
"""

_REPLAYS = {
    "schedules": "other orders of invocations and workgroups",
    "poison": "NaNs in memory that was never written",
    "policies": "the other policies for accesses out of bounds",
}


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


def counters() -> str:
    """Return the page of counters."""
    headings = ("counter", "unit", "what it counts", "probe")
    parts = [_COUNTERS]
    for title, rows in (
        ("Of each place, and summed over the run", SITE_COUNTERS),
        ("Of the run", RUN_COUNTERS),
        ("Derived in reports", REPORT_COUNTERS),
    ):
        parts.append(f"## {title}\n\n{table(headings, map(_counter, rows))}")
    measured = [(f"`{row.key}`", _metrics(row)) for row in SITE_COUNTERS if row.metrics]
    parts.append(f"## Metrics of NVIDIA's profiler\n\n{table(('counter', 'metric, or sum of metrics'), measured)}")
    parts.append("Smaller is better for " + ", ".join(f"`{row.key}`" for row in _costs()) + ".\n")
    return "\n".join(parts)


def _counter(row: Counter) -> tuple[str, ...]:
    return f"`{row.key}`", row.unit, row.definition, row.probe


def _metrics(row: Counter) -> str:
    return " + ".join(f"`{metric}`" for metric in row.metrics)


def _costs() -> list[Counter]:
    return [row for row in (*SITE_COUNTERS, *RUN_COUNTERS, *REPORT_COUNTERS) if row.cost]


def findings() -> str:
    """Return the page of findings: a table, and a section with an example for each."""
    headings = ("finding", "severity", "what it is")
    shown = examples()
    sections = (_section(kind, *shown[code]) for code, kind in KINDS.items())
    return "\n".join((_FINDINGS, table(headings, map(_finding, KINDS.values())), *sections))


def _finding(kind: Kind) -> tuple[str, ...]:
    severities = [kind.severity, *(f"{severity} if {verdict}" for verdict, severity in kind.downgraded.items())]
    return f"[`{kind.code}`](#{kind.code})", ", ".join(severities), kind.title


def _section(kind: Kind, example: Example, cured: Example) -> str:
    """Return the section of a finding, with what Bankshot prints for its example."""
    report = "\n".join(each.render() for each in example.findings if each.code == kind.code)
    probe = f"Probe: `{kind.probe}`. " if kind.probe else ""
    replay = f" Run again with: {_REPLAYS[kind.replay]}." if kind.replay else ""
    return f"""\
## {kind.code}

{kind.title}. {probe}Evidence: {kind.evidence}.{replay}

```wgsl
{example.text}```

```text
{report}
```

The cure:

```wgsl
{cured.text}```
"""


PAGES: dict[str, Callable[[], str]] = {"counters.md": counters, "findings.md": findings}


def main() -> None:
    """Write every page."""
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
