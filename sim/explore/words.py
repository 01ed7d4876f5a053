"""The memory that a dispatch can reach, as numbered words, and the addresses of accesses.

Words of bindings come first, then the workgroup memory of each workgroup, which starts as zeros.
"""

from __future__ import annotations

from math import prod

from ..bindings.binding import Bound
from ..fast_dataclass import entity, frozen
from ..ir.access import BUFFERS, Access
from ..launch.device_memory import make_device_memory
from ..run.dispatch import Dispatch
from ..wgsl import types as t

_WORD = 4  # bytes
_NEVER = 0xFFFFFFFF  # the limit of an access without a runtime index: no address is above it


@frozen
class Place:
    """Where an access goes. `happens`: False where the policy skips it. `half`: -1, or which half of the word."""

    word: int
    happens: bool
    half: int


@entity
class _Row:
    """An access, ready to compute addresses. `base` is in units."""

    base: int
    limit: int
    stride: int
    count: int
    policy: str
    unit: int
    shared: bool


class Words:
    """The words of a dispatch: initial values, addresses and names."""

    def __init__(self, dispatch: Dispatch, accesses: list[Access]) -> None:
        memory = make_device_memory(dispatch.bound)
        self.bound = dispatch.bound
        self.initial: list[int] = memory.words.tolist()
        self.storage = len(self.initial)
        self._starts = memory.places
        self._sizes = {b.variable.name: len(b.data) for b in dispatch.bound}
        self._offsets, self._shared_sizes, size = _workgroup_layout(dispatch)
        self._words_per_workgroup = size // _WORD
        self._rows = [self._row(access, dispatch) for access in accesses]
        self.lengths = [access.elements(self._sizes.get(access.variable.name, 0)) for access in accesses]
        self.fixed = [_is_fixed(access, dispatch.bound) for access in accesses]
        self.initial += [0] * (self._words_per_workgroup * prod(dispatch.grid))
        self._ordered = sorted((start, name) for name, start in self._starts.items())
        self._textures = {b.variable.name for b in dispatch.bound if isinstance(b.type, t.Texture)}
        self._spaces: dict[int, str] = {}

    def _row(self, access: Access, dispatch: Dispatch) -> _Row:
        shared, unit = access.space == "workgroup", access.unit
        name = access.variable.name
        start = self._offsets[name] if shared else self._starts.get(name, 0)
        count = access.elements(self._sizes.get(name, 0))
        limit = (count - 1) * access.stride if access.stride else _NEVER
        policy = _policy(access, dispatch)
        return _Row(start // unit + access.offset, limit, access.stride, count, policy, unit, shared)

    def place(self, access: int, unit: int, address: int, workgroup: int) -> Place:
        """Return the word of one unit of an access of a workgroup."""
        row = self._rows[access]
        at, happens = address, True
        if at > row.limit:
            if row.policy == "wrap":
                at = at // row.stride % row.count * row.stride
            else:
                at, happens = row.limit, row.policy == "clamp"
        units = row.base + (at + unit & _NEVER)
        word, half = (units, -1) if row.unit == _WORD else divmod(units, 2)
        if row.shared:
            word += self.storage + workgroup * self._words_per_workgroup
        elif not 0 <= word < self.storage:
            return Place(0, False, half)
        return Place(word, happens, half)

    def part(self, bound: Bound) -> range:
        """Return the words of a binding."""
        start = self._starts[bound.variable.name] // _WORD
        return range(start, start + -(-len(bound.data) // _WORD))

    def space(self, word: int) -> str:
        """Return the memory that a word is in, as barriers order it: workgroup, storage or texture."""
        if word not in self._spaces:
            is_texture = word < self.storage and self._variable(word)[1] in self._textures
            self._spaces[word] = "workgroup" if word >= self.storage else "texture" if is_texture else "storage"
        return self._spaces[word]

    def _variable(self, word: int) -> tuple[int, str]:
        """Return the first byte and the name of the binding that a word is in."""
        return [each for each in self._ordered if each[0] <= word * _WORD][-1]

    def name(self, word: int) -> str:
        """Name a word as people do: the variable, and which of its words it is."""
        if word < self.storage:
            start, name = self._variable(word)
            size, offset = self._sizes[name], word * _WORD - start
        else:
            inside = (word - self.storage) % self._words_per_workgroup * _WORD
            start, name = max((at, name) for name, at in self._offsets.items() if at <= inside)
            size, offset = self._shared_sizes[name], inside - start
        return name if size <= _WORD else f"{name}[{offset // _WORD}]"


def _is_fixed(access: Access, bound: list[Bound]) -> bool:
    """Whether no invocation can write what an access loads."""
    if access.space == "workgroup":
        return False
    return not any(b.writable and b.variable.name == access.variable.name for b in bound)


def _policy(access: Access, dispatch: Dispatch) -> str:
    """Return what an access out of bounds does: clamp, zero or wrap."""
    if isinstance(access.variable.type, t.Texture):
        if access.writes:
            return "zero"
        return "clamp" if dispatch.device.texel_outside == "zero" else "wrap"
    policy = dispatch.how.policy
    if policy == "zero-buffers":
        return "zero" if access.space in BUFFERS else "clamp"
    return policy


def _workgroup_layout(dispatch: Dispatch) -> tuple[dict[str, int], dict[str, int], int]:
    """Return the byte offset and the size of each workgroup variable, and the size of all."""
    pipeline, offsets, sizes, size = dispatch.pipeline, dict[str, int](), dict[str, int](), 0
    for variable in pipeline.globals:
        if variable.space == "workgroup":
            offsets[variable.name], sizes[variable.name] = size, t.size_of(pipeline.store_types[variable])
            size = t.round_up(16, size + sizes[variable.name])
    return offsets, sizes, size
