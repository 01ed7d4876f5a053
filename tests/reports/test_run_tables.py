"""The totals and tables of a run, over figures that are made up, so that each cell is known by hand."""

import io
from types import SimpleNamespace

import pytest

from bankshot.oracle.reports import run_text, tables
from bankshot.oracle.reports.run_text import show_table
from bankshot.oracle.reports.tables import Table
from bankshot.oracle.reports.terminal import amount, console, duration
from bankshot.sim.run.traffic import Traffic
from bankshot.sim.utilization.utilization import Headline, LineUse, Utilization

IDLE = {"idle_guard": 0, "idle_overhang": 0, "idle_divergence": 0, "idle_skipped": 0}
# Active lanes and idle ones by cause; the words, and the letters beside a line of 200 issued lanes.
IDLE_LANES = [
    ({"active_lanes": 10}, "", ""),
    ({"active_lanes": 50, "idle_guard": 50}, "50.0%: 50.0% behind a guard", "25g"),
    ({"active_lanes": 138, "idle_guard": 50, "idle_overhang": 12},
     "31.0%: 25.0% behind a guard, 6.0% past the workgroup", "25g 6o"),
    ({"active_lanes": 0, "idle_divergence": 1}, "100.0%: 100.0% diverged", "<1d"),
    ({"active_lanes": 199, "idle_divergence": 1}, "0.5%: 0.5% diverged", "<1d"),
]  # fmt: skip


@pytest.mark.parametrize(("counts", "words", "letters"), IDLE_LANES)
def test_idle_lanes(counts, words, letters):
    totals = IDLE | counts
    assert tables.idle_words(totals) == words
    issued = 200 if counts != IDLE_LANES[4][0] else 201
    assert tables.idle_letters(totals, issued) == letters


def test_useful_flops():
    assert tables.useful(SimpleNamespace(counters={"flops": 0}, padding_flops=0)) == {}
    assert tables.useful(SimpleNamespace(counters={"flops": 8}, padding_flops=2)) == {"useful_flops": 0.75}


def site(turns, executions=1_000, atomics=32_000, name="sum"):
    place = SimpleNamespace(file="/folder/kernel.wgsl")
    return SimpleNamespace(span=SimpleNamespace(place=place), line=7, name=name, executions=executions, atomics=atomics,
                           atomic_turns=turns, turns_per_request=turns / executions)  # fmt: skip


def test_atomics_that_are_serialized():
    table = tables.atomic_table(SimpleNamespace(sites=[site(0), site(32_000), site(1_234, name="count")]))
    assert table.rows == (
        ("kernel.wgsl:7 sum", "1,000", "32,000", "32-way"),
        ("kernel.wgsl:7 count", "1,000", "32,000", "1.23-way"),
    )
    assert (table.caption, table.headings) == (
        "atomic operations", ("place", "by subgroups", "by lanes", "on one word")
    )  # fmt: skip


def run(flops, *traffic, peaks=(0, 0)):
    device = SimpleNamespace(name="gpu", peak_flops=peaks[0], peak_bandwidth=peaks[1])
    return SimpleNamespace(counters={"flops": flops}, traffic=traffic, device=device, instructions=(), sites=())


X, Y, Z = (Traffic(*of, 9_999) for of in (("x", 4_000, 8_000, 1_000), ("y", 2_000, 2_000, 2_000), ("z", 0, 0, 0)))


def test_bytes_of_storage():
    table = tables.traffic_table(run(0, X, Z, Y))
    assert table.rows == (("x", "4000", "8000", "1000", "4", "8"), ("y", "2000", "2000", "2000", "1", "1"))
    assert table.notes == ()
    assert table.headings == (
        "buffer", "requested", "of sectors", "touched", "reuse: requested / touched", "sectors / touched"
    )  # fmt: skip
    none = tables.traffic_table(run(9, Z))
    assert (none.rows, none.notes) == ((), ())


UNUSED = Utilization(None, None, None, None, (), None, 0, 0, exact=False, missing="")


def test_tables_without_rows_are_left_out():
    def captions(*buffers):
        return [table.caption for table in tables.tables(SimpleNamespace(**vars(run(9, *buffers)), utilization=UNUSED))]

    assert captions(Z) == []
    assert captions(X) == ["bytes of storage"]


def line(number, issued, active, useful, text="  y[i] = sum;"):
    place = SimpleNamespace(file="/folder/kernel.wgsl", line=number, column=3)
    span = SimpleNamespace(place=place, line=number, line_text=text)
    return LineUse(span, issued, active, useful)


def used(**facts):
    lines = (line(3, 400, 400, 400), line(4, 200, 100, 50), line(9, 400, 400, 0, "let a = " + 80 * "b"))
    known = {"lane_efficiency": 0.9, "useful_lane_efficiency": 0.45, "workgroup_balance": 1.0, "grid_fill": None}
    headline = Headline("useful_lane_efficiency", 0.45, "most is in vain", lines[2].span)
    rest = {"lines": lines, "headline": headline, "measured": 3, "workgroups": 90, "exact": True, "missing": ""}
    return SimpleNamespace(utilization=Utilization(**known | rest | facts))


def test_utilizations_that_are_known():
    table = tables.utilization_table(used())
    assert table.caption == "utilization: 45.0%, useful lane efficiency"
    assert table.rows == (
        ("lane efficiency", "90.0%"), ("useful lane efficiency", "45.0%"), ("workgroup balance", "100.0%")
    )  # fmt: skip
    assert table.notes == ("most is in vain (kernel.wgsl:9)",)


def test_what_utilizations_are_of():
    sample = tables.utilization_table(used(exact=False, headline=None))
    assert sample.caption == "utilization"
    assert sample.notes == ("from 3 of 90 workgroups, a sample",)
    missing = tables.utilization_table(used(exact=False, headline=None, missing="it is long"))
    assert missing.notes == ("useful lanes are not measured: it is long",)


def test_lines_that_lose_slots_worst_first():
    assert tables.line_table(used()).rows == (
        ("kernel.wgsl:9 let a = " + 52 * "b", "40.0%", "100.0%", "0.0%"),
        ("kernel.wgsl:4 y[i] = sum;", "20.0%", "50.0%", "25.0%"),
    )
    many = tuple(line(number, 10 + number, 10, 0) for number in range(1, 10))
    assert [row[0] for row in tables.line_table(used(lines=many)).rows] == [
        f"kernel.wgsl:{number} y[i] = sum;" for number in (9, 8, 7, 6, 5)
    ]


def test_intensities_and_the_roof():
    words = ["1 FLOP per byte requested", "0.6 FLOP per byte of sectors touched", "2 FLOP per byte that must move"]
    assert tables.traffic_table(run(6_000, X, Y)).notes == tuple(words)
    # At 2 FLOP per byte, 1,000 bytes per second feed 2,000 of 9,000 FLOP per second; at 500, the device is the limit.
    for peaks, roof in (((9_000, 1_000), "memory, at most 2000 FLOP/s"), ((500, 1_000), "compute, at most 500 FLOP/s")):
        last = f"{words[2]}: under the roofline of gpu bound by {roof}"
        assert tables.roofline_words(run(6_000, X, Y, peaks=peaks)) == [*words[:2], last]
    for peaks in ((0, 1_000), (9_000, 0)):
        assert tables.roofline_words(run(6_000, X, Y, peaks=peaks)) == words
    assert tables.roofline_words(run(0, X, Y, peaks=(9_000, 1_000))) == []


def printed(show, *given):
    stream = io.StringIO()
    show(console(stream), *given)
    return stream.getvalue().splitlines()


RULE = "\u2500"


def test_a_table_has_a_heading_a_rule_and_five_blanks_between_columns():
    table = Table(
        "what", ("", "a", "number"), (("first", "1", "2,000"), ("second", "33", "4")), ("one note", "another")
    )
    lines = printed(show_table, table)
    assert [line.rstrip() for line in lines] == [
        "",
        "   what        a     number",
        f" {RULE * 26}",
        "   first       1      2,000",
        "   second     33          4",
        "",
        "  one note",
        "  another",
        "",
    ]
    assert {len(line) for line in lines[:6]} == {28}


def test_a_column_for_each_device(monkeypatch):
    monkeypatch.setattr(
        run_text, "DEVICE_ROWS", (("bytes", lambda charged: charged.bytes), ("limit", lambda charged: "x"))
    )
    devices = [
        SimpleNamespace(device=SimpleNamespace(name=name), bytes=size) for name, size in (("one", "1"), ("b", "22"))
    ]
    lines = printed(run_text.show_devices, devices)
    assert [line.rstrip() for line in lines] == [
        "",
        "   on each device     one      b",
        f" {RULE * 31}",
        "   bytes                1     22",
        "   limit                x      x",
        "",
    ]
    assert {len(line) for line in lines} == {33}
    assert printed(run_text.show_devices, []) == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (12.345, "12.35 s"), (0.1, "0.10 s"), (0.0999, "100 ms"), (0.0124, "12 ms"), (1e-3, "1 ms"),
        (9.99e-4, "999 us"), (1.6e-6, "2 us"), (0.0, "0 us"),
    ],
)  # fmt: skip
def test_a_duration_in_a_few_digits(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [(0.125, "%", "12.5%"), (1.23456, "ratio", "1.23"), (12_345, "bytes", "12,345 bytes"), (7, "", "7")],
)
def test_an_amount_with_its_unit(value, unit, words):
    assert amount(value, unit) == words
