"""The tests of webgpu-litmus: conformance tests, mutants and the pages of its site.

Each is a kernel, and one that counts results as sequential, interleaved or weak. The explorer finds every outcome of a
small dispatch of the first; the second then classifies each. A conformance test must not show its weak behaviour where
it is about one word; there, a *mutant* is a test that must show it: one that cannot would measure nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bankshot
from bankshot.sim.explore.search import search
from bankshot.sim.run.prepared import dispatch_of

from .table import Result

TITLE = "webgpu-litmus: is the weak behaviour of each test seen where it is allowed, and nowhere else?"
_SETUP = "components/test-setup.js"
_WORDS = 32  # of each buffer


class _Test(NamedTuple):
    """`shader`, `results`: paths. `together`: both threads are in one workgroup. `aliased`: on one word. `allowed`: the
    weak behaviour. `mutant`: it must be seen."""

    name: str
    shader: str
    results: str
    together: bool
    aliased: bool
    allowed: bool
    mutant: bool = False


def found_in(folder: Path) -> bool:
    """Whether a folder has these tests."""
    return (folder / _SETUP).exists()


def tests(folder: Path, names: tuple[str, ...]) -> Iterator[Result]:
    """Run the tests."""
    for test in [*_set_up(folder), *_pages(folder)]:
        if not names or any(name in test.name for name in names):
            yield _run(folder, test)


# ---- what the tests are ------------------------------------------------------------------------------


def _imports(text: str) -> dict[str, str]:
    """Return the path of each shader that a script imports, by its name there."""
    return {name: path for name, path in re.findall(r"import (\w+) from '[^']*?shaders/([^']*?\.wgsl)'", text)}


def _set_up(folder: Path) -> Iterator[_Test]:
    text = (folder / _SETUP).read_text()
    paths = _imports(text)
    for block, mutant in (("conformanceTests", False), ("tuningTests", True)):
        body = text.split(f"export const {block} = ")[1].split("export const")[0]
        pattern = r"(\w+): \{\s*shader: (\w+),\s*resultShader: (\w+),\s*coherency: (\w+)"
        for name, shader, results, coherency in re.findall(pattern, body):
            aliased = coherency == "true"
            allowed = mutant or not aliased
            yield _Test(name, paths[shader], paths[results], False, aliased, allowed, mutant)


def _pages(folder: Path) -> Iterator[_Test]:
    for page in sorted((folder / "pages/tests").glob("*.js")):
        text, name = page.read_text(), page.stem
        paths, shown = _imports(text), re.search(r"resultShaderCode:\s*\{(.*?)\}", text, re.S)
        if shown is None or "const variants" not in text:
            continue
        results = dict(re.findall(r"(\w+):\s*(\w+)", shown[1]))
        variants = text.split("const variants")[1].split("export default")[0]
        aliased = name.startswith(("co", "atomicity"))
        for variant, body in re.findall(r"(\w+): \{\s*(pseudo.*?)\n  \}", variants, re.S):
            shader, workgroup = (re.search(rf"{key}: (\w+)", body) for key in ("shader", "workgroup"))
            assert shader, page
            assert workgroup, page
            together = workgroup[1] == "true"
            barrier = "barrier" in variant.lower() or name.startswith("barrier")
            allowed = not (aliased or (barrier and together))
            path = paths[results["workgroup" if together else "default"]]
            yield _Test(f"{name}, {variant}", paths[shader[1]], path, together, aliased, allowed)


# ---- running -----------------------------------------------------------------------------------------


def _run(folder: Path, test: _Test) -> Result:
    kind = "mutants" if test.mutant else f"weak behaviour {'allowed' if test.allowed else 'forbidden'}"
    text, results = ((folder / "shaders" / path).read_text() for path in (test.shader, test.results))
    if "[[group" in text:
        return Result(test.name, kind, None, why="written in a syntax from before WGSL was final")
    size, grid = (3, 1) if test.together else (1, 2)
    if test.shader.startswith("iriw"):
        grid = 4
    elif "workgroup_id_2" in text:
        grid = 3
    given: dict[str, Any] = {
        "permute_first": 2 if test.together else 1,
        "permute_second": 1,
        "testing_workgroups": grid,
        "mem_stride": 1,
        "location_offset": 0 if test.aliased else 1,
    }
    overrides = {"workgroupXSize": size} | ({"workgroupMemLength": 16} if "workgroupMemLength" in text else {})
    began = time.perf_counter()
    dispatch = dispatch_of(text, grid=grid, bindings=_bindings(text, given), overrides=overrides)
    memory = "sc" if grid == 3 and test.shader.startswith("ww") else "weak"  # there too many states with weak memory
    graph = search(dispatch, memory, reduce=True)
    seconds = time.perf_counter() - began
    outcomes = {graph.contents(end) for end in graph.ends}
    names = [str(bound.key) for bound in graph.system.outputs]
    seen = any(_is_weak(results, dict(zip(names, each, strict=True)), given, grid, size) for each in outcomes)
    why = "" if graph.complete else "not every state was seen"
    return Result(test.name, kind, graph.complete and seen == test.allowed, len(graph.states), seconds, why)


def _is_weak(results: str, outcome: dict[str, bytes], given: dict[str, Any], grid: int, size: int) -> bool:
    """Whether the shader that classifies results counts an outcome as weak."""
    counts = re.search(r"struct TestResults \{(.*?)\}", results, re.S)
    assert counts
    keys = re.findall(r"(\w+)\s*:", counts[1])
    bindings = _bindings(results, given) | {"test_results": np.zeros(len(keys), np.uint32)}
    for name, contents in (("read_results", outcome.get("results")), *outcome.items()):
        if name in bindings and contents is not None:
            bindings[name] = np.frombuffer(contents, np.uint32).copy()
    run = bankshot.simulate(results, grid=grid, bindings=bindings, overrides={"workgroupXSize": size}, probes="none")
    return bool(np.asarray(run.outputs["test_results"]).view(np.uint32)[keys.index("weak")])


def _bindings(text: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return contents for the bindings of a shader: its parameters, workgroups in order, and zeros."""
    found: dict[str, Any] = {}
    for space, name in re.findall(r"@binding\(\d+\)\s*var<([^>]*)>\s*(\w+)\s*:", text):
        if space.startswith("uniform"):
            fields = re.search(r"struct StressParamsMemory \{(.*?)\}", text, re.S)
            assert fields
            found[name] = np.array([given.get(f, 0) for f in re.findall(r"(\w+)\s*:\s*u32", fields[1])], np.uint32)
        else:
            found[name] = (
                np.arange(8, dtype=np.uint32) if name == "shuffled_workgroups" else np.zeros(_WORDS, np.uint32)
            )
    return found
