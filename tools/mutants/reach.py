"""Which tests run which lines of `sim` and `oracle`: measured with coverage.py, and kept on disk.

Each test file runs once, in a process of its own, so that what one file's tests cache hides no line from another's. It
runs again when it changes, or a source of which it runs a function; what it only imports may change.
The context of a line is "FILE|FILE::test" where a test runs it, and "FILE" where an import or a child process does.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bankshot.sim.disk_cache import cache_home, replacing, write

if TYPE_CHECKING:
    import coverage

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

_QUERY = """select path, context, numbits from line_bits
join file on file_id = file.id join context on context_id = context.id"""


@dataclass(frozen=True)
class Measured:
    """A test file without a mutant. `seconds`: of each test function. `failed`: tests that fail; `why`: how.
    `changed`: sources that it imports, and that have changed since it ran."""

    file: str
    seconds: dict[str, float]
    failed: list[str]
    why: list[str]
    data: Path
    changed: frozenset[str] = frozenset()


Measure = Callable[[Path, str, Path], tuple[dict[str, float], list[str], list[str]]]


def test_files(root: Path) -> list[str]:
    """The test files of the tests of `sim` and `oracle`."""
    found = [file.relative_to(root / "tests") for file in sorted((root / "tests").rglob("test_*.py"))]
    return [f"tests/{file.as_posix()}" for file in found if file.parts[0] not in _LEFT_OUT]


def measured(copy: Path, file: str, measure: Measure) -> Measured:
    """Measure a test file in a copy of the repository, or use what was measured of it.

    `measure` runs the test file in the copy under the settings in a file. It returns the seconds of each test
    function, what failed, and how.
    """
    digest = hashlib.sha256(_kernels(copy) + file.encode() + (copy / file).read_bytes()).hexdigest()[:24]
    known = cache_home() / "mutants" / f"{digest}.json"
    data = known.with_suffix(".coverage")
    if known.exists():
        kept = json.loads(known.read_text(encoding="utf-8"))
        changed = frozenset(name for name, content in kept["sources"].items() if content != _digest(copy / name))
        if changed.isdisjoint(kept["run"]):
            return Measured(file, kept["seconds"], kept["failed"], kept["why"], data, changed)
    data.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        settings = Path(folder, "coverage.ini")
        settings.write_text(_SETTINGS.format(copy=copy, data=Path(folder, "data"), context=file), encoding="utf-8")
        seconds, failed, why = measure(copy, file, settings)
        with replacing(data) as fresh:  # others may measure the file, too
            run = _combine(sorted(Path(folder).glob("data.*")), fresh, copy)
    sources = {name: _digest(copy / name) for name in _read(data).measured_files()}
    kept = {"seconds": seconds, "failed": failed, "why": why, "run": sorted(run), "sources": sources}
    write(known, json.dumps(kept).encode())
    return Measured(file, seconds, failed, why, data)


@cache
def _kernels(root: Path) -> bytes:
    """A digest of the kernels and their manifests."""
    digest = hashlib.sha256()
    for path in sorted((root / "shaders").rglob("*")):
        if path.suffix in (".py", ".wgsl", ".toml"):
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.digest()


@cache
def _digest(source: Path) -> str:
    return hashlib.sha256(source.read_bytes()).hexdigest() if source.exists() else ""


@cache
def _in_functions(source: Path) -> frozenset[int]:
    """The lines of a source that are in functions."""
    if source.suffix != ".py":  # templates, which run as Python
        return frozenset(range(1, source.read_bytes().count(b"\n") + 2))
    nodes = [each for each in ast.walk(ast.parse(source.read_bytes())) if isinstance(each, ast.FunctionDef)]
    return frozenset(line for each in nodes for line in range(each.body[0].lineno, (each.end_lineno or 0) + 1))


def _combine(parts: Iterable[Path], data: Path, copy: Path) -> set[str]:
    """Put the data of a test file's processes into one file, with the names of the sources from the root.

    Returns the sources of which a test, or a child process, runs a function.
    """
    import coverage  # only what measures needs it

    combined = coverage.CoverageData(str(data))
    combined.erase()
    run = set[str]()
    for each in parts:
        if not each.stat().st_size:  # of a process that was killed before it wrote what it ran
            continue
        part = _read(each)
        if any("|" in context for context in part.measured_contexts()):  # not a child process
            part.set_query_contexts([r"\|"])
        for path in part.measured_files():
            if not _in_functions(Path(path)).isdisjoint(part.lines(path) or ()):
                run.add(Path(path).relative_to(copy).as_posix())
        combined.update(part, map_path=lambda path: Path(path).relative_to(copy).as_posix())
    combined.write()
    return run


def _read(data: Path) -> coverage.CoverageData:
    import coverage

    found = coverage.CoverageData(str(data))
    found.read()
    return found


class Reach:
    """The tests that run a line."""

    def __init__(self, files: Sequence[Measured]) -> None:
        self.files = files
        self.seconds = {test: seconds for each in files for test, seconds in each.seconds.items()}
        self._lines: defaultdict[str, list[tuple[Measured, dict[str, bytes]]]] = defaultdict(list)
        for each in files:
            for file, lines in _lines(each.data).items():
                if file not in each.changed:
                    self._lines[file].append((each, lines))

    def tests(self, file: str, lines: Sequence[int], in_function: bool) -> set[str]:
        """The tests that run one of these lines of a file.

        A line outside functions runs at import, which may be in the first test that needs the file: its tests are those
        that run any other line of the file, and those of its room, if there are such, and otherwise all of each test
        file that imports it.
        """
        from coverage.numbits import num_in_numbits

        direct, whole, touching = set[str](), set[str](), set[str]()
        room = f"tests/{file.split('/')[1]}/"
        for each, contexts in self._lines.get(file, ()):
            here = {context for context, bits in contexts.items() if any(num_in_numbits(line, bits) for line in lines)}
            direct |= {context.partition("|")[2] for context in here if "|" in context}
            if each.file in here or (here and not in_function):
                whole |= each.seconds.keys()
                touching |= {test for test in each.seconds if test.startswith(room)}
                touching |= {context.partition("|")[2] for context in contexts if "|" in context}
        return (direct | (whole if in_function else touching or whole)) & self.seconds.keys()


def _lines(data: Path) -> dict[str, dict[str, bytes]]:
    """The lines of each source that ran in each context, a bit each."""
    found: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
    with closing(sqlite3.connect(data)) as connection:
        for path, context, bits in connection.execute(_QUERY):
            found[path][context] = bits
    return found
