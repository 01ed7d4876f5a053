"""The hooks of the pytest plugin: kernel manifests are tests, and the fixture `bankshot` runs kernels inside tests.

    pytest shaders                  every kernel of every manifest (a .toml file with a [kernel] table), in every
                                    quick shape: simulator against reference, counters, findings, goldens
    def test_tile(bankshot):        see `bankshot.oracle.pytest_plugin.fixture`
        run = bankshot.run("tile.wgsl", grid=4, bindings={"x": x, "y": y})
        assert run.excess_wavefronts == 0

Heavy modules are imported when a kernel runs. Tests are independent, so that pytest-xdist may distribute them; remarks
travel with the report of a test, and one process writes them for GitHub.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import pytest

from ..errors import UsageError, escape_controls, on_github
from ..goldens.golden_files import FOLDER, goldens_beside, may_write, remove, unused
from ..manifests.manifest_files import is_manifest

if TYPE_CHECKING:
    from ..judge.options import Options
    from ..judge.verdict import Audit
    from ..manifests.manifest import Kernel, Shape
    from ..reports.remarks import Entry
    from .fixture import Bankshot

UPDATE = "--bankshot-update"
ENTRIES = pytest.StashKey[list[dict[str, Any]]]()  # the entries of an item, as plain values
ATTRIBUTE = "bankshot"  # of a test report: its entries

MOST_LINES = 38  # of a failure, so that it fits a screen

OPTIONS = (
    (UPDATE, "write goldens, and remove unused ones; refused if CI is set"),
    ("--bankshot-sweep", "include the shapes that manifests mark as heavy"),
    (
        "--bankshot-gpu",
        "compare with wgpu, bit for bit, if there is an adapter; BANKSHOT_REQUIRE_GPU=1 requires one",
    ),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bankshot", "WGSL kernels")
    for name, words in OPTIONS:
        group.addoption(name, action="store_true", help=words)
    group.addoption("--bankshot-adapter", metavar="NAME,...", help="parts of adapter names, or adapter types; or all")
    group.addoption("--bankshot-device", metavar="NAME", help="device profile, or its file (ini: bankshot_device)")
    group.addoption("--bankshot-schedules", type=int, metavar="N", help="compare outputs under N orders of invocations")
    group.addoption("--bankshot-sarif", metavar="FILE", help="write a SARIF 2.1.0 log to this file")
    parser.addini("bankshot_device", "device profile to charge for, or its file", default="nvidia")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(CiReport(config), "bankshot-ci-report")
    if config.getoption(UPDATE):
        try:
            may_write(UPDATE)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None


def audit_options(config: pytest.Config) -> Options:
    """The options of an audit, from the command line."""
    from ..judge.options import Options
    from ..judge.schedule_options import ScheduleOptions
    from ..wgpu_client.adapter_choice import gpu_required

    adapter = config.getoption("--bankshot-adapter")
    must, count = gpu_required(), config.getoption("--bankshot-schedules")
    return Options(
        device=device_of(config),
        gpu=config.getoption("--bankshot-gpu") or adapter is not None or must,
        adapter=adapter,
        update=bool(config.getoption(UPDATE)),
        how=f"pytest {UPDATE}",
        schedules=None if count is None else ScheduleOptions(count),
    )


def device_of(config: pytest.Config) -> str:
    """The device profile, from the command line or the ini file, whose paths are relative to the root folder."""
    from ...sim.device_files import is_file  # imports NumPy

    device: str = config.getini("bankshot_device")
    return config.getoption("--bankshot-device") or (str(config.rootpath / device) if is_file(device) else device)


# ---- manifests ---------------------------------------------------------------------------------------


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".toml" and is_manifest(file_path):
        return Manifest.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType] # of pytest
    return None


class Manifest(pytest.File):
    """A manifest: a test for each kernel and shape, and one for unused goldens if there are goldens beside it."""

    def collect(self) -> Iterator[pytest.Item]:
        from ..judge.golden_check import golden_place
        from ..manifests import manifest_loader

        try:
            kernels = manifest_loader.load_all(self.path)
        except UsageError as error:  # as a test that fails: after a collection error pytest runs no test at all
            yield BrokenItem.of(self, self.path.stem, error=error)
            return
        claimed: list[Path] = []
        for kernel in kernels:
            for shape in kernel.shapes:
                if shape.golden:
                    claimed.append(golden_place(kernel, shape))
                sizes = f"[{str(shape).replace(' ', ',')}]" if shape.dims else ""
                name = f"{kernel.name}{sizes}"
                yield KernelItem.of(self, name, kernel=kernel, shape=shape)
        if goldens_beside(self.path):
            left = unused(self.path, claimed)
            yield UnusedItem.of(self, "unused goldens", left=left)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not any("::" in argument for argument in config.args) and not config.getoption("lf", False):
        items += list(_unused_of_tests(items))  # before other plugins deselect tests
    if not config.getoption("--bankshot-sweep"):
        heavy = [item for item in items if isinstance(item, KernelItem) and item.shape.cost == "heavy"]
        if heavy:
            config.hook.pytest_deselected(items=heavy)
            left_out = set(heavy)
            items[:] = [item for item in items if item not in left_out]


def _unused_of_tests(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """A test for each test file with goldens beside it: no golden belongs to a test that is gone."""
    names: dict[pytest.File, set[str]] = {}
    for item in items:
        module = item.getparent(pytest.File)
        if module is not None and not isinstance(module, Manifest) and (module.path.parent / FOLDER).is_dir():
            names.setdefault(module, set()).add(_function(item.name))
    for module, present in names.items():
        ours = {path: whose for path, whose in goldens_beside(module.path).items() if whose.file == module.path.name}
        if ours:
            left = [path for path, whose in ours.items() if _function(whose.title) not in present]
            yield UnusedItem.of(module, "unused goldens", left=left)


def _function(name: str) -> str:
    """The function of a test name or golden title: without parameters, or the number of a golden."""
    return re.split(r"[\[ ]", name)[0]


class CheckFailed(Exception):
    """A kernel test that failed. `report`: what is wrong. `headline`: the same in one line, and `file` and `line`, the
    place that it is about."""

    def __init__(self, report: str, headline: str = "", file: str = "", line: int = 0) -> None:
        super().__init__(report)
        self.headline, self.file, self.line = headline or report.partition("\n")[0], file, line


class KernelTest(pytest.Item):
    """A test whose failure is a message, without a traceback."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)  # pyright: ignore[reportUnknownMemberType] # of pytest

    @classmethod
    def of(cls, parent: pytest.Collector, name: str, **given: Any) -> Self:
        """Make a test of this class."""
        return cls.from_parent(parent, name=name, **given)  # pyright: ignore[reportUnknownMemberType] # of pytest

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from ...sim.wgsl.diagnostics import Crash, WgslError

        if isinstance(excinfo.value, CheckFailed | UsageError | WgslError | Crash):
            return self._shown(excinfo.value)
        return super().repr_failure(excinfo, style)

    def _shown(self, error: Exception) -> Any:
        """The message alone, and the headline for --tb=line and the summary."""
        failed = CheckFailed(escape_controls(str(error), on_github()))
        made = cast(Any, pytest.ExceptionInfo).from_exception  # partially typed
        text: Any = made(failed.with_traceback(error.__traceback__)).getrepr(style="value", chain=False)
        if text.reprcrash is not None:
            headline, file, line = _crash(error)
            text.reprcrash.path, text.reprcrash.lineno = file or str(self.path), line
            text.reprcrash.message = escape_controls(headline, on_github())
        return text


class KernelItem(KernelTest):
    """An audit of one kernel in one shape."""

    def __init__(self, *, kernel: Kernel, shape: Shape, **rest: Any) -> None:
        super().__init__(**rest)
        self.kernel, self.shape = kernel, shape

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.kernel.name} {self.shape}".strip()

    def runtest(self) -> None:
        from ...sim.wgsl.diagnostics import WgslError
        from ..judge.audit import audit
        from ..reports.remarks import entry_of, entry_of_error

        try:
            result = audit(self.kernel.case(self.shape), audit_options(self.config))
        except (UsageError, WgslError) as error:
            keep(self, [entry_of_error(self.name, error, str(self.path))])
            raise
        entry = entry_of(result)
        keep(self, [entry])
        if not result.ok:
            raise CheckFailed(_report(result, str(self.config.option.tbstyle)), *_headline(entry))


class BrokenItem(KernelTest):
    """A test that fails, for a manifest that cannot be read."""

    def __init__(self, *, error: UsageError, **rest: Any) -> None:
        super().__init__(**rest)
        self.error = error

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name

    def runtest(self) -> None:
        from ..reports.remarks import entry_of_error

        keep(self, [entry_of_error(self.name, self.error, str(self.path))])
        raise self.error


class UnusedItem(KernelTest):
    """A test that every golden belongs to a shape or a test."""

    def __init__(self, *, left: Sequence[Path], **rest: Any) -> None:
        super().__init__(**rest)
        self.left = left

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name

    def runtest(self) -> None:
        if self.config.getoption(UPDATE):
            remove(self.left)
        elif self.left:
            names = "\n".join(f"  {path}" for path in self.left)
            raise CheckFailed(f"unused goldens:\n{names}\npytest {UPDATE} removes them")


def _crash(error: Exception) -> tuple[str, str, int]:
    """The headline of an error, and its place."""
    if isinstance(error, CheckFailed):
        return error.headline, error.file, error.line
    return str(error).partition("\n")[0], "", 0


def _headline(entry: Entry) -> tuple[str, str, int]:
    """The worst remark in one line, and its place."""
    from ..reports.remarks import merged

    worst = merged([entry])[0]
    return f"{worst.code}: {worst.message.partition(chr(10))[0]}", worst.file, worst.line


def _report(result: Audit, style: str) -> str:
    """What is wrong, in at most a screen; `style`: that of tracebacks."""
    import io

    from ..reports.audit_text import show_failure
    from ..reports.terminal import console

    out = io.StringIO()
    show_failure(console(out), result, cost=style not in ("short", "line"))
    lines = [line.rstrip() for line in out.getvalue().strip().splitlines()]
    if len(lines) > MOST_LINES:
        lines[MOST_LINES - 1 :] = [f"  {len(lines) - MOST_LINES + 1} more lines"]
    return "\n".join([*lines, f"  in full: bankshot audit {result.case.kernel.path} -v"])


# ---- kernels inside tests ----------------------------------------------------------------------------


@pytest.fixture
def bankshot(request: pytest.FixtureRequest) -> Bankshot:
    """Run kernels, and compare runs with goldens: `bankshot.run(...)`, `bankshot.golden(run)`."""
    from .fixture import Bankshot

    config = request.config

    def kept(entry: Entry) -> None:
        keep(request.node, [entry])

    update = bool(config.getoption(UPDATE))
    return Bankshot(request.path, request.node.name, device_of(config), update, f"pytest {UPDATE}", kept)


# ---- remarks -----------------------------------------------------------------------------------------


def keep(item: pytest.Item, entries: Iterable[Entry]) -> None:
    """Keep entries for the report of `item`, and their figures as its properties, which --junit-xml writes."""
    kept = item.stash.setdefault(ENTRIES, [])
    for entry in entries:
        kept.append(entry.plain())
        for name, value in entry.figures.items():
            item.user_properties.append((f"bankshot.{name}", value))
        for name, words in (("outcome", entry.outcome), ("compared", "; ".join(entry.compared))):
            if words:
                item.user_properties.append((f"bankshot.{name}", words))
        if entry.adapter:
            item.user_properties.append(("bankshot.adapter", entry.adapter))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call" and ENTRIES in item.stash:
        # Plain values, which a worker can send. A test that passed accepts its findings: they are no remarks.
        passed: dict[str, Any] = {"ok": True, "remarks": []} if report.passed else {"ok": False}
        setattr(report, ATTRIBUTE, [{**entry, **passed} for entry in item.stash[ENTRIES]])
    return report


class CiReport:
    """Collects the remarks of all workers and writes them for CI. Only one process of a session has it."""

    def __init__(self, config: pytest.Config) -> None:
        self.sarif: str | None = config.getoption("--bankshot-sarif")
        self.update = bool(config.getoption(UPDATE))
        self.entries: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.entries += cast("list[dict[str, Any]]", getattr(report, ATTRIBUTE, []))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not (self.entries or self.sarif):
            return
        from ..reports.formats import github, sarif
        from ..reports.output_file import OutputFile
        from ..reports.remarks import entry_of_plain
        from ..reports.summary_line import golden_words, tally_of

        entries = [entry_of_plain(entry) for entry in self.entries]
        if judged := [entry for entry in entries if entry.outcome]:
            terminalreporter.write_line(tally_of(judged).line("bankshot", len(judged)))
        if self.update and (words := golden_words(entries)):
            terminalreporter.write_line(f"bankshot: {words}")
        github.write_summary(entries)
        for line in github.workflow_commands(entries) if on_github() else ():
            terminalreporter.write_line(line)
        if self.sarif:
            try:
                OutputFile("--bankshot-sarif", Path(self.sarif)).write(sarif.sarif_text(entries))
            except UsageError as error:
                raise pytest.UsageError(str(error)) from None
