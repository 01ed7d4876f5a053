"""Loops that wait for other invocations, as a spin lock does: their end depends on atomic operations in them.

A loop ends when its condition says so, or when it takes a branch with a jump out of it. The analysis follows these
conditions backwards to their sources, through variables that the loop writes and the branches in which it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ..fast_dataclass import entity
from ..ir import ir
from ..ir.access import Access
from ..ir.ir import Loop, Region, Slot, Value


def deciding_atomics(loop: Loop) -> tuple[int, ...]:
    """Return the sites of the atomic operations in `loop` that decide whether it ends."""
    if not any(isinstance(item, ir.Atomic) for item in ir.items(loop)):
        return ()
    flow = _Flow({id(item) for item in ir.items(loop) if isinstance(item, (Loop, ir.Scope))})
    flow.ends = [value for value in (loop.condition, loop.break_if) if value is not None]
    for region in ir.regions(loop):
        flow.region(region, ())
    return tuple(sorted(flow.sites()))


def retries(loop: Loop) -> bool:
    """Whether a loop tries to exchange a value that it has read until no other has changed it: then another goes on."""
    compares = [item for item in ir.items(loop) if isinstance(item, ir.Atomic) and item.op == "compare"]
    return any(item.args[0].op != "const" for item in compares)


def waits_in_storage(loop: Loop, awaited: tuple[int, ...], accesses: Sequence[Access]) -> bool:
    """Whether any of the awaited atomic operations is on storage, which other workgroups see."""
    atomics = [item for item in ir.items(loop) if isinstance(item, ir.Atomic) and item.site in awaited]
    return any(accesses[item.access].space == "storage" for item in atomics)


Node = Value | Slot


@entity
class _Flow:
    """The sources of the values in a loop. `inner`: loops and scopes in it, by identity; `ends`: the conditions that
    decide whether it ends; `atomics`: the results of atomic operations, with their sites."""

    inner: set[int]
    ends: list[Value] = field(default_factory=list[Value])
    atomics: dict[Node, int] = field(default_factory=dict[Node, int])
    sources: dict[Node, list[Node]] = field(default_factory=dict[Node, list[Node]])

    def region(self, region: Region, branches: tuple[Value, ...]) -> None:
        """Note the items of a region that runs under the conditions `branches`."""
        for item in region.items:
            match item:
                case ir.Set(slot=slot, value=value):
                    self._from(slot, value, *branches)
                case ir.Put(block=block, index=index, value=value):
                    for slot in block.slots:
                        self._from(slot, index, value, *branches)
                case ir.Pick(result=result, block=block, index=index):
                    self._from(result, index, *block.slots)
                case ir.Atomic(results=results, site=site):
                    self.atomics |= dict.fromkeys(results, site)
                case ir.Collective(results=results, args=args):
                    for result in results:
                        self._from(result, *args)
                case ir.Jump(kind="exit", target=target) if id(target.node) not in self.inner:
                    self.ends += branches
                case _:
                    pass
            inside = (*branches, item.condition) if isinstance(item, ir.If) else branches
            for each in ir.regions(item):
                self.region(each, inside)

    def _from(self, node: Node, *sources: Node) -> None:
        self.sources.setdefault(node, []).extend(sources)

    def sites(self) -> set[int]:
        """Return the sites of all atomic operations among the sources of the ends."""
        waiting: list[Node] = list(self.ends)
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            own = () if isinstance(node, Slot) else (node.imm,) if node.op == "get" else node.args
            new = {*own, *self.sources.get(node, ())} - seen
            seen |= new
            waiting += new
        return {self.atomics[node] for node in seen & self.atomics.keys()}
