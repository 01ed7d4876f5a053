"""The table of results, the survivors, and which of them are known to be equivalent to the original."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from .areas import AREAS
from .trial import ALIVE, BROKEN, KILLED, TIMEOUT, Result

LEAST = 0.95  # of the mutants that are not equivalent, to be killed
EQUIVALENT = "equivalent"
_LIST = Path(__file__).with_name("equivalent.toml")
CAUGHT = KILLED, TIMEOUT
_COLUMNS = ("mutants", *CAUGHT, ALIVE, EQUIVALENT, BROKEN)


def equivalents() -> dict[tuple[str, str, str, str], str]:
    """The reasons in `equivalent.toml`, by what identifies a mutant."""
    rows = tomllib.loads(_LIST.read_text(encoding="utf-8"))["mutant"]
    return {(row["file"], row["operator"], row["before"], row["after"]): row["why"] for row in rows}


def states(results: Iterable[Result]) -> list[str]:
    """The state of each result, in which a survivor may be equivalent."""
    known = equivalents()
    return [EQUIVALENT if each.state == ALIVE and each.mutant.key in known else each.state for each in results]


def table(results: Sequence[Result]) -> str:
    """The results by area."""
    counts = Counter[tuple[str, str]]()
    for each, state in zip(results, states(results), strict=True):
        for name in (each.area, "all"):
            counts[name, state] += 1
            counts[name, "mutants"] += 1
    rows = [area.name for area in AREAS if counts[area.name, "mutants"]] + ["all"]
    lines = [f"{'area':<18}" + "".join(f"{name:>12}" for name in _COLUMNS)]
    lines += [f"{row:<18}" + "".join(f"{counts[row, name]:>12}" for name in _COLUMNS) for row in rows]
    return "\n".join(lines)


def survivors(results: Sequence[Result]) -> str:
    """Each mutant that is alive and not known to be equivalent."""
    alive = [each for each, state in zip(results, states(results), strict=True) if state == ALIVE]
    return "\n".join(map(str, (each.mutant for each in alive)))


def share(results: Sequence[Result]) -> float:
    """The share of the mutants that a test caught, without those that are equivalent or were not run."""
    counts = Counter(states(results))
    caught = sum(counts[state] for state in CAUGHT)
    return caught / (caught + counts[ALIVE]) if caught else 0.0


def read(files: Iterable[Path]) -> list[Result]:
    """The results of several runs; of a mutant that was tried twice, the last one that ended."""
    found: dict[tuple[str, str, str, str], Result] = {}
    for file in files:
        for entry in json.loads(file.read_text(encoding="utf-8"))["results"]:
            result = Result.of(entry)
            if result.state != BROKEN or result.mutant.key not in found:
                found[result.mutant.key] = result
    return list(found.values())


def write(file: Path, results: Sequence[Result]) -> None:
    """Write the results as JSON."""
    text = json.dumps({"results": [each.entry() for each in results]}, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")
