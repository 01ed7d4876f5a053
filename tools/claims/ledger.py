"""What a claim is, and how it comes to a verdict: by a function that runs kernels and looks at the figures.

    @claim("000.4", shapes="M 64, N 64, K 768")
    def barriers() -> Decision:
        \"""Double-buffering halves the barriers in the loop.\"""
        double, single = ...
        return judge(2 * double == single, "{double} in the loop against {single}", double=double, single=single)

The docstring is the claim, in our words. The finding is one sentence made of the figures, so that it says what is true
whichever way the verdict goes. An id is the document's number, the claim's, and a letter where one claim says several
things: 000.2b.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import field
from enum import StrEnum
from string import ascii_lowercase
from typing import Any

from bankshot.oracle.errors import UsageError
from bankshot.sim.fast_dataclass import frozen

DOCUMENTS = {
    "000": "forward matmul in 64 x 64 tiles",
    "001": "backward matmul in 64 x 64 tiles",
    "002": "thread utilization, Q4_K and f16 GEMV",
    "003": "six ideas for quantized matmuls",
    "004": "a ladder of matmuls without workgroup memory",
}
"""What each document is about; its claims are in the module `document_NNN`."""

_ID = re.compile(r"(\d{3})\.(\d+)([a-z]?)")


class Verdict(StrEnum):
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDABLE = "not decidable by a simulator"


@frozen
class Decision:
    """`finding` says what the run showed, in one sentence. `needs`: what would decide what this run could not."""

    verdict: Verdict
    finding: str
    figures: dict[str, Any] = field(default_factory=dict)
    needs: str = ""


@frozen
class Claim:
    """`shapes`: what the kernels are run at, and how figures scale where the document's shapes are larger."""

    id: str
    statement: str
    shapes: str
    decide: Callable[[], Decision]

    @property
    def document(self) -> str:
        return self.id[:3]

    @property
    def number(self) -> str:
        """The id without the letter of a part."""
        return self.id.rstrip(ascii_lowercase)

    @property
    def order(self) -> tuple[str, int, str]:
        """Sorts ids as people count."""
        matched = _ID.fullmatch(self.id)
        assert matched is not None
        document, number, part = matched.groups()
        return document, int(number), part


_claims: dict[str, Claim] = {}


def claim(id: str, *, shapes: str) -> Callable[[Callable[[], Decision]], Callable[[], Decision]]:
    """Register the function that decides claim `id`; its docstring is the claim."""

    def register(decide: Callable[[], Decision]) -> Callable[[], Decision]:
        assert _ID.fullmatch(id), id
        assert id not in _claims, id
        statement = " ".join((decide.__doc__ or "").split())
        _claims[id] = Claim(id, statement, shapes, decide)
        return decide

    return register


def judge(holds: Any, finding: str, needs: str = "", /, **figures: Any) -> Decision:
    """Confirmed where `holds`, refuted where not; where it is None, nothing that was counted decides, and `needs` says
    what would.

    `finding` is a format string over the figures.
    """
    said = finding.format(**figures)
    if holds is None:
        assert needs, "say what would decide it"
        return Decision(Verdict.UNDECIDABLE, said, figures, needs)
    return Decision(Verdict.CONFIRMED if holds else Verdict.REFUTED, said, figures)


def claims(document: str | None = None, id: str | None = None) -> list[Claim]:
    """The claims of one document or of all, or all parts of one. Raises `UsageError`."""
    if document is not None and document not in DOCUMENTS:
        raise UsageError(f"--document: there is no document {document}; there are {', '.join(DOCUMENTS)}")
    for number in DOCUMENTS:
        importlib.import_module(f"{__package__}.document_{number}")
    found = sorted((c for c in _claims.values() if _asked(c, document, id)), key=lambda c: c.order)
    if not found:
        raise UsageError(f"--claim: there is no claim {id}; an id is a document and a number, such as 000.6")
    return found


def _asked(claim: Claim, document: str | None, id: str | None) -> bool:
    return document in (None, claim.document) and id in (None, claim.id, claim.number)
