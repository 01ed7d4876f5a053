"""`bankshot sweep`: a sweep with its journal and its table, which holds as much as is done when somebody stops it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path

from ...sim.fast_dataclass import frozen
from ..errors import UsageError
from ..workers.progress import meter
from . import table_files
from .columns import CLEAN, DIMS, FAILED, FOUND, Row
from .journal import Journal
from .sweep_run import sweep
from .work import SweepCase

PATIENCE = 10  # seconds for a scheduler to answer
OTHERS = {FOUND: "not", FAILED: "could not be run"}  # verdicts, in words


@frozen
class Swept:
    """`rows` in the order of their `cases`; `kept`: how many were known before; `stopped`: whether somebody did."""

    rows: tuple[Row, ...]
    cases: int
    kept: int
    stopped: bool

    @property
    def ok(self) -> bool:
        return sum(row["verdict"] == CLEAN for row in self.rows) == self.cases


def run(cases: Sequence[SweepCase], out: Path, jobs: int | None, dask: str | None) -> Swept:
    """Run what is not known of yet, with progress, and write `out`. `dask`: the address of a scheduler whose workers
    run the cases. Raises `UsageError` before anything is run where there is no way to write or to run."""
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
    return Swept(made, len(keys), len(known), stopped)


def title(row: Row) -> str:
    sizes = (f"{name.removeprefix(DIMS)}={size}" for name, size in row.items() if name.startswith(DIMS))
    return " ".join((row["kernel"], *sizes, row["device"]))


def words(row: Row) -> str:
    """The verdict and its reasons."""
    reason = row["why"] if row["verdict"] != FAILED else row["why"].splitlines()[0]
    return f"{row['verdict']}, {reason}" if reason else row["verdict"]


def summary(swept: Swept, out: Path) -> str:
    """What is not clean, case by case, and how many there are."""
    lines = [f"{title(row)}: {words(row)}" for row in swept.rows if row["verdict"] != CLEAN]
    counts = Counter(row["verdict"] for row in swept.rows)
    said = [f"{counts[CLEAN]} of {swept.cases} cases clean"]
    said += [f"{counts[verdict]} {what}" for verdict, what in OTHERS.items() if counts[verdict]]
    said += [f"{swept.kept} known before"] if swept.kept else []
    more = "; stopped, run it again to go on" if swept.stopped else ""
    return "\n".join([*lines, f"sweep: {', '.join(said)}; written to {out}{more}"])


@contextmanager
def _executor(dask: str | None) -> Iterator[Executor | None]:
    """That of the Dask cluster at an address; None where there is no address, for processes on this machine."""
    if dask is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--dask needs dask.distributed; pip install 'bankshot[sweep]'") from None
    try:
        client = Client(dask, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise UsageError(f"--dask {dask}: there is no scheduler to be reached ({error})") from None
    with client, client.get_executor(pure=False, retries=1) as executor:
        yield executor
