"""Places of a module between two statements, and which accesses they separate.

An access has a *position* in each function that reaches it: the path of blocks to the statement that contains it, or
that calls a function which does. A *gap* lies in a block before a statement, or after the last one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..fast_dataclass import frozen
from ..wgsl import typed
from ..wgsl.source import Span

Path = tuple[tuple[typed.Block, int], ...]  # from the body of a function inwards: each block, and the statement in it


@frozen
class Gap:
    """The place before statement number `index` of a block. `path` leads to the block, as in a `Path`."""

    path: Path
    block: typed.Block
    index: int
    loop: typed.Loop | None  # whose body the block is

    @property
    def before(self) -> typed.Stmt | None:
        """The statement that ends here."""
        return self.block.body[self.index - 1] if self.index else None

    @property
    def depth(self) -> int:
        return len(self.path)


@frozen
class Between:
    """How a gap separates two accesses: `straight`, in the order of the text, or only in other iterations or calls."""

    straight: bool


class Places:
    """The positions of accesses in the functions that an entry point reaches."""

    def __init__(self, entry: typed.Function) -> None:
        self.functions = typed.reached(entry)
        self._positions: dict[tuple[int, int], dict[typed.Function, list[Path]]] = {}
        self._loops = {
            stmt.body: stmt for f in self.functions for stmt in _statements(f) if isinstance(stmt, typed.Loop)
        }

        self._repeated: set[typed.Function] = set()  # called several times
        for function in self.functions:  # breadth first, so that callers come before callees
            self._repeated |= {callee for callee in function.calls if self._calls_again(function, callee)}

    def _calls_again(self, caller: typed.Function, callee: typed.Function) -> bool:
        """Whether a caller may not be the only one, or calls several times."""
        calls = list(_calls(caller, callee))
        looped = any(_is_in(loop, path) for path in calls for loop in self._loops.values())
        shared = sum(callee in each.calls for each in self.functions) > 1
        return shared or looped or len(calls) > 1 or caller in self._repeated

    def positions(self, span: Span) -> dict[typed.Function, list[Path]]:
        """Return the paths to an access in each function that reaches it."""
        key = (span.start, span.end)
        if key not in self._positions:
            self._positions[key] = self._find(span)
        return self._positions[key]

    def _find(self, span: Span) -> dict[typed.Function, list[Path]]:
        found: dict[typed.Function, list[Path]] = {}
        for function in self.functions:
            assert function.body is not None
            if function.body.span.start <= span.start and span.end <= function.body.span.end:
                found[function] = [_path(function.body, span)]
        todo = list(found)
        for callee in todo:
            for caller in self.functions:
                if callee in caller.calls:
                    found[caller] = [*found.get(caller, []), *_calls(caller, callee)]
                    todo.append(caller)
        return {function: list(dict.fromkeys(paths)) for function, paths in found.items()}

    def gaps(self, spans: tuple[Span, Span]) -> Iterator[Gap]:
        """Yield the gaps in all blocks around two accesses, in functions that reach both."""
        first, second = (self.positions(span) for span in spans)
        for function in first.keys() & second.keys():
            for path in (*first[function], *second[function]):
                for depth, (block, _) in enumerate(path):
                    if not _has_braces(block):
                        continue
                    for index in range(len(block.body) + 1):
                        gap = Gap(path[:depth], block, index, self._loops.get(block))
                        if not isinstance(gap.before, typed.Break | typed.Continue | typed.Return):
                            yield gap

    def between(self, gap: Gap, spans: tuple[Span, Span]) -> Between | None:
        """Return how a gap separates two accesses, if it does."""
        first, second = (self.positions(span) for span in spans)
        carried = False
        for function in first.keys() & second.keys():
            for one in first[function]:
                for two in second[function]:
                    sides = _side(gap, one), _side(gap, two)
                    if sides in ((-1, 1), (1, -1)):
                        return Between(straight=True)
                    again = function in self._repeated or self._share_loop(gap, one, two)
                    carried |= None not in sides and again
        return Between(straight=False) if carried else None

    def _share_loop(self, gap: Gap, one: Path, two: Path) -> bool:
        around = {block for block, _ in gap.path} | {gap.block}
        return any(block in around and _is_in(loop, one) and _is_in(loop, two) for block, loop in self._loops.items())

    def statement(self, span: Span) -> Path | None:
        """Return the path to the statement that contains an access itself."""
        for paths in self.positions(span).values():
            for path in paths:
                stmt = path[-1][0].body[path[-1][1]]
                if stmt.span.start <= span.start and span.end <= stmt.span.end:
                    return path
        return None

    def barriers(self, spans: tuple[Span, Span]) -> Iterator[tuple[Gap, typed.BuiltinCall]]:
        """Yield the barriers in the blocks around two accesses, each with its place."""
        for gap in self.gaps(spans):
            stmt = gap.block.body[gap.index] if gap.index < len(gap.block.body) else None
            call = stmt.expr if isinstance(stmt, typed.Eval) else None
            if isinstance(call, typed.BuiltinCall) and call.builtin.name in BARRIERS.values():
                yield gap, call


BARRIERS = {"workgroup": "workgroupBarrier", "storage": "storageBarrier", "texture": "textureBarrier"}


def _statements(function: typed.Function) -> Iterator[typed.Stmt]:
    assert function.body is not None
    return typed.statements(function.body)


def _path(block: typed.Block, span: Span) -> Path:
    """Return the path to the innermost statement that contains a span."""
    for index, stmt in enumerate(block.body):
        if stmt.span.start <= span.start and span.end <= stmt.span.end:
            for inner in typed.blocks(stmt):
                if inner.span.start <= span.start and span.end <= inner.span.end and (rest := _path(inner, span)):
                    return ((block, index), *rest)
            return ((block, index),)
    return ()


def _calls(caller: typed.Function, callee: typed.Function) -> Iterator[Path]:
    assert caller.body is not None
    for stmt in _statements(caller):
        for operand in typed.operands(stmt):
            for part in typed.expressions(operand):
                if isinstance(part, typed.Call) and part.function is callee:
                    yield _path(caller.body, part.span)


def _has_braces(block: typed.Block) -> bool:
    """Whether statements can be added: the block of a `for` and its initializer has no braces of its own."""
    return block.span.text.startswith("{")


def _side(gap: Gap, path: Path) -> int | None:
    """Return -1 where a position is before a gap, 1 where it is after, None where neither is true."""
    chain = (*gap.path, (gap.block, gap.index))
    for (ours, here), (theirs, there) in zip(chain, path, strict=False):
        if ours is not theirs:
            return None
        if ours is gap.block or here != there:
            return -1 if there < here else 1
    return -1  # in the condition of a statement around the gap


def _is_in(loop: typed.Loop, path: Path) -> bool:
    """Whether a position is in a loop: in its body, or in its condition."""
    block, index = path[-1]
    return block.body[index] is loop or any(block is loop.body for block, _ in path)
