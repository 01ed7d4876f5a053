"""The classes of mismatches, in the order in which they are tried: one row per class and test.

Every row is decided by evidence, never by plausibility: the kernel is rerun with something changed, or the reference is
called with other inputs. The first row that explains the mismatch names it. A cause whose symptoms resemble those of
other rows comes before them, and a row that must explain all elements before one that explains some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ...sim.fast_dataclass import frozen
from . import adapter_reruns, displaced_outputs, other_shapes, reference_variants, simulator_reruns
from .mismatch import MOST, UNKNOWN, Diagnosis, Mismatch
from .time_limit import OutOfTime

# What a row needs: only the digest of the expected output; its elements; a reference, too; a mismatch with that.
DIGEST, ELEMENTS, REFERENCE, TRUTH = range(4)
ALL = 2.0  # an unreachable share of changed elements: the row applies only where all elements agree


@frozen
class Class:
    """A class of mismatches. `rerun`: what is run again, in words. `examine` returns the evidence, or None where the
    cause is another one. `needs`: `DIGEST` to `TRUTH`."""

    name: str
    rerun: str
    examine: Callable[[Mismatch], str | None]
    needs: int = ELEMENTS


UNREAD = Class("missing term", "the kernel, with an input changed", reference_variants.unread, REFERENCE)
CLASSES = (
    Class(
        "endless loop", "nothing, it is a finding", simulator_reruns.finding("endless-loop"), DIGEST
    ),  # first, because every rerun would be endless, too
    Class("out-of-bounds policy", "other policies", simulator_reruns.decides("out-of-bounds", ALL), DIGEST),
    Class("race", "other orders of invocations", simulator_reruns.decides("race", ALL, "out-of-bounds"), DIGEST),
    Class("small grid", "the kernel, with a larger grid", other_shapes.small_grid),
    Class("tail mask", "the kernel, with a dim a multiple of 64 or 256", other_shapes.tail, TRUTH),
    Class("race", "other orders of invocations", simulator_reruns.decides("race", MOST), DIGEST),
    Class("order of atomics", "other orders of invocations", simulator_reruns.decides("atomic-order", MOST), DIGEST),
    Class("race", "other orders of invocations", simulator_reruns.racing_memory, DIGEST),
    Class("uninitialised memory", "NaNs in workgroup memory", simulator_reruns.unwritten_memory, DIGEST),
    Class("race", "the GPU, twice", adapter_reruns.unsteady),
    Class("race", "other orders of invocations, and the GPU with zeroed memory", adapter_reruns.racing_memory),
    Class("uninitialised memory", "the GPU, with a text that zeroes workgroup memory", adapter_reruns.not_zeroed),
    Class("loop limit of the driver", "loops that end after the driver's limit", adapter_reruns.loops_left),
    UNREAD,
    Class("inactive lane", "other values of lanes that are not active", simulator_reruns.inactive_lanes, DIGEST),
    Class("subgroup size", "subgroups of other sizes", simulator_reruns.subgroup_size, DIGEST),
    Class("fma contraction", "products and sums fused otherwise", simulator_reruns.contraction, DIGEST),
    Class("f16 rounding", "f32 for f16, in text and data", simulator_reruns.half_precision, DIGEST),
    Class("builtin accuracy", "error bounds", simulator_reruns.builtin_accuracy),
    Class("order of operations", "the GPU, with a text that keeps each result", adapter_reruns.reorders_floats),
    Class("rounding", "error bounds", simulator_reruns.rounding),
    Class("transposed output", "nothing, the elements lie elsewhere", displaced_outputs.transposed),
    Class("swapped dims", "nothing, the rows lie another dim apart", displaced_outputs.wrong_stride),
    Class("off by one index", "nothing, the elements lie further on", displaced_outputs.shifted),
    Class("wrong sign", "the reference, with an input's sign changed", reference_variants.wrong_sign, TRUTH),
    Class("off by one index", "the reference, with inputs further on", reference_variants.one_off, TRUTH),
    Class(
        "swapped dims", "the reference, with rows of inputs another dim apart", reference_variants.other_stride, TRUTH
    ),
    Class("integer overflow", "the reference, with inputs that repeat", reference_variants.short_index, TRUTH),
    Class("packed weights", "the reference, with bits of weights exchanged", reference_variants.misread, TRUTH),
    Class("missing term", "the reference, with parts of inputs 0", reference_variants.left_out, TRUTH),
    Class("swapped dims", "the kernel, with two dims equal", other_shapes.equal_dims, TRUTH),
    Class("wrong factor", "nothing, the elements are proportional", displaced_outputs.wrong_factor),
    Class("wrong kernel", "the other references", reference_variants.wrong_kernel, TRUTH),
    Class("race", "other orders of invocations", simulator_reruns.decides("race", 0), DIGEST),
    Class("order of atomics", "other orders of invocations", simulator_reruns.decides("atomic-order", 0), DIGEST),
    Class("out-of-bounds policy", "other policies", simulator_reruns.decides("out-of-bounds", 0), DIGEST),
    Class("unwritten output", "nothing, it holds what was there before", other_shapes.unwritten),
    Class("number out of range", "nothing, it is a finding", simulator_reruns.out_of_range, DIGEST),
)

# The class of a finding that fails a kernel, by its code; other codes are a class by themselves.
OF_FINDINGS = {
    "atomic-order": "order of atomics",
    "uninit": "uninitialised memory",
    "out-of-bounds": "out-of-bounds policy",
    "inactive-lane": "inactive lane",
    "not-finite": "number out of range",
    "endless-loop": "endless loop",
}


def diagnose(m: Mismatch) -> Diagnosis:
    """Find the likely class of a mismatch; `UNKNOWN` where no class explains it."""
    rows = [row for row in CLASSES if row.needs <= _given(m)]
    found, late = explain(m, rows)
    if found is None:
        tried = len({row.name for row in rows} - set(late))
        words = f"cause unknown: none of {tried} classes, each tried by a rerun, explains it"
        found = Diagnosis(UNKNOWN, words)
    return found.with_skipped(late, m.time_limit.seconds)


def explain(m: Mismatch, rows: Iterable[Class]) -> tuple[Diagnosis | None, tuple[str, ...]]:
    """Return the diagnosis of the first row that explains a mismatch, and the classes before it that the time limit
    skipped. Rows that need no rerun are always tried."""
    late: dict[str, None] = {}
    for row in rows:
        try:
            evidence = row.examine(m)
        except OutOfTime:
            late[row.name] = None
            continue
        if evidence is not None:
            return Diagnosis(row.name, evidence), tuple(late)
    return None, tuple(late)


def _given(m: Mismatch) -> int:
    if m.same is not None:
        return DIGEST
    return TRUTH if m.truth else ELEMENTS if m.reference is None else REFERENCE


# Changes of cost, where no output is wrong: the class, the label, and the figure, the most informative first.
COSTS: tuple[tuple[str, str, Callable[[Mapping[str, float]], float]], ...] = (
    ("conflicts", "excess wavefronts", lambda c: c["shared_wavefronts"] - c["shared_ideal_wavefronts"]),
    ("sectors", "excess sectors", lambda c: c["global_sectors"] - c["global_ideal_sectors"]),
    ("barriers", "barriers", lambda c: c["barriers"]),
    ("work", "floating point operations", lambda c: c["flops"]),
    ("work", "bytes of global memory", lambda c: c["global_bytes"]),
    ("work", "active lanes", lambda c: c["active_lanes"]),
    ("workgroup memory", "bytes", lambda c: c["workgroup_memory_bytes"]),
)


def cost(before: Mapping[str, float], after: Mapping[str, float]) -> Diagnosis | None:
    """Classify a change that left the outputs correct; None where no cost changed."""
    for name, words, figure in COSTS:
        was, is_ = int(figure(before)), int(figure(after))
        if was != is_:
            return Diagnosis(f"performance: {name}", f"{was:,} -> {is_:,} {words}, and no output is wrong")
    return None
