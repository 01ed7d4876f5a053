"""Litmus tests in a short notation, as WGSL, and their outcomes by the search.

`x=1; y=1 | r=y; s=x` has two threads. A statement is a store `x=1`, a load `r=x`, an atomic addition `r=x+1`, one
whose result nothing uses `x+=1`, an exchange `r=x<-2`, a compare-exchange `r=x?0:1`, a barrier `B`, or `C`, one that
orders the other memory. Words are called w, x, y and z; other names are registers, and a register may be stored: `y=r`.
An outcome is the registers in the order in which they are first written, then the final values of the words in
alphabetical order.

Places: "across" has each thread in a workgroup of its own, "within" all in one, and "workgroup" all in one with the
words in workgroup memory; there a barrier is a workgroupBarrier, elsewhere a storageBarrier. `across:2` puts the first
two threads into one workgroup and the others into another.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from bankshot.sim.explore.deadlocks import dead_ends
from bankshot.sim.explore.search import Graph, search
from bankshot.sim.run.prepared import dispatch_of

WORDS = "wxyz"
Outcome = tuple[int, ...]


class Statement(NamedTuple):
    """`kind`: load, store, add, exchange, compare, barrier or other (barrier). `values`: numbers or registers."""

    kind: str
    word: str = ""
    register: str = ""
    values: tuple[str, ...] = ()


class Litmus(NamedTuple):
    threads: tuple[tuple[Statement, ...], ...]

    @property
    def words(self) -> list[str]:
        return sorted({s.word for thread in self.threads for s in thread} - {""})

    @property
    def registers(self) -> list[str]:
        return list(dict.fromkeys(s.register for thread in self.threads for s in thread if s.register))


def parse(text: str) -> Litmus:
    threads = [[_statement(part.strip()) for part in thread.split(";") if part.strip()] for thread in text.split("|")]
    return Litmus(tuple(map(tuple, threads)))


def _statement(text: str) -> Statement:
    if text in "BC":
        return Statement("barrier" if text == "B" else "other")
    if added := re.fullmatch(r"([wxyz])\+=(\d+)", text):
        return Statement("add", added[1], values=(added[2],))
    left, right = text.split("=", 1)
    if left in WORDS:
        return Statement("store", left, values=(right,))
    for pattern, kind in (
        (r"([wxyz])\+(\d+)", "add"),
        (r"([wxyz])<-(\d+)", "exchange"),
        (r"([wxyz])\?(\d+):(\d+)", "compare"),
        (r"([wxyz])", "load"),
    ):
        if found := re.fullmatch(pattern, right):
            return Statement(kind, found[1], left, found.groups()[1:])
    raise ValueError(text)


_CALLS = {
    "load": "atomicLoad({0})",
    "add": "atomicAdd({0}, {1})",
    "exchange": "atomicExchange({0}, {1})",
    "compare": "atomicCompareExchangeWeak({0}, {1}, {2}).old_value",
}


def wgsl(litmus: Litmus, place: str) -> tuple[str, int]:
    """Return the text of a test, and how many workgroups it needs."""
    words, registers = litmus.words, litmus.registers
    threads = list(range(len(litmus.threads)))
    first = int(place.partition(":")[2] or 1)
    groups = [threads] if not place.startswith("across") else [threads[i : i + first] for i in threads[::first]]
    size = max(map(len, groups))
    names = {"barrier": "storageBarrier();", "other": "workgroupBarrier();"}
    if place == "workgroup":
        names = {"barrier": names["other"], "other": names["barrier"]}
    space = "workgroup" if place == "workgroup" else "storage, read_write"
    text = f"""
{"" if place == "workgroup" else "@group(0) @binding(0) "}var<{space}> m: array<atomic<u32>, {len(words)}>;
@group(0) @binding(1) var<storage, read_write> last: array<u32, {len(words)}>;
@group(0) @binding(2) var<storage, read_write> out: array<u32, {len(registers) or 1}>;
@compute @workgroup_size({size})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {{
    _ = &last; _ = &out;
"""
    text += "".join(f"    var {register} = 0u;\n" for register in registers)
    for number, group in enumerate(groups):
        text += f"    if w.x == {number}u {{\n"
        parts = [_parts(litmus.threads[thread]) for thread in group]
        between = [names[s.kind] for s in litmus.threads[group[0]] if s.kind in names]
        for phase in range(len(parts[0])):
            text += f"        {between[phase - 1]}\n" if phase else ""
            for lane, part in enumerate(parts):
                body = " ".join(_line(s, words) for s in part[phase])
                text += f"        if i == {lane}u {{ {body} }}\n" if body else ""
        for lane, thread in enumerate(group):
            written = dict.fromkeys(s.register for s in litmus.threads[thread] if s.register)
            body = " ".join(f"out[{registers.index(r)}] = {r};" for r in written)
            text += f"        if i == {lane}u {{ {body} }}\n" if body else ""
        text += "    }\n"
    if place == "workgroup":
        text += "    workgroupBarrier();\n"
        text += "".join(f"    if i == 0u {{ last[{k}] = atomicLoad(&m[{k}]); }}\n" for k in range(len(words)))
    return text + "}\n", len(groups)


def _parts(thread: tuple[Statement, ...]) -> list[list[Statement]]:
    """Split a thread at its barriers."""
    parts: list[list[Statement]] = [[]]
    for statement in thread:
        if statement.kind in ("barrier", "other"):
            parts.append([])
        else:
            parts[-1].append(statement)
    return parts


def _line(statement: Statement, words: list[str]) -> str:
    word = f"&m[{words.index(statement.word)}]"
    values = [f"{v}u" if v.isdigit() else v for v in statement.values]
    if statement.kind == "store":
        return f"atomicStore({word}, {values[0]});"
    result = f"{statement.register} = " if statement.register else ""
    return f"{result}{_CALLS[statement.kind].format(word, *values)};"


def graph(text: str, place: str, memory: str, reduce: bool = False) -> Graph:
    litmus = parse(text)
    source, groups = wgsl(litmus, place)
    bindings = {
        "m": np.zeros(len(litmus.words), np.uint32),
        "last": np.zeros(len(litmus.words), np.uint32),
        "out": np.zeros(len(litmus.registers) or 1, np.uint32),
    }
    if place == "workgroup":
        del bindings["m"]
    return search(dispatch_of(source, grid=groups, bindings=bindings), memory, reduce=reduce)


def outcomes(text: str, place: str = "across", memory: str = "sc", reduce: bool = False) -> set[Outcome]:
    """Return every outcome of a test: its registers, then its words."""
    found, litmus = graph(text, place, memory, reduce), parse(text)
    assert found.complete
    assert not dead_ends(found)
    results: set[Outcome] = set()
    for end in found.ends:
        first, *others = (np.frombuffer(each, np.uint32).tolist() for each in found.contents(end))
        last, out = others if len(others) == 2 else (first, *others)
        words = last if place == "workgroup" else first
        results.add((*(out if litmus.registers else []), *words))
    return results
