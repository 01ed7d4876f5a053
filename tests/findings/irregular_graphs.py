"""Kernels on irregular graphs, after the patterns of Indigo, correct and with one bug each, as WGSL.

A kernel visits each vertex by an invocation, a subgroup or a workgroup (`MAPPINGS`). `PATTERNS` are what it does there:

- vertex: raise a maximum where the greatest neighbour exceeds a limit
- edge: count the edges that a condition holds for
- pull: store what the neighbours say at a place of the vertex
- push: raise the neighbours' maxima
- worklist: append the vertices that a condition holds for
- paths: join the sets of both ends of each edge, and shorten the paths to their roots

`BUGS` are those of Indigo: a plain operation for an atomic one, a check before a store that is no longer one
operation, a plain store where several meet, a missing barrier, and a wrong bound.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Graph = tuple[NDArray[np.uint32], NDArray[np.uint32]]  # the starts of the rows, and the edges

SIZE = 64
MAPPINGS = {"invocation": SIZE, "subgroup": SIZE // 32, "workgroup": 1}  # vertices of a workgroup
PATTERNS = ("vertex", "edge", "pull", "push", "worklist", "paths")
BUGS = {"atomic": "race", "guard": "atomic-order", "race": "race", "sync": "race", "bounds": "out-of-bounds"}

# What a vertex's number is, and which of its edges an invocation takes.
_VERTEX = {
    "invocation": ("g.x * 64u + i", "0u", "1u", "true"),
    "subgroup": ("g.x * 2u + sub", "lane", "32u", "lane == 0u"),
    "workgroup": ("g.x", "i", "64u", "i == 0u"),
}

# A pattern with plain or atomic data: the right operation, and that of each bug. {at} and {n} are place and value.
_MAXIMUM = {
    "": "atomicMax(&data[{at}], {n});",
    "atomic": "data[{at}] = max(data[{at}], {n});",
    "guard": "if atomicLoad(&data[{at}]) < {n} {{ atomicStore(&data[{at}], {n}); }}",
    "race": "data[{at}] = {n};",
}
_COUNT = {
    "": "atomicAdd(&data[0], 1u);",
    "atomic": "data[0] += 1u;",
    "guard": "let old = atomicLoad(&data[0]); atomicStore(&data[0], old + 1u);",
    "race": "data[0] = v;",
}
_APPEND = {
    "": "let at = atomicAdd(&data[0], 1u); list[at] = v;",
    "atomic": "let at = data[0]; data[0] = at + 1u; list[at] = v;",
    "race": "let at = atomicLoad(&data[0]); atomicAdd(&data[0], 1u); list[at] = v;",
}
_JOIN = {
    "": "if atomicCompareExchangeWeak(&data[high], high, low).exchanged { break; }",
    "guard": "if atomicLoad(&data[high]) == high { atomicStore(&data[high], low); break; }",
    "atomic": "if data[high] == high { data[high] = low; break; }",
}
_FIND = """
fn find(start: u32) -> u32 {{
    var a = start;
    var b = {load_a};
    while a != b {{
        let c = {load_b};
        if b != c {{ {store} }}
        a = b; b = c;
    }}
    return a;
}}
"""


@dataclass(frozen=True)
class Kernel:
    pattern: str
    mapping: str
    bug: str = ""

    def __str__(self) -> str:
        return f"{self.pattern}, {self.mapping}, {self.bug or 'right'}"


def kernels() -> list[Kernel]:
    """Every pattern with every mapping: right, and with each bug that it can have."""
    made = [Kernel(pattern, mapping, bug) for pattern in PATTERNS for mapping in MAPPINGS for bug in ("", *BUGS)]
    return [kernel for kernel in made if _makes_sense(kernel)]


def _makes_sense(kernel: Kernel) -> bool:
    if kernel.bug == "sync":  # only workgroups wait
        return kernel.mapping == "workgroup" and kernel.pattern in ("vertex", "pull", "worklist")
    lacks = {"pull": ("atomic", "guard"), "worklist": ("guard",), "paths": ("race",)}
    return kernel.bug not in lacks.get(kernel.pattern, ())


def render(kernel: Kernel) -> str:
    """The kernel as WGSL."""
    vertex, first, step, leader = _VERTEX[kernel.mapping]
    plain = (
        kernel.pattern == "pull" or kernel.bug == "atomic" or (kernel.bug == "race" and kernel.pattern != "worklist")
    )
    bound = "v <= N" if kernel.bug == "bounds" else "v < N"
    joined = (
        _FIND.format(load_a="data[a]", load_b="data[b]", store="data[a] = c;")
        if plain
        else _FIND.format(load_a="atomicLoad(&data[a])", load_b="atomicLoad(&data[b])", store="atomicMin(&data[a], c);")
    )
    return f"""
enable subgroups;
override N: u32 = 0u;
@group(0) @binding(0) var<storage, read> start: array<u32>;
@group(0) @binding(1) var<storage, read> edges: array<u32>;
@group(0) @binding(2) var<storage, read> value: array<u32>;
@group(0) @binding(3) var<storage, read_write> data: array<{"u32" if plain else "atomic<u32>"}>;
@group(0) @binding(4) var<storage, read_write> list: array<u32>;
var<workgroup> part: array<u32, 64>;
{joined if kernel.pattern == "paths" else ""}
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u,
        @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_id) sub: u32) {{
    let v = {vertex};
    let inside = {bound};
    var first = 0u;
    var end = 0u;
    if inside {{
        first = start[v] + {first};
        end = start[v + 1u];
    }}
    _ = &value; _ = &list; _ = lane + sub;
    {_visit(kernel, step, leader)}
}}
"""


def _visit(kernel: Kernel, step: str, leader: str) -> str:
    """What a kernel does at a vertex."""
    bug = kernel.bug if kernel.bug in ("atomic", "guard", "race") else ""
    each = f"for (var e = first; e < end; e += {step})"
    match kernel.pattern:
        case "edge":
            return f"{each} {{ if v < edges[e] {{ {_COUNT[bug]} }} }}"
        case "push":
            return f"{each} {{ {_MAXIMUM[bug].format(at='edges[e]', n='value[v]')} }}"
        case "paths":
            return f"""{each} {{
        loop {{
            let a = find(v); let b = find(edges[e]);
            if a == b {{ break; }}
            let low = min(a, b); let high = max(a, b);
            {_JOIN[bug]}
        }}
    }}"""
    most = f"""var n = 0u;
    {each} {{ n = max(n, {"data" if bug and kernel.pattern == "pull" else "value"}[edges[e]]); }}
    {_reduction(kernel)}
    """
    if kernel.pattern == "pull":
        return most + f"if inside && {leader} {{ data[v] = n; }}"
    does = _APPEND[bug] if kernel.pattern == "worklist" else _MAXIMUM[bug].format(at="0", n="n")
    return most + f"if inside && {leader} && n > 4u {{ {does} }}"


def _reduction(kernel: Kernel) -> str:
    """The maximum of all invocations of a vertex."""
    if kernel.mapping == "invocation":
        return ""
    if kernel.mapping == "subgroup":
        return "n = subgroupMax(n);"
    barrier = "" if kernel.bug == "sync" else "workgroupBarrier();"
    return f"""part[i] = n; workgroupBarrier();
    for (var s = 32u; s > 0u; s >>= 1u) {{
        if i < s {{ part[i] = max(part[i], part[i + s]); }}
        {barrier}
    }}
    n = part[0];"""


# ---- graphs ----------------------------------------------------------------------------------------------


def graphs(sizes: str) -> dict[str, Graph]:
    """Graphs by name: "tiny" ones of 5 vertices, or "usual" ones of hundreds."""
    rng = np.random.default_rng(5)
    if sizes == "tiny":
        return {
            "ring": _rows([[(v + 1) % 5, (v + 4) % 5] for v in range(5)]),
            "star": _rows([[1, 2, 3, 4], [0], [0], [0], [0]]),
            "path": _rows([[1], [0, 2], [1, 3], [2, 4], [3]]),
            "one edge": _rows([[1], [0], [], [], []]),
        }
    side = 16
    around = ((0, 1), (1, 0), (0, -1), (-1, 0))
    grid = [[(r + a) % side * side + (c + b) % side for a, b in around] for r in range(side) for c in range(side)]
    degrees = np.minimum(rng.zipf(1.8, 300), 90)
    return {
        "random": _rows([rng.integers(0, 200, 4).tolist() for _ in range(200)]),
        "star": _rows([list(range(1, 260)), *([[0]] * 259)]),
        "torus": _rows(grid),
        "power law": _rows([rng.integers(0, 300, degree).tolist() for degree in degrees]),
    }


def _rows(neighbours: list[list[int]]) -> Graph:
    starts = np.cumsum([0, *map(len, neighbours)])
    return starts.astype(np.uint32), np.array([n for row in neighbours for n in row], np.uint32)


def bindings(kernel: Kernel, graph: Graph) -> dict[str, NDArray[np.uint32]]:
    """The data of a dispatch."""
    start, edges = graph
    count = len(start) - 1
    value = np.random.default_rng(9).permutation(count).astype(np.uint32) + 5
    data = np.arange(count, dtype=np.uint32) if kernel.pattern == "paths" else np.zeros(count, np.uint32)
    return {"start": start, "edges": edges, "value": value, "data": data, "list": np.zeros(count, np.uint32)}


def workgroups(kernel: Kernel, graph: Graph) -> int:
    """The workgroups of a dispatch, one vertex more than there are."""
    return -(-len(graph[0]) // MAPPINGS[kernel.mapping])


def meets(kernel: Kernel, graph: Graph) -> bool:
    """Whether two invocations come to one place of `data`, so that it matters how they update it.

    With the bug `guard`, whether two of them may pass the check and store different values: then the order in which
    they store decides the output.
    """
    if kernel.bug == "guard":
        return _guarded_stores_differ(kernel, graph)
    if kernel.pattern not in ("edge", "push") or kernel.bug == "bounds":
        return True
    return any(len(each) > 1 for each in _visitors(kernel, graph).values())


def _visitors(kernel: Kernel, graph: Graph) -> dict[int, set[tuple[int, int]]]:
    """The invocations that update each word of `data`: by vertex, and number among those of a vertex."""
    lanes = {"invocation": 1, "subgroup": 32, "workgroup": SIZE}[kernel.mapping]
    visitors: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
    for v, others in enumerate(_neighbours(graph)):
        for k, other in enumerate(others):
            if kernel.pattern == "push":
                visitors[other].add((v, k % lanes))
            elif v < other:
                visitors[0].add((v, k % lanes))
    return visitors


def _neighbours(graph: Graph) -> list[list[int]]:
    start, edges = graph
    return [edges[a:b].tolist() for a, b in itertools.pairwise(start)]


def _guarded_stores_differ(kernel: Kernel, graph: Graph) -> bool:
    """Whether a check that is no longer one operation with its store can change an output, from the graph alone.

    Of two invocations that pass the check, the one with the greater value may store first: the smaller one remains. So
    a maximum is safe where all that update it have the same value, and a count where one invocation counts.
    """
    match kernel.pattern:
        case "vertex":
            values = bindings(kernel, graph)["value"]
            return len({max(values[others]) for others in _neighbours(graph) if others}) > 1
        case "push":  # each vertex has a value of its own
            return any(len({v for v, _ in each}) > 1 for each in _visitors(kernel, graph).values())
        case "edge":
            return len(_visitors(kernel, graph)[0]) > 1
        case _:
            return _joins_differ(graph)


def _joins_differ(graph: Graph) -> bool:
    """Whether any word of a forest may receive two values, in whatever order sets are joined and paths shortened.

    If not, no order loses a join: a word keeps its value or receives the one, each set keeps its least vertex as the
    only root, and all others have received theirs when the last invocation finds both ends of its edges in one set.
    """
    may: list[set[int]] = [set() for _ in _neighbours(graph)]  # what each word may receive
    pairs = [(v, other) for v, others in enumerate(_neighbours(graph)) for other in others]
    while True:
        before = sum(map(len, may))
        for ends in pairs:
            for a, b in itertools.product(*(_reached(may, end) for end in ends)):
                if a != b:
                    may[max(a, b)].add(min(a, b))
            for v in ends:
                may[v] |= _reached(may, v) - {v}
            if any(len(may[v]) > 1 for v in ends):
                return True
        if sum(map(len, may)) == before:
            return False


def _reached(may: list[set[int]], start: int) -> set[int]:
    """The vertices that a path from one may lead to, itself included."""
    found, todo = {start}, [start]
    for v in todo:
        todo += may[v] - found
        found |= may[v]
    return found
