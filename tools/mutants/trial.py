"""Running tests on mutants, each in a copy of the repository."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from bankshot.sim.machine.compile import loader, paths

from .areas import Area, files_of
from .choice import ROOT
from .code import Code, Edit, Mutant
from .reach import Measured, Reach, measured, test_files
from .recorder import function
from .server import Server

KILLED, TIMEOUT, ALIVE, BROKEN = "killed", "no end", "alive", "not run"
_COPIED = (
    "bankshot",
    "sim",
    "oracle",
    "tests",
    "shaders",
    "tools",
    "docs",
    "benchmarks",
    "notebooks",
    ".github",
    ".ci",
)
_MEASURED = 90.0  # seconds of CPU time of a test file that are measured: later tests run on no mutant
_LONGEST = 600.0  # seconds of such a test file with its last test
_LIKELIER = 5  # how much more often a test of the mutant's room, or of its users, fails than others that reach it
_FIRST = 2.0  # seconds of the first tests of a mutant, as measured
_BUSY = 4  # how much longer a test may take by the clock than in CPU time: others use the processors, or it waits
_COMPILING = 240.0  # seconds that a busy processor may take to compile the machine
_PLUGIN = """\
Metadata-Version: 2.1
Name: bankshot
Version: 0.1.0
"""


@dataclass(frozen=True)
class Result:
    """The result of a mutant. `by`: the test that failed, or why none ran to its end."""

    mutant: Mutant
    area: str
    state: str
    by: str = ""
    seconds: float = 0.0

    @classmethod
    def of(cls, entry: dict[str, Any]) -> Result:
        """The result that `entry` stands for; its edit is left out."""
        where = (entry["file"], entry["operator"], entry["line"])
        mutant = Mutant(*where, Edit(0, 0, ""), entry["before"], entry["after"])
        return cls(mutant, entry["area"], entry["state"], entry["by"], entry["seconds"])

    def entry(self) -> dict[str, object]:
        m = self.mutant
        place = {"area": self.area, "file": m.file, "line": m.line, "operator": m.operator}
        return {**place, "before": m.before, "after": m.after, "state": self.state, "by": self.by,
                "seconds": round(self.seconds, 1)}  # fmt: skip


@dataclass(frozen=True)
class _Tests:
    """What pytest did: its exit code, None where it ran out of time, and what the recorder wrote."""

    code: int | None
    record: dict[str, list[object]]
    output: str


class Trials:
    """Copies of the repository in a folder, one for each of `jobs` trials at a time."""

    def __init__(self, folder: Path, jobs: int, limit: float) -> None:
        self.jobs, self.limit, self._folder, self._cache = jobs, limit, folder, folder / "cache"
        self.reach = Reach(())
        self.failed: list[str] = []
        self._free: SimpleQueue[Path] = SimpleQueue()
        self._first = folder / "copy0"
        self._servers: dict[Path, Server] = {}

    def prepare(self) -> None:
        """Copy the repository, compile the machine, and measure the test files."""
        _copy(self._first)
        if (machine := loader.cache_folder(paths.wanted())).exists():
            shutil.copytree(machine, self._cache / "bankshot" / machine.name)
        if not self._python("import bankshot; bankshot.simulate('@compute @workgroup_size(1) fn main() {}', grid=1)"):
            raise SystemExit("the simulator does not run without a mutant")
        self._compile()
        self._free.put(self._first)
        for number in range(1, self.jobs):
            copy = self._folder / f"copy{number}"
            shutil.copytree(self._first, copy, symlinks=True)
            self._free.put(copy)
        with ThreadPoolExecutor(self.jobs) as pool:
            self.reach = Reach([*pool.map(self._measured, test_files(self._first))])
        self.failed = [test for each in self.reach.files for test in each.failed]

    def _compile(self) -> None:
        """Write the bytecode of the first copy, that of its tests as pytest does."""
        environment = self._environment(self._first) | {"PYTHONDONTWRITEBYTECODE": ""}
        collect = ["pytest", "-q", "-n", "0", "--collect-only", "-p", "no:cacheprovider", *test_files(self._first)]
        for module in (["compileall", "-q", "."], collect):
            command = [sys.executable, "-m", *module]
            subprocess.run(
                command, cwd=self._first, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
            )

    def _measured(self, file: str) -> Measured:
        copy = self._free.get()
        try:
            return measured(copy, file, self.measure)
        finally:
            self._free.put(copy)

    def has_adapter(self) -> bool:
        """Whether wgpu finds an adapter on this machine."""
        return self._python("from bankshot.oracle import wgpu_client; wgpu_client.require_adapter()")

    def _python(self, code: str) -> bool:
        environment = self._environment(self._first)
        return subprocess.run([sys.executable, "-c", code], cwd=self._first, env=environment).returncode == 0

    def measure(self, copy: Path, file: str, settings: Path) -> tuple[dict[str, float], list[str], list[str]]:
        """Run a test file under coverage.py. Returns the seconds of each test function, what failed, and how."""
        tests = self._pytest(copy, [file], [], _LONGEST, last=_MEASURED, settings=settings)
        failed = [str(each) for each in tests.record["failed"]]
        if tests.code not in (0, 1, 2, 5) or file in failed:
            return {}, [file], [tests.output[-400:]]
        seconds = dict[str, float]()
        for test, took in tests.record["seconds"]:  # type: ignore
            seconds[function(test)] = seconds.get(function(test), 0.0) + took  # type: ignore
        return seconds, failed, [*map(str, tests.record["why"])]

    def run(self, mutant: Mutant, area: Area) -> Result:
        """Run the tests that reach a mutant until one fails, or until they have taken `limit` seconds."""
        copy = self._free.get()
        try:
            return self._tried(copy, mutant, area)
        finally:
            self._free.put(copy)

    def _tried(self, copy: Path, mutant: Mutant, area: Area) -> Result:
        start = time.monotonic()
        file = copy / mutant.file
        original, times = file.read_bytes(), file.stat()
        cache = copy.with_suffix(".cache") if area.compiled else self._cache
        file.write_bytes(Code(file, mutant.file).changed(mutant.edit))
        state, by = ALIVE, ""
        try:
            for files, tests in self._batches(copy, mutant, area):
                state, by = self.ran(copy, files, tests, cache)
                if state != ALIVE:
                    break
            return Result(mutant, area.name, state, by, time.monotonic() - start)
        finally:
            file.write_bytes(original)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # its bytecode is up to date again
            if area.compiled:
                shutil.rmtree(cache, ignore_errors=True)

    def _batches(self, copy: Path, mutant: Mutant, area: Area) -> Iterator[tuple[list[str], list[str]]]:
        """The files and the tests of a mutant, the fastest first; those of its room fail more often.

        Each batch is a process, and takes longer than the one before it: most mutants fail an early test, but a start
        takes time, too.
        """
        if area.compiled:
            yield files_of(copy, area.compiled), []
            return
        seconds = self.reach.seconds
        tests = self.reach.tests(mutant.file, mutant.lines, mutant.in_function)
        users = self.reach.tests(mutant.file, mutant.users, in_function=True)

        def soon(test: str) -> float:
            return seconds[test] / (_LIKELIER if test.startswith(area.tests) or test in users else 1)

        batch, took, batch_took, longest = list[str](), 0.0, 0.0, _FIRST
        for test in sorted(tests, key=soon):
            if took + seconds[test] > self.limit:
                break
            batch.append(test)
            took, batch_took = took + seconds[test], batch_took + seconds[test]
            if batch_took > longest:
                yield _by_file(batch)
                batch, batch_took, longest = [], 0.0, 4 * longest
        if batch:
            yield _by_file(batch)

    def ran(self, copy: Path, files: list[str], tests: list[str], cache: Path) -> tuple[str, str]:
        """The state of the mutant after these tests, and the test that failed or why none ran to its end."""
        if missing := [file for file in files if not (copy / file).exists()]:
            return BROKEN, f"there is no {missing[0]}"
        limit = self.limit_of(tests, compiling=cache != self._cache)
        ran = self._pytest(copy, files, tests, limit, "-x", cache=cache, last=self.limit)
        if ran.code in (None, -signal.SIGXCPU):
            return TIMEOUT, f"no end within {limit:.0f} s"
        failed = ran.record["failed"]
        if ran.code == pytest.ExitCode.NO_TESTS_COLLECTED and not {*tests} <= {*map(function, self.failed)}:
            return KILLED, "pytest runs no test"  # a fault of the plugin hides them all
        if ran.code in (0, 2, 5) and not failed:
            return ALIVE, ""
        return KILLED, str(failed[0]) if failed else f"pytest ends with {ran.code}: {ran.output.strip()[-200:]}"

    def limit_of(self, tests: Sequence[str], compiling: bool) -> float:
        """The seconds of CPU time after which tests have no end."""
        return 30 + 4 * sum(self.reach.seconds[test] for test in tests) + compiling * (_COMPILING + 2 * self.limit)

    def _pytest(self, copy: Path, files: list[str], tests: list[str], limit: float, *options: str, last: float,
                cache: Path | None = None, settings: Path | None = None) -> _Tests:  # fmt: skip
        """Run test files, or only some of their tests, for `limit` seconds of CPU time; begin none after `last`."""
        record = self._folder / f"record-{copy.name}-{time.monotonic_ns()}.json"
        chosen = record.with_suffix(".tests")
        chosen.write_text(json.dumps({"tests": tests, "skipped": self.failed}), encoding="utf-8")
        environment = self._environment(copy, cache) | {"BANKSHOT_MUTANTS_RECORD": str(record)}
        environment |= {"BANKSHOT_MUTANTS_TESTS": str(chosen), "BANKSHOT_MUTANTS_SECONDS": str(last)}
        environment |= {"BANKSHOT_MUTANTS_LIMIT": str(limit)}
        command = ["-q", "-n", "0", "--tb=no", "--hypothesis-seed=0", *options]
        command += ["-p", "no:cacheprovider", "-p", "tools.mutants.recorder", *files]
        if copy not in self._servers:
            self._servers[copy] = Server(copy, self._environment(copy))
        code, output = self._servers[copy].pytest(command, environment, _BUSY * limit, settings)
        written = record.read_text(encoding="utf-8") if record.exists() else ""
        record.unlink(missing_ok=True)
        chosen.unlink()
        return _Tests(code, json.loads(written or '{"failed": [], "seconds": [], "skipped": [], "why": []}'), output)

    def _environment(self, copy: Path, cache: Path | None = None) -> dict[str, str]:
        path = [str(copy), *(each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each)]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "BANKSHOT_CACHE": str(cache or self._cache),
                "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip


def _by_file(tests: list[str]) -> tuple[list[str], list[str]]:
    """The files of tests, and the tests, those of a file together: fixtures of a module are made once."""
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return files, sorted(tests, key=lambda test: files.index(test.partition("::")[0]))


def _copy(folder: Path) -> None:
    """Copy the repository, with the times of its files, and make pytest find the plugin in it."""
    skipped = shutil.ignore_patterns("__pycache__", "output", ".hypothesis")
    for name in _COPIED:
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=skipped)
    for file in ROOT.iterdir():
        if file.is_file() and not file.is_symlink():
            shutil.copy2(file, folder / file.name)
    if not any(each.name == "bankshot" for each in entry_points(group="pytest11")):
        info = folder / "bankshot-0.1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(_PLUGIN, encoding="utf-8")
        (info / "entry_points.txt").write_text("[pytest11]\nbankshot = bankshot.oracle.pytest_plugin.hooks\n")
