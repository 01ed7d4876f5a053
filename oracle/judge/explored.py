"""The work of `bankshot explore`: every outcome of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...sim.device_files import find
from ...sim.fast_dataclass import frozen
from ..errors import UsageError
from ..manifests.binding_checks import fit
from ..manifests.manifest import Case
from ..manifests.reflection import check_module
from .case_run import Say, silent
from .coverage import CaseOutcome, Compared, is_bare

if TYPE_CHECKING:
    from ...sim import Exploration


@frozen
class Limits:
    """Where a search ends: after so many states, or so long."""

    states: int
    seconds: float


@frozen
class ProgressModels:
    """The progress models to decide, and the one for the invocations of each workgroup."""

    names: tuple[str, ...]
    within: str

    @classmethod
    def parse(cls, names: str, within: str) -> ProgressModels:
        """Read names separated by commas; `all` is every model."""
        from ...sim.explore.progress import MODELS

        given = tuple(MODELS) if names == "all" else tuple(filter(None, names.split(",")))
        for option, values in (("--progress", given), ("--within", (within,))):
            for value in values:
                if value not in MODELS:
                    raise UsageError(f"{option} cannot be {value!r}; the progress models are {', '.join(MODELS)}")
        return cls(given, within)


@frozen
class Explored:
    """The outcomes of one case."""

    case: Case
    device: str
    exploration: Exploration

    @property
    def ok(self) -> bool:
        """Whether nothing was found that counts against the kernel."""
        return self.outcome is not CaseOutcome.FAILED

    @property
    def outcome(self) -> CaseOutcome:
        """Unchecked at best, as outputs are compared with nothing."""
        allow = self.case.kernel.allow
        found = any(finding.code not in allow for finding in self.exploration.findings)
        return CaseOutcome.FAILED if found else CaseOutcome.UNCHECKED

    @property
    def compared(self) -> Compared:
        return Compared(bare=is_bare(self.case))


def explored(
    case: Case,
    device: str,
    memory: str,
    progress: ProgressModels,
    limits: Limits,
    say: Say = silent,
    *,
    barriers: bool = False,
) -> Explored:
    """Call `bankshot.explore` on a case."""
    from ...sim.explore.exploration import explore  # few commands need it

    say(f"exploring with {memory} memory")
    module = check_module(case.kernel)
    fit(case, module)
    launch = case.launch
    exploration = explore(
        module,
        grid=launch["grid"],
        bindings=launch["bindings"],
        entry=launch["entry"],
        overrides=launch["overrides"],
        device=device,
        memory=memory,
        progress=progress.names,
        within=progress.within,
        barriers=barriers,
        states=limits.states,
        seconds=limits.seconds,
    )
    return Explored(case, find(device).name, exploration)
