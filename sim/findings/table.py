"""The table of findings: one row for each kind, from which messages, suppressions and `docs/findings.md` are made.

To add a finding, add a row here, and the check that calls `Kind.make` on what the machine recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from ..bindings.binding import Key
from ..fast_dataclass import frozen
from ..machine import layout as at
from ..wgsl.diagnostics import Note
from ..wgsl.source import Span
from .finding import Finding

ZERO_INITIALIZED = "WGSL zero-initializes it, but some drivers do not; store its first value explicitly"


@frozen
class Kind:
    """A row of the table.

    `message` and `hint` are templates, as of `str.format`. `probe` must be on; None: every run looks for it. `evidence`
    is what the machine records, or the run that shows it; `checks` are the machine's numeric checks. `replay` names the
    reruns in `findings.replay` that decide its verdict, and `downgraded` the severities that follow from verdicts.
    `depends_on` is what an occurrence in one workgroup depends on: its lanes (control flow and addresses), their data,
    or all workgroups. `at_every_span`: a comment at any of its places suppresses it. `suppressible`: `allow` takes it.
    """

    code: str
    severity: str
    title: str
    message: str
    hint: str
    evidence: str
    probe: str | None = None
    checks: tuple[int, ...] = ()
    replay: str | None = None
    downgraded: Mapping[str, str] = field(default_factory=lambda: {})
    depends_on: str = "lanes"
    at_every_span: bool = False
    on_request: bool = False
    suppressible: bool = True

    def make(
        self,
        span: Span | None,
        *,
        count: int = 1,
        workgroup: tuple[int, int, int] = (0, 0, 0),
        lanes: tuple[int, ...] = (),
        epoch: int | None = None,
        notes: Iterable[Note] = (),
        verdict: str | None = None,
        outputs: tuple[Key, ...] = (),
        hint: str | None = None,
        **words: str | int,
    ) -> Finding:
        """Make a finding of this kind; `words` fill in its message, and its hint unless one is given."""
        return Finding(
            code=self.code,
            severity=self.severity_of(verdict) or self.severity,
            message=self.message.format(**words),
            span=span,
            count=count,
            workgroup=workgroup,
            lanes=lanes,
            epoch=epoch,
            notes=tuple(notes),
            hint=(self.hint.format(**words) if hint is None else hint) or None,
            verdict=verdict,
            outputs=outputs,
        )

    def severity_of(self, verdict: str | None) -> str | None:
        """Return the severity that a verdict brings with it, if any."""
        return None if verdict is None else self.downgraded.get(verdict)


RACE = Kind(
    code="race",
    severity="error",
    title="Two invocations access the same memory, at least one stores, and nothing orders them",
    message="invocation {lane}{group} {does} {place}, and invocation {other}{other_group} {other_does}; {order}",
    hint="{advice}",
    evidence="for each word, the last accesses with lane, site and epoch",
    probe="races",
    replay="schedules",
    downgraded={"same-value": "warning", "unseen": "warning"},
    depends_on="workgroups",
    at_every_span=True,
)
COMPONENT_RACE = Kind(
    code="component-race",
    severity="warning",
    title="Two invocations access different components of one vector, at least one stores, and nothing orders them",
    message="invocation {lane}{group} {does} a component of {place}, and invocation {other}{other_group} {other_does} "
    "another; {order}, and WGSL allows a store to a component to access the whole vector",
    hint="{advice}",
    evidence="a rerun in which a store to a component of a vector counts as one to all of them",
    probe="races",
    depends_on="workgroups",
    at_every_span=True,
)
ATOMIC_ORDER = Kind(
    code="atomic-order",
    severity="warning",
    title="An output depends on which invocation reaches an atomic operation first",
    message="{holds} on which invocation reaches this {operation} first",
    hint="a GPU may use a different order each time; if any order is correct, add allow(atomic-order) with a reason",
    evidence="a rerun in the opposite order leaves other outputs",
    probe="races",
    at_every_span=True,
)
SCHEDULE_DEPENDENT = Kind(
    code="schedule-dependent",
    severity="error",
    title="An output depends on the order of invocations, and no other finding explains it",
    message="what {names} holds depends on the order in which invocations run",
    hint="run with --probes all: races, and atomics whose order matters, are findings of their own",
    evidence="runs under the schedules of `--schedules N` leave other outputs than lockstep does",
    depends_on="workgroups",
    on_request=True,
)
WEAK_ORDER = Kind(
    code="weak-order",
    severity="warning",
    title="An output depends on an order of atomic operations that only a barrier could guarantee",
    message="{said}",
    hint="nothing but a barrier orders accesses to different words, and only within a workgroup: pass the value in the "
    "word that is checked, or compute in one workgroup",
    evidence="a search of all orders of a few invocations has an outcome only with weak memory",
    depends_on="workgroups",
    at_every_span=True,
    on_request=True,
)
REDUNDANT_BARRIER = Kind(
    code="redundant-barrier",
    severity="info",
    title="A barrier orders nothing in this run",
    message="this {barrier} orders nothing in this run: {why}",
    hint="try other sizes before you remove it; of several, remove one at a time",
    evidence="a rerun for each barrier, in which that barrier orders nothing, finds no new race; where it separates "
    "atomic operations, reruns without it change no output",
    probe="redundant",
)
UNINIT = Kind(
    code="uninit",
    severity="warning",
    title="Workgroup memory is read before it is written",
    message="{access}, which was never written",
    hint=ZERO_INITIALIZED,
    evidence="a bit for each word of workgroup memory that was stored to",
    probe="uninit",
    replay="poison",
    downgraded={"unseen": "info"},
    depends_on="workgroups",
)
OUT_OF_BOUNDS = Kind(
    code="out-of-bounds",
    severity="warning",
    title="An access is past the end of an array, a buffer or a texture",
    message="{access}",
    hint="{consequence}",
    evidence="for each access, how many addresses were outside, and the first",
    probe="bounds",
    replay="policies",
    downgraded={"unseen": "info"},
)
INACTIVE_LANE = Kind(
    code="inactive-lane",
    severity="warning",
    title="An output depends on a shuffle that reads an inactive lane",
    message="this {operation} reads a lane that is inactive or outside the subgroup",
    hint="the result is unspecified; use it only where that lane is known to be active",
    evidence="a rerun with poison values in such lanes leaves other outputs",
    probe="bounds",
)
NOT_FINITE = Kind(
    code="not-finite",
    severity="warning",
    title="A NaN or an infinity results from finite operands",
    message="invocation {lane} computes {operation}",
    hint="an implementation may assume that this does not happen, and return any value",
    evidence="a check of each floating-point result",
    probe="nan",
    checks=(at.NON_FINITE,),
    depends_on="data",
)
DIVISION_BY_ZERO = Kind(
    code="division-by-zero",
    severity="warning",
    title="An integer is divided by zero, or the quotient overflows",
    message="invocation {lane} computes {operation}",
    hint="WGSL defines x / 0 = x and x % 0 = 0; an i32 quotient that overflows is x",
    evidence="a check of each integer division",
    probe="nan",
    checks=(at.DIVIDES_U32, at.DIVIDES_I32),
    depends_on="data",
)
SHIFT_COUNT = Kind(
    code="shift-count",
    severity="warning",
    title="A shift count is 32 or more",
    message="invocation {lane} computes {operation}",
    hint="WGSL takes the count modulo 32",
    evidence="a check of each shift count",
    probe="nan",
    checks=(at.SHIFTS,),
    depends_on="data",
)
CONVERSION = Kind(
    code="conversion",
    severity="warning",
    title="A float does not fit the integer type that it is converted to",
    message="invocation {lane} computes {operation}",
    hint="WGSL converts to the nearest value of the type, and a NaN to an unspecified one",
    evidence="a check of each conversion from float to integer",
    probe="nan",
    checks=(at.TO_I32, at.TO_U32),
    depends_on="data",
)
BARRIER_DIVERGENCE = Kind(
    code="barrier-divergence",
    severity="error",
    title="Some invocations of a workgroup do not reach a barrier",
    message="{absent} of {invocations} invocations do not reach this barrier: {lanes_absent}",
    hint="every invocation of a workgroup must reach each barrier",
    evidence="an event, with the lanes that did not arrive",
)
ENDLESS_LOOP = Kind(
    code="endless-loop",
    severity="error",
    title="A loop does not end, or was still running when the budget of its run was spent",
    message="this loop {what}; {waiting}the run was stopped",
    hint="{advice}",
    evidence="the state of its workgroups, which repeats; or the budget of iterations, or the default one of work",
    depends_on="workgroups",
)
ALLOW = Kind(
    code="allow",
    severity="info",
    title="A comment `bankshot: allow(…)` suppresses nothing",
    message="{complaint}",
    hint="{advice}",
    evidence="the comments of the source, compared with the findings",
    suppressible=False,
)
ROUNDING = Kind(
    code="rounding",
    severity="info",
    title="A branch or a conversion depends on rounding",
    message="this {what} depends on rounding: a conforming implementation may decide it the other way",
    hint="",
    evidence="the rerun that derives error bounds (`Run.bounds`)",
    suppressible=False,
)

KINDS: dict[str, Kind] = {
    kind.code: kind
    for kind in (
        RACE,
        COMPONENT_RACE,
        ATOMIC_ORDER,
        SCHEDULE_DEPENDENT,
        WEAK_ORDER,
        REDUNDANT_BARRIER,
        UNINIT,
        OUT_OF_BOUNDS,
        INACTIVE_LANE,
        NOT_FINITE,
        DIVISION_BY_ZERO,
        SHIFT_COUNT,
        CONVERSION,
        BARRIER_DIVERGENCE,
        ENDLESS_LOOP,
        ALLOW,
        ROUNDING,
    )
}
SUPPRESSIBLE = tuple(kind.code for kind in KINDS.values() if kind.suppressible)
BY_CHECK: dict[int, Kind] = {check: kind for kind in KINDS.values() for check in kind.checks}


def depending_on(what: str) -> frozenset[str]:
    """Return the codes of the kinds that depend on this: lanes, data or workgroups."""
    return frozenset(kind.code for kind in KINDS.values() if kind.depends_on == what)
