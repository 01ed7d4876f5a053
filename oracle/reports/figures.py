"""Figures of traces and counters, drawn with matplotlib (the extra `notebooks`); each function returns a `Drawing`.

Figures draw what `oracle.notebook_runs` ran. The colours are those of Okabe and Ito, and cividis for scales: people
with any colour vision can distinguish them. Position or text repeats what a colour means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import NDArray

from ...sim.ir.instruction_classes import CLASSES
from ...sim.models.occupancy import occupancy
from ...sim.models.roofline import place
from ...sim.run.executed_instructions import by_class
from .source_listing import compact

if TYPE_CHECKING:
    from ...sim import Run
    from ...sim.models import Device
    from ..advise.advice import Advice
    from ..gpu_counters.access_trace import Request, Trace
    from ..gpu_counters.timeline import Timeline

INK, BLUE, ORANGE, GREEN, PINK, YELLOW, GREY = (
    "#222222", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#BBBBBB"
)  # fmt: skip
BANK_COLOURS = [BLUE, ORANGE, GREEN, PINK, YELLOW, GREY, "#56B4E9", "#D55E00"]
CYCLE = (BLUE, ORANGE, GREEN, PINK, INK, GREY)
WIDTH, DPI = 10.0, 100  # inches, and pixels in one


class Drawing(Figure):
    """A figure that notebooks display, without the global state of pyplot."""

    def __repr__(self) -> str:
        """Every text of the figure, and a digest of what is drawn: what it shows, whatever fonts and versions."""
        figure: Any = self
        lines = [" | ".join(_texts(axis)) for axis in figure.axes]
        legends = [" | ".join(text.get_text() for text in legend.get_texts()) for legend in figure.legends]
        drawn = sha256(" ".join(_numbers(axis) for axis in figure.axes).encode()).hexdigest()[:12]
        return "\n".join([line.replace("\n", ", ") for line in [*lines, *legends] if line] + [f"drawn: {drawn}"])

    def _repr_png_(self) -> bytes:
        stream = BytesIO()
        figure: Any = self
        figure.savefig(stream, format="png", dpi=DPI)
        return stream.getvalue()


def _texts(axis: Any) -> list[str]:
    """The title, labels, annotations and legend of an axis."""
    legend = axis.get_legend()
    found = [axis.get_title(), axis.get_title(loc="left"), axis.get_xlabel(), axis.get_ylabel()]
    found += [text.get_text() for text in (*axis.texts, *(legend.get_texts() if legend else ()))]
    return [text for text in found if text]


def _numbers(axis: Any) -> str:
    """The data of an axis: images, bars, lines, and where texts are, to six digits."""
    parts = [np.nan_to_num(image.get_array().filled(np.nan), nan=-1).ravel() for image in axis.get_images()]
    parts += [np.array(each.get_bbox().bounds) for each in axis.patches]
    parts += [np.asarray(line.get_xydata(), float).ravel() for line in axis.lines]
    parts += [np.array([float(each) for each in text.get_position()]) for text in axis.texts]
    return " ".join(f"{number:.6g}" for part in parts for number in part)


def _figure(rows: int, columns: int, height: float, **more: Any) -> tuple[Any, NDArray[Any]]:
    """A `Drawing` and its axes; untyped, as matplotlib is."""
    figure = Drawing(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **more)


# ---- workgroup memory --------------------------------------------------------------------------------


def wavefront_of(request: Request, device: Device) -> NDArray[np.int64]:
    """The wavefront that serves each lane of a 4-byte access, from 0; -1 for inactive lanes.

    Each bank serves its words in ascending order.
    """
    rule = device.bank_rule(4, request.site.kind != "load")
    words = request.addresses // 4
    served = np.full(len(words), -1, np.int64)
    for bank in range(rule.columns):
        mine = request.active & (words % rule.columns == bank)
        served[mine] = np.unique(words[mine], return_inverse=True)[1].ravel()
    return served


def bank_grid(requests: Mapping[str, Request], device: Device) -> Drawing:
    """Lanes by banks, a panel for each request of 4 bytes per lane: numbers are the wavefronts that serve the lanes."""
    figure, axes = _figure(1, len(requests), 5.6, sharey=True)
    most = max(int(wavefront_of(r, device).max()) for r in requests.values()) + 1
    colours = ListedColormap(BANK_COLOURS[:most] if most <= len(BANK_COLOURS) else _cividis(most))
    size = 15 / max(len(requests), 2)
    for axis, (title, request) in zip(axes[0], requests.items(), strict=True):
        served = wavefront_of(request, device)
        grid = np.full((len(served), device.banks), np.nan)
        lanes = np.flatnonzero(served >= 0)
        banks = request.addresses[lanes] // 4 % device.banks
        grid[lanes, banks] = served[lanes]
        axis.imshow(grid, cmap=colours, vmin=-0.5, vmax=most - 0.5, aspect="auto", interpolation="nearest")
        for lane, bank in zip(lanes, banks, strict=True):
            dark = served[lane] == 0 or (most > len(BANK_COLOURS) and served[lane] < most / 2)
            ink = "white" if dark else INK
            axis.text(bank, lane, str(served[lane] + 1), ha="center", va="center", fontsize=size, color=ink)
        count = int(served.max()) + 1
        axis.set_title(f"{title}\n{count} wavefront{'s' if count > 1 else ''}", fontsize=10)
        axis.set_xlabel("bank")
        _grid_lines(axis, device.banks, len(served))
    axes[0][0].set_ylabel("lane")
    return figure


def _cividis(count: int) -> list[Any]:
    return [colormaps["cividis"](step / max(count - 1, 1)) for step in range(count)]


def _grid_lines(axis: Any, columns: int, rows: int) -> None:
    axis.set_xticks(range(0, columns, 4))
    axis.set_yticks(range(0, rows, 4))
    axis.set_xticks(np.arange(-0.5, columns), minor=True)
    axis.set_yticks(np.arange(-0.5, rows), minor=True)
    axis.grid(which="minor", color="#E6E6E6", linewidth=0.4)
    axis.tick_params(which="minor", length=0)


def conflicts(run: Run) -> Drawing:
    """The wavefronts of each access to workgroup memory, ideal and in excess, under its line and text."""
    sites = [site for site in run.sites if site.space == "workgroup" and site.shared_requests]
    figure, axes = _figure(1, 1, 1.2 + 0.5 * len(sites))
    axis, at = axes[0][0], np.arange(len(sites))
    ideal = [site.shared_ideal_wavefronts for site in sites]
    excess = [site.shared_wavefronts - site.shared_ideal_wavefronts for site in sites]
    axis.barh(at, ideal, 0.6, color=BLUE, label="ideal wavefronts")
    bars = axis.barh(at, excess, 0.6, left=ideal, color=ORANGE, hatch="//", label="excess: bank conflicts")
    words = [f"{site.shared_wavefronts:,}" for site in sites]
    axis.bar_label(bars, words, padding=3, fontsize=9)
    axis.set_yticks(at, [f"line {site.span.line}: {site.kind} of {site.name}" for site in sites])
    axis.invert_yaxis()
    axis.set_xlabel("wavefronts")
    axis.margins(x=0.12)
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure


def pitches(advice: Advice) -> Drawing:
    """Wavefronts by row pitch: every layout of an advice that qualifies and has no swizzle."""
    trials = sorted(
        (each for each in advice.trials if each.refused is None and each.swizzle is None), key=lambda each: each.pitch
    )
    figure, axes = _figure(1, 1, 3.6)
    axis = axes[0][0]
    at = [trial.pitch for trial in trials]
    ideal = [trial.wavefronts - trial.excess for trial in trials]
    axis.bar(at, ideal, color=BLUE, label="ideal wavefronts")
    excess = [trial.excess for trial in trials]
    axis.bar(at, excess, bottom=ideal, color=ORANGE, label="excess: bank conflicts", hatch="//")
    marked = {advice.best_pad.pitch: "best", advice.written.pitch: "as written"}
    if len(marked) == 1:
        marked = {advice.written.pitch: "best, as written"}
    above = 1.08 * max(trial.wavefronts for trial in trials)
    for trial in (trial for trial in trials if trial.pitch in marked):
        words = marked[trial.pitch]
        arrow = {"arrowstyle": "->"}
        axis.annotate(words, (trial.pitch, trial.wavefronts), (trial.pitch, above), ha="center", arrowprops=arrow)
    axis.set_xlabel(f"{advice.pitch}, in elements")
    axis.set_ylabel(f"wavefronts of {advice.array}")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.yaxis.set_major_formatter(EngFormatter(sep=""))
    axis.set_ylim(0, 1.1 * above)
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure


def timeline(lines: Mapping[str, Timeline]) -> Drawing:
    """Between which barriers each slot of an array is written and read; a panel for each timeline, by title."""
    rows = {title: [(a, s) for a, count in line.regions.items() for s in range(count)] for title, line in lines.items()}
    heights = [len(found) + 0.5 for found in rows.values()]
    figure, axes = _figure(len(lines), 1, 1.2 + 0.42 * sum(heights), sharex=True, height_ratios=heights)
    for axis, (title, line) in zip(axes[:, 0], lines.items(), strict=True):
        for row, (array, slot) in enumerate(rows[title]):
            for kind, colour, y, hatch in (("write", ORANGE, -0.2, "///"), ("read", BLUE, 0.2, "")):
                for each in line.of(array, slot, kind):
                    axis.barh(
                        row + y, 0.88, 0.36, left=each.epoch + 0.06, color=colour, hatch=hatch, edgecolor="white", lw=0
                    )
        for barrier in range(1, line.epochs):
            axis.axvline(barrier, color=INK, linewidth=1.2)
        axis.set_yticks(range(len(rows[title])), [f"{array}, slot {slot}" for array, slot in rows[title]])
        axis.invert_yaxis()
        axis.set_xlim(0, max(each.epochs for each in lines.values()))
        axis.set_title(f"{title}: {line.epochs - 1} barriers", fontsize=10, loc="left")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[-1][0].set_xlabel("barriers passed (each vertical line is one)")
    handles = [
        Patch(facecolor=ORANGE, hatch="///", edgecolor="white", label="written"),
        Patch(color=BLUE, label="read"),
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False)
    return figure


# ---- global memory -----------------------------------------------------------------------------------


def walk(one: Trace, names: Sequence[str]) -> Drawing:
    """The elements of each matrix that the workgroup loads, and after how many barriers it first does."""
    columns = [one.case.arrays[name].shape[1] for name in names]
    figure, axes = _figure(1, len(names), 3.9, width_ratios=columns)
    last = max((r.epoch for name in names for r in one.of(name, "load")), default=0)
    colours = ListedColormap(_cividis(last + 1))
    image = None
    for axis, name in zip(axes[0], names, strict=True):
        array = one.case.arrays[name]
        first = _first_epochs(one, name, array)
        image = axis.imshow(first, cmap=colours, vmin=-0.5, vmax=last + 0.5, interpolation="nearest")
        axis.set_facecolor("#F2F2F2")
        axis.set_title(f"{name}, {array.shape[0]} x {array.shape[1]}", fontsize=10)
        axis.set_xlabel("column")
    axes[0][0].set_ylabel("row")
    assert image is not None
    bar = figure.colorbar(image, ax=list(axes[0]), ticks=range(last + 1), shrink=0.8)
    bar.set_label("barriers passed at the first load")
    return figure


def _first_epochs(one: Trace, name: str, array: NDArray[Any]) -> NDArray[np.float64]:
    """The epoch of the first load of each element; NaN for elements that are not loaded."""
    first = np.full(array.size, np.nan)
    for request in reversed(one.of(name, "load")):
        wide = request.site.bytes_per_lane // array.itemsize
        at = (request.addresses[request.active] // array.itemsize)[:, None] + np.arange(wide)
        first[at[at < array.size]] = request.epoch
    return first.reshape(array.shape)


def sectors_per_request(loads: Mapping[str, tuple[Run, str]]) -> Drawing:
    """What one request of a subgroup touches: sectors, the fewest that could hold the requested bytes, and lines.

    `loads`: a run and the variable that it loads, by label.
    """
    figure, axes = _figure(1, 1, 1.1 + 0.75 * len(loads))
    axis = axes[0][0]
    at = np.arange(len(loads))
    for number, (counter, words, colour, hatch) in enumerate(TOUCHED):
        values = [_per_request(run, name, counter) for run, name in loads.values()]
        bars = axis.barh(
            at + 0.27 * (number - 1), values, 0.25, color=colour, hatch=hatch, ec="white", lw=0, label=words
        )
        axis.bar_label(bars, [f"{value:.3g}" for value in values], padding=3, fontsize=9)
    axis.set_yticks(at, list(loads))
    axis.invert_yaxis()
    axis.margins(x=0.1)
    axis.set_xlabel("per request of a subgroup")
    figure.legend(loc="outside upper right", ncols=3, frameon=False)
    return figure


TOUCHED = (
    ("global_sectors", "32-byte sectors", ORANGE, "//"),
    ("global_ideal_sectors", "sectors, at least", BLUE, ""),
    ("global_lines", "128-byte lines", GREEN, ".."),
)


def _per_request(run: Run, name: str, counter: str) -> float:
    sites = [site for site in run.sites if site.name == name and site.kind == "load"]
    return sum(getattr(site, counter) for site in sites) / sum(site.global_requests for site in sites)


LEVELS = {"bytes that lanes ask for": "o", "bytes of sectors that subgroups touch": "s", "each matrix once": "D"}
"""The levels of a roofline, and their marks."""


def _moved(run: Run, least: float | None) -> list[float]:
    """The bytes that a run moves at each level: of the first two, if caches hold nothing."""
    moved = [run.counters["global_bytes"], run.counters["global_sectors"] * run.device.sector_bytes]
    return [float(each) for each in moved] + ([] if least is None else [least])


def roofline(
    runs: Mapping[str, Run],
    peak_flops: float,
    peak_bandwidth: float,
    least_bytes: Mapping[str, float] | None = None,
    measured: Mapping[str, tuple[float, float]] | None = None,
) -> Drawing:
    """Runs under a roofline, each at its intensity at several levels: by the bytes that lanes ask for, by the sectors
    that subgroups touch, and by `least_bytes`, what must come from memory at least. `measured`: the intensity and the
    rate of a kernel on a GPU. Peaks and rates are in FLOP/s and bytes/s.
    """
    figure, axes = _figure(2, 1, 3.4 + 0.3 * len(runs), sharex=True, height_ratios=[2.6, 0.3 * len(runs) + 0.4])
    above, below = axes[:, 0]
    ridge = peak_flops / peak_bandwidth
    found: list[float] = []
    for number, (label, run) in enumerate(runs.items()):
        moved = _moved(run, (least_bytes or {}).get(label))
        places = [place(run.counters["flops"], bytes_, peak_flops, peak_bandwidth) for bytes_ in moved]
        at = [each.intensity for each in places]
        colour, timed = CYCLE[number % len(CYCLE)], (measured or {}).get(label)
        below.plot(at, [number] * len(at), color=colour, lw=1, alpha=0.5)
        for mark, each in zip(LEVELS.values(), places, strict=False):
            below.plot(each.intensity, number, mark, ms=7, color=colour, mec="white")
            above.plot(each.intensity, each.attainable, mark, ms=7, color=colour, mec="white")
            _note(below, f"{each.intensity:.3g}", (each.intensity, number), (0, -12 if mark == "s" else 6), "center")
        if timed is not None:
            above.plot(*timed, "*", ms=13, color=colour, mec=INK)
            _note(above, f"{label}: {timed[1] / 1e9:,.0f} GFLOP/s", timed, (-8, -3), "right")
        found += [*at, timed[0]] if timed else at
    x = np.array([min(found) / 2, ridge, max(ridge, *found) * 3])
    above.loglog(x, np.minimum(x * peak_bandwidth, peak_flops), color=INK, lw=2, zorder=0)
    above.text(ridge, above.get_ylim()[0] * 1.3, f"ridge: {ridge:.3g} FLOP/byte ", ha="right", va="bottom")
    above.set_ylabel("attainable, FLOP/s")
    above.yaxis.set_major_formatter(EngFormatter(sep=""))
    below.set_yticks(range(len(runs)), list(runs))
    below.set_ylim(len(runs) - 0.4, -0.8)
    below.set_xlabel("floating point operations per byte")
    for axis in (above, below):
        axis.axvline(ridge, color=GREY, ls=":")
        axis.grid(which="major", axis="x", color="#E6E6E6")
    handles = [above.plot([], [], mark, color=GREY, label=words)[0] for words, mark in _levels(least_bytes)]
    figure.legend(handles=handles, loc="outside upper right", ncols=3, frameon=False, fontsize=9)
    return figure


def _note(axis: Any, words: str, at: tuple[float, float], apart: tuple[int, int], ha: str) -> None:
    """A small text, so many points from a place."""
    axis.annotate(words, at, apart, textcoords="offset points", ha=ha, fontsize=8)


def _levels(least_bytes: Mapping[str, float] | None) -> list[tuple[str, str]]:
    """The levels of `LEVELS` that are drawn."""
    return list(LEVELS.items())[: 3 if least_bytes else 2]


# ---- lanes -------------------------------------------------------------------------------------------

STATES = (
    ("works", BLUE),
    ("waits: at a barrier, or while others are in a branch", ORANGE),
    ("has finished", GREY),
    ("never has anything to do", PINK),
)


def lane_states(one: Trace) -> NDArray[np.int64]:
    """Indices into `STATES`, `[lanes, moments]`. A moment is the n-th request of each subgroup since a barrier."""
    size = one.run.device.subgroup_size
    subgroups = range(-(-one.lanes // size))
    parts = [
        [[r for r in one.requests if (r.subgroup, r.epoch) == (s, e)] for s in subgroups] for e in range(one.epochs)
    ]
    lengths = [max(map(len, part)) for part in parts]
    active = np.zeros((len(subgroups) * size, sum(lengths)), bool)
    works = np.zeros(len(active), bool)
    for part, start in zip(parts, np.cumsum([0, *lengths[:-1]]), strict=True):
        for number, requests in enumerate(part):
            rows = slice(number * size, (number + 1) * size)
            for moment, request in enumerate(requests, int(start)):
                active[rows, moment] = request.active
                works[rows] |= request.active & request.site.is_work
    comes_back = np.flip(np.logical_or.accumulate(np.flip(active, 1), 1), 1)
    states = np.where(active, 0, np.where(comes_back, 1, 2))
    states[~works] = 3
    return states[: one.lanes]


def lane_map(traces: Mapping[str, Trace]) -> Drawing:
    """The state of every lane of a workgroup at every request."""
    figure, axes = _figure(1, len(traces), 4.6)
    for axis, (title, one) in zip(axes[0], traces.items(), strict=True):
        states = lane_states(one)
        axis.imshow(states, cmap=ListedColormap([c for _, c in STATES]), aspect="auto", interpolation="nearest",
                    norm=BoundaryNorm(np.arange(-0.5, len(STATES)), len(STATES)))  # fmt: skip
        axis.set_title(f"{title}\n{one.run.counters['working_invocations']:.1%} of all threads work", fontsize=10)
        axis.set_xlabel("requests of a subgroup, in order")
        axis.set_yticks(range(0, one.lanes, max(32, one.lanes // 8)))
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axes[0][0].set_ylabel("lane")
    handles = [Patch(facecolor=colour, edgecolor=GREY, label=words) for words, colour in STATES]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def utilization(by_kernel: Mapping[str, Mapping[int, float]], xlabel: str) -> Drawing:
    """The share of threads that work, by size, for each kernel."""
    figure, axes = _figure(1, 1, 3.8)
    axis = axes[0][0]
    for number, (label, shares) in enumerate(by_kernel.items()):
        axis.plot(list(shares), [100 * s for s in shares.values()], color=CYCLE[number % len(CYCLE)], label=label,
                  marker="osD^vP"[number % 6], ms=max(4, 11 - 3 * number), ls=("-", "--", ":")[number % 3],
                  clip_on=False)  # fmt: skip
    axis.set_ylim(0, 105)
    axis.set_xscale("log", base=2)
    ticks = sorted({size for shares in by_kernel.values() for size in shares})
    axis.set_xticks(ticks, [f"{size:,}" for size in ticks])
    axis.minorticks_off()
    axis.set_xlabel(xlabel)
    axis.set_ylabel("threads that work, %")
    axis.grid(axis="y", color="#E6E6E6")
    axis.legend(frameon=False)
    return figure


# ---- totals ------------------------------------------------------------------------------------------


DECADES = 100.0  # from this ratio of the largest to the least, bars are on a log scale


def totals(runs: Mapping[str, Run | Sequence[Run]], counters: Mapping[str, str]) -> Drawing:
    """A panel for each counter or class of instructions (its name, and a title), a bar for each run, or for several
    runs together. Instructions are counted by subgroups; `instructions` are those of all classes.

    A panel whose values span two decades has a log scale, and says so.
    """
    together = [list(each) if isinstance(each, Sequence) else [each] for each in runs.values()]
    figure, axes = _figure(1, len(counters), 1.3 + 0.38 * len(runs), sharey=True)
    at = np.arange(len(runs))
    for axis, (name, words) in zip(axes[0], counters.items(), strict=True):
        values = [sum(_total(run, name) for run in each) for each in together]
        bars = axis.barh(at, values, 0.62, color=[CYCLE[number % len(CYCLE)] for number in at])
        axis.bar_label(bars, [compact(value) for value in values], padding=3, fontsize=9)
        if min(values) > 0 and max(values) >= DECADES * min(values):
            axis.set_xscale("log")
            axis.set_xlim(min(values) / 3, max(values) * 20)
            words = f"{words} (log scale)"
        else:
            axis.margins(x=0.28)
        axis.set_title(words, fontsize=10)
        axis.set_xticks([])
        axis.minorticks_off()
        axis.spines[["top", "right", "bottom"]].set_visible(False)
    axes[0][0].set_yticks(at, list(runs))
    axes[0][0].invert_yaxis()
    return figure


def _total(run: Run, name: str) -> float:
    if name == "instructions":
        return sum(row.executions for row in run.instructions)
    return by_class(run.instructions).get(name, (0, 0))[0] if name in CLASSES else run.counters[name]


def occupancy_bars(kernels: Mapping[str, Run], devices: Sequence[Device], limits: Mapping[str, int]) -> Drawing:
    """Workgroups that a core of each device holds, and the workgroup memory of each kernel beside `limits` in bytes."""
    figure, axes = _figure(1, 2, 3.6, width_ratios=[2, 1])
    held, memory = axes[0]
    at, thick = np.arange(len(devices)), 0.8 / len(kernels)
    for number, (label, run) in enumerate(kernels.items()):
        size, bytes_ = tuple(run.pipeline.workgroup_size), int(run.counters["workgroup_memory_bytes"])
        values = [occupancy(device, size, bytes_).workgroups for device in devices]
        colour, hatch = CYCLE[number % len(CYCLE)], ("", "//", "..")[number % 3]
        bars = held.bar(
            at + thick * number, values, thick * 0.92, color=colour, hatch=hatch, ec="white", lw=0, label=label
        )
        held.bar_label(bars, padding=2, fontsize=9)
        bars = memory.bar([number], [bytes_], 0.7, color=colour, hatch=hatch, ec="white", lw=0)
        memory.bar_label(bars, [f"{bytes_:,}"], padding=2, fontsize=9)
    held.set_xticks(at + thick * (len(kernels) - 1) / 2, [device.name for device in devices])
    held.set_ylabel("workgroups a core holds")
    held.margins(y=0.15)
    for name, bytes_ in limits.items():
        memory.axhline(bytes_, color=INK, ls="--", lw=1)
        memory.text(-0.45, bytes_, f"{name}: {bytes_:,}", va="bottom", fontsize=9)
    memory.set_xticks(range(len(kernels)), list(kernels))
    memory.set_ylabel("bytes of workgroup memory")
    memory.set_ylim(0, 1.2 * max(limits.values()))
    memory.yaxis.set_major_formatter(EngFormatter(sep=""))
    figure.legend(loc="outside upper left", ncols=len(kernels), frameon=False)
    return figure
