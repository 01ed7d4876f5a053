"""Which schedules a command compares, and the command that shows a difference again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...sim.fast_dataclass import frozen
from ..manifests.manifest import Case

if TYPE_CHECKING:
    from ...sim import Run, Schedules


@frozen
class ScheduleOptions:
    """How many schedules to compare, from which seed, and for how long.

    `given`: the words of the command line that determine a run, beside its file and its grid; `grid`: whether the grid
    was given.
    """

    count: int
    seed: int = 0
    seconds: float | None = None
    given: tuple[str, ...] = ()
    grid: bool = False

    def of(self, case: Case, device: str) -> Schedules:
        """Return the argument of `bankshot.simulate` for a case."""
        from ... import sim

        kernel, is_bare = case.kernel, case.kernel.path.suffix.lower() != ".toml"
        words = ["bankshot", "run", str(kernel.path)]
        words += ["--kernel", kernel.name] if not is_bare and kernel.name != kernel.path.stem else []
        for name, size in case.shape.dims.items():
            words += ["--set", f"{name}={size}"] if kernel.dims.get(name) != size else []
        words += ["--device", device] if device != "nvidia" else []
        command = (*words, *self.given)
        return sim.Schedules(self.count, self.seed, self.seconds, command, self.grid or is_bare)


def schedules_of(case: Case) -> ScheduleOptions | None:
    """Return the schedules that the manifest asks for, if it does."""
    kernel = case.kernel
    return None if kernel.schedules is None else ScheduleOptions(kernel.schedules, kernel.seed)


def agreement_entry(run: Run) -> dict[str, object] | None:
    """What a run under many schedules showed, for programs; None where there were none."""
    agreement = run.agreement
    if agreement is None:
        return None
    return {
        "asked": agreement.asked,
        "seen": agreement.seen,
        "seed": agreement.seed,
        "seconds": agreement.seconds,
        "differing": list(agreement.differing),
        "endless": list(agreement.endless),
        "text": str(agreement),
    }
