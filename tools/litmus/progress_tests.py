"""The tests of forward progress of Sorensen et al. (OOPSLA 2021), in Dartagnan's notation, with its expected verdicts.

A line is an atomic exchange, load or store, and a branch that follows it; so each thread is a program of
`tests.explore.exchange_programs`, and each thread is a workgroup.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bankshot.sim.explore.search import search
from bankshot.sim.explore.verdicts import verdicts
from bankshot.sim.run.prepared import dispatch_of
from tests.explore.exchange_programs import Exchange, Program, wgsl

from .table import Result

TITLE = "Forward progress: does every run end, under each progress model?"
_MODELS = {"fair": "Fair", "hsa": "HSA", "obe": "OBE", "hsa+obe": "HSA_OBE", "lobe": "LOBE"}
_EXPECTED = "dartagnan/src/test/resources/VULKAN-Liveness-{}-expected.csv"


def found_in(folder: Path) -> bool:
    """Whether a folder has these tests."""
    return (folder / _EXPECTED.format("Fair")).exists()


def tests(folder: Path, names: tuple[str, ...]) -> Iterator[Result]:
    """Run the tests; each gives a result for each model."""
    expected = {model: _expected(folder / _EXPECTED.format(name)) for model, name in _MODELS.items()}
    for path in expected["fair"]:
        if names and not any(name in path for name in names):
            continue
        program = parse((folder / path).read_text())
        began = time.perf_counter()
        words = {"m": np.zeros(2, np.uint32)}
        graph = search(dispatch_of(wgsl(program), grid=len(program), bindings=words), "sc")
        judged = verdicts(graph, [*_MODELS])
        seconds = time.perf_counter() - began
        for each in judged:
            agrees = each.ends == expected[each.model][path]
            yield Result(path, f"progress, {each.model}", agrees, len(graph.states), seconds)


def _expected(file: Path) -> dict[str, bool]:
    """Return, by the path of each test, whether every run ends. Tests that Dartagnan skips are behind a `;`."""
    rows = (line.lstrip("; ").split(",") for line in file.read_text().splitlines() if "/CADP/" in line)
    return {path: ends.strip() == "1" for path, ends in rows}


def parse(text: str) -> Program:
    """Return the threads of a test."""
    lines = text[text.index("}") + 1 : text.index("exists")].split(";")
    columns = zip(*([cell.strip() for cell in line.split("|")] for line in lines if line.strip()), strict=True)
    return tuple(_thread([cell for cell in column[1:] if cell]) for column in columns)


def _thread(lines: list[str]) -> tuple[Exchange, ...]:
    found: list[tuple[Exchange, str]] = []  # an instruction, and the label that it branches to
    labels: dict[str, int] = {}
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if line.endswith(":"):
            labels[line[:-1]] = len(found)
        elif jump := re.fullmatch(r"goto (\w+)", line):  # behind a label: another name of where it goes
            last = lines[at - 2].removesuffix(":")
            labels[last] = labels[jump[1]]
        elif store := re.fullmatch(r"st\.\S+ Mem(\d), (\d)", line):
            found.append((Exchange(int(store[1]), stores=int(store[2])), ""))
        else:
            read = re.fullmatch(r"(?:rmw|ld)\.\S+ (r\d+), Mem(\d)(?:, (\d))?", line)
            assert read, line
            skip = re.fullmatch(rf"bne {read[1]}, (\d), \w+", lines[at])
            goes = re.fullmatch(r"goto (\w+)", lines[at + 1])
            assert skip, line
            assert goes, line
            stores = None if read[3] is None else int(read[3])
            found.append((Exchange(int(read[2]), stores, int(skip[1])), goes[1]))
            at += 2
    return tuple(each._replace(target=labels[goes]) if goes else each for each, goes in found)
