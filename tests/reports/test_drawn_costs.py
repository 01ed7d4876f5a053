"""What figures of costs draw, mark by mark, from numbers that are known by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.oracle.gpu_counters.access_trace import Request
from bankshot.oracle.gpu_counters.timeline import Timeline
from bankshot.sim.ir.sites import SourceSite
from bankshot.sim.wgsl.source import Source, Span

figures = pytest.importorskip("bankshot.oracle.reports.figures", reason="figures need matplotlib")
NVIDIA = bankshot.devices.get("nvidia")


def site(kind, variable="x", space="storage", width=4):
    return SourceSite(kind, Span(Source(""), 0, 0), space, variable, width)


def asked(addresses, kind="load", variable="x", subgroup=0, epoch=0, width=4):
    return Request(site(kind, variable, width=width), subgroup, epoch, np.array(addresses))


def labels(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


# ---- bank conflicts ------------------------------------------------------------------------------------


def test_wavefronts_are_numbered_in_the_order_of_words_of_a_bank():
    """Lanes 0 to 4 read words 64, 0, 32, 1 and 64 again: three words of bank 0, and one of bank 1."""
    served = figures.wavefront_of(asked([256, 0, 128, 4, 256, -1]), NVIDIA)
    assert served.tolist() == [2, 0, 1, 0, 2, -1]


def test_a_panel_of_banks_for_each_request():
    several, one = asked([*(128 * np.arange(6)), *[-1] * 26]), asked(4 * np.arange(32))
    figure = figures.bank_grid({"padded": one, "flat": several}, NVIDIA)
    padded, flat = figure.axes
    assert [axis.get_title() for axis in figure.axes] == ["padded\n1 wavefront", "flat\n6 wavefronts"]
    assert [axis.get_xlabel() for axis in figure.axes] == ["bank", "bank"]
    assert (padded.get_ylabel(), flat.get_ylabel()) == ("lane", "")
    assert [text.get_text() for text in flat.texts] == ["1", "2", "3", "4", "5", "6"]
    assert {text.get_text() for text in padded.texts} == {"1"}
    image = flat.images[0].get_array()
    assert image.shape == (32, 32)
    assert image[:6, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert np.isnan(np.ma.filled(image, np.nan)).sum() == 32 * 32 - 6
    assert [axis.images[0].get_clim() for axis in figure.axes] == [(-0.5, 5.5)] * 2  # one scale for all panels
    assert padded.get_xticks().tolist() == [*range(0, 32, 4)]
    assert padded.get_yticks().tolist() == [*range(0, 32, 4)]
    assert padded.get_xticks(minor=True).tolist() == [n - 0.5 for n in range(33)]
    assert flat.get_yticks(minor=True).tolist() == [n - 0.5 for n in range(33)]


def test_many_wavefronts_are_coloured_from_end_to_end_of_a_scale():
    ends = [tuple(figures.colormaps["cividis"](end)) for end in (0.0, 1.0)]
    colours = figures._cividis(11)
    assert (len(colours), [tuple(colours[0]), tuple(colours[-1])]) == (11, ends)
    assert tuple(colours[5]) == tuple(figures.colormaps["cividis"](0.5))
    assert [tuple(each) for each in figures._cividis(1)] == ends[:1]


def trial(pitch, wavefronts, excess, refused=None, swizzle=None):
    return SimpleNamespace(pitch=pitch, wavefronts=wavefronts, excess=excess, refused=refused, swizzle=swizzle)


def drawn_pitches(best, *more):
    written = trial(32, 100, 60)
    trials = [written, trial(34, 50, 10), trial(33, 40, 0), *more]
    advice = SimpleNamespace(trials=trials, written=written, best_pad=trials[best], pitch="PITCH", array="tile")
    figure = figures.pitches(advice)
    (axis,) = figure.axes
    return figure, axis


def test_layouts_are_bars_by_pitch():
    figure, axis = drawn_pitches(2, trial(35, 1, 0, refused="too long"), trial(36, 1, 0, swizzle="a swizzle"))
    ideal, excess = axis.containers
    assert [round(bar.get_x() + bar.get_width() / 2) for bar in ideal] == [32, 33, 34]
    assert [bar.get_height() for bar in ideal] == [40, 40, 40]
    assert [(bar.get_y(), bar.get_height()) for bar in excess] == [(40, 60), (40, 0), (40, 10)]
    marks = {text.get_text(): (text.xy, text.get_position()) for text in axis.texts}
    assert marks == {"as written": ((32, 100), (32, 108.0)), "best": ((33, 40), (33, 108.0))}
    assert axis.get_ylim() == (0, pytest.approx(118.8))
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("PITCH, in elements", "wavefronts of tile")
    assert labels(figure) == ["ideal wavefronts", "excess: bank conflicts"]
    assert all(tick % 1 == 0 for tick in axis.get_xticks())
    assert [each.get_text() for each in axis.get_yticklabels()][:2] == ["0", "20"]


def test_a_layout_that_is_best_as_written_has_one_mark():
    _, axis = drawn_pitches(0)
    assert [(text.get_text(), text.xy) for text in axis.texts] == [("best, as written", (32, 100))]


# ---- timelines -----------------------------------------------------------------------------------------


def part(array, region, kind, epoch):
    return SimpleNamespace(array=array, region=region, kind=kind, epoch=epoch)


def test_a_timeline_has_a_row_for_each_slot_and_a_line_for_each_barrier():
    slices = (part("a", 0, "write", 0), part("a", 1, "write", 1), part("a", 0, "read", 1), part("b", 0, "read", 2))
    lines = {"two slots": Timeline({"a": 2, "b": 1}, 3, slices, ()), "one": Timeline({"a": 1}, 5, slices[:1], ())}
    figure = figures.timeline(lines)
    first, second = figure.axes
    bars = sorted((round(bar.get_x(), 2), round(bar.get_y() + bar.get_height() / 2, 2)) for bar in first.patches)
    assert bars == [(0.06, -0.2), (1.06, 0.2), (1.06, 0.8), (2.06, 2.2)]
    assert [bar.get_hatch() or "" for bar in first.patches] == ["///", "", "///", ""]
    assert [line.get_xdata()[0] for line in first.lines] == [1, 2]
    assert [line.get_xdata()[0] for line in second.lines] == [1, 2, 3, 4]
    assert [text.get_text() for text in first.get_yticklabels()] == ["a, slot 0", "a, slot 1", "b, slot 0"]
    assert first.get_yticks().tolist() == [0, 1, 2]
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["two slots: 2 barriers", "one: 4 barriers"]
    assert [axis.get_xlim() for axis in figure.axes] == [(0, 5), (0, 5)]
    assert first.get_ylim()[0] > first.get_ylim()[1]  # the first slot is at the top
    assert [not axis.get_xlabel() for axis in figure.axes] == [True, False]
    assert labels(figure) == ["written", "read"]
    assert all(tick % 1 == 0 for axis in figure.axes for tick in axis.get_xticks())


# ---- global memory -------------------------------------------------------------------------------------


def traced(*requests, lanes=4, subgroup_size=2, **arrays):
    """A trace of a workgroup, of which lanes work at each request that is no barrier."""
    found = [each for each in requests]
    device = SimpleNamespace(subgroup_size=subgroup_size)
    run = SimpleNamespace(device=device, counters={"working_invocations": 0.625})
    return SimpleNamespace(
        requests=found, lanes=lanes, run=run, epochs=max(each.epoch for each in found) + 1,
        case=SimpleNamespace(arrays=arrays),
        of=lambda name, kind: [r for r in found if (r.site.variable, r.site.kind) == (name, kind)],
    )  # fmt: skip


A, B = np.zeros((2, 4), np.float32), np.zeros((3, 2), np.float32)


def test_a_walk_shows_after_how_many_barriers_elements_are_loaded():
    """Elements 0 and 1 of A, then 1 and 2; elements 4 to 7 at once, by lanes that load 2; the last of B at the end."""
    one = traced(asked([0, 4], variable="A"), asked([4, 8], variable="A", epoch=1), asked([4], "store", "A", 0, 1),
                 asked([16, 24, -1], variable="A", epoch=2, width=8), asked([20, -1], variable="B", epoch=3),
                 A=A, B=B)  # fmt: skip
    figure = figures.walk(one, ["A", "B"])
    first, second, bar = figure.axes
    nan = np.nan
    np.testing.assert_equal(np.ma.filled(first.images[0].get_array(), nan), [[0, 0, 1, nan], [2, 2, 2, 2]])
    np.testing.assert_equal(np.ma.filled(second.images[0].get_array(), nan), [[nan, nan], [nan, nan], [nan, 3]])
    assert [axis.get_title() for axis in (first, second)] == ["A, 2 x 4", "B, 3 x 2"]
    assert [axis.images[0].get_clim() for axis in (first, second)] == [(-0.5, 3.5)] * 2
    assert (first.get_ylabel(), second.get_ylabel(), first.get_xlabel(), second.get_xlabel()) == (
        "row",
        "",
        *["column"] * 2,
    )
    assert bar.get_yticks().tolist() == [0, 1, 2, 3]


def test_loads_beyond_an_array_are_not_drawn():
    """The last of 8 elements, and one beyond, which a lane of two elements loads with it."""
    one = traced(asked([28], variable="A", width=8))
    first = figures._first_epochs(one, "A", A)
    assert (first.ravel()[7], np.count_nonzero(np.isnan(first))) == (0, 7)


def test_a_walk_of_matrices_that_are_not_loaded_is_empty():
    figure = figures.walk(traced(asked([0], variable="C"), A=A), ["A"])
    assert np.isnan(np.ma.filled(figure.axes[0].images[0].get_array(), np.nan)).all()
    assert figure.axes[0].images[0].get_clim() == (-0.5, 0.5)


def counted(name, kind, requests, sectors, ideal, lines):
    return SimpleNamespace(name=name, kind=kind, global_requests=requests, global_sectors=sectors,
                           global_ideal_sectors=ideal, global_lines=lines)  # fmt: skip


def test_sectors_are_drawn_for_each_request():
    run = SimpleNamespace(sites=[counted("x", "load", 2, 8, 6, 4), counted("x", "load", 2, 24, 6, 8),
                                 counted("x", "store", 2, 900, 9, 9), counted("y", "load", 2, 16, 8, 2)])  # fmt: skip
    figure = figures.sectors_per_request({"of x": (run, "x"), "of y": (run, "y")})
    (axis,) = figure.axes
    assert [[bar.get_width() for bar in bars] for bars in axis.containers] == [[8, 8], [3, 4], [3, 1]]
    assert [round(bars[0].get_y() + bars[0].get_height() / 2, 2) for bars in axis.containers] == [-0.27, 0, 0.27]
    assert [text.get_text() for text in axis.texts] == ["8", "8", "3", "4", "3", "1"]
    assert [text.get_text() for text in axis.get_yticklabels()] == ["of x", "of y"]
    assert axis.get_ylim()[0] > axis.get_ylim()[1]
    assert labels(figure) == ["32-byte sectors", "sectors, at least", "128-byte lines"]


def test_runs_lie_under_the_roof_at_their_intensity():
    """100 FLOP/s, 10 bytes/s: from 10 FLOP/byte on, computing is what takes time."""

    def run(flops, sectors):
        counters = {"flops": flops, "global_bytes": 64 * sectors, "global_sectors": sectors}
        return SimpleNamespace(counters=counters, device=SimpleNamespace(sector_bytes=32))

    runs = {"busy": run(640, 1), "copy": run(32, 2), "ridge": run(320, 1)}
    figure = figures.roofline(runs, 100.0, 10.0)
    above, below = figure.axes
    points = [line for line in above.lines if len(line.get_xdata()) == 1]
    marks = [(line.get_marker(), line.get_xdata()[0], line.get_ydata()[0]) for line in points]
    assert marks == [
        ("o", 10, 100), ("s", 20, 100), ("o", 0.25, 2.5), ("s", 0.5, 5), ("o", 5, 50), ("s", 10, 100)
    ]  # fmt: skip
    rows = [(line.get_xdata(), line.get_ydata()) for line in below.lines if len(line.get_xdata()) == 2][:3]
    assert [(list(x), list(y)) for x, y in rows] == [([10, 20], [0, 0]), ([0.25, 0.5], [1, 1]), ([5, 10], [2, 2])]
    assert [text.get_text() for text in below.texts] == ["10", "20", "0.25", "0.5", "5", "10"]
    assert [text.get_text() for text in below.get_yticklabels()] == list(runs)
    low, high = below.get_ylim()
    assert low > high  # the first run is at the top
    (roof,) = (line for line in above.lines if len(line.get_xdata()) == 3)
    assert roof.get_xdata().tolist() == [0.125, 10, 60]
    assert roof.get_ydata().tolist() == [1.25, 100, 100]
    for axis in (above, below):
        assert [10, 10] in [list(line.get_xdata()) for line in axis.lines]  # the ridge
    (words,) = above.texts
    assert (words.get_text(), words.get_position()[0]) == ("ridge: 10 FLOP/byte ", 10)
    assert words.get_position()[1] == pytest.approx(1.3 * above.get_ylim()[0])
    assert labels(figure) == ["bytes that lanes ask for", "bytes of sectors that subgroups touch"]


def test_a_roof_reaches_beyond_its_ridge():
    counters = {"flops": 32, "global_bytes": 64, "global_sectors": 2}
    run = SimpleNamespace(counters=counters, device=SimpleNamespace(sector_bytes=32))
    above, _ = figures.roofline({"copy": run}, 100.0, 10.0).axes
    (roof,) = (line for line in above.lines if len(line.get_xdata()) == 3)
    assert roof.get_xdata().tolist() == [0.25, 10, 30]


# ---- lanes ---------------------------------------------------------------------------------------------

WORKS, WAITS, FINISHED, NOTHING = range(4)


def works(active, subgroup, epoch, kind="load"):
    made = asked(np.where(np.array(active, bool), 0, -1), kind, subgroup=subgroup, epoch=epoch)
    return SimpleNamespace(site=SimpleNamespace(kind=kind, variable="x", is_work=kind != "barrier"), subgroup=subgroup,
                           epoch=epoch, active=made.active)  # fmt: skip


def test_the_state_of_each_lane_at_each_request():
    """Subgroup 0 makes two requests before the barrier, and subgroup 1 one; after it, lane 2 works alone.

    Lane 3 only comes to the barrier, and lane 4 never works."""
    one = traced(
        works([1, 1], 0, 0), works([1, 0], 0, 0), works([1, 0], 1, 0), works([0, 1], 1, 0, "barrier"),
        works([0, 0], 2, 0), works([1, 0], 1, 1), lanes=4,
    )  # fmt: skip
    states = figures.lane_states(traced(*one.requests, lanes=5))
    assert states.tolist() == [
        [WORKS, WORKS, FINISHED], [WORKS, FINISHED, FINISHED], [WORKS, WAITS, WORKS], [NOTHING] * 3, [NOTHING] * 3,
    ]  # fmt: skip


def test_a_panel_of_lanes_for_each_trace():
    one = traced(works([1, 1], 0, 0), works([1, 0], 1, 0), lanes=4)
    figure = figures.lane_map({"a": one, "b": one})
    first, second = figure.axes
    assert first.get_title() == "a\n62.5% of all threads work"
    assert second.get_title().startswith("b\n")
    assert first.images[0].get_array().tolist() == [[WORKS], [WORKS], [WORKS], [NOTHING]]
    assert (first.get_ylabel(), second.get_ylabel()) == ("lane", "")
    assert first.get_xlabel() == "requests of a subgroup, in order"
    assert first.get_yticks().tolist() == [0]
    assert labels(figure) == [words for words, _ in figures.STATES]
    colours = first.images[0].cmap.colors
    norm = first.images[0].norm
    assert [colours[norm(state)] for state in range(4)] == [colour for _, colour in figures.STATES]


@pytest.mark.parametrize(("lanes", "ticks"), [(64, [0, 32]), (256, [*range(0, 256, 32)]), (512, [*range(0, 512, 64)])])
def test_few_lanes_are_numbered(lanes, ticks):
    one = traced(*(works([1] * 32, subgroup, 0) for subgroup in range(lanes // 32)), lanes=lanes, subgroup_size=32)
    assert figures.lane_map({"a": one}).axes[0].get_yticks().tolist() == ticks


def test_lines_of_utilization_are_told_apart():
    names = "abcdefg"
    (axis,) = figures.utilization({name: {64: 0.5} for name in names}, "size").axes
    assert [line.get_marker() for line in axis.lines] == list("osD^vPo")
    assert [line.get_linestyle() for line in axis.lines] == ["-", "--", ":", "-", "--", ":", "-"]
    assert [line.get_color() for line in axis.lines] == [*figures.CYCLE, figures.CYCLE[0]]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == list(names)
    assert axis.get_xscale() == "log"
    assert axis.get_xticks(minor=True).size == 0
    assert [line.get_markersize() for line in axis.lines] == [11, 8, 5, 4, 4, 4, 4]


def test_a_drawing_displays_itself_as_an_image():
    figure, axes = figures._figure(2, 3, 4.0)
    assert (axes.shape, figure.get_size_inches().tolist()) == ((2, 3), [10.0, 4.0])
    png = figure._repr_png_()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (1000, 400)


def test_bars_of_totals_have_the_colours_of_their_runs():
    runs = {str(number): SimpleNamespace(counters={"flops": number + 1}) for number in range(7)}
    (axis,) = figures.totals(runs, {"flops": "FLOPs"}).axes
    assert len({bar.get_facecolor() for bar in axis.patches}) == 6
    assert axis.patches[0].get_facecolor() == axis.patches[6].get_facecolor()
    assert axis.get_xticks().size == 0
    assert [axis.spines[side].get_visible() for side in ("top", "right", "bottom", "left")] == [False] * 3 + [True]
