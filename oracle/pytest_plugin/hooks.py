"""The pytest plugin: kernel manifests are tests, and `bankshot` runs kernels inside tests of one's own.

    pytest shaders                  every kernel of every manifest (a .toml file with a [kernel] table), in every
                                    quick shape: simulator against reference, counters, findings, goldens
    def test_tile(bankshot):        see `bankshot.oracle.pytest_plugin.fixture`
        run = bankshot.run("tile.wgsl", grid=4, bindings={"x": x, "y": y})
        assert run.excess_wavefronts == 0

Nothing heavy is imported before a kernel is to be run. Every test stands alone, so that workers may share them out;
what there is to remark travels with the report of a test, and one process tells it to GitHub.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..errors import UsageError
from ..goldens.golden_files import FOLDER, goldens_beside, may_write, remove, unused
from ..manifests.strict_toml import is_manifest

if TYPE_CHECKING:
    from ..manifests.manifest import Kernel, Shape
    from ..reports.remarks import Entry
    from .fixture import Bankshot

UPDATE = "--bankshot-update"
ENTRIES = pytest.StashKey[list[Any]]()  # of an item: what it has to tell

OPTIONS = (
    (UPDATE, "write goldens, and remove those that nothing uses; never where CI is set"),
    ("--bankshot-sweep", "run the shapes that manifests call heavy, too"),
    (
        "--bankshot-gpu",
        "compare with wgpu, bit for bit, if there is an adapter; there must be if BANKSHOT_REQUIRE_GPU=1",
    ),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bankshot", "WGSL kernels")
    for name, words in OPTIONS:
        group.addoption(name, action="store_true", help=words)
    group.addoption("--bankshot-adapter", metavar="NAME,...", help="parts of adapters' names or kinds; or all")
    group.addoption("--bankshot-device", metavar="NAME", help="profile that is charged for (ini: bankshot_device)")
    group.addoption("--bankshot-sarif", metavar="FILE", help="write what is wrong as SARIF 2.1.0")
    parser.addini("bankshot_device", "device profile that is charged for", default="nvidia")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Teller(config), "bankshot-teller")
    if config.getoption(UPDATE):
        try:
            may_write(UPDATE)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None


def audit_options(config: pytest.Config) -> Any:
    """`bankshot.oracle.audit.Options` as the command line has them."""
    from ..judge.options import Options

    adapter = config.getoption("--bankshot-adapter")
    must = os.environ.get("BANKSHOT_REQUIRE_GPU") == "1"
    return Options(
        device=device_of(config),
        gpu=config.getoption("--bankshot-gpu") or adapter is not None or must,
        adapter=adapter,
        update=bool(config.getoption(UPDATE)),
        how=f"pytest {UPDATE}",
    )


def device_of(config: pytest.Config) -> str:
    return config.getoption("--bankshot-device") or config.getini("bankshot_device")


# ---- manifests ---------------------------------------------------------------------------------------


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".toml" and is_manifest(file_path):
        return Manifest.from_parent(parent, path=file_path)
    return None


class Manifest(pytest.File):
    """A manifest: a test for each kernel and shape, and one more where there are goldens beside it."""

    def collect(self) -> Iterator[pytest.Item]:
        from ..judge.golden_check import golden_place
        from ..manifests import manifest

        try:
            kernels = manifest.load_all(self.path)
        except UsageError as error:  # of one test, for pytest runs none if it cannot collect all
            yield BrokenItem.from_parent(self, name=self.path.stem, error=error)
            return
        claimed = []
        for kernel in kernels:
            for shape in kernel.shapes:
                if shape.golden:
                    claimed.append(golden_place(kernel, shape))
                sizes = f"[{str(shape).replace(' ', ',')}]" if shape.dims else ""
                name = f"{kernel.name}{sizes}"
                yield KernelItem.from_parent(self, name=name, kernel=kernel, shape=shape)
        if goldens_beside(self.path):
            left = unused(self.path, claimed)
            yield UnusedItem.from_parent(self, name="unused goldens", left=left)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not any("::" in argument for argument in config.args) and not config.getoption("lf", False):
        items += list(_unused_of_tests(items))  # before anybody deselects some
    if not config.getoption("--bankshot-sweep"):
        heavy = [item for item in items if isinstance(item, KernelItem) and item.shape.cost == "heavy"]
        if heavy:
            config.hook.pytest_deselected(items=heavy)
            left_out = set(heavy)
            items[:] = [item for item in items if item not in left_out]


def _unused_of_tests(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Of every test file with goldens beside it: a test that none is of a test that is no longer there."""
    names: dict[pytest.File, set[str]] = {}
    for item in items:
        module = item.getparent(pytest.File)
        if module is not None and not isinstance(module, Manifest) and (module.path.parent / FOLDER).is_dir():
            names.setdefault(module, set()).add(_function(item.name))
    for module, there in names.items():
        ours = {path: whose for path, whose in goldens_beside(module.path).items() if whose.file == module.path.name}
        if ours:
            left = [path for path, whose in ours.items() if _function(whose.title) not in there]
            yield UnusedItem.from_parent(module, name="unused goldens", left=left)


def _function(name: str) -> str:
    """The name of a test without its parameters, and of its golden without what tells several apart."""
    return re.split(r"[\[ ]", name)[0]


class TaskError(Exception):
    """A test of ours that failed; the message is the whole report."""


class OurItem(pytest.Item):
    """A test that fails in words, without a traceback."""

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        from ...sim.wgsl.diagnostics import Crash, WgslError

        if isinstance(excinfo.value, TaskError | UsageError | WgslError | Crash):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


class KernelItem(OurItem):
    """One kernel in one shape."""

    def __init__(self, *, kernel: Kernel, shape: Shape, **rest: Any) -> None:
        super().__init__(**rest)
        self.kernel, self.shape = kernel, shape

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.kernel.name} {self.shape}".strip()

    def runtest(self) -> None:
        from ...sim.wgsl.diagnostics import WgslError
        from ..goldens.golden_store import OTHER_DEVICE
        from ..judge.audit import audit
        from ..reports import remarks

        try:
            result = audit(self.kernel.case(self.shape), audit_options(self.config))
        except (UsageError, WgslError) as error:
            tell(self, [remarks.entry_of_error(self.name, error, str(self.path))])
            raise
        entry = remarks.entry_of(result)
        tell(self, [entry])
        if not result.ok:
            raise TaskError(_report(result, entry))
        if result.golden is not None and result.golden.state == OTHER_DEVICE:
            raise TaskError(str(result.golden))


class BrokenItem(OurItem):
    """That a manifest can be read, which it cannot."""

    def __init__(self, *, error: UsageError, **rest: Any) -> None:
        super().__init__(**rest)
        self.error = error

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name

    def runtest(self) -> None:
        from ..reports import remarks

        tell(self, [remarks.entry_of_error(self.name, self.error, str(self.path))])
        raise self.error


class UnusedItem(OurItem):
    """That nothing is left of goldens that no shape or test claims."""

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
            raise TaskError(f"nothing uses these goldens:\n{names}\npytest {UPDATE} removes them")


def _report(result: Any, entry: Entry) -> str:
    """What is wrong, each in a sentence, and then what `bankshot audit` prints."""
    import io

    from ..reports.ci import words
    from ..reports.remarks import merged
    from ..reports.text import console, show_audit

    out = io.StringIO()
    show_audit(console(out), result, "counted")
    return "\n".join([*(words(remark) for remark in merged([entry])), "", out.getvalue().rstrip()])


# ---- kernels inside tests ----------------------------------------------------------------------------


@pytest.fixture
def bankshot(request: pytest.FixtureRequest) -> Bankshot:
    """Runs kernels, and holds runs against goldens: `bankshot.run(...)`, `bankshot.golden(run)`."""
    from .fixture import Bankshot

    config = request.config

    def told(entry: Entry) -> None:
        tell(request.node, [entry])

    update = bool(config.getoption(UPDATE))
    return Bankshot(request.path, request.node.name, device_of(config), update, f"pytest {UPDATE}", told)


# ---- what is told ------------------------------------------------------------------------------------


def tell(item: pytest.Item, entries: Iterable[Entry]) -> None:
    """Keep entries for the report of `item`, and its figures as properties (JUnit's, with --junit-xml)."""
    kept = item.stash.setdefault(ENTRIES, [])
    for entry in entries:
        kept.append(entry.plain())
        for name, value in entry.figures.items():
            item.user_properties.append((f"bankshot.{name}", value))
        if entry.adapter:
            item.user_properties.append(("bankshot.adapter", entry.adapter))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Any:
    report = yield
    if call.when == "call" and ENTRIES in item.stash:
        # Plain values, which a worker can send. What a test was content with is no complaint.
        passed = {"ok": True, "remarks": []} if report.passed else {"ok": False}
        report.bankshot = [{**entry, **passed} for entry in item.stash[ENTRIES]]
    return report


class Teller:
    """Gathers the reports of all workers, and tells GitHub. One process of a session has it."""

    def __init__(self, config: pytest.Config) -> None:
        self.sarif: str | None = config.getoption("--bankshot-sarif")
        self.told: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.told += getattr(report, "bankshot", ())

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not (self.told or self.sarif):
            return
        from ..reports import ci as report_ci
        from ..reports.remarks import entry_of_plain

        entries = [entry_of_plain(entry) for entry in self.told]
        report_ci.write_summary(entries)
        for line in report_ci.github_lines(entries) if report_ci.on_github() else ():
            terminalreporter.write_line(line)
        if self.sarif:
            try:
                report_ci.write_sarif(Path(self.sarif), entries)
            except UsageError as error:
                raise pytest.UsageError(f"--bankshot-sarif: {error}") from None
