"""What a claim is, and how it comes to a verdict: by a function that runs kernels and looks at the figures.

    @claim("000.4", shapes="M 64, N 64, K 768")
    def barriers() -> Decision:
        \"""Double-buffering halves the barriers in the loop.\"""
        double, single = ...
        return judge(2 * double == single, "{double} in the loop against {single}", double=double, single=single)

The docstring is the claim, in our words and in the document's sense. The finding is one sentence made of the figures,
so that it says what is true whichever way the verdict goes. An id is the document's number, the claim's, and a letter
where one claim says several things: 000.2b. What a document does not say, and running its kernels shows, is a `remark`.
A claim about time lists the `times` that decide it (`timing`).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from bankshot.oracle.errors import UsageError
from bankshot.sim.fast_dataclass import frozen

if TYPE_CHECKING:
    from .timing import Timing

DOCUMENTS = {
    "000": "forward matmul in 64 x 64 tiles",
    "001": "backward matmul in 64 x 64 tiles",
    "002": "thread utilization, Q4_K and f16 GEMV",
    "003": "six ideas for quantized matmuls",
    "004": "a ladder of matmuls without workgroup memory",
}
"""What each document is about; its claims are in the modules `document_NNN` and `document_NNN_…`."""

_ID = re.compile(r"(\d{3})\.(\d+)([a-z]?)")


class Verdict(StrEnum):
    CONFIRMED = "confirmed"
    PARTLY = "partly"
    REFUTED = "refuted"
    UNDECIDABLE = "not decidable"
    REMARK = "remark"  # no verdict: the document says nothing of the kind


@frozen
class Decision:
    """`finding` says what the run showed, in one sentence. `needs`: what would decide what this run could not."""

    verdict: Verdict
    finding: str
    figures: dict[str, Any] = field(default_factory=dict)
    needs: str = ""


@frozen
class Claim:
    """`shapes`: what the kernels are run at, and how figures scale where the document's shapes are larger. `times`: the
    dispatches whose time on a GPU decides it."""

    id: str
    statement: str
    shapes: str
    decide: Callable[[], Decision]
    times: tuple[Timing, ...] = ()

    @property
    def document(self) -> str:
        return self.id[:3]

    @property
    def number(self) -> str:
        """The id without the letter of a part."""
        return self.id.rstrip(ascii_lowercase)

    @property
    def command(self) -> str:
        """The command that decides it."""
        return f"python -m tools.claims --claim {self.id}"

    @property
    def order(self) -> tuple[str, int, str]:
        """Sorts ids as people count."""
        matched = _ID.fullmatch(self.id)
        assert matched is not None
        document, number, part = matched.groups()
        return document, int(number), part


_claims: dict[str, Claim] = {}


Decider = Callable[[], Decision]


def claim(id: str, *, shapes: str, times: Sequence[Timing] = ()) -> Callable[[Decider], Decider]:
    """Register the function that decides claim `id`, or makes remark `id`; its docstring is the claim."""

    def register(decide: Decider) -> Decider:
        assert _ID.fullmatch(id), id
        assert id not in _claims, id
        statement = " ".join((decide.__doc__ or "").split())
        _claims[id] = Claim(id, statement, shapes, decide, tuple(times))
        return decide

    return register


def judge(holds: Any, finding: str, needs: str = "", /, *, partly: Any = False, **figures: Any) -> Decision:
    """Confirmed where `holds`, else partly where `partly`, else refuted; where `holds` is None, nothing that was
    counted decides, and `needs` says what would.

    `finding` is a format string over the figures.
    """
    said = finding.format(**figures)
    if holds is None:
        assert needs, "say what would decide it"
        return Decision(Verdict.UNDECIDABLE, said, figures, needs)
    verdict = Verdict.CONFIRMED if holds else Verdict.PARTLY if partly else Verdict.REFUTED
    return Decision(verdict, said, figures)


def remark(finding: str, /, **figures: Any) -> Decision:
    """A finding about something that the document does not say."""
    return Decision(Verdict.REMARK, finding.format(**figures), figures)


def claims(document: str | None = None, id: str | None = None) -> list[Claim]:
    """The claims of one document or of all, or all parts of one. Raises `UsageError`."""
    if document is not None and document not in DOCUMENTS:
        raise UsageError(f"--document: there is no document {document}; there are {', '.join(DOCUMENTS)}")
    for path in sorted(Path(__file__).parent.glob("document_*.py")):
        importlib.import_module(f"{__package__}.{path.stem}")
    found = sorted((c for c in _claims.values() if _asked(c, document, id)), key=lambda c: c.order)
    if not found:
        raise UsageError(f"--claim: there is no claim {id}; an id is a document and a number, such as 000.6")
    return found


def _asked(claim: Claim, document: str | None, id: str | None) -> bool:
    return document in (None, claim.document) and id in (None, claim.id, claim.number)
