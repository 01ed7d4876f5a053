"""Dartagnan's litmus tests of Vulkan's memory model, those that WGSL can say, with the verdicts that it expects.

Threads that share a workgroup there share one here. Storage class 0 is storage, and another one workgroup memory.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bankshot import WgslError
from bankshot.sim.explore.search import search
from bankshot.sim.run.prepared import dispatch_of

from .condition import holds
from .table import Result

TITLE = "Dartagnan's tests of Vulkan's memory model: is the expected verdict reached?"
_EXPECTED = "dartagnan/src/test/resources/VULKAN-expected.csv"
_SPACES = ("storage", "workgroup")
_BARRIERS = {"storage": "storageBarrier();", "workgroup": "workgroupBarrier();", "texture": "textureBarrier();"}


class _Unsaid(Exception):
    """WGSL cannot say it."""


def found_in(folder: Path) -> bool:
    """Whether a folder has these tests."""
    return (folder / _EXPECTED).exists()


def tests(folder: Path, names: tuple[str, ...]) -> Iterator[Result]:
    """Run the tests."""
    for line in (folder / _EXPECTED).read_text().split():
        path, _, expected = line.partition(",")
        name = path.removeprefix("litmus/VULKAN/")
        if names and not any(each in name for each in names):
            continue
        try:
            yield _run(name, _translated((folder / path).read_text()), expected == "1")
        except _Unsaid as error:
            yield Result(name, "", None, why=f"WGSL has no {error}")
        except WgslError as error:
            yield Result(name, "", None, why=error.diagnostics[0].message)


@dataclass(frozen=True)
class _Instruction:
    """`kind`: ld, st, rmw or bar. `spaces`: the storage classes that a barrier orders, or that of an access."""

    kind: str
    spaces: frozenset[str]
    flags: frozenset[str] = frozenset()
    args: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        return self.args[0] if self.kind == "st" else self.args[1]

    @property
    def atomic(self) -> bool:
        return "atom" in self.flags


@dataclass
class _Test:
    """A test as WGSL. `registers`: thread and name, in the order of `out`. `words`: the place of each word, and whether
    that is in storage."""

    text: str
    groups: int
    bindings: dict[str, np.ndarray]
    registers: list[tuple[int, str]]
    words: dict[str, tuple[str, int, bool]]
    condition: str


# ---- running -----------------------------------------------------------------------------------------


def _run(name: str, test: _Test, expected: bool) -> Result:
    began = time.perf_counter()
    graph = search(dispatch_of(test.text, grid=test.groups, bindings=test.bindings), "weak", reduce=True)
    seconds = time.perf_counter() - began
    outcomes: list[dict[str, int]] = []
    for contents in {graph.contents(end) for end in graph.ends}:
        keys = [str(bound.key) for bound in graph.system.outputs]
        values = {key: np.frombuffer(each, np.uint32).tolist() for key, each in zip(keys, contents, strict=True)}
        outcome = {f"P{thread}:{r}": values["out"][k] for k, (thread, r) in enumerate(test.registers)}
        for at, (word, (array, index, storage)) in enumerate(test.words.items()):
            outcome[word] = values[array][index] if storage else values["last"][at]
        outcomes.append(outcome)
    agrees = graph.complete and holds(test.condition, outcomes) == expected
    return Result(name, "memory model", agrees, len(graph.states), seconds, " ".join(test.condition.split()))


# ---- reading -----------------------------------------------------------------------------------------


def _translated(text: str) -> _Test:
    body = re.sub(r'"[^"]*"|\(\*.*?\*\)|//[^\n]*', "", text, flags=re.DOTALL)
    first, rest = body[body.index("{") + 1 :].split("}", 1)
    start = re.search(r"~\s*exists|\bexists\b|\bforall\b|\bfilter\b", rest)
    assert start
    program, condition = rest[: start.start()], rest[start.start() :]
    if "filter" in condition:
        raise _Unsaid("filter")
    if "ssw" in program:
        raise _Unsaid("system-synchronizes-with")
    if re.search(r"->|&|[A-Za-z]\w*\s*=\s*[A-Za-z]\w*\s*;", re.sub(r"P\d+\s*:\s*\w+\s*=\s*\w+;", "", first)):
        raise _Unsaid("two names for one word")
    heads, *lines = ([cell.strip() for cell in row.split("|")] for row in program.split(";") if row.strip())
    places = [re.search(r"wg\s*(\d+)\s*,\s*qf\s*(\d+)", head) for head in heads]
    if len({place[2] for place in places if place}) > 1:
        raise _Unsaid("queue families")
    owners = [int(place[1]) for place in places if place]
    one = len(set(owners)) == 1
    threads = [[_instruction(row[t], one) for row in lines if t < len(row) and row[t]] for t in range(len(heads))]
    values = dict(re.findall(r"(?<![:\w])([A-Za-z]\w*)\s*=\s*(-?\w+)\s*;", first))
    return _Writer(threads, owners, values, condition).test()


def _instruction(text: str, one: bool) -> _Instruction:
    """Return an instruction. `one`: there is only one workgroup, so that no scope is wider."""
    name, _, rest = text.partition(" ")
    kind, *parts = name.split(".")
    flags, args = frozenset(parts), tuple(each.strip() for each in rest.split(",") if each.strip())
    if text.endswith(":") or kind in ("goto", "bne", "beq", "bge", "ble", "bgt", "blt"):
        raise _Unsaid("litmus test with branches here")
    if kind == "cbar":
        if (flags & {"acq", "rel"}) or len(args) > 1:
            raise _Unsaid("barrier that only acquires, only releases, or needs a quorum")
        if "wg" not in flags and not one and flags & {"acq_rel", "dv", "qf", "sg"}:
            raise _Unsaid("barrier of another scope than a workgroup")
        ordered = {each.removeprefix("sem") for each in flags if each.startswith("semsc")}
        return _Instruction("bar", frozenset(ordered if "acq_rel" in flags else ()))
    if kind not in ("ld", "st", "rmw"):
        raise _Unsaid({"membar": "fence without a control barrier"}.get(kind, f"instruction {kind}"))
    if flags & {"acq", "rel", "acq_rel"}:
        raise _Unsaid("atomics that acquire or release")
    if "atom" not in flags and (kind == "rmw" or not flags & {"nonpriv", "av", "vis"}):
        raise _Unsaid("private accesses")
    space = next(each for each in flags if re.fullmatch(r"sc\d", each))
    return _Instruction(kind, frozenset((space,)), flags, args)


# ---- writing -----------------------------------------------------------------------------------------


@dataclass
class _Writer:
    threads: list[list[_Instruction]]
    owners: list[int]  # the workgroup of each thread
    values: dict[str, str]
    condition: str
    words: dict[str, tuple[str, int, bool]] = field(default_factory=dict)
    atomic: dict[str, bool] = field(default_factory=dict)
    spaces: dict[str, str] = field(default_factory=dict)

    def test(self) -> _Test:
        """Return the test as WGSL."""
        accesses = [(owner, each) for thread, owner in zip(self.threads, self.owners, strict=True) for each in thread]
        self.place([(owner, each) for owner, each in accesses if each.kind != "bar"], [each for _, each in accesses])
        reads = [(t, e.args[0]) for t, thread in enumerate(self.threads) for e in thread if e.kind in ("ld", "rmw")]
        self.registers = [*dict.fromkeys(reads)]
        groups = [[t for t, owner in enumerate(self.owners) if owner == each] for each in sorted({*self.owners})]
        arrays: dict[str, list[str]] = {}
        for word, (array, _, _) in self.words.items():
            arrays.setdefault(array, []).append(word)
        lines, bindings = list[str](), dict[str, np.ndarray]()
        for array, words in arrays.items():
            kind = "atomic<u32>" if array.endswith("a") else "u32"
            where = "var<workgroup>"
            if array.startswith("storage"):
                where = f"@group(0) @binding({len(bindings)}) var<storage, read_write>"
                bindings[array] = np.array([int(self.values.get(word, "0")) for word in words], np.uint32)
            lines.append(f"{where} {array}: array<{kind}, {len(words)}>;")
        for name, count in (("out", len(self.registers) or 1), ("last", len(self.words) or 1)):
            lines.append(f"@group(0) @binding({len(bindings)}) var<storage, read_write> {name}: array<u32, {count}>;")
            bindings[name] = np.zeros(count, np.uint32)
        lines += [
            f"@compute @workgroup_size({max(map(len, groups))})",
            "fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32) {",
            *(f"_ = &{name};" for name in (*arrays, "out", "last")),
            *(f"var {register}_{thread} = 0u;" for thread, register in self.registers),
        ]
        for number, group in enumerate(groups):
            lines += [f"if w.x == {number}u {{", *self.group(group), "}"]
        inside = [(k, *place) for k, place in enumerate(self.words.values()) if not place[2]]
        for k, array, index, _ in inside:
            read = f"atomicLoad(&{array}[{index}])" if array.endswith("a") else f"{array}[{index}]"
            lines.append(f"workgroupBarrier(); if i == 0u {{ last[{k}] = {read}; }}")
        text = "\n".join([*lines, "}"])
        return _Test(text, len(groups), bindings, self.registers, self.words, self.condition)

    def place(self, accesses: list[tuple[int, _Instruction]], everything: list[_Instruction]) -> None:
        """Give each word a place in an array."""
        classes = sorted({space for each in everything for space in each.spaces})
        several = len({*self.owners}) > 1
        if len(classes) > len(_SPACES) or (len(classes) == len(_SPACES) and several):
            raise _Unsaid("more storage classes that workgroups share")
        self.spaces = dict(zip(classes, _SPACES, strict=False))
        for word in sorted({each.word for _, each in accesses}):
            here = [(owner, each) for owner, each in accesses if each.word == word]
            self.refuse(word, [each for _, each in here], len({owner for owner, _ in here}) > 1)
            self.atomic[word] = here[0][1].atomic
            space = self.spaces[next(iter(here[0][1].spaces))]
            array = f"{space}_{'a' if self.atomic[word] else 'p'}"
            if space == "workgroup" and int(self.values.get(word, "0")):
                raise _Unsaid("initial value of workgroup memory")
            self.words[word] = (array, sum(a == array for a, _, _ in self.words.values()), space == "storage")

    def refuse(self, word: str, here: list[_Instruction], several: bool) -> None:
        """Raise `_Unsaid` where a word of WGSL cannot be accessed so."""
        if not re.fullmatch(r"[A-Za-z]\w*", word):
            raise _Unsaid("address computed in a litmus test here")
        if len({each.atomic for each in here}) > 1:
            raise _Unsaid("word with atomic and plain accesses")
        if len({each.spaces for each in here}) > 1:
            raise _Unsaid("word in two storage classes")
        if any("sg" in each.flags for each in here if each.atomic):
            raise _Unsaid("atomics of subgroup scope")
        if several and any("wg" in each.flags for each in here if each.atomic):
            raise _Unsaid("atomics of workgroup scope that several workgroups use")

    def group(self, threads: list[int]) -> Iterator[str]:
        """Yield the lines of a workgroup: its threads, in parts between barriers."""
        barriers = [[each.spaces for each in self.threads[t] if each.kind == "bar"] for t in threads]
        if any(each != barriers[0] for each in barriers):
            raise _Unsaid("barrier that some invocations of a workgroup skip")
        parts: list[list[list[str]]] = []
        for t in threads:
            parts.append([[]])
            for each in self.threads[t]:
                if each.kind == "bar":
                    parts[-1].append([])
                else:
                    parts[-1][-1].append(self.line(t, each))
        for number in range(len(parts[0])):
            if number:
                yield self.barrier(barriers[0][number - 1])
            for lane, part in enumerate(parts):
                yield f"if i == {lane}u {{ {' '.join(part[number])} }}"
        for lane, t in enumerate(threads):
            kept = [f"out[{k}] = {r}_{t};" for k, (owner, r) in enumerate(self.registers) if owner == t]
            yield f"if i == {lane}u {{ {' '.join(kept)} }}"

    def barrier(self, ordered: frozenset[str]) -> str:
        """Return barriers that order these storage classes; one that orders nothing in use if there are none."""
        spaces = {self.spaces[each] for each in ordered}
        if not spaces:
            used = {"storage" if storage else "workgroup" for _, _, storage in self.words.values()}
            spaces = {next(each for each in ("workgroup", "storage", "texture") if each not in used)}
        return " ".join(_BARRIERS[each] for each in sorted(spaces))

    def line(self, thread: int, each: _Instruction) -> str:
        """Return an access as a statement."""
        array, index, _ = self.words[each.word]
        word = f"{array}[{index}]"
        if each.kind == "st":
            value = self.value(thread, each.args[1])
            return f"atomicStore(&{word}, {value});" if each.atomic else f"{word} = {value};"
        if each.kind == "ld":
            read = f"atomicLoad(&{word})" if each.atomic else word
        else:
            values = [self.value(thread, value) for value in each.args[2:]]
            names = {"add": "atomicAdd", "or": "atomicOr"}
            name = next((names[flag] for flag in names if flag in each.flags), "")
            if not name:
                name = "atomicExchange" if len(values) == 1 else "atomicCompareExchangeWeak"
            read = f"{name}(&{word}, {', '.join(values)})" + (".old_value" if name.endswith("Weak") else "")
        return f"{each.args[0]}_{thread} = {read};"

    def value(self, thread: int, text: str) -> str:
        """Return an operand: a number, or a register of the thread."""
        if text.isdigit():
            return f"{text}u"
        if (thread, text) not in self.registers:
            raise _Unsaid(f"operand {text} in a litmus test here")
        return f"{text}_{thread}"
