"""A finding: something a run did that a GPU would punish or hide. `findings.table` lists the kinds."""

from __future__ import annotations

from ..bindings.binding import Key
from ..fast_dataclass import sealed
from ..wgsl.diagnostics import Diagnostic, Note
from ..wgsl.source import Span


@sealed
class Finding:
    """One finding, which renders like a diagnostic. It describes the first occurrence; `count` has them all.

    `code` and `severity` come from `findings.table`. `lanes` are local invocation indices, `epoch` is the number of
    barriers passed before. `verdict` says whether the finding matters (see `findings.replay`): harmful, unseen,
    same-value, wrong-barrier, or None where that was not decided. `outputs`, of atomic-order: the keys of the bindings
    that depend on the order.
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

    @property
    def race_places(self) -> tuple[frozenset[Span], bool]:
        """What tells the races of a run apart: the two places, and whether they are in two workgroups."""
        return frozenset(span for _, span in self.spans[:2]), self.epoch is None

    def render(self) -> str:
        """Format it as `file:line:col: severity[code]: message`, the line with a caret, notes and hint."""
        head = f"{self.severity}[{self.code}]"
        return Diagnostic(head, self.code, self.message, self.span, self.notes, self.hint).render()
