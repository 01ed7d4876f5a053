"""`bankshot golden`: review goldens that a change of a kernel has moved."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from ..errors import UsageError
from ..exit_codes import CLEAN, FOUND
from .options import ADAPTERS, JSON, PATHS, device_option

if TYPE_CHECKING:
    from ..judge.options import Options
    from ..manifests.cases import Broken, Plan
    from ..reports.golden_review import ReviewedGolden, UnusedGolden
    from ..reports.protocol import AuditedCase

HOW = "bankshot golden review"
QUIT = "quit"
KEYS = {  # what each key does: its word, and the decision
    "a": ("accept", "accepted"),
    "r": ("reject", "rejected"),
    "s": ("skip", "skipped"),
    "q": ("quit", QUIT),
}


@click.group()
def golden() -> None:
    """Review goldens that a change of a kernel has moved."""


@golden.command()
@PATHS
@click.option("--accept", "decision", flag_value="accepted", help="Accept every change without asking.")
@click.option("--reject", "decision", flag_value="rejected", help="List every change, and write nothing.")
@click.option("--prune", is_flag=True, help="Delete goldens that no kernel and shape uses; without it, list them.")
@click.option("--kernel", metavar="NAME", help="One kernel of a manifest that has several.")
@click.option("--sweep", is_flag=True, help="Every shape of the manifest, including heavy ones.")
@device_option("Device profile that is charged for.")
@ADAPTERS
@click.option("--gpu/--no-gpu", default=True, show_default=True, help="Compare with wgpu, bit for bit.")
@click.option("--jobs", type=click.IntRange(1), help="Processes that share the cases, as of `bankshot audit`.")
@JSON
def review(
    paths: tuple[Path, ...],
    decision: str | None,
    prune: bool,
    kernel: str | None,
    sweep: bool,
    device: str,
    adapter: str | None,
    gpu: bool,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Run the cases that have goldens, and ask for each golden that changed whether to accept the change.

    Writes a golden as soon as it is accepted. A change is only offered if every other check of its case passes. Refused
    where CI is set, and without --accept, --reject or --prune where stdin is no terminal.
    """
    from ..goldens.golden_files import may_write, remove
    from ..judge.options import Options
    from ..manifests.cases import Request, plans
    from ..wgpu_client.adapter_choice import check_no_gpu

    may_write(HOW)
    if prune and kernel:
        raise UsageError(f"{HOW}: --prune looks at all kernels of a manifest; leave out --kernel")
    if prune and decision is None and not sys.stdin.isatty():
        decision = "rejected"
    if decision is None and (as_json or not sys.stdin.isatty()):
        reason = "--json does not ask" if as_json else "stdin is no terminal, so that nothing can be asked"
        raise UsageError(f"{HOW}: {reason}; pass --accept or --reject")
    if not gpu:
        check_no_gpu()
    broken: list[Broken] = []
    found = plans(paths, Request(kernel=kernel, quick=not sweep), broken)
    work = [replace(plan, shapes=tuple(shape for shape in plan.shapes if shape.golden)) for plan in found]
    left = [] if kernel else _unused(found)
    if not broken and not any(plan.shapes for plan in work) and not (prune and left):
        raise UsageError("no kernel has a golden; `golden = true` in [expect] asks for one")
    options = Options(device, gpu=gpu, adapter=adapter, how=HOW)
    results = _results(work, broken, options, jobs)
    if prune:
        remove([golden.path for golden in left])
        left = [replace(golden, removed=True) for golden in left]
    sys.exit(_review(results, left, decision, as_json))


def _unused(found: list[Plan]) -> list[UnusedGolden]:
    """The goldens beside these manifests that none of their kernels and shapes uses, or whose owner is gone."""
    from ..goldens.golden_files import goldens_beside, unused
    from ..judge.golden_check import golden_place
    from ..reports.golden_review import UnusedGolden

    claimed: dict[Path, list[Path]] = {plan.kernel.path: [] for plan in found}
    for plan in found:
        shapes = (shape for shape in plan.kernel.shapes if shape.golden)
        claimed[plan.kernel.path].extend(golden_place(plan.kernel, shape) for shape in shapes)
    left = {
        path: UnusedGolden(path, str(goldens_beside(manifest)[path]))
        for manifest, paths in claimed.items()
        for path in unused(manifest, paths)
    }
    return list(left.values())


def _results(work: list[Plan], broken: list[Broken], options: Options, jobs: int | None) -> list[AuditedCase]:
    """Audit every case, and print the errors of those that cannot be run."""
    from ..reports.protocol import ReportOptions
    from ..workers.progress import meter
    from .audit_cases import in_turn
    from .golden_cases import GoldenCases

    no_reports = ReportOptions("", "none", {}, 0, terminal=False)
    results: list[AuditedCase] = []
    with meter(len(broken) + sum(len(plan.shapes) for plan in work)) as progress:
        for case in in_turn(GoldenCases(work, options, no_reports, broken), jobs, progress):
            with progress.finish():
                if case.failure is not None:
                    click.echo(case.failure.text, err=True)
            results.append(case)
    return results


def _review(results: list[AuditedCase], left: list[UnusedGolden], decision: str | None, as_json: bool) -> int:
    """Decide on each golden that changed, and report what was written, and what is unused. Returns the exit code."""
    from ..reports.golden_review import closing_lines, review_entries
    from ..reports.json_document import document
    from .golden_cases import GOLDEN

    found = [case.parts[GOLDEN] for case in results if case.parts.get(GOLDEN) is not None]
    goldens = cast("list[ReviewedGolden]", found)
    codes = [case.failure.code for case in results if case.failure is not None]
    ok = False
    try:
        _decide([golden for golden in goldens if golden.offered], decision, quiet=as_json)
        ok = not codes and all(golden.accepted for golden in goldens)
    finally:  # also after an interrupt, and where a file cannot be written
        lines = closing_lines(goldens, len(results) - len(codes), len(codes), left)
        if as_json:
            click.echo(document("golden review", review_entries(goldens, left), ok, summary=lines[-1]))
        else:
            click.echo("\n".join(lines))
    return max((*codes, CLEAN if ok else FOUND))


def _decide(goldens: list[ReviewedGolden], decision: str | None, quiet: bool) -> None:
    """Show each golden, and accept or reject it as `decision` or the user says. Raises OSError."""
    from ..reports.golden_review import Decision, show_change
    from ..reports.terminal import console

    out = console()
    for number, golden in enumerate(goldens, 1):
        if not quiet:
            show_change(out, golden, number, len(goldens))
        answer = decision or _asked()
        if answer == QUIT:
            return
        golden.decide(Decision(answer))


def _asked() -> str:
    """Ask for one key."""
    choices = "  ".join(f"[{key}] {word}" for key, (word, _) in KEYS.items())
    click.echo(f"  {choices}  ", nl=False)
    while (key := click.getchar().lower()) not in KEYS:
        pass
    click.echo(f"-> {KEYS[key][0]}\n")
    return KEYS[key][1]
