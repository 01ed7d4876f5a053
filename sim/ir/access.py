"""Accesses to memory: the rows from which a launch computes base addresses and limits.

An address counts units of the access (4 bytes, or 2 for f16) from `offset`, modulo 2^32, so that a negative index gives
an address above all valid ones. If one index is known only at run time, the largest valid address is
`(count - 1) * stride`.
"""

from __future__ import annotations

from ..fast_dataclass import frozen
from ..wgsl import types as t
from ..wgsl.typed import Variable

BUFFERS = frozenset(("storage", "uniform"))  # spaces whose variables are buffers
NOWHERE = 0xFFFFFFFF  # an address past every limit: the access does not happen
UNITS_PER_ACCESS = 4  # the machine has a row per unit: four for a vec4


@frozen
class Access:
    """One way to load or store part of a variable. Offsets and strides are in units of `unit` bytes.

    `space` is workgroup, storage, uniform or immediate, or index for an index or length that is only checked. Texels
    are storage; sizes of textures and settings of samplers are uniform. `offset`: the first unit, without the index.
    `stride`, `count`: of the index (stride 0: no index; count None: a runtime-sized array). `tail`: byte offset and
    byte stride of the variable's runtime-sized array. `of`: the source text of what is indexed.
    `component`: it stores one component of a vector.
    """

    variable: Variable
    space: str
    unit: int
    units: int
    offset: int
    stride: int = 0
    count: int | None = 1
    tail: tuple[int, int] | None = None
    writes: bool = False
    of: str = ""
    component: bool = False

    @property
    def memory(self) -> str:
        """The kind of memory it is, as barriers order it."""
        return "texture" if isinstance(self.variable.type, t.Texture) else self.space

    @property
    def bytes_per_lane(self) -> int:
        return self.unit * self.units

    def may_overlap(self, unit: int, other: Access) -> bool:
        """Whether one of its units, by number, may be part of another access to the same variable.

        Where both index an array once, with elements of one size, the unit must lie in the same part of an element. An
        address that wraps around 2^32 keeps its part if that size is a power of two.
        """
        size = self.stride * self.unit
        if size == 0 or size & (size - 1) or size != other.stride * other.unit:
            return True
        first = ((self.offset + unit) * self.unit - other.offset * other.unit) % size
        return first < other.bytes_per_lane or first + self.unit > size

    def elements(self, size: int) -> int:
        """The length of the indexed array, in a variable of `size` bytes."""
        if self.count is not None:
            return self.count
        assert self.tail is not None
        offset, stride = self.tail
        return (size - offset) // stride
