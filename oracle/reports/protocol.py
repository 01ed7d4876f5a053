"""The protocol of reports: `add` each result, then `finish`, or `abort` where an error ends the command.

`Report` is what every command reports through. `AuditFormat` extends it for audits, whose cases may run in other
processes: there `part` turns a case into plain values, which the process that reports then adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeVar

from ...sim.fast_dataclass import frozen
from ..judge.coverage import CaseOutcome, Compared

if TYPE_CHECKING:
    from ..exit_codes import Failure
    from ..judge.verdict import Audit
    from ..manifests.cases import Broken, Plan
    from ..manifests.manifest import Shape
    from .remarks import Entry

R = TypeVar("R", contravariant=True)


class Result(Protocol):
    """A result that a command reports. `ok`: it does not make the command fail."""

    @property
    def ok(self) -> bool: ...

    @property
    def outcome(self) -> CaseOutcome: ...

    @property
    def compared(self) -> Compared: ...


@frozen
class Outcome:
    """How a command ended. `lines`: its last words, for people. `error`: why cases could not be run. `seconds`: how
    long it took."""

    verb: str
    ok: bool
    lines: tuple[str, ...] = ()
    error: str | None = None
    seconds: float | None = None


class Report(Protocol[R]):
    """One report of a command. The methods do nothing here, so that a report defines only those it needs."""

    def add(self, result: R) -> None:
        """Take the next result, and print it if the report prints as it goes."""

    def finish(self, outcome: Outcome) -> None:
        """Complete the report after the last result. Raises `UsageError` if a file cannot be written."""

    def abort(self, verb: str, error: Exception) -> None:
        """Complete the report where an error ended the command before its last result."""


# ---- audits ------------------------------------------------------------------------------------------

# Where a format writes: the file that its option names, lines that CI reads, or stdout. Reports finish in this order.
Output = Literal["file", "annotations", "stdout"]
OUTPUTS: tuple[Output, ...] = ("file", "annotations", "stdout")


@frozen
class Before:
    """An earlier audit, to compare with: its name, and the JSON document that it wrote. `keep`: the audit watches
    files; show what changed beside the report, and write the document anew. It may not exist yet."""

    name: str
    document: Path
    keep: bool = False


@frozen
class ReportOptions:
    """The reports that a command asks for.

    `stdout`: the format of what is printed. `files`: the file of each format that writes one. `listing`: auto, full,
    counted or none, for the source beside counters. `width` and `terminal` describe stdout. `detail`: how much the
    format text prints: each case in full, rows (one for each kernel), or none. `more`: where there is more, for the
    last line. `timed`: cases have times on adapters.
    """

    stdout: str
    listing: str
    files: Mapping[str, Path]
    width: int
    terminal: bool
    detail: str = "full"
    more: str = ""
    before: Before | None = None
    timed: bool = False

    def listing_of(self, first: bool) -> str:
        """The listing of a case; `first` of its kernel."""
        return self.listing if self.listing != "auto" else "full" if first else "counted"


@frozen
class CaseResult:
    """An audited case before it is formatted: the `number`-th, from 1, and whether it is the `first` of its kernel."""

    audit: Audit
    number: int
    first: bool


@frozen
class CaseFailure:
    """A case that could not be run, before it is formatted. `remarks` say where the error is."""

    kernel: str
    source: Path
    shape: Shape
    number: int
    failure: Failure
    remarks: Entry


@frozen
class AuditedCase:
    """A case in plain values, which can be sent between processes.

    `parts`: what each format that is enabled made of it, by the name of the format. `failure`: why it could not be run.
    """

    kernel: str
    ok: bool
    remarks: Entry
    parts: Mapping[str, object]
    failure: Failure | None = None
    outcome: CaseOutcome = CaseOutcome.CLEAN
    compared: Compared = Compared()


class AuditFormat(Report[AuditedCase], Protocol):
    """A format of audit reports: the class `Format` of a module of `formats`.

    `name` is the value of --format or, of a format that writes a file, the option that names the file. `help`
    describes it. The module is imported for `bankshot audit --help`: import what renders inside methods.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    output: ClassVar[Output]
    records: ClassVar[bool] = False  # whether parts need `Audit.recordings`

    def __init__(self, options: ReportOptions, work: Sequence[Plan], broken: Sequence[Broken]) -> None:
        """Start the report of an audit of `work` and of files that are `broken`. Raises `UsageError`."""

    @classmethod
    def enabled(cls, options: ReportOptions) -> bool:
        """Whether the options, or the environment, ask for this format."""
        return cls.name in options.files if cls.output == "file" else cls.name == options.stdout

    @classmethod
    def part(cls, case: CaseResult, options: ReportOptions) -> object:
        """What the report needs of a case, as plain values. Runs in the process that audited it."""
        return None

    @classmethod
    def failed_part(cls, case: CaseFailure, options: ReportOptions) -> object:
        """What the report needs of a case that could not be run, as plain values."""
        return None
