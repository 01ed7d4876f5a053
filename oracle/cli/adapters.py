"""`bankshot adapters`: list the adapters of this machine."""

from __future__ import annotations

import click

from .options import JSON, LIMIT


@click.command()
@LIMIT
@JSON
def adapters(as_json: bool) -> None:
    """List wgpu's adapters: driver and version, features, limits, and the device profile of each.

    SwiftShader is found where Chromium or Chrome installs it, or where BANKSHOT_VULKAN_DRIVERS says.
    """
    from ..reports.adapters_report import adapter_entries, adapter_lines
    from ..reports.json_document import document
    from ..wgpu_client import adapter_survey

    found = adapter_survey.survey()
    if as_json:
        click.echo(document("adapters", adapter_entries(found), ok=True))
    else:
        click.echo("\n".join(adapter_lines(found, *adapter_survey.added())))
