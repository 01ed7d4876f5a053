"""A model of time for software adapters: a processor that runs subgroups as vectors, and workgroups in threads.

A core does one thing after the other, so the times of units add up; only instructions overlap with the waits for their
results. It executes both sides of each branch, and an access to memory word by word, lane by lane. Costs are in
nanoseconds of a core unless the table says otherwise. They are fitted to measured times, see docs/time-model.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .work import Work

_OVERLAP = 3.0  # the p of the norm of instructions and waits

# What each cost charges for, and the value that a fit begins with: guesses.
COSTS: Mapping[str, tuple[str, float]] = {
    "error_90": ("the ratio of predicted and measured time that 90% of dispatches stay within", 2.0),
    "launch_us": ("microseconds of a dispatch that does nothing", 5.0),
    "workgroup_start_ns": ("starting a workgroup", 5.0),
    "subgroup_start_ns": ("starting a subgroup", 5.0),
    "fp32_ns": ("an instruction of a subgroup, by class", 0.5),
    "fp32_divide_ns": ("", 5.0),
    "integer_ns": ("", 0.5),
    "comparison_ns": ("comparisons, selections, minima and maxima, shifts", 0.5),
    "integer_multiply_ns": ("", 5.0),
    "integer_divide_ns": ("", 5.0),
    "bit_count_ns": ("bit counts and conversions to integers", 5.0),
    "conversion_ns": ("", 5.0),
    "exp_ns": ("a function", 5.0),
    "log_ns": ("", 5.0),
    "sin_ns": ("", 5.0),
    "sqrt_ns": ("", 5.0),
    "branch_ns": ("the two sides of a branch, besides what they hold", 1.0),
    "loop_ns": ("an iteration of a loop", 3.0),
    "wait_ns": ("waiting for a result that the next instruction needs", 0.4),
    "wait_fp32_ns": ("more for a result of f32 or f16", 1.2),
    "subgroup_ns": ("an exchange between lanes", 5.0),
    "barrier_ns": ("", 5.0),
    "storage_load_ns": ("a word of an access by a subgroup, by kind", 5.0),
    "storage_store_ns": ("", 5.0),
    "uniform_load_ns": ("", 5.0),
    "workgroup_load_ns": ("", 5.0),
    "workgroup_store_ns": ("", 5.0),
    "local_ns": ("arrays of function space, at an index that is known at run time and the same in all lanes", 5.0),
    "local_scattered_ns": ("a load of the same, where lanes may have different indices", 5.0),
    "local_scattered_store_ns": ("a store to the same", 5.0),
    "storage_load_lane_ns": ("a word of one active lane, by kind of access", 5.0),
    "storage_store_lane_ns": ("", 5.0),
    "uniform_load_lane_ns": ("", 5.0),
    "workgroup_load_lane_ns": ("", 5.0),
    "workgroup_store_lane_ns": ("", 5.0),
    "missed_line_ns": ("a line of a load that the cache of a core does not hold", 1.0),
    "store_line_ns": ("a line of a store to storage", 1.0),
    "storage_atomic_ns": ("an atomic operation of a subgroup", 5.0),
    "workgroup_atomic_ns": ("", 5.0),
    "storage_atomic_lane_ns": ("an atomic operation of one active lane", 5.0),
    "workgroup_atomic_lane_ns": ("", 5.0),
    "shared_atomic_ns": ("more for one on a line that another workgroup changes at the same time", 5.0),
}

_INSTRUCTIONS = (
    *("fp32", "fp32_divide", "integer", "comparison", "integer_multiply", "integer_divide", "bit_count", "conversion"),
    *("exp", "log", "sin", "sqrt", "branch", "loop"),
)


def predicted_us(work: Work, costs: Mapping[str, float], cores: int) -> tuple[float, dict[str, float]]:
    """Return the time of a dispatch in microseconds, and its parts by unit.

    Works on many dispatches at once, too: on a work whose figures are arrays.
    """
    share = np.ceil(work.workgroups / cores) / np.maximum(1, work.workgroups)  # of the busiest core
    parts = {name: share * unit(work, costs) / 1000 for name, unit in UNITS.items()}
    return sum(parts.values(), costs["launch_us"]), {**parts, "launch": costs["launch_us"]}


# ---- the units, in nanoseconds of one core for all workgroups ---------------------------------------


def _executed(work: Work, costs: Mapping[str, float], kinds: tuple[str, ...]) -> float:
    return sum(costs[f"{kind}_ns"] * work.software.get(kind, 0.0) for kind in kinds)


def _accessed(work: Work, costs: Mapping[str, float], kinds: tuple[str, ...]) -> float:
    lanes = sum(costs[f"{kind}_lane_ns"] * work.lanes.get(kind, 0.0) for kind in kinds)
    return lanes + _executed(work, costs, kinds)


def _instructions(work: Work, costs: Mapping[str, float]) -> float:
    issued = _executed(work, costs, _INSTRUCTIONS) + costs["fp32_ns"] * work.software.get("fp16", 0.0)
    waits = (work.software_chain.get("alu", 0.0) + work.software_chain.get("comparison", 0.0)) * costs["wait_ns"]
    waits = waits + work.software_chain.get("fp32", 0.0) * costs["wait_fp32_ns"]
    return (issued**_OVERLAP + waits**_OVERLAP) ** (1 / _OVERLAP) + _executed(work, costs, ("subgroup",))


def _storage(work: Work, costs: Mapping[str, float]) -> float:
    lines = work.missed_lines * costs["missed_line_ns"] + work.store_lines * costs["store_line_ns"]
    return lines + _accessed(work, costs, ("storage_load", "storage_store", "uniform_load"))


def _workgroup_memory(work: Work, costs: Mapping[str, float]) -> float:
    return _accessed(work, costs, ("workgroup_load", "workgroup_store"))


def _local(work: Work, costs: Mapping[str, float]) -> float:
    return _executed(work, costs, ("local", "local_scattered", "local_scattered_store"))


def _barriers(work: Work, costs: Mapping[str, float]) -> float:
    return _executed(work, costs, ("barrier",))


def _atomics(work: Work, costs: Mapping[str, float]) -> float:
    sums = costs["workgroup_atomic_ns"] * work.software.get("workgroup_atomic_sum", 0.0)
    shared = work.shared_atomics * costs["shared_atomic_ns"]
    return sums + shared + _accessed(work, costs, ("storage_atomic", "workgroup_atomic"))


def _start(work: Work, costs: Mapping[str, float]) -> float:
    return work.workgroups * (costs["workgroup_start_ns"] + work.subgroups * costs["subgroup_start_ns"])


UNITS = {
    "instructions": _instructions,
    "storage": _storage,
    "workgroup memory": _workgroup_memory,
    "arrays of function space": _local,
    "barriers": _barriers,
    "atomics": _atomics,
    "workgroup start": _start,
}
