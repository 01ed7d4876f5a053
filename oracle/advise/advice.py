"""What a search for layouts returns: runs of layouts, the advice for each array, and the report of a case."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from ...sim.cures.patches import Patch
from ...sim.fast_dataclass import frozen
from ...sim.models.time_model import predict
from ..judge.coverage import CaseOutcome, Compared
from .array_layouts import Change
from .limits import Residency, Stride
from .swizzles import Swizzle

if TYPE_CHECKING:
    from ...sim.models import Device
    from ...sim.run.result import Run
    from ...sim.run.site import Site
    from ..manifests.manifest import Case


@frozen
class Trial:
    """The run of one layout, of the text with `change`. `pitch` is 0 where none is known.

    `sites` are the wavefronts of each access to the array, in the order of `Advice.sites`.
    `us`: the predicted time in microseconds, where a profile predicts one. `refused` says why the layout is not
    accepted; if it could not run at all, the figures are 0. `differs`: because the change alters what the kernel does,
    rather than that it takes too much memory.
    """

    pitch: int
    swizzle: Swizzle | None = None
    change: Change = field(default_factory=Change)
    words: int = 0  # 32-bit words of the array
    row: int = 0  # elements of the innermost arrays of an array of arrays, 0 for another array
    bytes: int = 0  # workgroup memory of all arrays
    wavefronts: int = 0
    excess: int = 0
    sites: tuple[int, ...] = ()
    same_sectors: bool = False
    same_outputs: bool = False
    us: float | None = None
    refused: str | None = None
    differs: bool = False


ALIKE = 1.01  # predicted times whose ratio is less are the same


def no_slower(us: float | None, least: float) -> bool:
    """Whether a predicted time is as short as the least, or unknown."""
    return us is None or us <= ALIKE * least


def how_slow(us: float, than: float) -> str:
    """By how much a predicted time is longer than another, in words."""
    return f"predicted to be {us / than - 1:.1%} slower at this size"


@frozen
class Advice:
    """The layouts of one array that vary one pitch, "" where none is known. `sites` are the accesses of the original
    text, which is the first of `trials`. `complete`: whether swizzles were chosen by the accesses of all workgroups,
    not of the first alone, and for every pitch where conflicts remain."""

    array: str
    pitch: str
    sites: tuple[Site, ...]
    trials: tuple[Trial, ...]
    complete: bool = True

    @property
    def written(self) -> Trial:
        return self.trials[0]

    @property
    def accepted(self) -> list[Trial]:
        """The layouts that keep what the text does, and fit into the memory."""
        return [trial for trial in self.trials if trial.refused is None]

    @property
    def best(self) -> Trial:
        """The cheapest accepted layout; among equals, the one that changes the text least."""
        return self._cheapest(self.accepted)

    @property
    def fewest(self) -> Trial:
        """The accepted layout with the fewest wavefronts; of equals, the one predicted to be fastest."""
        return min(self.accepted, key=lambda trial: (trial.wavefronts, trial.us or 0.0))

    @property
    def best_pad(self) -> Trial:
        """The cheapest accepted layout without a swizzle."""
        return self._cheapest([trial for trial in self.accepted if trial.swizzle is None])

    def _cheapest(self, trials: list[Trial]) -> Trial:
        """The trial with the shortest predicted time, where it is known; of those that take as long, and no longer than
        the text as written, the one with the least cost."""
        least = min((trial.us for trial in trials if trial.us is not None), default=0.0)
        known = self.written.us if self.written.refused is None else None
        most = ALIKE * least if known is None else min(ALIKE * least, max(known, least))
        return min((trial for trial in trials if trial.us is None or trial.us <= most), key=self._cost)

    def _cost(self, trial: Trial) -> tuple[int, bool, int]:
        """What the search minimizes among equally fast layouts: wavefronts, then memory that is added. Narrower rows
        come last: other data may need what this case leaves unused."""
        return trial.wavefronts, trial.pitch < self.written.pitch, max(0, trial.bytes - self.written.bytes)

    @property
    def ok(self) -> bool:
        """Whether no layout is better than the original."""
        return self.best is self.written

    @property
    def exact(self) -> bool:
        """Whether no layout in the space that is searched takes fewer wavefronts than the best, or is predicted to be
        faster."""
        return self.complete or not self.best.excess

    @property
    def slower(self) -> bool:
        """Whether a layout takes fewer wavefronts than the best, and is predicted to be slower."""
        return self.fewest.wavefronts < self.best.wavefronts

    @property
    def slowdown(self) -> str:
        """How much slower than the best the layout with the fewest wavefronts is predicted to be, "" if unknown."""
        us, best = self.fewest.us, self.best.us
        return how_slow(us, best) if us is not None and best else ""


@frozen
class Rewritten:
    """The run of a text with another change than a layout, which `words` describe. The wavefronts and their excess are
    those of all arrays. `us` and `refused` are as in `Trial`; `refused` also says that nothing is saved."""

    words: str
    change: Change
    wavefronts: int = 0
    excess: int = 0
    sectors: int = 0
    bytes: int = 0
    us: float | None = None
    refused: str | None = None


@frozen
class AdviceReport:
    """The advice for one case. `reasons` are sentences that say what was not tried, and why.

    `run`: of the text as written, with its lanes counted, too. `together`: the best layouts of several arrays at once.
    `fewest`: the layouts with the fewest wavefronts of all arrays at once, where the best take more.
    `rewrites`: other changes that were tried. `strides`: of the most scattered accesses to global memory. `residency`:
    of the text as written, and with the patch if there is one. `predicted_us`: the same for the predicted time in
    microseconds, if a profile predicts it: `timed_as`. `patch`: the change of the files, if one is better; `written`:
    the files that were changed.
    """

    case: Case
    run: Run
    device: str
    advice: tuple[Advice, ...]
    reasons: tuple[str, ...]
    together: Trial | None = None
    patch: Patch = field(default_factory=lambda: Patch({}))
    written: tuple[str, ...] = ()
    rewrites: tuple[Rewritten, ...] = ()
    strides: tuple[Stride, ...] = ()
    residency: tuple[Residency, ...] = ()
    predicted_us: tuple[float, ...] = ()
    timed_as: Device | None = None
    fewest: Trial | None = None

    @property
    def limiter(self) -> str:
        """The unit that takes most of the predicted time of the text as written, "" where no profile predicts it."""
        return predict(self.run.work, self.timed_as).limiter if self.timed_as and self.predicted_us else ""

    @property
    def slowdown(self) -> str:
        """How much slower than the best change `fewest` is predicted to be, "" if it is not slower or unknown."""
        if self.fewest is None or self.fewest.us is None or not self.predicted_us:
            return ""
        us, best = self.fewest.us, self.predicted_us[-1]
        return how_slow(us, best) if us > best else ""

    @property
    def ok(self) -> bool:
        return all(advice.ok for advice in self.advice) and all(each.refused for each in self.rewrites)

    @property
    def outcome(self) -> CaseOutcome:
        return CaseOutcome.CLEAN if self.ok else CaseOutcome.FAILED

    @property
    def compared(self) -> Compared:
        """Nothing: each layout is compared with the original text alone."""
        return Compared()
