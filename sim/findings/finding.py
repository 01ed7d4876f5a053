"""What a run did that a GPU would punish, or hide: frozen records that render like diagnostics."""

from __future__ import annotations

from ..bindings.binding import Key
from ..fast_dataclass import sealed
from ..wgsl.diagnostics import Diagnostic, Note
from ..wgsl.source import Span

# Every kind of finding, and the probe that looks for it (None: every run does).
CODES = {
    "race": "races",
    "atomic-order": "races",
    "redundant-barrier": "redundant",
    "uninit": "uninit",
    "out-of-bounds": "bounds",
    "inactive-lane": "bounds",
    "not-finite": "nan",
    "division-by-zero": "nan",
    "shift-count": "nan",
    "conversion": "nan",
    "barrier-divergence": None,
    "endless-loop": None,
}


@sealed
class Finding:
    """`code`: one of `CODES`, or allow, of a comment that silences nothing. `lanes` are local invocation indices.

    `count`: how often it happened in all; the rest describes the first time. `epoch`: barriers passed before.
    `verdict`, of what may or may not matter: see `replay`. `outputs`, of atomic-order: which depend on the order.
    """

    code: str
    severity: str
    message: str
    span: Span | None
    count: int
    workgroup: tuple[int, int, int]
    lanes: tuple[int, ...]
    epoch: int | None = None
    notes: tuple[Note, ...] = ()
    hint: str | None = None
    verdict: str | None = None
    outputs: tuple[Key, ...] = ()

    @property
    def spans(self) -> tuple[tuple[str, Span], ...]:
        """The labelled places: where it happened, and the others that explain it."""
        own = ((self.code, self.span),) if self.span else ()
        return (*own, *((note.message, note.span) for note in self.notes if note.span))

    def render(self) -> str:
        """`file:line:col: severity: message`, the line with a caret, notes and hint."""
        return Diagnostic(self.severity, self.code, self.message, self.span, self.notes, self.hint).render()
