"""`bankshot audit --against`: the audit to compare with, of a git revision, a folder, or as saved by --json.

A revision is unpacked by `git archive` into a temporary folder; the working tree stays as it is.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from ..errors import UsageError, printable
from ..judge.options import Options
from ..manifests.cases import Broken, Request, plans
from ..reports.changes import read_document
from ..reports.json_document import Entry, document
from ..reports.protocol import AuditedCase, Before, ReportOptions
from ..workers.progress import Meter, meter
from .audit_cases import Audits, in_turn


@contextmanager
def audited_before(
    against: str, paths: Sequence[Path], request: Request, options: Options, jobs: int | None
) -> Generator[Before]:
    """Yield the earlier audit that `against` names. Raises `UsageError`."""
    name = printable(against)
    if against.endswith(".json"):
        read_document(Path(against))
        yield Before(name, Path(against))
        return
    with TemporaryDirectory() as temporary:
        result = Path(temporary) / "before.json"
        if Path(against).is_dir():
            there = [_in_folder(Path(against), path) for path in paths]
        else:
            there = _of_revision(against, paths, Path(temporary) / "files")
        entries = _audit([path for path in there if path.exists()], request, options, jobs)
        result.write_text(document("audit", entries, ok=True), encoding="utf-8")
        yield Before(name, result)


def _in_folder(folder: Path, path: Path) -> Path:
    """The counterpart of a path in another folder: at the same place, or of the same name."""
    same = folder / path
    return same if not path.is_absolute() and same.exists() else folder / path.name if path.is_file() else folder


def _of_revision(revision: str, paths: Sequence[Path], folder: Path) -> list[Path]:
    """Unpack a revision, and return the counterparts of `paths`. Raises `UsageError`."""
    first = paths[0] if paths[0].is_dir() else paths[0].parent
    if revision.startswith("-") or not revision:
        raise UsageError(f"--against {printable(revision)}: this is no git revision")
    root = Path(_git(first, revision, "rev-parse", "--show-toplevel").decode().rstrip("\n"))
    commit = _git(root, revision, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
    with tarfile.open(fileobj=io.BytesIO(_git(root, revision, "archive", "--format=tar", commit))) as archive:
        archive.extractall(folder, filter="data")
    outside = [path for path in paths if not path.resolve().is_relative_to(root.resolve())]
    if outside:
        raise UsageError(f"--against {printable(revision)}: {outside[0]} is not in the repository {root}")
    return [folder / path.resolve().relative_to(root.resolve()) for path in paths]


def _git(folder: Path, revision: str, *arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)
    except OSError:
        raise UsageError(f"--against {printable(revision)}: no such folder or file, and git cannot be run") from None
    if done.returncode:
        said = printable(done.stderr.decode(errors="replace").strip().partition("\n")[0])
        why = f" ({said})" if said else ""
        raise UsageError(f"--against {printable(revision)}: is no .json file, no folder and no git revision{why}")
    return done.stdout


def _audit(paths: Sequence[Path], request: Request, options: Options, jobs: int | None) -> list[Entry]:
    """Audit the files of before; what cannot be planned is an error of its own case."""
    broken: list[Broken] = []
    work = plans(paths, request, broken) if paths else []
    audits = Audits(work, options, ReportOptions("json", "none", {}, 120, terminal=False), broken)
    with meter(sum(len(plan.shapes) for plan in work) + len(broken)) as progress:
        return [cast(Entry, case.parts["json"]) for case in _counted(audits, jobs, progress)]


def _counted(audits: Audits, jobs: int | None, progress: Meter) -> Generator[AuditedCase]:
    for case in in_turn(audits, jobs, progress):
        with progress.finish():
            pass
        yield case
