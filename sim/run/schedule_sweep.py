"""Runs of a dispatch under many schedules, whose outputs are compared bit by bit with those of lockstep.

The schedules are the fixed ones first, then drawn ones, whose seeds count from the one that was asked for. A difference
belongs to the finding that explains it: a race, an access out of bounds, or the order of atomic operations. Where none
does, it is a finding of its own. Each note names the first schedule that shows the difference.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import accumulate, count
from math import prod
from time import perf_counter

from ..bindings.binding import Key
from ..fast_dataclass import entity, sealed
from ..findings.atomic_order import blame
from ..findings.finding import Finding
from ..findings.replay import differences, open_values, rerun_budget
from ..findings.table import ATOMIC_ORDER, COMPONENT_RACE, OUT_OF_BOUNDS, RACE, SCHEDULE_DEPENDENT
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.schedules import MOST_ONE_BY_ONE, schedule
from ..wgsl.diagnostics import Note, fail
from .dispatch import Dispatch
from .measure import Measured

FIXED = ("lockstep", "mirrored", "reversed", "serial", "subgroup-serial", "side-by-side")
DRAWN = ("random({seed})", "turns({seed})", "pct({seed},{depth})")
_DEEPEST = 3  # of pct
_MOST = 1 << 20  # schedules
_LEAVE_OPEN = (RACE.code, COMPONENT_RACE.code, OUT_OF_BOUNDS.code)


@sealed
class Schedules:
    """Which schedules to compare: lockstep and `count` - 1 others, drawn from `seed`.

    `seconds`: begin no schedule after so long; None: no limit. `command`: the words of the command that runs the
    dispatch, for notes; `grid`: whether they leave out its grid.
    """

    count: int
    seed: int = 0
    seconds: float | None = None
    command: tuple[str, ...] = ()
    grid: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.count <= _MOST or self.seed < 0:
            words = f"schedules are 1 to {_MOST:,}, and their seed is 0 or more: not {self.count} and {self.seed}"
            raise fail("unknown-option", words, None)

    def names(self, invocations: int) -> Iterator[str]:
        """Yield the names of the schedules for a dispatch of so many invocations."""
        few = invocations <= MOST_ONE_BY_ONE
        fixed = [name for name in FIXED if few or schedule(name).granularity != "invocation"]
        seeds = (template.format(seed=self.seed + n, depth=1 + n % _DEEPEST) for n in count() for template in DRAWN)
        yield from fixed[: self.count]
        for _ in range(self.count - len(fixed)):
            yield next(seeds)


@sealed
class Agreement:
    """What many schedules showed. `seen`: how many of those `asked` for ran; `seconds`: how long that took.

    `differing`: the schedules that leave other outputs than lockstep does; `endless`: those that were stopped in a
    loop, and are not compared.
    """

    asked: int
    seen: int
    seed: int
    seconds: float
    differing: tuple[str, ...] = ()
    endless: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all schedules ran."""
        return self.seen == self.asked

    def __str__(self) -> str:
        how = f"(seed {self.seed}, {self.seconds:.1f} s)"
        agree = self.seen - len(self.differing) - len(self.endless)
        words = [f"stopped after {self.seen:,} of {self.asked:,} schedules"] if not self.complete else []
        words += [f"{agree:,} of {self.seen:,} schedules agree"]
        if self.differing:
            words += [f"{len(self.differing):,} with other outputs, the first is {self.differing[0]}"]
        if self.endless:
            words += [f"{len(self.endless):,} endless, the first is {self.endless[0]}"]
        return f"{'; '.join(words)} {how}"


def sweep(dispatch: Dispatch, wanted: Schedules, measured: Measured) -> tuple[list[Finding], Agreement]:
    """Run a dispatch under many schedules, after the run that was `measured`.

    Returns its findings, with what the schedules show, and how many agree.
    """
    began = perf_counter()
    launch, outcome = dispatch.run(frozenset())
    seen = _Seen(dispatch, launch, outcome, measured.launch.racing(measured.outcome))
    for name in wanted.names(launch.invocations):
        if wanted.seconds is not None and seen.count and perf_counter() - began >= wanted.seconds:
            break
        seen.add(name)
    spent = perf_counter() - began
    agreement = Agreement(wanted.count, seen.count, wanted.seed, spent, tuple(seen.differing), tuple(seen.endless))
    return _Explained(seen, measured.launch, wanted).findings(measured.findings), agreement


@entity
class _Seen:
    """What the schedules changed so far. `changes`: for each output, the first schedule that changes it, and which
    elements, in words. The launch is that of lockstep. `racing`: variables with races."""

    dispatch: Dispatch
    launch: Launch
    outcome: Outcome
    racing: frozenset[str]
    count: int = 0
    changes: dict[Key, tuple[str, str]] = field(default_factory=dict[Key, tuple[str, str]])
    differing: list[str] = field(default_factory=list[str])
    endless: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._before = self.launch.views()
        self._grids: dict[Key, tuple[int, int, int]] = {}

    def add(self, name: str) -> None:
        """Run a schedule, and compare its outputs with those of lockstep."""
        self.count += 1
        if name == "lockstep":
            return
        again, after = self._run(name, self.dispatch)
        if after.finished < self.outcome.finished:
            self.endless.append(name)
            return
        found = dict(differences(self._before, again.views()))
        self.differing += [name] if found else []
        for key, words in found.items():
            self.changes.setdefault(key, (name, words))

    def _run(self, name: str, dispatch: Dispatch) -> tuple[Launch, Outcome]:
        budget = rerun_budget(self.launch, self.outcome)
        return dispatch.run(frozenset(), budget=budget, threads=1, schedule=schedule(name), racing=self.racing)

    def smallest_grid(self, key: Key, name: str) -> tuple[int, int, int]:
        """Return the smallest grid, of those with axes that are powers of two, that shows a change of an output."""
        if key not in self._grids:
            self._grids[key] = self._smallest_grid(key, name)
        return self._grids[key]

    def _smallest_grid(self, key: Key, name: str) -> tuple[int, int, int]:
        if self.dispatch.how.chosen is not None:
            return self.dispatch.grid
        for grid in _smaller(self.dispatch.grid):
            smaller = self.dispatch.with_(grid=grid)
            (before, first), (after, second) = (self._run(each, smaller) for each in ("lockstep", name))
            if first.finished == second.finished == prod(grid) and key in dict(
                differences(before.views(), after.views())
            ):
                return grid
        return self.dispatch.grid


def _smaller(grid: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """Return smaller grids, the smallest first: as many as have no more workgroups in all than the grid."""
    x, y, z = ([1 << bit for bit in range(size.bit_length()) if 1 << bit < size] + [size] for size in grid)
    found = sorted(
        ((i, j, k) for i in x for j in y for k in z if (i, j, k) != grid), key=lambda each: (prod(each), each)
    )
    spent = accumulate(map(prod, found))
    return [each for each, workgroups in zip(found, spent, strict=True) if workgroups <= prod(grid)]


def _joined(finding: Finding, more: Finding) -> Finding:
    """Return a finding with the outputs of another at the same place, and its notes on them."""
    notes = tuple(note for note in more.notes if not note.span)
    return replace(finding, notes=(*finding.notes, *notes), outputs=(*finding.outputs, *more.outputs))


class _Explained:
    """Findings beside what schedules changed. `launch`: that of the findings."""

    def __init__(self, seen: _Seen, launch: Launch, wanted: Schedules) -> None:
        self._seen, self._launch, self._wanted = seen, launch, wanted

    def findings(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings, those that explain a change with the command that shows it, and one for what is left."""
        changes = self._seen.changes
        shown: list[Finding] = []
        explained: set[Key] = set()
        for each in findings:
            keys = [key for key in changes if self._explains(each, key)]
            explained.update(keys)
            shown.append(self._shown(each, keys[0]) if keys else each)
        left = [key for key in changes if key not in explained]
        for made in self._unexplained(left) if left else ():
            same = next((n for n, each in enumerate(shown) if each.code == made.code and each.span == made.span), None)
            if same is None:
                shown.append(made)
            else:  # it has these outputs as well
                shown[same] = _joined(shown[same], made)
        return shown

    def _explains(self, finding: Finding, key: Key) -> bool:
        """Whether a finding leaves open what an output holds."""
        if finding.code == ATOMIC_ORDER.code:
            return key in finding.outputs
        if finding.code not in _LEAVE_OPEN or finding.verdict == "same-value":
            return False
        influence = self._seen.dispatch.influence
        values = open_values(finding, self._launch, influence)
        return values is None or self._launch.variable_of(key) in influence.of(values)

    def _shown(self, finding: Finding, key: Key) -> Finding:
        """Return a finding with the command that shows the change of an output; no longer unseen, if it was."""
        name, words = self._seen.changes[key]
        notes = (*finding.notes, Note(self._again(key, name)))
        if finding.verdict != "unseen":
            return replace(finding, notes=notes)
        severity = RACE.severity_of("harmful") or RACE.severity
        notes = (*finding.notes[:-1], Note(f"run {name}, {words}"), notes[-1])
        return replace(finding, verdict="harmful", severity=severity, notes=notes)

    def _unexplained(self, keys: Sequence[Key]) -> Iterator[Finding]:
        """Yield findings for outputs that no finding explains."""
        changes = {key: "run {}, {}".format(*self._seen.changes[key]) for key in keys}
        dispatch = self._seen.dispatch
        blamed = blame(dispatch.run, dispatch.influence, self._launch, changes)
        rest = {key: words for key, words in changes.items() if not any(key in each.outputs for each in blamed)}
        for made in [*blamed, *([self._without_cause(rest)] if rest else [])]:
            key = made.outputs[0]
            yield replace(made, notes=(*made.notes, Note(self._again(key, self._seen.changes[key][0]))))

    def _without_cause(self, changes: dict[Key, str]) -> Finding:
        names = {self._launch.variable_of(key) for key in changes}
        stores = [site for site in self._launch.program.sites if site.variable in names and site.kind != "load"]
        return SCHEDULE_DEPENDENT.make(
            stores[0].span if stores else None,
            notes=map(Note, changes.values()),
            verdict="harmful",
            outputs=tuple(changes),
            names=" and ".join(map(str, changes)),
        )

    def _again(self, key: Key, name: str) -> str:
        """Say what shows a change again: the command, or the argument of `simulate`."""
        wanted, whole = self._wanted, self._seen.dispatch.grid
        grid = self._seen.smallest_grid(key, name)
        size = ",".join(map(str, grid)).removesuffix(",1").removesuffix(",1")
        if not wanted.command:
            smaller = f", grid={grid if grid[1:] != (1, 1) else grid[0]}" if grid != whole else ""
            return f'schedule="{name}"{smaller} shows it again'
        words = [*wanted.command, *(["--grid", size] if wanted.grid or grid != whole else [])]
        return f'to see it: {shlex.join(words)} --schedule "{name}"'
