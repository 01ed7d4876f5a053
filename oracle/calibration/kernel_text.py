"""What every micro-benchmark shares: its record, the frame of its text, and sizes of launches.

A text has a loop whose number of iterations comes from a uniform buffer, so that `scale` changes no text. Whatever a
compiler could fold comes from there too: seeds, steps, masks. The result is stored if it equals `params.never`, which
no compiler can exclude.

wgpu makes every access safe: it clamps each index (`min`), initializes workgroup memory to zero, and counts the
iterations of each loop to bound them. These take issue slots that `work` does not count. Bodies are unrolled in the
text, so that the loop takes a small part.

`work` follows docs/counting-rules.md for subgroups of 32 and 32 banks of 4 bytes. A key that is the name of a counter
has the value that `bankshot.simulate` counts. The others:

- `operations`: operations of the measured kind, of all lanes.
- `chain`: measured operations of one invocation of which each needs the result of the one before; 0 if there is none.
- `subgroups_per_core`: subgroups of the grid, divided by the cores.
- `private_loads`, `private_stores`: accesses to arrays of function space, of all lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen

SUBGROUP = 32
WORD_BYTES = 4
L2_WORDS = 1 << 22  # 16 MiB: a buffer that fits in the L2 cache only
SECTOR_WORDS = 8
LINE_WORDS = 32

NEVER = 0xDEADBEEF
FIELDS = ("trips", "never", "zero", "one", "step", "mask", "stride", "advance")

_FRAME = """\
struct Params {{
{fields}
}}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> sink: array<u32>;
{declarations}
@compute @workgroup_size({size})
fn main(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) workgroup: vec3u) {{
{setup}
  for (var trip = 0u; trip < params.trips; trip++) {{
{body}
  }}
{finish}
  let result = {result};
  if (result == params.never) {{ sink[0] = result; }}
}}
"""


@frozen(eq=False)
class MicroBenchmark:
    """One dispatch, and what it does.

    `constant` names what its time measures, and `parameters` the point of its sweep. `work` says what one dispatch
    does, worked out by hand from the text (see the module). `bindings` has arrays by variable name.
    """

    constant: str
    parameters: dict[str, float]
    work: dict[str, float]
    wgsl: str
    entry: str
    grid: tuple[int, int, int]
    bindings: dict[str, NDArray[Any]]


@frozen
class Launch:
    """`workgroups` of `size` invocations, for `cores` cores; `scale` shortens loops and buffers."""

    cores: int
    scale: float
    size: int
    workgroups: int

    @property
    def subgroups(self) -> int:
        """Subgroups of the grid; the last of a workgroup may be partly filled."""
        return self.workgroups * -(-self.size // SUBGROUP)

    @property
    def invocations(self) -> int:
        return self.workgroups * self.size

    def shortened(self, trips: float) -> int:
        """Return the number of iterations at this scale, at least 1."""
        return max(1, round(trips * self.scale))


def per_core(cores: int, scale: float, size: int, workgroups: int) -> Launch:
    """Return a launch of so many workgroups for each core."""
    return Launch(cores, scale, size, cores * workgroups)


def shrunk(words: int, least: int, scale: float) -> int:
    """Return the words of a buffer at this scale: a power of two, as `words` and `least` are."""
    target = words * scale
    while words > max(least, target):
        words //= 2
    return words


@cache
def zeros(words: int) -> NDArray[np.uint32]:
    """Return one array for all benchmarks that read zeros: the system gives it no memory until it is read."""
    return np.zeros(words, np.uint32)


@cache
def successors(words: int, step: int) -> NDArray[np.uint32]:
    """Return an array of which each element holds the index of the next, `step` further, around the end."""
    return (np.arange(words, dtype=np.uint32) + np.uint32(step)) & np.uint32(words - 1)


def indented(lines: Iterable[str], spaces: int = 4) -> str:
    """Join the lines of a body."""
    return "\n".join(" " * spaces + line for line in lines)


def benchmark(
    constant: str,
    parameters: Mapping[str, float],
    launch: Launch,
    *,
    trips: int,
    body: Iterable[str],
    result: str,
    work: Mapping[str, float],
    declarations: str = "",
    setup: Iterable[str] = (),
    finish: Iterable[str] = (),
    values: Mapping[str, int] | None = None,
    arrays: Mapping[str, NDArray[Any]] | None = None,
    grid: tuple[int, int, int] | None = None,
) -> MicroBenchmark:
    """Put a text together from its parts; `values` are fields of `params`."""
    params = dict.fromkeys(FIELDS, 0) | {"never": NEVER, "one": 1, "trips": trips} | dict(values or {})
    wgsl = _FRAME.format(
        fields="\n".join(f"  {name}: u32," for name in FIELDS),
        declarations=declarations,
        size=launch.size,
        setup=indented(setup, 2),
        body=indented(body),
        finish=indented(finish, 2),
        result=result,
    )
    always = {
        "workgroups": launch.workgroups,
        "invocations": launch.invocations,
        "subgroups_per_core": launch.subgroups / launch.cores,
    }
    bindings: dict[str, NDArray[Any]] = {
        "params": np.array([params[name] for name in FIELDS], np.uint32),
        "sink": np.zeros(1, np.uint32),
    }
    return MicroBenchmark(
        constant,
        dict(parameters),
        {**always, **work},
        wgsl,
        "main",
        grid or (launch.workgroups, 1, 1),
        bindings | dict(arrays or {}),
    )
