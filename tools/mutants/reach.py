"""Which tests run which lines of `sim` and `oracle`: measured with coverage.py, and kept on disk by content.

Each test file runs once, in a process of its own, so that what one file's tests cache hides no line from another's.
The context of a line is "FILE|FILE::test" where a test runs it, and "FILE" where an import or a child process does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from bankshot.sim.disk_cache import cache_home

_SETTINGS = """\
[run]
source = {copy}/sim, {copy}/oracle
data_file = {data}
parallel = true
context = {context}
patch = subprocess, fork, _exit
disable_warnings = no-data-collected, module-not-measured
"""
# Rooms with tests of the repository, of other programs or of generated ones, which take long or fail for any change of
# a file, and of what Numba compiles.
_LEFT_OUT = ("adversary", "benchmarks", "conformance", "fuzz", "notebooks", "package", "tools", "test_layers.py",
             "test_strict_types.py", "hardware", "machine", "models", "scalar")  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """A test file without a mutant. `seconds`: of each test function. `failed`: tests that fail; `why`: how."""

    file: str
    seconds: dict[str, float]
    failed: list[str]
    why: list[str]
    data: Path


Measure = Callable[[Path, str, Path], tuple[dict[str, float], list[str], list[str]]]


def test_files(root: Path) -> list[str]:
    """The test files of the tests of `sim` and `oracle`."""
    found = [file.relative_to(root / "tests") for file in sorted((root / "tests").rglob("test_*.py"))]
    return [f"tests/{file.as_posix()}" for file in found if file.parts[0] not in _LEFT_OUT]


def measured(copy: Path, file: str, measure: Measure) -> Measured:
    """Measure a test file in a copy of the repository, or use what was measured of the same file and sources.

    `measure` runs the test file in the copy under the settings in a file. It returns the seconds of each test
    function, what failed, and how.
    """
    digest = hashlib.sha256(_sources(copy) + (copy / file).read_bytes()).hexdigest()[:24]
    known = cache_home() / "mutants" / f"{digest}.json"
    data = known.with_suffix(".coverage")
    if known.exists():
        seconds, failed, why = json.loads(known.read_text(encoding="utf-8"))
        return Measured(file, seconds, failed, why, data)
    data.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        settings = Path(folder, "coverage.ini")
        settings.write_text(_SETTINGS.format(copy=copy, data=Path(folder, "data"), context=file), encoding="utf-8")
        found = measure(copy, file, settings)
        _combine(sorted(Path(folder).glob("data.*")), data, copy)
    known.write_text(json.dumps(found), encoding="utf-8")
    return Measured(file, *found, data)


@cache
def _sources(root: Path) -> bytes:
    """A digest of all that the measured lines depend on, other than the test file."""
    folders = [path for top in ("sim", "oracle", "bankshot", "shaders") for path in (root / top).rglob("*")]
    digest = hashlib.sha256()
    for path in sorted(folders):
        if path.suffix in (".py", ".wgsl", ".toml"):
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.digest()


def _combine(parts: Iterable[Path], data: Path, copy: Path) -> None:
    """Put the data of a test file's processes into one file, with the names of the sources from the root."""
    import coverage  # only what measures needs it

    combined = coverage.CoverageData(str(data))
    combined.erase()
    for each in parts:
        part = coverage.CoverageData(str(each))
        part.read()
        combined.update(part, map_path=lambda path: Path(path).relative_to(copy).as_posix())
    combined.write()


class Reach:
    """The tests that run a line."""

    def __init__(self, files: Sequence[Measured]) -> None:
        self.files = files
        self.seconds = {test: seconds for each in files for test, seconds in each.seconds.items()}

    def tests(self, file: str, lines: Iterable[int], in_function: bool) -> set[str]:
        """The tests that run one of these lines of a file.

        A line outside functions runs at import: its tests are those that run any other line of the file, if there are
        such, and otherwise all of each test file that imports it.
        """
        direct, whole, touching = set[str](), set[str](), set[str]()
        for each in self.files:
            contexts = _contexts(each.data, file)
            here = {context for line in lines for context in contexts.get(line, ())}
            direct |= {context.partition("|")[2] for context in here if "|" in context}
            if each.file in here:
                whole |= each.seconds.keys()
                touching |= {test.partition("|")[2] for found in contexts.values() for test in found if "|" in test}
        return (direct | (whole if in_function else touching or whole)) & self.seconds.keys()


@lru_cache(maxsize=400)  # mutants of a file come one after the other
def _contexts(data: Path, file: str) -> dict[int, list[str]]:
    import coverage

    content = coverage.CoverageData(str(data))
    content.read()
    return content.contexts_by_lineno(file)
