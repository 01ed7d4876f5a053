"""The loop that commands share: compute a result for each case, report it, and exit with the verdict."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from ...sim.wgsl.diagnostics import WgslError
from ..errors import UsageError
from ..exit_codes import CLEAN, FOUND, Failure
from ..reports.protocol import Outcome, Report, Result
from ..reports.summary_line import Tally
from ..workers.progress import Meter, meter

if TYPE_CHECKING:
    from ..manifests.cases import Plan
    from ..manifests.manifest import Case

R = TypeVar("R", bound=Result)
Say = Callable[[str], None]  # shows what is being done
Results = Callable[[Meter], Iterable[R]]  # the results of every case of every plan, in order


def results_of(work: Sequence[Plan], compute: Callable[[Case, Say], Iterable[R]]) -> Results[R]:
    """What `compute` returns for each case, with progress."""

    def results(progress: Meter) -> Iterator[R]:
        for plan in work:
            for case in plan.cases():
                title = f"{plan.kernel.name} {case.shape}".strip()
                yield from compute(case, partial(progress.stage, title))
                del case  # arrays may be large: free them before making those of the next case

    return results


def report_cases(
    verb: str,
    work: Sequence[Plan],
    results: Results[R],
    report: Report[R],
    *,
    times: int = 1,
    more: int = 0,
    good: str = "clean",
    bad: str = "failed",
    optional: Callable[[R], bool] = lambda result: False,
    failed: Callable[[R], Failure | None] = lambda result: None,
) -> NoReturn:
    """Report each result as it comes, and exit: 0 if all are clean.

    There are `times` results for each case, and `more` of files that have no case. `good`: how a result that passes is
    called; `bad`: one that fails. A result that is not clean may be `optional`, beside one that is. `failed` returns
    the error that a result stands for; each error is printed once, and the largest of their exit codes is the
    command's.
    """
    begin = time.perf_counter()
    total, tally, passed_over = times * sum(len(plan.shapes) for plan in work) + more, Tally(good, bad), 0
    failures: Counter[Failure] = Counter()
    try:
        with meter(total) as progress:
            for result in results(progress):
                tally.add(result.ok, result.outcome, result.compared)
                passed_over += optional(result)
                failure = failed(result)
                with progress.finish():
                    if failure is not None and failure not in failures:
                        click.echo(failure.text, err=True)
                    failures.update(filter(None, [failure]))
                    report.add(result)
                del result
    except (UsageError, WgslError, MemoryError) as error:
        report.abort(verb, error)
        raise
    clean = tally.passed > 0 and tally.passed + passed_over == total
    report.finish(
        Outcome(
            verb=verb,
            ok=clean,
            lines=(tally.line(verb, total, sum(plan.left_out for plan in work)),),
            error="\n".join(failure.reason for failure in failures) or None,
            seconds=time.perf_counter() - begin,
        )
    )
    sys.exit(max((failure.code for failure in failures), default=CLEAN if clean else FOUND))
