"""Workgroup memory: loads and stores by width and way of conflict, and the latency of a load.

A load takes its index from the load before: each element holds the index of the next. All lanes of a subgroup move by
the same step, which keeps their conflicts; throughput comes from many resident subgroups. A store adds a constant to
an index that changes with each iteration. The array has 4 KiB, so that it never limits the number of resident
workgroups. Stores of different invocations to one word race: their values are of no use.
"""

from __future__ import annotations

from collections.abc import Iterator

from .kernel_text import SUBGROUP, Launch, MicroBenchmark, benchmark, per_core

_ARRAY_WORDS = 1024
_UNROLLED = 16
# Of each width in components: the type, the words from one element to the next, and the sum of all components.
_WIDTHS = {
    1: ("u32", 1, "v"),
    2: ("vec2u", 2, "v.x + v.y"),
    3: ("vec3u", 4, "v.x + v.y + v.z"),
    4: ("vec4u", 4, "v.x + v.y + v.z + v.w"),
}


def workgroup_memory(cores: int, scale: float) -> Iterator[MicroBenchmark]:
    """Make the benchmarks of workgroup memory."""
    for width, (_, words, _) in _WIDTHS.items():
        for shift in range((SUBGROUP // words).bit_length()):
            stride = 1 << shift
            trips = 512 // _wavefronts(width, stride)
            launch = per_core(cores, scale, 256, 8)
            yield _loads("workgroup_load", width, stride, launch, trips)
            yield _stores("workgroup_store", width, stride, launch, trips)
        yield _loads("workgroup_load_latency", width, 1, per_core(cores, scale, SUBGROUP, 1), 256)
    for stride in (8, 32):
        yield _loads("workgroup_load_latency", 1, stride, per_core(cores, scale, SUBGROUP, 1), 256)


def _wavefronts(width: int, stride: int) -> int:
    """Return the wavefronts of an access whose lanes are `stride` elements apart.

    The lanes of a group of 32, 16 or 8 share the banks. As `words * stride` consecutive words hold one lane's element,
    `stride` lanes of a group share a column of banks, and never more than the group has.
    """
    words = _WIDTHS[width][1]
    return words * min(stride, SUBGROUP // words)


def _parameters(width: int, stride: int) -> dict[str, float]:
    words = _WIDTHS[width][1]
    return {"width": width, "stride": stride, "way": min(stride, SUBGROUP // words)}


def _declared(width: int) -> tuple[str, int]:
    """Return the declaration of the array, and its number of elements."""
    type_, words, _ = _WIDTHS[width]
    elements = _ARRAY_WORDS // words
    return f"var<workgroup> table: array<{type_}, {elements}>;", elements


def _start(stride: int, elements: int) -> str:
    """Return the text of the first index: `stride` apart in a subgroup, one further for each subgroup."""
    return f"var at = ((lane & 31u) * {stride}u + (lane >> 5u)) & {elements - 1}u;"


def _loads(constant: str, width: int, stride: int, launch: Launch, trips: int) -> MicroBenchmark:
    type_, _, total = _WIDTHS[width]
    declaration, elements = _declared(width)
    trips = launch.shortened(trips)
    following = f"(e + params.step) & {elements - 1}u"
    element = following if width == 1 else f"{type_}({following}{', params.zero' * (width - 1)})"
    filling = elements // SUBGROUP * launch.workgroups
    loads = launch.subgroups * trips * _UNROLLED
    return benchmark(
        constant,
        _parameters(width, stride),
        launch,
        trips=trips,
        declarations=declaration,
        setup=[
            f"for (var e = lane; e < {elements}u; e += {launch.size}u) {{ table[e] = {element}; }}",
            "workgroupBarrier();",
            _start(stride, elements),
        ],
        body=[f"{{ let v = table[at]; at = {total}; }}"] * _UNROLLED,
        result="at",
        values={"step": 33},
        work={
            "shared_requests": filling + loads,
            "shared_wavefronts": filling * _wavefronts(width, 1) + loads * _wavefronts(width, stride),
            "operations": loads * SUBGROUP,
            "chain": trips * _UNROLLED,
            "barriers": launch.workgroups,
        },
    )


def _stores(constant: str, width: int, stride: int, launch: Launch, trips: int) -> MicroBenchmark:
    type_, _, total = _WIDTHS[width]
    declaration, elements = _declared(width)
    unrolled = min(_UNROLLED, elements // SUBGROUP)  # no two stores of an iteration overwrite each other
    trips = launch.shortened(trips * _UNROLLED // unrolled)
    value = f"{type_}(at)"
    stores = launch.subgroups * trips * unrolled
    # An exclusive or keeps the lanes apart, and a multiple of the banks keeps their banks.
    shifts = [SUBGROUP * n for n in range(unrolled)]
    return benchmark(
        constant,
        _parameters(width, stride),
        launch,
        trips=trips,
        declarations=declaration,
        setup=[_start(stride, elements)],
        body=[f"at = (at + params.step) & {elements - 1}u;", *(f"table[at ^ {by}u] = {value};" for by in shifts)],
        finish=["workgroupBarrier();", f"let v = table[lane & {elements - 1}u];", f"let last = {total};"],
        result="last",
        values={"step": 32},
        work={
            "shared_requests": stores + launch.subgroups,
            "shared_wavefronts": stores * _wavefronts(width, stride) + launch.subgroups * _wavefronts(width, 1),
            "operations": stores * SUBGROUP,
            "chain": 0,
            "barriers": launch.workgroups,
        },
    )
