"""`bankshot corpus`: try every shader of some folders."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import LIMIT, time_limit
from ..exit_codes import CLEAN, FOUND
from .options import ADAPTER, BUDGET, INPUT, JSON, pairs

if TYPE_CHECKING:
    from ..corpus.trial import Shader


@click.command()
@click.argument("folders", nargs=-1, required=True, type=INPUT, metavar="FOLDER...")
@click.option("--embedded", is_flag=True, help="Also search string literals of JS, TS, HTML, C++, Rust and Python.")
@click.option("--fill", "fills", multiple=True, metavar="NAME=TEXT", help="Text to replace {{NAME}} and ${NAME}.")
@click.option("--jobs", type=click.IntRange(1), help="Processes; by default one for each processor.")
@click.option("--limit", default=60.0, show_default=True, help="Seconds for one stage of one entry point.")
@click.option("--list", "everything", is_flag=True, help="Show every trial, not only those that went wrong.")
@ADAPTER
@BUDGET
@JSON
def corpus(
    folders: tuple[Path, ...],
    embedded: bool,
    fills: tuple[str, ...],
    jobs: int | None,
    limit: float,
    everything: bool,
    adapter: str | None,
    budget: int | None,
    as_json: bool,
) -> None:
    """Try every shader in FOLDERs on generated data, in the simulator and through wgpu, and report the results."""
    from ..corpus import corpus_survey
    from ..reports.corpus_report import corpus_json, show_corpus
    from ..reports.terminal import console
    from ..workers.progress import meter

    os.environ[LIMIT] = str(max(limit, time_limit()))  # for the process that runs wgpu, which has a limit of its own
    found = corpus_survey.collect(folders, embedded, dict(pairs("--fill", fills)))
    options = corpus_survey.Options(jobs or os.cpu_count() or 1, limit, adapter, budget)
    with meter(sum(len(collection.shaders) for collection in found)) as progress:

        def done(shader: Shader) -> None:
            progress.stage(shader.name, "tried")
            with progress.finish():
                pass

        corpus_survey.corpus(found, options, done)
    ok = all(corpus_survey.good(trial) for collection in found for trial in collection.trials)
    if as_json:
        click.echo(corpus_json(found, ok))
    else:
        show_corpus(console(), found, everything=everything)
    sys.exit(CLEAN if ok else FOUND)
