"""`bankshot sweep`: run a sweep with a journal and write its table, also if the user interrupts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ...sim.fast_dataclass import frozen
from ..errors import UsageError
from ..kernel_timing import Options, time_beside
from ..workers.progress import meter
from . import table_files
from .columns import CLEAN, DIMS, FAILED, FOUND, UNCHECKED, Row, with_time
from .journal import Journal
from .sweep_run import sweep
from .work import SweepCase

PATIENCE = 10  # seconds for a scheduler to answer
OTHERS = {FOUND: "failed", UNCHECKED: "unchecked", FAILED: "could not be run"}  # verdicts other than clean, in words


@frozen
class SweepResult:
    """The result of a sweep.

    `rows` are in the order of the cases, of which there are `cases`. `kept`: how many rows the journal had before.
    `stopped`: the user interrupted the sweep.
    """

    rows: tuple[Row, ...]
    cases: int
    kept: int
    stopped: bool

    @property
    def ok(self) -> bool:
        return self.ran and sum(row["verdict"] == CLEAN for row in self.rows) == self.cases

    @property
    def ran(self) -> bool:
        """Whether any case could be run."""
        return any(row["verdict"] != FAILED for row in self.rows)


@frozen
class Timed:
    """How the rows of a sweep are timed: on which adapter, and in how many rounds. `insist`: it must be there."""

    adapter: str | None
    rounds: int
    insist: bool


def run(
    cases: Sequence[SweepCase], out: Path, jobs: int | None, dask: str | None, timed: Timed | None = None
) -> SweepResult:
    """Run the cases that the journal does not have, show progress, and write the table `out`.

    `dask`: the address of a scheduler whose workers run the cases. `timed`: time all cases on this machine, when every
    other process has ended; the journal keeps no times. Raises `UsageError` before anything runs if the
    table cannot be written or the scheduler cannot be reached.
    """
    table_files.check(out)
    keys = list(dict.fromkeys(case.key for case in cases))
    with _executor(dask) as executor:
        journal = Journal(out.with_name(f"{out.name}.rows"))
        known = {key for key in keys if journal.done(key) is not None}
        stopped = False
        with meter(len(keys) - len(known)) as progress:
            try:
                for row in sweep(cases, executor, journal=journal, jobs=jobs):
                    if row["key"] not in known:
                        progress.stage(title(row), words(row))
                        with progress.finish():
                            pass
            except KeyboardInterrupt:
                stopped = True
        made = tuple(journal.rows[key] for key in keys if key in journal.rows)
        table_files.write(out, made)
    if timed is not None and not stopped:
        made = _timed(cases, made, timed)
        table_files.write(out, made)
    return SweepResult(made, len(keys), len(known), stopped)


def _timed(cases: Sequence[SweepCase], rows: Sequence[Row], timed: Timed) -> tuple[Row, ...]:
    """Add the times of the cases to their rows. Cases that differ only in the device profile share a time."""
    shapes = {case.key: (id(case.plan), str(case.shape)) for case in cases}
    work = {shapes[case.key]: (case.plan, case.shape) for case in cases}
    with meter(len(work)) as progress:
        say = partial(progress.stage, "times")
        found = time_beside([*work.values()], timed.adapter, Options(timed.rounds), say, insist=timed.insist)
    times = dict(zip(work, (first for first, *_ in found), strict=True))
    return tuple(with_time(row, times[shapes[row["key"]]]) for row in rows)


def title(row: Row) -> str:
    """Return the kernel, sizes and device of a row."""
    sizes = (f"{name.removeprefix(DIMS)}={size}" for name, size in row.items() if name.startswith(DIMS))
    return " ".join((row["kernel"], *sizes, row["device"]))


def words(row: Row) -> str:
    """Return the verdict of a row and its reasons."""
    reason = row["why"] if row["verdict"] != FAILED else row["why"].splitlines()[0]
    return f"{row['verdict']}, {reason}" if reason else row["verdict"]


def summary(swept: SweepResult, out: Path) -> str:
    """List the cases that are not clean, and count the cases by verdict."""
    lines = [f"{title(row)}: {words(row)}" for row in swept.rows if row["verdict"] != CLEAN]
    counts = Counter(row["verdict"] for row in swept.rows)
    said = [f"{counts[CLEAN]} of {swept.cases} cases clean"]
    said += [f"{counts[verdict]} {what}" for verdict, what in OTHERS.items() if counts[verdict]]
    said += [f"{swept.kept} from the journal"] if swept.kept else []
    more = "; interrupted, run the same command to resume" if swept.stopped else ""
    truths = Counter(truth for row in swept.rows if row["compared"] for truth in row["compared"].split(", "))
    compared = ", ".join(f"{truth} ({count})" for truth, count in truths.items())
    ran = f"; compared with {compared}; never compared with wgpu" if compared else "; nothing compared"
    return "\n".join([*lines, f"sweep: {', '.join(said)}; written to {out}{more}{ran}"])


@contextmanager
def _executor(dask: str | None) -> Generator[Executor | None]:
    """Connect to the Dask cluster at an address. Without one, yield None: processes on this machine do the work."""
    if dask is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--dask needs dask.distributed; pip install 'bankshot[sweep]'") from None
    try:
        client: Any = Client(dask, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise UsageError(f"--dask {dask}: no scheduler could be reached ({error})") from None
    with client, client.get_executor(pure=False, retries=1) as executor:
        yield executor
