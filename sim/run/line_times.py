"""The predicted time of a run by line of the source.

The model predicts the time of each unit for a whole dispatch. Each unit's time is divided among the lines by what they
ask of it: instructions by what issuing their class costs, wavefronts, cache lines, sectors, turns of atomic operations;
the chain of dependent steps by kind, among the lines that execute that kind. What no line asks for, such as the launch
and the start of workgroups, belongs to none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from ..fast_dataclass import sealed
from ..models.costs import MeasuredCosts
from ..models.time_model import SOFTWARE, SPECIAL, completed, model_of
from ..performance.instruction_costs import STEPS
from .site import Site
from .software_line_times import SOFTWARE_WEIGHTS

if TYPE_CHECKING:
    from .result import Run

Line = tuple[str, int]  # file and 1-based line
_Weights = dict[Line, float]
NO_LINE = ("launch", "workgroup start", "arrays of function space")  # units that no line asks for anything


@sealed
class LineTime:
    """The part of the predicted time that a line takes. `parts`: microseconds by unit, which add up to `us`; `share`:
    of the whole predicted time. `code`: the text of the line."""

    file: str
    line: int
    code: str
    us: float
    share: float
    parts: Mapping[str, float] = field(hash=False)

    @property
    def limiter(self) -> str:
        """The unit that takes most of the line's time."""
        return max(self.parts, key=lambda unit: self.parts[unit])


def line_times(run: Run) -> list[LineTime]:
    """Return the time of each line that takes some, the longest first. Raises `MissingCost` as a prediction does."""
    prediction = run.predicted_time
    assert run.device.costs is not None  # there is a prediction
    costs = completed(run.device.costs)
    found: dict[Line, dict[str, float]] = defaultdict(dict)
    charged = SOFTWARE_WEIGHTS if model_of(costs.costs) is SOFTWARE else _WEIGHTS
    for unit, us in prediction.parts.items():
        weights = charged[unit](run, costs) if unit in charged else {}
        whole = sum(weights.values())
        for line, weight in weights.items():
            if weight > 0:
                found[line][unit] = us * weight / whole
    spans = [row.span for row in (*run.instructions, *run.sites)]
    texts = {(span.place.file, span.line): span.line_text.strip() for span in spans}
    rows = [
        LineTime(
            *line,
            code=texts.get(line, ""),
            us=sum(parts.values()),
            share=sum(parts.values()) / prediction.us,
            parts=parts,
        )
        for line, parts in found.items()
    ]
    return sorted(rows, key=lambda row: (-row.us, row.file, row.line))


def _by_line(sites: Iterable[Site], weight: Callable[[Site], float]) -> _Weights:
    found: _Weights = defaultdict(float)
    for site in sites:
        found[site.span.place.file, site.line] += weight(site)
    return found


# ---- instructions ------------------------------------------------------------------------------------

# The classes of instructions as written, as those that the model charges.
_ISSUED_AS = {"control": "branch", "texture_load": "storage_load", "texture_store": "storage_store"}
# The kinds of steps of a chain that a class of instructions takes.
_STEP_OF = {
    **dict.fromkeys(("fp32", "fp16", "integer"), "alu"),
    "special": "special",
    "conversion": "conversion",
    "workgroup_load": "workgroup_load",
    **dict.fromkeys(("storage_load", "texture_load"), "storage_load"),
    "uniform_load": "uniform_load",
    "barrier": "barrier",
    "subgroup": "subgroup",
    "control": "loop",
}

# Steps that the lines of another step take.
_TAKEN_BY = {
    **dict.fromkeys(("next_load", "storage_wavefront"), "storage_load"),
    **dict.fromkeys(("branch", "jump"), "loop"),
    "wavefront": "workgroup_load",
    "comparison": "alu",
}


def _issued(run: Run, costs: MeasuredCosts) -> _Weights:
    return _instructions(run, costs, lambda executions: executions)


def _fetched(run: Run, costs: MeasuredCosts) -> _Weights:
    """Charge for each instruction once."""
    return _instructions(run, costs, lambda executions: min(1, executions))


def _instructions(run: Run, costs: MeasuredCosts, times: Callable[[int], int]) -> _Weights:
    """Charge for issuing instructions. `times`: how often, by executions."""
    known = {name.removeprefix("issue_"): cost.value for name, cost in costs.costs.items() if name.startswith("issue_")}
    found: _Weights = defaultdict(float)
    for row in run.instructions:
        kind = "fp32" if row.kind in SPECIAL else _ISSUED_AS.get(row.kind, row.kind)
        found[row.span.place.file, row.line] += times(row.executions) * known.get(kind, known["integer"])
    return found


def _special(run: Run, costs: MeasuredCosts) -> _Weights:
    found: _Weights = defaultdict(float)
    for row in run.instructions:
        if row.kind in SPECIAL:
            found[row.span.place.file, row.line] += row.executions * costs.value(f"issue_{row.kind}")
    return found


def _latency(run: Run, costs: MeasuredCosts) -> _Weights:
    """Divide the steps of the chain, kind by kind, among the lines that execute such steps; the others among all."""
    by_step: dict[str, _Weights] = defaultdict(lambda: defaultdict(float))
    for row in run.instructions:
        by_step[_STEP_OF.get(row.kind, "issue")][row.span.place.file, row.line] += row.executions
    for site in run.sites:
        if site.kind == "atomic":
            by_step[f"{site.space}_atomic"][site.span.place.file, site.line] += site.executions
    everything: _Weights = defaultdict(float)
    for weights in by_step.values():
        for line, weight in weights.items():
            everything[line] += weight
    found: _Weights = defaultdict(float)
    for step, steps in run.work.chain.items():
        weights = by_step.get(_TAKEN_BY.get(step, step)) or everything
        whole = sum(weights.values())
        cycles = steps * (costs.costs[f"latency_{step}"].value if f"latency_{step}" in costs.costs else STEPS[step])
        if step == "storage_load":
            cycles += steps * run.work.delayed * costs.value("latency_l2")
        for line, weight in weights.items():
            found[line] += cycles * weight / whole
    return found


# ---- memory ------------------------------------------------------------------------------------------


def _wavefronts(run: Run, costs: MeasuredCosts) -> _Weights:
    wavefront, turn = costs.value("wavefront"), costs.value("workgroup_atomic_turn")
    return _by_line(
        (site for site in run.sites if site.space == "workgroup"),
        lambda site: site.atomic_turns * turn if site.kind == "atomic" else site.shared_wavefronts * wavefront,
    )


def _lines(run: Run, costs: MeasuredCosts) -> _Weights:
    each = {"load": costs.value("load_wavefront"), "store": costs.value("store_line")}
    return _by_line(_accesses(run), lambda site: site.global_lines * each[site.kind])


def _sectors(run: Run, costs: MeasuredCosts) -> _Weights:
    return _by_line(_accesses(run), lambda site: site.global_sectors * costs.value(f"l2_{site.kind}_sector"))


def _bytes(run: Run, costs: MeasuredCosts) -> _Weights:
    return _by_line(_accesses(run), lambda site: site.global_ideal_sectors)


def _atomics(run: Run, costs: MeasuredCosts) -> _Weights:
    passes, turn = costs.value("atomic_sector"), costs.value("atomic_turn")
    return _by_line(
        (site for site in run.sites if site.kind == "atomic" and site.space == "storage"),
        lambda site: site.global_sectors * passes + site.atomic_turns * turn,
    )


def _accesses(run: Run) -> list[Site]:
    return [site for site in run.sites if site.space == "storage" and site.kind in ("load", "store")]


_WEIGHTS: dict[str, Callable[[Run, MeasuredCosts], _Weights]] = {
    "issue": _issued,
    "instruction fetch": _fetched,
    "special functions": _special,
    "workgroup memory": _wavefronts,
    "cache lines": _lines,
    "L2 cache": _sectors,
    "device memory": _bytes,
    "latency": _latency,
    "atomics": _atomics,
}
