"""A model of time: what a dispatch asks of each unit of a device, times what the unit charges.

The units work at the same time, so a dispatch takes about as long as its busiest unit, and somewhat longer where
several are nearly as busy: the total is the p-norm of their times. Subgroups that barriers hold together do the same at
the same time, so units overlap less where a core has few workgroups with barriers. The pipelines of a core overlap
better than other units, and so do the levels of memory. Workgroups that begin together are in the same phase of the
program, so phases take turns: for all of the time where a workgroup is alone on its core, and for less of it the more
workgroups run side by side and one after the other. The workgroup that takes the longest may begin last and run on
alone, for all of its time at most (Graham, "Bounds on multiprocessing timing anomalies", 1969). Costs are in cycles of
a core unless the table says otherwise. They are fitted to measured times, see docs/time-model.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..fast_dataclass import frozen, sealed
from . import software_time_model
from .costs import Cost, MeasuredCosts
from .device import Device
from .roofline import Level
from .work import Work

_OVERLAP = 2.8  # the p of the norm that adds the times of units, if a core has many groups of subgroups
_ONE_GROUP = 0.9  # less with a single one
_BARRIERS = 8.0  # of a workgroup that hold its subgroups together
# Units that overlap better than others, and the p of the norm of their times.
_SIDE_BY_SIDE, _SIDE_BY_SIDE_P = (("issue", "special functions"), ("cache lines", "L2 cache", "device memory")), 6
_IN_STEP = 0.3  # of the time that phases take in turn: of workgroups that all begin at once
_ALONE = 0.5  # of the time that the longest workgroup takes: how long it runs on after the others
_AROUND_L2 = 11  # how steep the step is at the size of the L2 cache, as chains of loads through buffers show it
_OF_ONE_CORE = 0.5  # of the cycles that a sector takes a core if all ask the L2 cache for some: those if only it does
WORTH = 0.005  # of the time: less is no saving

# What each cost charges for, and the value that a fit begins with: what the documents and microbenchmarks of NVIDIA's
# GPUs since Volta give (Jia et al., 2018; Abdelkhalik et al., 2022), or a guess where they give nothing.
COSTS: Mapping[str, tuple[str, float]] = {
    "clock_mhz": ("cycles of a core in a microsecond", 1980.0),
    "l2_bytes": ("bytes that stay in the L2 cache from one dispatch to the next", 41e6),
    "cache_bytes": ("bytes of storage that the cache of a core holds", 196608.0),
    "error_90": ("the ratio of predicted and measured time that 90% of dispatches stay within", 2.0),
    "launch_us": ("microseconds of a dispatch that does nothing", 1.0),
    "workgroup_start": ("starting a workgroup", 100.0),
    "subgroup_start": ("starting a subgroup, if those of a workgroup take longer than it", 10.0),
    "fetch": ("fetching an instruction that a core executes for the first time, against issuing it", 20.0),
    "issue_fp32": ("issuing an instruction of a subgroup, by class", 0.25),
    "issue_fp32_divide": ("the reciprocal of a division", 2.0),
    "issue_fp16": ("", 0.25),
    "issue_comparison": ("comparisons, selections, minima and maxima, shifts", 0.5),
    "issue_integer": ("", 0.5),
    "issue_integer_multiply": ("", 0.5),
    "issue_integer_divide": ("", 5.0),
    "issue_signed_divide": ("", 8.0),
    "issue_special": ("", 2.0),
    "issue_conversion": ("", 0.5),
    "issue_bit_count": ("bit counts, conversions to integers, and rounding", 2.0),
    "issue_branch": ("", 0.5),
    "issue_loop": ("an iteration of a loop, with the check that bounds it", 1.5),
    "issue_loop_start": ("beginning a loop", 4.0),
    "issue_workgroup_load": ("", 0.5),
    "issue_workgroup_store": ("", 0.5),
    "issue_storage_load": ("", 1.0),
    "issue_storage_store": ("", 1.0),
    "issue_uniform_load": ("", 0.5),
    "issue_constant_table": (
        "a value of a table of constants that a subgroup loads, at an index known at run time",
        1.6,
    ),
    "issue_selection": (
        "selecting an element of an array of function space in registers, or not; to compare its index counts as two",
        0.25,
    ),
    "issue_local": ("a load of an array of function space, at an index that all lanes share, known at run time", 1.0),
    "issue_local_store": ("a store to the same", 1.0),
    "issue_local_fill": ("a store of an element that it begins with, or of a copy", 1.0),
    "issue_local_scattered": ("a load of the same, where lanes may have different indices", 16.0),
    "issue_local_scattered_store": ("a store of such lanes", 32.0),
    "issue_barrier": ("", 2.0),
    "issue_subgroup": ("", 2.0),
    "issue_workgroup_atomic": ("", 1.0),
    "issue_workgroup_atomic_sum": ("one whose result nothing needs, by values that differ between lanes", 2.0),
    "issue_storage_atomic": ("", 1.0),
    "wavefront": ("a wavefront of workgroup memory", 1.0),
    "load_wavefront": ("a wavefront of a load from storage in the cache of a core", 1.0),
    "store_line": ("a line of a store to storage", 1.0),
    "workgroup_atomic_turn": ("a lane that waits for its turn", 1.0),
    "l2_load_sector": ("a sector that the L2 cache delivers", 0.9),
    "l2_load_line": ("a line of which the L2 cache delivers some sectors, at least", 1.6),
    "page_turn": ("a sector on another page than the one before, in a buffer of many pages", 4.0),
    "l2_store_sector": ("a sector that goes to the L2 cache", 0.9),
    "l2_store_line": ("a line of which sectors go to the L2 cache", 1.0),
    "l2_local_line": ("a line of a store to an array of function space, or four sectors of one", 8.0),
    "last_store": ("waiting for the last stores of a dispatch", 300.0),
    "dram_byte": ("a byte that does not stay in the L2 cache, times all cores", 0.058),
    "atomic_sector": ("a sector that an atomic operation in storage passes, times all cores", 7.0),
    "atomic_turn": ("an atomic operation that waits for another on its line", 2.0),
    "atomic_word_turn": ("an atomic operation that waits for another on its word", 2.0),
    "latency_alu": ("waiting for a result, by the step that computes it", 4.5),
    "latency_comparison": ("waiting for a condition", 9.0),
    "latency_branch": ("beginning a side of a branch", 20.0),
    "latency_jump": ("going on after a jump that may have been taken", 16.0),
    "latency_special": ("", 20.0),
    "latency_conversion": ("", 10.0),
    "latency_workgroup_load": ("", 28.0),
    "latency_storage_load": ("of a line in the core's cache", 40.0),
    "latency_next_load": ("between the beginnings of two loads from storage", 10.0),
    "latency_l2": ("more for a line in the L2 cache", 230.0),
    "latency_dram": ("more for a line in memory", 350.0),
    "latency_uniform_load": ("", 30.0),
    "latency_local": ("", 40.0),
    "latency_local_fill": ("a store to a copy that an access waits for", 7.0),
    "latency_local_scattered": ("", 100.0),
    "latency_workgroup_atomic": ("", 80.0),
    "latency_workgroup_exchange": ("an exchange or a compare-exchange", 35.0),
    "latency_storage_atomic": ("", 580.0),
    "latency_storage_atomic_load": ("", 330.0),
    "latency_barrier": ("", 25.0),
    "latency_storage_barrier": ("more for one that orders storage", 270.0),
    "latency_stores_before_barrier": ("more if it waits for stores", 320.0),
    "latency_subgroup": ("", 25.0),
    "latency_wavefront": ("each wavefront of a load after the first", 1.0),
    "latency_storage_wavefront": ("likewise from storage", 1.0),
    "latency_issue": ("", 1.0),
    "latency_loop": ("the end of an iteration", 24.0),
}


_BEGIN = {
    name: Cost(value, None, "not published: the value that a fit begins with") for name, (_, value) in COSTS.items()
}


def completed(costs: MeasuredCosts) -> MeasuredCosts:
    """Return published costs with those that a fit begins with for what was not published.

    Costs that were measured stay as they are, because a time that they claim cannot rest on a guess.
    """
    published = bool(costs.costs) and not costs.calibrated
    return replace(costs, costs={**_BEGIN, **costs.costs}) if published else costs


# They take a unit of their own, besides the slot in which they issue.
SPECIAL = ("special", "fp32_divide", "conversion", "bit_count")
# These run at half the rate at which they issue, beside the others.
_HALF_RATE = "comparison"
# The cost of each class of instructions, of what such pipelines take in the slot, and of each step of a chain.
_ISSUE, _STEP = (
    {name.removeprefix(prefix): name for name in COSTS if name.startswith(prefix)} for prefix in ("issue_", "latency_")
)
_SLOT = _ISSUE | dict.fromkeys((*SPECIAL, _HALF_RATE), "issue_fp32")


@sealed
class Prediction:
    """A predicted time in microseconds, with the bounds that hold it for 90% of the dispatches that were measured.

    `parts`: the time by unit, which add up to `us`. `calibrated`: the costs were measured on this device; otherwise the
    times rank kernels, but claim nothing.
    """

    us: float
    low: float
    high: float
    parts: Mapping[str, float] = field(hash=False)
    calibrated: bool
    _work: Work = field(repr=False, compare=False)
    _device: Device = field(repr=False, compare=False)

    @property
    def limiter(self) -> str:
        """The unit that takes most of the time."""
        return max(self.parts, key=lambda unit: self.parts[unit])

    @cached_property
    def savings(self) -> Mapping[str, float]:
        """The microseconds that changes would save, by the name of each; without those that save next to nothing."""
        changed = {name: change(self._work) for name, change in CHANGES.items()}
        saved = {name: self.us - predict(each, self._device).us for name, each in changed.items()}
        return {name: each for name, each in saved.items() if each > WORTH * self.us}


CHANGES = {"no bank conflicts": Work.without_conflicts, "coalesced accesses": Work.coalesced}


def predict(work: Work, device: Device) -> Prediction:
    """Predict the time of a dispatch. Raises `MissingCost` for a device whose costs are not known, ValueError for one
    without a number of cores. See `completed` for a device of which some costs were published."""
    values, cores = _costs(device)
    found, by_unit = model_of(values).predicted_us(work, values, cores)
    us, error = float(found), values["error_90"]
    parts = {name: float(part) for name, part in by_unit.items() if part > 0}
    return Prediction(us, us / error, us * error, parts, device.calibrated, work, device)


def memory_levels(work: Work, device: Device) -> list[Level]:
    """Return the levels of memory, and how long each takes for what a dispatch asks of it; none for software adapters.

    Raises as `predict` does.
    """
    values, cores = _costs(device)
    if model_of(values) is SOFTWARE:
        return []
    share = _share(work, cores)
    cycles = {
        "L1 cache": _cache_lines(work, values, share),
        "L2 cache": _l2(work, values, cores, share),
        "device memory": _dram(work, values, cores),
    }
    moved = {
        "L1 cache": (work.load_lines + work.store_lines) * device.line_bytes,
        "L2 cache": (work.load_sectors + work.store_sectors) * device.sector_bytes,
        "device memory": _dram_bytes(work, values),
    }
    return [Level(name, moved[name], its / values["clock_mhz"]) for name, its in cycles.items()]


def _costs(device: Device) -> tuple[Mapping[str, float], int]:
    """Return the costs of a device and its cores."""
    if device.cores is None:
        raise ValueError(f"device {device.name} has no number of cores, so no time can be predicted")
    return _values(device.costs or _NO_COSTS), device.cores


def _values(costs: MeasuredCosts) -> Mapping[str, float]:
    """Return the values of all costs; the last ones are kept."""
    known, values = next(iter(_last), (None, dict[str, float]()))
    if known is not costs:
        each = completed(costs)
        values = {name: each.value(name) for name in model_of(each.costs).costs}
        _last[:] = [(costs, values)]
    return values


_NO_COSTS = MeasuredCosts({})
_last: list[tuple[MeasuredCosts, dict[str, float]]] = []
_Figures = np.ndarray  # of many dispatches


def _larger(one: Any, other: Any) -> Any:
    """Return the larger number, or the larger ones of arrays: for numbers, NumPy takes ten times as long."""
    if type(one) is _Figures or type(other) is _Figures:
        return np.maximum(one, other)
    return other if other > one else one


def predicted_us(work: Work, costs: Mapping[str, float], cores: int) -> tuple[float, dict[str, float]]:
    """Return the time of a dispatch in microseconds, and its parts by unit.

    Works on many dispatches at once, too: on a work whose figures are arrays.
    """
    chains = _, longest = _chains(work, costs)
    phases = [_cycles(each, _chains(each, costs), costs, cores) for each in work.phases]
    phases = phases or [_cycles(work, chains, costs, cores)]
    for later in phases[1:]:
        later["workgroup start"] = 0.0
    p = _overlap(work, cores)
    cycles = {name: sum([each[name] for each in phases]) for name in phases[0]}
    units = _shares(cycles, p)
    if len(phases) > 1:
        in_turn, own = _in_turn(work, cores), [_shares(each, p) for each in phases]
        units = {name: (1 - in_turn) * units[name] + in_turn * sum([each[name] for each in own]) for name in cycles}
    norm = _larger(1e-9, sum(units.values()))
    alone = _ALONE * longest * _larger(0.0, 1 - cycles["latency"] / norm)  # as far as it was not waited for
    alone += costs["last_store"] * -_larger(-1.0, -work.store_lines)
    busy = 1 + alone / norm
    parts = {name: busy * each / costs["clock_mhz"] for name, each in units.items()}
    return sum(parts.values()) + costs["launch_us"], {**parts, "launch": costs["launch_us"]}


def _shares(cycles: Mapping[str, float], p: float) -> dict[str, float]:
    """Return the cycles that units take side by side, divided among them: their sum is the p-norm."""
    powers = {name: each**p for name, each in cycles.items()}
    for names in _SIDE_BY_SIDE:
        busiest = _larger(1e-9, _side_by_side([cycles[name] for name in names]))
        power = busiest**p
        powers |= {name: power * (cycles[name] / busiest) ** _SIDE_BY_SIDE_P for name in names}
    to_norm = _larger(1e-30, sum(powers.values())) ** (1 / p - 1)
    return {name: each * to_norm for name, each in powers.items()}


def _side_by_side(cycles: Sequence[float]) -> float:
    """The cycles that units take which hardly wait for each other."""
    return sum([each**_SIDE_BY_SIDE_P for each in cycles]) ** (1 / _SIDE_BY_SIDE_P)


# ---- the units, in cycles of the busiest core --------------------------------------------------------


def _rounds(work: Work, cores: int) -> float:
    """The workgroups of the busiest core."""
    return -(-work.workgroups // cores)


def _resident(work: Work, cores: int) -> float:
    """The workgroups that the busiest core runs side by side."""
    return -_larger(-_rounds(work, cores), -work.resident)


def _overlap(work: Work, cores: int) -> float:
    """The p of the norm that adds the times of units."""
    together = -_larger(-1.0, -work.chain.get("barrier", 0.0) / _BARRIERS)
    groups = _resident(work, cores) * work.subgroups ** (1 - together)
    return _OVERLAP - _ONE_GROUP / _larger(1, groups)


def _in_turn(work: Work, cores: int) -> float:
    """The share of the time that phases take one after the other: 1 for a workgroup that is alone on its core."""
    alone, waves = 1 / _larger(_resident(work, cores), 1), _larger(1.0, _rounds(work, cores) / work.resident)
    return alone + (1 - alone) * _IN_STEP / waves


def _even_share(work: Work, cores: int) -> float:
    """The share of all work that the busiest core does if all workgroups execute the same."""
    return _rounds(work, cores) / _larger(1, work.workgroups)


def _share(work: Work, cores: int) -> float:
    """The share of all work that the busiest core does."""
    return work.unevenness * _even_share(work, cores)


def _issue(work: Work, costs: Mapping[str, float], share: float) -> float:
    slots = sum([costs[_SLOT[kind]] * count for kind, count in work.issued.items()])
    half_rate = costs[_ISSUE[_HALF_RATE]] * work.issued.get(_HALF_RATE, 0.0)
    return share * _side_by_side((slots, half_rate))


def _fetch(work: Work, costs: Mapping[str, float]) -> float:
    return costs["fetch"] * sum([costs[_SLOT[kind]] * count for kind, count in work.code.items()])


def _special(work: Work, costs: Mapping[str, float], share: float) -> float:
    return share * sum([costs[_ISSUE[kind]] * work.issued.get(kind, 0.0) for kind in SPECIAL])


def _workgroup_memory(work: Work, costs: Mapping[str, float], share: float) -> float:
    turns = work.workgroup_atomic_turns * costs["workgroup_atomic_turn"]
    return share * (work.wavefronts * costs["wavefront"] + turns)


def _cache_lines(work: Work, costs: Mapping[str, float], share: float) -> float:
    loads, stores = work.load_wavefronts * costs["load_wavefront"], work.store_lines * costs["store_line"]
    return share * (loads + stores)


def _l2(work: Work, costs: Mapping[str, float], cores: int, share: float) -> float:
    stores = work.store_sectors * costs["l2_store_sector"] + work.stored_lines * costs["l2_store_line"]
    loads = _larger(work.load_sectors * costs["l2_load_sector"], work.missed_lines * costs["l2_load_line"])
    loads += work.missed_local_sectors * costs["l2_load_sector"] + work.page_turns * costs["page_turn"]
    local = work.local_lines * costs["l2_local_line"]
    together = -_larger(-_even_share(work, cores), -1 / (_OF_ONE_CORE * cores))  # others take over from idle cores
    return _larger(together, _OF_ONE_CORE * share) * (loads + stores) + local / cores


def _beyond_l2(bytes: float, costs: Mapping[str, float]) -> float:
    """The share of what was accessed these bytes ago that the L2 cache has lost: a smooth step around its size."""
    return 1 / (1 + ((bytes + 1.0) / costs["l2_bytes"]) ** -_AROUND_L2)


def _dram_bytes(work: Work, costs: Mapping[str, float]) -> float:
    first = work.moved * _beyond_l2(work.footprint, costs)
    return first + work.moved_again * _beyond_l2(work.reach, costs)


def _dram(work: Work, costs: Mapping[str, float], cores: int) -> float:
    return _dram_bytes(work, costs) * costs["dram_byte"] / cores


def _chains(work: Work, costs: Mapping[str, float]) -> tuple[float, float]:
    """Return the cycles that the chain of a workgroup takes on average, and that of the longest one.

    A barrier also waits until all subgroups have issued theirs.
    """
    lost = (1 - work.reloaded) * _beyond_l2(work.footprint, costs)  # what a workgroup loads again is near
    missed = work.delayed * (costs["latency_l2"] + costs["latency_dram"] * lost)
    others = (work.subgroups - 1) * costs["issue_barrier"]
    mean, longest = (
        sum([costs[_STEP[step]] * count for step, count in steps.items()])
        + steps.get("storage_load", 0.0) * missed
        + steps.get("barrier", 0.0) * others
        for steps in (work.chain, work.longest)
    )
    return mean, _larger(mean, longest)


def _latency(work: Work, chains: tuple[float, float], costs: Mapping[str, float], cores: int, share: float) -> float:
    """Chains of the workgroups that a core runs one after the other, beside which its stores to arrays go to the L2
    cache."""
    mean, longest = chains
    waiting = _larger(longest, mean * _larger(1.0, _rounds(work, cores) / work.resident))
    stored = _OF_ONE_CORE * share * work.local_lines * costs["l2_local_line"]
    return _side_by_side((waiting, stored))


def _atomics(work: Work, costs: Mapping[str, float], cores: int) -> float:
    turns = (work.atomic_turns - work.atomic_word_turns) * costs["atomic_turn"]
    turns += work.atomic_word_turns * costs["atomic_word_turn"]
    return work.atomic_sectors * costs["atomic_sector"] / cores + turns


def _start(work: Work, costs: Mapping[str, float], cores: int) -> float:
    each = _larger(costs["workgroup_start"], work.subgroups * costs["subgroup_start"])
    return work.workgroups * each / cores


def _cycles(work: Work, chains: tuple[float, float], costs: Mapping[str, float], cores: int) -> dict[str, float]:
    """Return the cycles of each unit. `chains`: those of the work."""
    share = _share(work, cores)
    return {
        "issue": _issue(work, costs, share),
        "instruction fetch": _fetch(work, costs),
        "special functions": _special(work, costs, share),
        "workgroup memory": _workgroup_memory(work, costs, share),
        "cache lines": _cache_lines(work, costs, share),
        "L2 cache": _l2(work, costs, cores, share),
        "device memory": _dram(work, costs, cores),
        "latency": _latency(work, chains, costs, cores, share),
        "atomics": _atomics(work, costs, cores),
        "workgroup start": _start(work, costs, cores),
    }


@frozen
class TimeModel:
    """A table of costs, and the function that predicts by it. `unfitted`: costs that no fit changes; `assumed`: of
    these, those that nothing measures."""

    costs: Mapping[str, tuple[str, float]] = field(hash=False)
    predicted_us: Callable[[Work, Mapping[str, float], int], tuple[float, dict[str, float]]]
    unfitted: tuple[str, ...]
    assumed: tuple[str, ...] = ()

    @property
    def begin(self) -> dict[str, float]:
        """The values that a fit begins with."""
        return {name: value for name, (_, value) in self.costs.items()}


GPU = TimeModel(COSTS, predicted_us, ("cache_bytes", "error_90", "clock_mhz"), ("cache_bytes",))
SOFTWARE = TimeModel(software_time_model.COSTS, software_time_model.predicted_us, ("error_90",))


def model_of(costs: Mapping[str, object]) -> TimeModel:
    """Return the model that costs of these names are for."""
    return SOFTWARE if "subgroup_start_ns" in costs else GPU
