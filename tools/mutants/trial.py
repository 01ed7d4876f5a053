"""Running tests on mutants, each in a copy of the repository."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryFile
from typing import Any

from .areas import Area, files_of
from .choice import ROOT
from .code import Code, Edit, Mutant

KILLED, ALIVE, BROKEN = "killed", "alive", "not run"
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
_LONGEST = 300.0  # seconds of a test file without a mutant
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


@dataclass
class Baseline:
    """The tests without a mutant. `seconds`: of each file. `failed`: what fails here, and is left out; `why`: how."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    failed: list[str] = field(default_factory=list[str])
    why: list[str] = field(default_factory=list[str])


class Trials:
    """Copies of the repository in a folder, one for each of `jobs` trials at a time."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self.jobs, self._folder, self._cache = jobs, folder, folder / "cache"
        self.baseline = Baseline()
        self._free: SimpleQueue[Path] = SimpleQueue()
        self._first = folder / "copy0"
        _copy(self._first)

    def prepare(self, files: list[str]) -> None:
        """Compile the machine, run each test file once without a mutant, and make the other copies."""
        if not self._python("import bankshot; bankshot.simulate('@compute @workgroup_size(1) fn main() {}', grid=1)"):
            raise SystemExit("the simulator does not run without a mutant")
        with ThreadPoolExecutor(self.jobs) as pool:
            for file, tests in zip(files, pool.map(self._measure, files), strict=True):
                failed = [str(each) for each in tests.record["failed"]]
                broken = tests.code is None or file in failed or tests.code not in (0, 1, 5)
                self.baseline.failed += [file] if broken else failed
                self.baseline.why += [tests.output[-400:]] if broken else map(str, tests.record["why"])
                if not broken and tests.record["seconds"]:
                    self.baseline.seconds[file] = sum(float(each[1]) for each in tests.record["seconds"])  # type: ignore
        (self._folder / "skip.json").write_text(json.dumps(self.baseline.failed), encoding="utf-8")
        self._free.put(self._first)
        for number in range(1, self.jobs):
            copy = self._folder / f"copy{number}"
            shutil.copytree(self._first, copy, symlinks=True)
            self._free.put(copy)

    def has_adapter(self) -> bool:
        """Whether wgpu finds an adapter on this machine."""
        return self._python("from bankshot.oracle import wgpu_client; wgpu_client.require_adapter()")

    def _python(self, code: str) -> bool:
        environment = self._environment(self._first)
        return subprocess.run([sys.executable, "-c", code], cwd=self._first, env=environment).returncode == 0

    def _measure(self, file: str) -> _Tests:
        return self._pytest(self._first, [file], _LONGEST, write_bytecode=True)

    def run(self, mutant: Mutant, area: Area) -> Result:
        """Run the tests of an area on a mutant, and if they pass the wider ones."""
        copy = self._free.get()
        try:
            return self._tried(copy, mutant, area)
        finally:
            self._free.put(copy)

    def _tried(self, copy: Path, mutant: Mutant, area: Area) -> Result:
        start = time.monotonic()
        file, original = copy / mutant.file, ROOT / mutant.file
        cache = copy.with_suffix(".cache") if area.compiled else self._cache
        file.write_bytes(Code(original, mutant.file).changed(mutant.edit))
        try:
            ran: set[str] = set()
            for paths in (area.tests, area.wider):
                files = [each for each in files_of(ROOT, paths) if each in self.baseline.seconds and each not in ran]
                ran |= {*files}
                if files and (by := self._killer(copy, self._ordered(files, paths), cache, area.compiled)):
                    return Result(mutant, area.name, KILLED, by, time.monotonic() - start)
            return Result(mutant, area.name, ALIVE if ran else BROKEN, "", time.monotonic() - start)
        finally:
            shutil.copy2(original, file)  # with its time, so that its bytecode is up to date again
            if area.compiled:
                shutil.rmtree(cache, ignore_errors=True)

    def _ordered(self, files: list[str], paths: tuple[str, ...]) -> list[str]:
        """The tests of the room itself first, and in it the fastest."""
        first = {*files_of(ROOT, paths[:1])}
        return sorted(files, key=lambda file: (file not in first, self.baseline.seconds[file]))

    def _killer(self, copy: Path, files: list[str], cache: Path, compiled: bool) -> str:
        """The test that fails; nothing where all pass."""
        limit = 60 + 4 * sum(self.baseline.seconds[file] for file in files) + compiled * _COMPILING
        tests = self._pytest(copy, files, limit, "-x", cache=cache)
        if tests.code is None:
            return f"no end within {limit:.0f} s"
        if tests.code == 0:
            return ""
        failed = tests.record["failed"]
        return str(failed[0]) if failed else f"pytest ends with {tests.code}: {tests.output.strip()[-200:]}"

    def _pytest(self, copy: Path, files: list[str], limit: float, *options: str, cache: Path | None = None,
                write_bytecode: bool = False) -> _Tests:  # fmt: skip
        record = self._folder / f"record-{copy.name}-{time.monotonic_ns()}.json"
        environment = self._environment(copy, cache) | {"BANKSHOT_MUTANTS_RECORD": str(record)}
        if not write_bytecode:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--tb=no", "--hypothesis-seed=0", *options]
        command += ["-p", "no:cacheprovider", "-p", "tools.mutants.recorder", *files]
        code, output = _limited(command, copy, environment, limit)
        written = record.read_text(encoding="utf-8") if record.exists() else ""
        record.unlink(missing_ok=True)
        return _Tests(code, json.loads(written or '{"failed": [], "seconds": [], "skipped": [], "why": []}'), output)

    def _environment(self, copy: Path, cache: Path | None = None) -> dict[str, str]:
        path = [str(copy), *(each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each)]
        skip = {"BANKSHOT_MUTANTS_SKIP": str(self._folder / "skip.json")}
        return {**os.environ, **skip, "PYTHONPATH": os.pathsep.join(path), "BANKSHOT_CACHE": str(cache or self._cache),
                "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip


def _limited(command: list[str], folder: Path, environment: dict[str, str], limit: float) -> tuple[int | None, str]:
    """Run a command for so many seconds, then end it. Returns its exit code, None for a timeout, and its output."""
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        with suppress(ProcessLookupError):  # what it has left behind, too
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.seek(0)
        return code, log.read()[-2000:]


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
