"""Compares how two kernels use the device: `python -m tools.compare_schedule ONE OTHER [--set NAME=N …]`.

ONE and OTHER are kernels of manifests, `MANIFEST.toml:KERNEL`. Both run with the sizes of ONE, counted as on an NVIDIA
H200, and each total that differs is shown. Their schedules are equal if no total in `SCHEDULE` differs; the exit status
is 1 if one does. The other totals depend on how arithmetic and indices are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.manifests.manifest import Kernel
from bankshot.sim.ir.instruction_classes import CLASSES
from bankshot.sim.run.executed_instructions import by_class
from bankshot.sim.wgsl.diagnostics import WgslError

from .claims.bench import run_case

if TYPE_CHECKING:
    from bankshot import Run

SHAPE = ("grid", "workgroup size")

# Totals of a run, by their keys in `run.counters`.
COUNTERS = {
    "shared_wavefronts": "wavefronts",
    "shared_ideal_wavefronts": "ideal wavefronts",
    "global_sectors": "sectors",
    "global_ideal_sectors": "ideal sectors",
    "global_lines": "lines",
    "global_bytes": "bytes requested",
    "barriers": "barriers",
    "workgroup_memory_bytes": "bytes of workgroup memory",
    "flops": "FLOPs",
    "executions": "executions",
    "active_lanes": "active lanes",
}

# Classes of instructions that any text with the same schedule executes equally often.
ACCESSES = (
    *("workgroup_load", "workgroup_store", "storage_load", "storage_store", "texture_load", "texture_store"),
    *("atomic", "barrier", "subgroup"),
)

# Active lanes of all places together depend on the number of arithmetic instructions, those of accesses do not.
SCHEDULE = frozenset(
    ["wavefronts", "sectors", "barriers", "bytes of workgroup memory", *(f"lanes of {each}" for each in ACCESSES)]
)

Total = int | str


@dataclass(frozen=True)
class Comparison:
    """The totals of two kernels at the same sizes."""

    sizes: Mapping[str, int]
    one: Mapping[str, Total]
    other: Mapping[str, Total]

    @property
    def differing(self) -> list[str]:
        """The names of totals that differ."""
        return [name for name in self.one if self.one[name] != self.other[name]]

    @property
    def equal(self) -> list[str]:
        """The names of totals that are equal and not 0, without classes of arithmetic instructions."""
        shown = SCHEDULE.union(COUNTERS.values(), SHAPE)
        return [name for name in self.one if name in shown and self.one[name] == self.other[name] != 0]

    @property
    def schedule_differs(self) -> bool:
        """Whether a total in `SCHEDULE` differs."""
        return not SCHEDULE.isdisjoint(self.differing)


def kernel_of(text: str) -> Kernel:
    """Return the kernel that `MANIFEST.toml:KERNEL` names; the name may be left out where there is only one."""
    path, _, name = text.partition(".toml:")
    found = plans([Path(path if path.endswith(".toml") else f"{path}.toml")], Request(kernel=name or None))
    if len(found) > 1:
        raise UsageError(f"{text}: has several kernels; add :NAME, one of {', '.join(p.kernel.name for p in found)}")
    return found[0].kernel


def totals(run: Run, workgroup_size: int) -> dict[str, Total]:
    """Return every total that is compared."""
    instructions = by_class(run.instructions)
    result: dict[str, Total] = dict(zip(SHAPE, (" x ".join(map(str, run.grid)), workgroup_size), strict=True))
    result |= {label: int(run.counters[key]) for key, label in COUNTERS.items()}
    for name in CLASSES:
        result[f"{name} instructions"], result[f"lanes of {name}"] = instructions.get(name, (0, 0))
    return result


def compare(one: Kernel, other: Kernel, sizes: Mapping[str, int]) -> Comparison:
    """Run both with the sizes of `one`, replaced by `sizes`."""
    shape = one.shape(sizes)
    measured: list[dict[str, Total]] = []
    for kernel in (one, other):
        run = run_case(kernel.case(kernel.shape(shape.dims)))
        measured.append(totals(run, int(run.counters["invocations"]) // prod(run.grid)))
    return Comparison(shape.dims, *measured)


def report(compared: Comparison) -> str:
    """Write the totals that differ as a table, and then what is equal."""
    sizes = ", ".join(f"{name} {size:,}" for name, size in compared.sizes.items())
    lines = [f"{sizes}, as an NVIDIA H200"]
    width = max(map(len, compared.one))
    for name in compared.differing:
        pair = (f"{v:,}" if isinstance(v, int) else v for v in (compared.one[name], compared.other[name]))
        mark = "  schedule" if name in SCHEDULE else ""
        lines.append(f"  {name:{width}} {next(pair):>16} {next(pair):>16}{mark}")
    differing = [name for name in compared.differing if name in SCHEDULE]
    lines.append(f"equal: {', '.join(compared.equal)}")
    lines.append(f"the schedules differ in {', '.join(differing)}" if differing else "the schedules are equal")
    return "\n".join(lines)


def _sizes(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for text in given:
        name, _, size = text.partition("=")
        if not size.isdecimal():
            raise click.BadParameter(f"{text}: write NAME=N, such as K=1152")
        sizes[name] = int(size)
    return sizes


@click.command()
@click.argument("one")
@click.argument("other")
@click.option("--set", "sizes", metavar="NAME=N", multiple=True, callback=_sizes, help="Replace a size.")
@click.pass_context
def main(context: click.Context, one: str, other: str, sizes: dict[str, int]) -> None:
    """Compare how two kernels, MANIFEST.toml:KERNEL, use the device."""
    try:
        compared = compare(kernel_of(one), kernel_of(other), sizes)
    except (UsageError, WgslError) as error:
        click.echo(f"error: {error}", err=True)
        context.exit(2)
    click.echo(report(compared))
    context.exit(1 if compared.schedule_differs else 0)


if __name__ == "__main__":
    main(prog_name="python -m tools.compare_schedule")
