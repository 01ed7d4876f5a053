"""The grid of a shader that comes without one: two workgroups along each axis whose ids it reads.

One workgroup would show nothing that goes on between two. Along any other axis, all would do the same work and race.
"""

from __future__ import annotations

from ... import sim
from ...sim.wgsl.diagnostics import WgslError
from ..errors import UsageError
from .id_axes import id_axes
from .manifest import Kernel, Launch
from .reflection import check_module, entry_point

_OTHER = "give --grid X,Y,Z for another"
_BUDGET = 1 << 16  # loop iterations of a trial run


def bare_grid(kernel: Kernel, launch: Launch) -> tuple[tuple[int, int, int], str]:
    """Return the grid, and why it is that one. `launch`: the arguments of `bankshot.simulate`, with any grid."""
    axes = id_axes(entry_point(check_module(kernel), launch["entry"]))
    x, y, z = (2 if axis in axes else 1 for axis in range(3))
    if not axes:
        return (1, 1, 1), f"a grid of one workgroup, as the shader reads no ids of several ({_OTHER})"
    if _stays_inside(kernel, launch, (x, y, z)) or not _stays_inside(kernel, launch, (1, 1, 1)):
        return (x, y, z), f"a grid of {x} x {y} x {z} workgroups, two along each axis whose ids it reads ({_OTHER})"
    return (1, 1, 1), f"a grid of one workgroup, as several access elements out of bounds ({_OTHER})"


def _stays_inside(kernel: Kernel, launch: Launch, grid: tuple[int, int, int]) -> bool:
    """Whether a run keeps all accesses in bounds, and ends."""
    asked: Launch = {**launch, "grid": grid, "budget": launch.get("budget", _BUDGET)}
    try:
        run = sim.simulate(check_module(kernel), **asked, probes=("bounds",), replay=False)
    except (WgslError, UsageError):
        return False
    return not run.findings
