"""Ways of touching memory: the rows from which a launch computes bases and limits.

An address is counted in units of the access (4 bytes, or 2 for f16) from `offset`, so that an index below zero gives
one above all others. With one index that waits for run time, the largest it may be is `(count - 1) * stride`.
"""

from __future__ import annotations

from ..fast_dataclass import frozen
from ..wgsl import types as t
from ..wgsl.typed import Variable

NOWHERE = 0xFFFFFFFF  # an address past every limit, of an access that is not to happen
UNITS_PER_ACCESS = 4  # the machine has a row for each unit of an access: a vec4 has four


@frozen
class Access:
    """`space` is workgroup, storage, uniform, immediate, or index: of an index or a length that is only looked at. All
    numbers are in units of `unit` bytes. Texels are storage, what else is known of textures and samplers is uniform.

    `offset`: of the first unit in the variable, without the index. `stride`, `count`: of the index (stride 0: none;
    count None: the length of a runtime-sized array). `tail`: byte offset and byte stride of the variable's
    runtime-sized array. `of`: what is indexed, as written.
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

    @property
    def memory(self) -> str:
        """What kind of barrier orders it."""
        return "texture" if isinstance(self.variable.type, t.Texture) else self.space

    @property
    def bytes_per_lane(self) -> int:
        return self.unit * self.units

    def elements(self, size: int) -> int:
        """How many elements the array has that is indexed, in a variable of so many bytes."""
        if self.count is not None:
            return self.count
        assert self.tail is not None
        offset, stride = self.tail
        return (size - offset) // stride
