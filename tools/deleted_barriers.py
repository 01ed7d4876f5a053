"""Deletes each barrier of other people's shaders in turn, and asks whether Bankshot notices.

`python -m tools.deleted_barriers FOLDER [COUNT]` takes the `.wgsl` files below a folder that have barriers, the
subfolders in turn, until COUNT of them ran (60). Entry points run on generated inputs with which they work. A barrier
is *found* if a race, an unwritten read or an unordered atomic appears without it that was not there before, *redundant*
if the probe of the whole shader says so, *not reached* if no run comes to it, and *missed* otherwise.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import bankshot
from bankshot.oracle.corpus.working_run import NoInputs, working_run
from bankshot.oracle.errors import UsageError
from bankshot.oracle.guesses import invented_inputs

BARRIER = re.compile(r"\b(?:(?:workgroup|storage|texture)Barrier\(\)|workgroupUniformLoad\()")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
SECONDS = 40.0  # for one shader
ENTRIES = 3  # of one shader
BUDGET = 100_000  # iterations of a loop


@dataclass
class Answer:
    """The answer for one barrier: found, redundant, not reached, missed or out of time."""

    shader: str
    line: int
    text: str
    what: str
    why: str = ""


@dataclass
class Entry:
    """An entry point with inputs with which it works, and what it does unchanged."""

    module: bankshot.Module
    name: str
    grid: tuple[int, int, int]
    given: Mapping[str, Any]
    overrides: Mapping[Any, Any]
    faults: set[tuple[object, ...]] = field(default_factory=set)
    passed: set[int] = field(default_factory=set)
    redundant: set[int] | None = None

    def run(self, module: bankshot.Module, *probes: str, replay: bool = False) -> bankshot.Run:
        return bankshot.simulate(
            module, entry=self.name, grid=self.grid, bindings=self.given, overrides=self.overrides, probes=probes,
            replay=replay, budget=BUDGET,
        )  # fmt: skip

    def is_unordered(self, changed: bankshot.Module) -> bool:
        """Whether the order of atomics matters in a changed text, where it did not; only reruns show that."""
        after, before = (faults(self.run(m, "races", replay=True)) for m in (changed, self.module))
        return bool(after - before)

    def is_redundant(self, at: int) -> bool:
        if self.redundant is None:
            findings = self.run(self.module, "redundant").findings
            self.redundant = {f.span.start for f in findings if f.code == "redundant-barrier" and f.span}
        return at in self.redundant


def faults(run: bankshot.Run) -> set[tuple[object, ...]]:
    """The races, unwritten reads and unordered atomics of a run, by their places."""
    wanted = [f for f in run.findings if f.code in ("race", "uninit", "atomic-order")]
    return {(f.code, *(sorted(span.start for _, span in f.spans))) for f in wanted}


def entries(module: bankshot.Module) -> Iterator[Entry]:
    """The compute entry points that work with generated inputs."""
    for function in module.compute_entry_points[:ENTRIES]:
        grid, overrides = invented_inputs.grid(function), invented_inputs.override_values(module)
        try:
            entry = Entry(module, function.name, grid, working_run(module, function, grid, overrides).given, overrides)
            run = entry.run(module, "races", "uninit", "lanes")
        except (NoInputs, UsageError, bankshot.WgslError):
            continue
        entry.faults = faults(run)
        entry.passed = {s.span.start for s in run.sites if s.kind == "barrier" and s.executions}
        yield entry


def checked(path: Path) -> bankshot.Module:
    """The module, with the extensions that it forgets to enable."""
    try:
        return bankshot.check(path, uniformity="off")
    except bankshot.WgslError as error:
        needed = re.search(r"needs the extension '(\w+)'", error.diagnostics[0].message)
        if not needed:
            raise
        text = f"enable {needed[1]}; {path.read_text(encoding='utf-8')}"
        return bankshot.check(text, name=str(path), uniformity="off")


def without(text: str, match: re.Match[str]) -> str:
    """The text without one barrier; all else stays where it is."""
    load = match[0].startswith("workgroupUniformLoad")
    return text[: match.start()] + ("*(" if load else "_ = 0").rjust(len(match[0])) + text[match.end() :]


def answers(path: Path) -> Iterator[Answer]:
    until = time.monotonic() + SECONDS
    module = checked(path)
    text = module.source.text
    plain = COMMENT.sub(lambda m: " " * len(m[0]), text)
    ready = list(entries(module))
    for match in BARRIER.finditer(plain):
        at, line = match.start(), text.count("\n", 0, match.start()) + 1
        there = [entry for entry in ready if at in entry.passed]
        what, why = "missed" if there else "not reached", ""
        if time.monotonic() > until:
            what = "out of time"
        elif there:
            changed = bankshot.check(without(text, match), uniformity="off")
            for entry in there:
                if faults(entry.run(changed, "races", "uninit")) - entry.faults or entry.is_unordered(changed):
                    what = "found"
                    break
            else:
                if all(entry.is_redundant(at) for entry in there):
                    what = "redundant"
                elif any(entry.faults for entry in there):
                    why = "the whole shader races, too"
        yield Answer(str(path), line, match[0], what, why)


def shaders(folder: Path) -> Iterator[Path]:
    """The shaders with barriers, each text once, from the subfolders in turn."""
    by_folder: dict[str, list[Path]] = {}
    seen: set[str] = set()
    for path in sorted(folder.rglob("*.wgsl")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if BARRIER.search(COMMENT.sub("", text)) and text not in seen:
            seen.add(text)
            by_folder.setdefault(path.relative_to(folder).parts[0], []).append(path)
    return (path for path in chain(*zip_longest(*by_folder.values())) if path)


def main(folder: str, count: str = "60") -> None:
    total, ran, start = Counter[str](), 0, time.monotonic()
    for path in shaders(Path(folder)):
        if ran == int(count):
            break
        begun, name = time.monotonic(), str(path.relative_to(folder))
        try:
            found = list(answers(path))
        except bankshot.WgslError as error:
            print(f"{name}: not run: {error.diagnostics[0].message[:100]}", flush=True)
            continue
        if all(a.what == "not reached" for a in found):
            print(f"{name}: not run: no barrier is reached", flush=True)
            continue
        ran += 1
        here = Counter(a.what for a in found)
        total += here
        print(f"{name}: {dict(here)} {time.monotonic() - begun:.1f} s", flush=True)
        for a in found:
            if a.what in ("missed", "out of time", "not reached"):
                print(f"    line {a.line}: {a.text} {a.what} {a.why}", flush=True)
    print(f"{ran} shaders, {sum(total.values())} barriers: {dict(total)}, {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
