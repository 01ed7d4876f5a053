"""Whether the simulator and an adapter agree on a program, and where not, whether they may.

Bits may differ only where the run's derived bounds allow it (`run.bounds`); where those are infinite nothing is known,
as after an overflow or a branch that depends on a rounding. Anything else is a disagreement that a person has to answer
for: one of `known.KNOWN`, or us.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bankshot
from bankshot.oracle.guesses.invented_inputs import HALF, PADDING, SINGLE

from .contents import Buffer, buffers
from .opinions import Answer, Opinion, Question
from .programs import Program

BUDGET = 1 << 18  # backward jumps: the programs end long before
_EXPECTED = frozenset(("out-of-bounds", "nan", "infinity", "idle"))  # findings that a program may have

AGREED = ("equal", "within", "open", "lacking")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`word`: equal; within the bounds; open, as some that differ have no bound; lacking, as the adapter has not
    what the program enables; or what is not agreed: differs, counters, refused, lost, died, hung (the adapter);
    rejected, crashed, finding (the simulator)."""

    word: str
    why: str = ""

    @property
    def agreed(self) -> bool:
        return self.word in AGREED


class Judge:
    """Asks one adapter for its opinion of programs."""

    def __init__(self, opinion: Opinion) -> None:
        self.opinion = opinion

    def judge(self, program: Program, count: bool = False) -> Verdict:
        """`count`: hold the counters against the adapter's own, too."""
        try:
            module = bankshot.check(program.text)
            pipeline = module.pipeline("main", {**program.overrides})
        except bankshot.WgslError as error:
            return Verdict("rejected", error.diagnostics[0].render())
        given = buffers(program, pipeline)
        data = {name: buffer.data for name, buffer in given.items()}
        self.opinion.ask(Question(program, data, count))
        try:
            run = self._simulated(module, program, data)
        except bankshot.WgslError as error:
            run = Verdict("rejected", error.diagnostics[0].render())
        except Exception as error:  # whatever it is, it is ours
            run = Verdict("crashed", f"{type(error).__name__}: {error}")
        answer = self.opinion.answer()
        if isinstance(run, Verdict):
            return run
        poisoned = [f for f in run.findings if f.code not in _EXPECTED]
        if poisoned:
            return Verdict("finding", poisoned[0].render())
        if answer.word != "ran":
            return Verdict(answer.word, answer.why)
        verdict = compare(run, answer, given)
        outside = next((f for f in run.findings if f.code == "out-of-bounds"), None)
        if verdict.word == "differs" and outside is not None:
            return Verdict("open", outside.render())  # WGSL accesses an unspecified element
        return verdict

    def _simulated(self, module: Any, program: Program, data: Mapping[str, NDArray[np.uint8]]) -> Any:
        return bankshot.simulate(
            module,
            grid=program.grid,
            bindings=data,
            entry="main",
            overrides={**program.overrides},
            device=self.opinion.profile,
            probes=("lanes", "bounds", "races", "uninit"),
            replay=False,
            budget=BUDGET,
        )


def compare(run: Any, answer: Answer, given: Mapping[str, Buffer]) -> Verdict:
    """A run of the simulator against what an adapter left, also while it counted. Counters are unknown where a
    rounding decides a branch."""
    verdict = _held(run, {name: answer.outputs[name] for name in run.outputs}, given)
    if not verdict.agreed:
        return verdict
    probed = _held(run, answer.probed, given)
    wrong = answer.counters if probed.agreed else (f"the probes change {probed.why}", *answer.counters)
    if wrong and probed.agreed and run.bounds.findings:
        return Verdict("open", run.bounds.findings[0].render())
    return Verdict("counters", "; ".join(wrong[:4])) if wrong else verdict


def _held(run: Any, outputs: Mapping[str, NDArray[np.uint8]], given: Mapping[str, Buffer]) -> Verdict:
    """A run against outputs. The bounds are derived only where bits differ."""
    word = "equal"
    for name, theirs in outputs.items():
        ours, codes = run.outputs[name], given[name].codes
        differ = _differing(codes, ours, theirs)
        if differ.any():
            known, beyond = _beyond(run, name, codes, ours, theirs, differ)
            if beyond.any():
                return Verdict("differs", _words(name, ours, theirs, beyond))
            word = "open" if word == "open" or not known else "within"
    return Verdict(word)


def _floats(codes: NDArray[np.uint8], code: int, data: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The values of one kind of float, for each half word; 0 of what is none."""
    values = np.zeros(len(codes))
    halves, chosen = data.view(np.uint16), codes == code
    if code == HALF:
        values[chosen] = halves[chosen].view(np.float16)
    else:
        values[chosen] = np.repeat(halves[chosen].view(np.float32), 2)
    return values


def _differing(codes: NDArray[np.uint8], ours: NDArray[np.uint8], theirs: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Half words that differ and mean something. Zeros of either sign are equal, any two NaNs are."""
    differ = (ours.view(np.uint16) != theirs.view(np.uint16)) & (codes != PADDING)
    for code in (SINGLE, HALF):
        one, other = (_floats(codes, code, data) for data in (ours, theirs))
        alike = (one == other) | (np.isnan(one) & np.isnan(other))
        differ &= ~(alike & (codes == code))
    return differ


def _beyond(
    run: Any,
    name: str,
    codes: NDArray[np.uint8],
    ours: NDArray[np.uint8],
    theirs: NDArray[np.uint8],
    differ: NDArray[np.bool_],
) -> tuple[bool, NDArray[np.bool_]]:
    """Whether all elements that differ have bounds, and which are beyond them."""
    bound = np.repeat(np.asarray(run.bounds[name]), 2)
    away = np.zeros(len(codes))
    for code in (SINGLE, HALF):
        one, other = (_floats(codes, code, data) for data in (ours, theirs))
        with np.errstate(invalid="ignore", over="ignore"):
            away = np.where(codes == code, np.abs(one - other), away)
    floats = (codes == SINGLE) | (codes == HALF)
    away = np.where(floats, np.where(np.isnan(away), np.inf, away), np.inf)
    beyond = differ & np.isfinite(bound) & ~(away <= bound)
    return bool(np.isfinite(bound[differ]).all()), beyond


def _words(name: str, ours: NDArray[np.uint8], theirs: NDArray[np.uint8], beyond: NDArray[np.bool_]) -> str:
    at = int(np.flatnonzero(beyond)[0]) // 2
    one, other = (data.view(np.uint32)[at : at + 1] for data in (ours, theirs))
    return (
        f"{name}, byte {4 * at}: {one[0]:#010x} here, {other[0]:#010x} there; "
        f"as f32 {one.view(np.float32)[0]:.9g}, {other.view(np.float32)[0]:.9g}; {int(beyond.sum())} half words in all"
    )
