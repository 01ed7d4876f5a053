"""`python -m tools.claims`: decide by running what five documents say about the kernels in shaders/."""

from __future__ import annotations

from pathlib import Path

import click

from bankshot.oracle.cli.main import Guarded
from bankshot.oracle.reports.json_document import document as json_document
from bankshot.oracle.reports.terminal import console
from bankshot.oracle.workers.progress import meter

from . import ledger, report


@click.group(cls=Guarded, invoke_without_command=True)
@click.option("--document", metavar="NUMBER", help="Only the claims of one document: 000 to 004.")
@click.option("--claim", "id", metavar="ID", help="Only one claim, such as 000.6, or one part of it, 000.6a.")
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), help="Write the ledger here, as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def main(document: str | None, id: str | None, page: Path | None, as_json: bool) -> None:
    """Decide by running what five documents say about the kernels in shaders/."""
    asked = ledger.claims(document, id)
    decided: list[report.Decided] = []
    with meter(len(asked)) as progress:
        for claim in asked:
            progress.stage(claim.id, "deciding")
            decided.append((claim, claim.decide()))
            with progress.finish():
                if not as_json and page is None:
                    report.show(console(), *decided[-1])
    if page is not None:
        page.write_text(report.page(decided), encoding="utf-8")
    if as_json:
        click.echo(json_document("claims", [report.entry(*each) for each in decided], ok=True))
    else:
        click.echo(f"claims: {report.tally(decided)}")


if __name__ == "__main__":
    main(prog_name="python -m tools.claims")
