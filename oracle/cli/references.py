"""`bankshot references`: list the references that come with Bankshot."""

from __future__ import annotations

import click

from .options import JSON


@click.command()
@JSON
def references(as_json: bool) -> None:
    """List references for [kernel] reference, with the names that a manifest gives its bindings and dims for each."""
    from ..references import expected_names
    from ..reports.json_document import document

    rows = sorted(expected_names().items())
    if as_json:
        entries = [
            {"name": name, "takes": [list(each) for each in row.takes], "gives": list(row.gives),
             "dims": list(row.dims), "computes": row.words}
            for name, row in rows
        ]  # fmt: skip
        click.echo(document("references", entries, ok=True))
        return
    for name, row in rows:
        click.echo(f"{name}: {row.words}")
        dims = f"; dims {', '.join(row.dims)}" if row.dims else ""
        click.echo(
            f"    takes {' or '.join(', '.join(each) for each in row.takes)}; gives {', '.join(row.gives)}{dims}"
        )
    click.echo('one of your own is a function in a Python file: `reference = "file.py:function"`')
