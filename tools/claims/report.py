"""The ledger for people, for programs, and as the page that is committed (`docs/claims.md`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from .ledger import DOCUMENTS, Claim, Decision, Verdict

Decided = tuple[Claim, Decision]

STYLES = {
    Verdict.CONFIRMED: "green",
    Verdict.PARTLY: "cyan",
    Verdict.REFUTED: "red",
    Verdict.UNDECIDABLE: "yellow",
    Verdict.REMARK: "dim",
}

HEAD = """\
# The claims ledger

What five documents say about WGSL kernels, in our words, and what running the kernels in `shaders/` says to it. Nothing
here is typed in: `make claims` runs every claim and writes this page, and a test runs them again and compares the
verdicts. `--json` gives every figure. Sectors, lines and wavefronts are those of the `nvidia` profile, whose rules
match the counters of an H200; they are what the text asks for, not time.

| verdict | means |
| --- | --- |
| confirmed | it holds in the sense of its document; a figure that is rounded or cut off holds |
| partly | some of what it says holds, and the finding says which |
| refuted | it does not hold |
| not decidable | neither counts nor times that are here decide it; the entry says what would |
| remark | no claim of the document: something worth knowing that the same runs show |

Claims about time are decided by times that were measured on a GPU, with timestamps, and are kept in `tests/hardware`
with device, driver, date and command; `python -m tools.claims.measure` takes them. One GPU is one GPU: another may
differ.

Kernels named `…_published` have the schedule of the files that the documents' authors published; the header of their
manifests names the commits. They are what "today" means in the claims of 002 and 003.
"""


def entry(claim: Claim, decision: Decision) -> dict[str, Any]:
    """One claim for programs."""
    return {
        "id": claim.id,
        "document": claim.document,
        "claim": claim.statement,
        "shapes": claim.shapes,
        "decided_by": f"{claim.decide.__module__}.{claim.decide.__name__}",
        "command": claim.command,
        "times": [f"{each.kernel} {each.case}" for each in claim.times],
        "verdict": str(decision.verdict),
        "finding": decision.finding,
        "needs": decision.needs,
        "figures": decision.figures,
    }


def show(out: Console, claim: Claim, decision: Decision) -> None:
    """One claim for people."""
    out.print(Text.assemble((claim.id, "bold"), "  ", (decision.verdict, STYLES[decision.verdict])))
    for words in _lines(claim, decision):
        out.print(Padding(Text(words), (0, 0, 0, 4), expand=False))
    out.print()


def _lines(claim: Claim, decision: Decision) -> Iterator[str]:
    yield f"claim  {claim.statement}"
    yield f"found  {sentence(decision.finding)}"
    if decision.needs:
        yield f"needs  {sentence(decision.needs)}"
    yield f"shapes {claim.shapes}"
    yield f"by     {claim.command}"


def tally(decided: Iterable[Decided]) -> str:
    """`3 confirmed, 1 refuted; 1 remark`, in the order of `Verdict`."""
    counts = Counter(decision.verdict for _, decision in decided)
    remarks = counts.pop(Verdict.REMARK, 0)
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    return "; ".join(filter(None, [verdicts, f"{remarks} remark{'s' if remarks > 1 else ''}" if remarks else ""]))


def page(decided: list[Decided]) -> str:
    """The whole ledger in Markdown."""
    parts = [HEAD, f"In all {tally(decided)}.\n"]
    for document, group in groupby(decided, key=lambda each: each[0].document):
        rows = list(group)
        parts += [f"## {document}: {DOCUMENTS[document]}\n", f"{tally(rows).capitalize()}.\n"]
        parts += [section(*row) for row in rows]
    return "\n".join(parts)


def section(claim: Claim, decision: Decision) -> str:
    """One claim in Markdown."""
    lines = [
        heading(claim, decision),
        "",
        f"> {claim.statement}",
        "",
        sentence(decision.finding),
        *([f"What would decide it: {decision.needs}."] if decision.needs else []),
        "",
        f"*Shapes: {claim.shapes}. Decided by `{claim.command}`.*",
        "",
    ]
    return "\n".join(lines)


def heading(claim: Claim, decision: Decision) -> str:
    return f"### {claim.id}: {decision.verdict}"


def sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
