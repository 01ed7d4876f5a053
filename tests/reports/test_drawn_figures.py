"""Traces of a workgroup, and what figures take from them, against a kernel that is known by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bankshot
from bankshot.oracle.errors import UsageError
from bankshot.oracle.gpu_counters import access_trace
from bankshot.oracle.gpu_counters.access_trace import Request as Asked
from bankshot.oracle.gpu_counters.access_trace import trace
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.reports import figures
from bankshot.sim.ir.sites import SourceSite
from bankshot.sim.wgsl.source import Source, Span

# Lane 0 alone adds up what the first half of the lanes left; the last 8 lanes never have anything to do.
KERNEL = """\
@group(0) @binding(0) var<storage, read_write> y: array<u32, 2>;
var<workgroup> parts: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    if lane < 56u {
        parts[lane] = group.x;
    }
    workgroupBarrier();
    if lane == 0u {
        for (var i = 0u; i < 2u; i += 1u) { y[group.x] = parts[i * 32u]; }
    }
}
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    file = tmp_path_factory.mktemp("trace") / "known.wgsl"
    file.write_text(KERNEL)
    (plan,) = plans([file], Request(grid=(2, 1, 1)))
    return trace(plan.case(plan.shapes[0]), (1, 0, 0))


def test_requests_come_in_order_with_the_addresses_of_each_lane(traced):
    assert [(r.site.kind, r.site.variable, r.subgroup, r.epoch) for r in traced.requests if r.site.kind != "op"] == [
        ("store", "parts", 0, 0),
        ("store", "parts", 1, 0),
        ("barrier", None, 0, 0),
        ("barrier", None, 1, 0),
        *[("load", "parts", 0, 1), ("store", "y", 0, 1)] * 2,
    ]
    first, second = traced.of("parts", "store")
    assert first.addresses.tolist() == [4 * lane for lane in range(32)]
    assert second.addresses.tolist() == [4 * lane for lane in range(32, 56)] + [-1] * 8
    assert [r.addresses[0] for r in traced.of("parts", "load")] == [0, 128]
    assert [r.addresses[0] for r in traced.of("y")] == [4, 4]  # of workgroup 1
    assert (traced.epochs, traced.lanes) == (2, 64)
    assert traced.lines("parts", "store") == [6]


def test_a_workgroup_that_is_not_there_is_wrong_use(traced):
    with pytest.raises(UsageError, match=r"workgroup \(2, 0, 0\) is outside the grid \(2, 1, 1\)"):
        trace(traced.case, (2, 0, 0))


def test_lanes_idle_for_a_reason(traced):
    figures = pytest.importorskip(
        "bankshot.oracle.reports.figures", reason="figures need matplotlib: pip install 'bankshot[notebooks]'"
    )
    works, waits, finished, nothing = range(4)
    states = figures.lane_states(traced)
    assert [words.split(":")[0] for words, _ in figures.STATES] == [
        "works",
        "waits",
        "has finished",
        "never has anything to do",
    ]
    assert set(states[0]) == {works}
    assert set(states[56:].ravel()) == {nothing}
    after = states[1:56, -1]
    assert set(after) == {finished}
    assert waits not in states


def request(words, active):
    site = SourceSite("store", Span(Source(""), 0, 0), "workgroup", "tile", 4)
    return Asked(site, 0, 0, np.where(active, 4 * np.array(words), -1))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 255), min_size=32, max_size=32), st.lists(st.booleans(), min_size=32, max_size=32))
def test_as_many_wavefronts_are_drawn_as_the_device_charges(words, active):
    figures = pytest.importorskip(
        "bankshot.oracle.reports.figures", reason="figures need matplotlib: pip install 'bankshot[notebooks]'"
    )
    one = request(words, active)
    served = figures.wavefront_of(one, bankshot.devices.NVIDIA)
    assert served.max() + 1 == bankshot.devices.NVIDIA.shared_wavefronts(np.array(words) * 4, 4, active, store=True)
    assert ((served >= 0) == np.array(active)).all()
    # In one wavefront, a bank gives one word.
    for wavefront in range(served.max() + 1):
        workgroups_per_batch = {words[lane] for lane in range(32) if served[lane] == wavefront}
        assert len({word % 32 for word in workgroups_per_batch}) == len(workgroups_per_batch)


def test_totals_have_a_panel_for_each_counter_and_a_bar_for_each_run():
    runs = {name: SimpleNamespace(counters={"flops": flops, "barriers": barriers})
            for name, flops, barriers in (("a", 3_000, 1), ("b", 20_000, 0))}  # fmt: skip
    figure = figures.totals(runs, {"flops": "FLOPs", "barriers": "barriers"})
    flops, barriers = figure.axes
    assert [axis.get_title() for axis in figure.axes] == ["FLOPs", "barriers"]
    assert [bar.get_width() for bar in flops.patches] == [3_000, 20_000]
    assert [bar.get_width() for bar in barriers.patches] == [1, 0]
    assert [text.get_text() for text in flops.texts] == ["3000", "20.0k"]
    assert [text.get_text() for text in flops.get_yticklabels()] == ["a", "b"]
    low, high = flops.get_ylim()
    assert low > high  # the first run is at the top


def counting(**counters):
    return SimpleNamespace(
        counters=counters,
        device=bankshot.devices.NVIDIA,
        pipeline=SimpleNamespace(workgroup_size=(16, 16, 1)),
    )


def test_totals_of_several_runs_are_their_sums():
    figure = figures.totals(
        {"both": [counting(flops=1), counting(flops=2)], "one": counting(flops=4)}, {"flops": "FLOPs"}
    )
    assert [bar.get_width() for bar in figure.axes[0].patches] == [3, 4]


@pytest.mark.parametrize(("values", "scale"), [((1, 99), "linear"), ((1, 100), "log"), ((0, 100), "linear")])
def test_totals_that_span_two_decades_have_a_log_scale(values, scale):
    figure = figures.totals({str(each): counting(flops=each) for each in values}, {"flops": "FLOPs"})
    (axis,) = figure.axes
    assert axis.get_xscale() == scale
    assert axis.get_title() == ("FLOPs (log scale)" if scale == "log" else "FLOPs")
    low, high = axis.get_xlim()
    assert low <= min(values)
    assert high > max(values)


def test_occupancy_is_drawn_for_each_device_and_memory_beside_its_limits():
    kernels = {name: counting(workgroup_memory_bytes=bytes_) for name, bytes_ in (("one", 8_448), ("two", 16_896))}
    apple = bankshot.devices.APPLE
    figure = figures.occupancy_bars(kernels, [apple], {"default": 16_384})
    held, memory = figure.axes
    # 64 KiB a core, in units of 256 bytes: 8,448 is 33 units, and 16,896 is 66, of 256.
    assert [bar.get_height() for bar in held.patches] == [256 // 33, 256 // 66]
    assert [bar.get_height() for bar in memory.patches] == [8_448, 16_896]
    assert [[*line.get_ydata()] for line in memory.lines] == [[16_384, 16_384]]
    assert "default: 16,384" in [text.get_text() for text in memory.texts]


def test_more_runs_than_colours_take_them_in_turn():
    runs = {f"run {n}": counting(flops=600, global_bytes=300, global_sectors=2) for n in range(8)}
    lines = figures.roofline(runs, 1_000, 100).axes[1].lines
    colours = {int(line.get_ydata()[0]): line.get_color() for line in lines if len(line.get_ydata()) == 1}
    assert len(colours) == 8
    assert [n for n in range(1, 8) if colours[n] == colours[0]] == [6]  # there are six


def test_a_device_is_named_below_the_middle_of_its_bars():
    kernels = {name: counting(workgroup_memory_bytes=8_448) for name in ("one", "two", "three")}
    held, _ = figures.occupancy_bars(kernels, [bankshot.devices.APPLE, bankshot.devices.NVIDIA], {"": 1}).axes
    centres = np.array([bar.get_x() + bar.get_width() / 2 for bar in held.patches]).reshape(3, 2)  # by kernel, device
    assert [label.get_text() for label in held.get_xticklabels()] == ["apple", "nvidia"]
    assert held.get_xticks() == pytest.approx(centres.mean(axis=0))
    assert (np.diff(centres, axis=0) > held.patches[0].get_width()).all()  # beside each other


def test_the_largest_limit_of_memory_fits_into_the_figure():
    kernels = {"one": counting(workgroup_memory_bytes=8_448)}
    figure = figures.occupancy_bars(kernels, [bankshot.devices.APPLE], {"default": 16_384, "device": 32_768})
    assert figure.axes[1].get_ylim() == (0, pytest.approx(1.2 * 32_768))


def test_a_roofline_has_a_mark_for_each_level_of_each_run():
    runs = {
        "a": counting(flops=600, global_bytes=300, global_sectors=2),
        "b": counting(flops=60, global_bytes=10, global_sectors=1),
    }
    figure = figures.roofline(runs, 1_000, 100, {"a": 30.0, "b": 5.0}, {"a": (25.0, 70e9)})
    above, below = figure.axes
    marks = [
        (line.get_marker(), *line.get_xdata(), *line.get_ydata()) for line in below.lines if len(line.get_xdata()) == 1
    ]
    assert marks == [("o", 2, 0), ("s", 600 / 64, 0), ("D", 20, 0), ("o", 6, 1), ("s", 60 / 32, 1), ("D", 12, 1)]
    roof = {
        (line.get_marker(), *line.get_xdata()): line.get_ydata()[0]
        for line in above.lines
        if len(line.get_xdata()) == 1
    }
    assert roof["o", 2] == 200  # memory: 2 FLOP a byte, 100 bytes a second
    assert roof["D", 20] == 1_000  # compute
    assert roof["*", 25] == 70e9  # as measured
    assert "a: 70 GFLOP/s" in [text.get_text() for text in above.texts]
    assert [text.get_text() for text in below.get_yticklabels()] == ["a", "b"]


def test_conflicts_show_what_each_access_takes_above_the_least():
    text = """\
var<workgroup> tile: array<f32, 1024>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lane: u32) {
    tile[lane] = 1.0;
    tile[lane * 32u] = 2.0;
}
"""
    (axis,) = figures.conflicts(bankshot.simulate(text, grid=1, bindings={}, probes="counters")).axes
    assert [text.get_text() for text in axis.get_yticklabels()] == ["line 4: store of tile", "line 5: store of tile"]
    assert [(bar.get_x(), bar.get_width()) for bar in axis.patches] == [(0, 1), (0, 1), (1, 0), (1, 31)]


def test_the_text_of_a_figure_changes_with_what_it_shows_and_with_nothing_else():
    def text(*values, title="FLOPs"):
        return repr(figures.totals({str(n): counting(flops=each) for n, each in enumerate(values)}, {"flops": title}))

    assert text(1, 2) == text(1, 2)
    assert text(1, 2).startswith("FLOPs | 1 | 2\ndrawn: ")
    assert len({text(1, 2), text(1, 3), text(1, 2, title="other"), text(10_000_001, 2), text(10_000_002, 2)}) == 4
    grid = figures.bank_grid({"a": request([0, 1] + [0] * 30, [True] * 2 + [False] * 30)}, bankshot.devices.NVIDIA)
    other = figures.bank_grid({"a": request([0, 2] + [0] * 30, [True] * 2 + [False] * 30)}, bankshot.devices.NVIDIA)
    assert repr(grid).splitlines()[:-1] == repr(other).splitlines()[:-1]
    assert repr(grid) != repr(other)


def test_utilization_is_drawn_in_percent_by_size():
    figure = figures.utilization({"a": {64: 0.5, 128: 1.0}, "b": {1_024: 0.25}}, "size")
    (axis,) = figure.axes
    assert [(line.get_label(), [*line.get_xdata()], [*line.get_ydata()]) for line in axis.lines] == [
        ("a", [64, 128], [50, 100]), ("b", [1_024], [25])
    ]  # fmt: skip
    assert [text.get_text() for text in axis.get_xticklabels()] == ["64", "128", "1,024"]
    assert (axis.get_ylim(), axis.get_xlabel(), axis.get_ylabel()) == ((0, 105), "size", "threads that work, %")
    styles = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axis.lines}
    assert len(styles) == 2


@pytest.mark.parametrize(("words", "named"), [(1, True), (8, True), (9, False), (16, False)])
def test_wavefronts_have_the_named_colours_while_there_are_enough(words, named):
    """Lanes 0 to `words` - 1 read so many words of one bank."""
    addresses = np.where(np.arange(32) < words, 128 * np.arange(32), -1)
    request = Asked(SourceSite("load", Span(Source(""), 0, 0), "workgroup", "tile", 4), 0, 0, addresses)
    (axis, *_) = figures.bank_grid({"load": request}, bankshot.devices.get("nvidia")).axes
    colours = axis.images[0].cmap.colors
    assert len(colours) == words
    assert (colours == figures.BANK_COLOURS[:words]) == named
    dark = [text.get_text() for text in axis.texts if text.get_color() == "white"]
    assert dark == [str(number) for number in range(1, 2 if named else -(-words // 2) + 1)]


@pytest.mark.parametrize(("step", "wavefronts"), [(1, 1), (2, 2), (8, 8), (32, 32), (33, 1)])
def test_each_lane_is_drawn_at_its_bank(step, wavefronts):
    addresses = 4 * step * np.arange(32)
    addresses[5] = -1
    request = Asked(SourceSite("load", Span(Source(""), 0, 0), "workgroup", "tile", 4), 0, 0, addresses)
    (axis, *_) = figures.bank_grid({"load": request}, bankshot.devices.get("nvidia")).axes
    drawn = {int(text.get_position()[1]): int(text.get_position()[0]) for text in axis.texts}
    assert drawn == {lane: lane * step % 32 for lane in range(32) if lane != 5}
    assert f"{wavefronts if step != 32 else 31} wavefront" in axis.get_title()


def test_a_log_is_as_long_as_what_the_simulator_counts_and_no_longer_than_fits(tmp_path, monkeypatch):
    file = tmp_path / "known.wgsl"
    file.write_text(KERNEL)
    (plan,) = plans([file], Request(grid=(2, 1, 1)))
    case = plan.case(plan.shapes[0])
    monkeypatch.setattr(access_trace, "_MOST_ROWS", 20)
    with pytest.raises(UsageError, match=r"a workgroup makes \d+ rows, at most 20 fit; choose a smaller shape"):
        trace(case)
    capacities = []
    plain = access_trace.record

    def record(*args):
        capacities.append(args[-1])
        return plain(*args)

    monkeypatch.setattr(access_trace, "record", record)
    monkeypatch.setattr(access_trace, "_MOST_ROWS", 1 << 22)
    trace(case)
    assert 120 < capacities[0] < 1 << 16
