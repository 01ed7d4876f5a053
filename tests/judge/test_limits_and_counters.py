"""Expected counters, limits of a dispatch, the counters of two accounts, and what a recording charges."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.oracle.errors import UsageError
from bankshot.oracle.gpu_account.account import COUNTERS
from bankshot.oracle.gpu_account.regions import Place
from bankshot.oracle.judge import counter_checks, counter_diff, counter_recording
from bankshot.oracle.judge.counter_checks import CounterCheck, limit_checks
from bankshot.oracle.judge.counter_diff import CounterDiff, hardware_of
from bankshot.sim.models import get
from bankshot.sim.wgsl.source import Source, Span

# ---- the manifest's figures --------------------------------------------------------------------------

RUN = {"flops": 100, "global_bytes": 50, "shared_wavefronts": 12, "shared_ideal_wavefronts": 8, "barriers": 3}


def figures(monkeypatch, **expected):
    monkeypatch.setattr(counter_checks, "expected_counters", lambda case: expected)
    bindings = [SimpleNamespace(name="out")]
    case = SimpleNamespace(kernel=SimpleNamespace(path=Path("k.toml"), bindings=bindings))
    return [(each.counter, each.expected, each.actual, each.ok) for each in counter_checks.counter_checks(case, RUN)]


def test_each_figure_of_the_manifest_is_checked(monkeypatch):
    assert figures(monkeypatch, flops=100, barriers=2, bank_conflicts=4, intensity=2.0) == [
        ("flops", 100, 100, True), ("barriers", 2, 3, False), ("bank_conflicts", 4, 4, True),
        ("intensity", 2.0, 2.0, True),
    ]  # fmt: skip
    assert figures(monkeypatch) == []
    assert [CounterCheck("x", 2, actual).ok for actual in (1, 2, 3)] == [False, True, False]


@pytest.mark.parametrize(("name", "close"), [("flop", "flops"), ("outt", "out"), ("bank_conflict", "bank_conflicts")])
def test_a_figure_that_is_no_counter_is_an_error(monkeypatch, name, close):
    words = rf"^k.toml: \[expect\] names {name}, which is no output and no counter, did you mean '{close}'\?$"
    with pytest.raises(UsageError, match=words):
        figures(monkeypatch, **{"flops": 100, name: 1})


# ---- limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "maximum", "found"),
    [
        (4096, 20_000, []),  # 16,384 bytes, WebGPU's default
        (4100, 20_000, [(16_400, 16_384, True)]),  # a device has more
        (4100, 16_400, [(16_400, 16_384, True)]),
        (4104, 16_400, [(16_416, 16_400, False)]),
    ],
)
def test_workgroup_memory_may_take_what_the_device_has(words, maximum, found):
    pipeline = SimpleNamespace(globals=(), workgroup_size=(1, 1, 1), workgroup_bytes=4 * words)
    device = SimpleNamespace(workgroup_bytes_max=maximum)
    checks = limit_checks(SimpleNamespace(bindings={}, grid=(1, 1, 1)), pipeline, device)
    assert [(each.exceeded.value, each.exceeded.maximum, each.ok) for each in checks] == found


def test_buffers_are_held_to_the_limits_of_their_address_space():
    def bound(uniform, storage):
        names = {"u": ("uniform", uniform), "s": ("storage", storage), "w": ("workgroup", 0), "t": ("handle", 0)}
        variables = [SimpleNamespace(name=name, space=space) for name, (space, _) in names.items()]
        pipeline = SimpleNamespace(globals=variables, workgroup_size=(64, 1, 1), workgroup_bytes=0)
        bindings = {"u": np.zeros(uniform, np.uint8), "s": np.broadcast_to(np.uint8(0), storage), "t": "a texture"}
        case = SimpleNamespace(bindings=bindings, grid=(70_000, 1, 1))
        checks = limit_checks(case, pipeline, SimpleNamespace(workgroup_bytes_max=0))
        return [(each.exceeded.what, each.exceeded.value, each.ok) for each in checks]

    grid = ("workgroups along x", 70_000, True)
    assert bound(65_536, 1 << 27) == [grid]
    assert bound(65_537, 1 << 27) == [("bytes of uniform binding u", 65_537, True), grid]
    assert bound(65_536, (1 << 27) + 1) == [("bytes of storage binding s", (1 << 27) + 1, True), grid]


# ---- two accounts ------------------------------------------------------------------------------------

SOURCE = Source("y = a + b; z = c;", "k.wgsl")
LATE, EARLY = Span(SOURCE, 11, 16), Span(SOURCE, 0, 9)


def place(span, kind="store", space="storage", part=""):
    return Place(kind, span, space, "y", 4, part)


def compared(ours, theirs, instructions=(), counted=None, invocations=64, working=64, **totals):
    """The differences of `ours` and `theirs`: executions and active lanes by place."""

    def counts(executions, lanes):
        return dict.fromkeys(COUNTERS, 0) | {"executions": executions, "active_lanes": lanes}

    sites = [
        SimpleNamespace(
            site=SimpleNamespace(kind=at.kind, span=at.span, space=at.space, variable=at.variable,
                                 bytes_per_lane=at.bytes_per_lane, part=at.part, name=at.name),
            counts=lambda made=made: counts(*made),
        )
        for at, made in ours.items()
    ]  # fmt: skip
    account = SimpleNamespace(
        places={at.key: at for at in theirs},
        counters={at.key: counts(*made) for at, made in theirs.items()},
        instructions=counted or {},
        shape=SimpleNamespace(lanes=32, subgroup_size=32),
        working=range(working),
    )
    facts = {"workgroups": 2, "invocations": 64, "simt_efficiency": 0.75, "working_invocations": 1.0} | totals
    run = SimpleNamespace(sites=sites, instructions=list(instructions), counters=facts)
    found, number = counter_diff.compare(run, account, invocations)
    return [(each.site and each.site.span.start, each.counter, each.simulated, each.counted) for each in found], number


def test_equal_accounts_do_not_differ():
    both = {place(EARLY): (2, 48)}
    assert compared(both, both) == ([], len(COUNTERS) + 4)
    assert compared({**both, place(LATE): (0, 0)}, both) == ([], 2 * len(COUNTERS) + 4)


@pytest.mark.parametrize("name", ["ours alone", "theirs alone", "other counts", "another part"])
def test_places_that_differ_are_in_the_order_of_the_source(name):
    ours, theirs = {place(LATE): (1, 30), place(EARLY): (1, 18)}, {place(LATE): (1, 30), place(EARLY): (1, 18)}
    if name == "ours alone":
        del theirs[place(LATE)], theirs[place(EARLY)]
        expected = [(0, "executions", 1, 0), (0, "active_lanes", 18, 0), (11, "executions", 1, 0),
                    (11, "active_lanes", 30, 0), (None, "simt_efficiency", 0.75, 0.0)]  # fmt: skip
    elif name == "theirs alone":
        del ours[place(LATE)], ours[place(EARLY)]
        expected = [(0, "executions", 0, 1), (0, "active_lanes", 0, 18), (11, "executions", 0, 1),
                    (11, "active_lanes", 0, 30)]  # fmt: skip
    elif name == "other counts":
        theirs[place(LATE)] = (2, 30)
        theirs[place(EARLY)] = (1, 17)
        expected = [(0, "active_lanes", 18, 17), (11, "executions", 1, 2), (None, "simt_efficiency", 0.75, 47 / 96)]
    else:
        theirs[place(EARLY, part="b")] = theirs.pop(place(EARLY))
        expected = [*[(0, "executions", *pair) for pair in ((0, 1), (1, 0))],
                    *[(0, "active_lanes", *pair) for pair in ((0, 18), (18, 0))]]  # fmt: skip
    found, _ = compared(ours, theirs)
    assert sorted(found, key=str) == sorted(expected, key=str)
    starts = [start for start, *_ in found if start is not None]
    assert starts == sorted(starts)
    assert all(start is None for start, *_ in found[len(starts) :])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"invocations": 96}, [("workgroups", 2, 3.0), ("invocations", 64, 96), ("working_invocations", 1.0, 64 / 96)]),
        ({"invocations": 0, "working": 0},
         [("workgroups", 2, 0.0), ("invocations", 64, 0), ("working_invocations", 1.0, 0.0)]),
        ({"working": 32}, [("working_invocations", 1.0, 0.5)]),
        ({"simt_efficiency": 0.5}, [("simt_efficiency", 0.5, 0.75)]),
    ],
)  # fmt: skip
def test_totals_that_differ(given, expected):
    both = {place(EARLY): (2, 48)}
    found, _ = compared(both, both, **given)
    assert found == [(None, *each) for each in expected]


def test_an_account_with_a_figure_more_is_another():
    both = {place(EARLY): (2, 48)}
    row = SimpleNamespace(kind="integer", span=LATE, executions=3, lanes=40)
    assert compared(both, both, [row], {("integer", LATE): [3, 40]}) == ([], len(COUNTERS) + 2 + 4)
    assert compared(both, both, [row])[0] == [(11, "instructions_issued", 3, 0), (11, "instruction_lanes", 40, 0)]


@pytest.mark.parametrize(
    ("differences", "changed", "ok", "equal"),
    [
        ((), {}, True, True),
        (("one",), {}, False, True),
        ((), {"y": 1}, False, False),
        (("one",), {"y": 1}, False, False),
    ],
)
def test_counters_are_equal_where_nothing_differs_and_probes_change_nothing(differences, changed, ok, equal):
    made = CounterDiff(None, "nvidia", (1, 1, 1), False, 0, 1, 0, 0, 0, differences, changed)
    assert (made.ok, made.outputs_equal) == (ok, equal)
    assert sorted(made.not_compared) == ["padding_flops", "workgroup_memory_bytes"]


@pytest.mark.parametrize("name", ["nvidia", "amd", "apple", "lavapipe"])
def test_the_hardware_is_that_of_the_device(name):
    device, made = get(name), hardware_of(get(name))
    for field in ("subgroup_size", "banks", "bank_width", "pair_merge", "lane_order", "sector_bytes", "line_bytes"):
        assert getattr(made, field) == getattr(device, field)
    assert made.fused == (device.fma != "separate")


# ---- recordings --------------------------------------------------------------------------------------


def test_numbers_are_grouped_with_their_rows():
    found = counter_recording._grouped(np.array([5, 2, 5, 9, 2, 5], np.uint32))
    assert [(number, rows.tolist()) for number, rows in found] == [(2, [1, 4]), (5, [0, 2, 5]), (9, [3])]
    assert counter_recording._grouped(np.zeros(0, np.uint32)) == []


def test_the_words_of_a_row_are_workgroup_lane_path_and_stage():
    """The probe takes 12 bits, and the lane those up to `shift`; the path has two words, the stage the top of one."""
    lane, probe, shift = 37, 5, 12 + 6
    stage = 3
    low = stage << counter_recording.STAGE_SHIFT | 9
    rows = np.array([[7, 2 << shift | lane << 12 | probe, 11, low, 99]], np.uint32)
    made = counter_recording._passage(rows, shift)
    assert [each.tolist() for each in (made.workgroup, made.lane, made.path, made.stage)] == [
        [7], [lane], [11 << 32 | low], [stage],
    ]  # fmt: skip


def charged(probes, numbers):
    """What an account receives for rows of these probes, in order, and the invocations that came."""
    told = []
    account = SimpleNamespace(
        shape=SimpleNamespace(lanes=64, subgroup_size=32),
        entered=lambda region, passage, stages: told.append((region, passage.lane.tolist(), sorted(stages))),
        accessed=lambda at, passage, addresses: told.append((at, passage.lane.tolist(), addresses.tolist())),
    )
    shift = counter_recording.workgroup_shift(64)
    rows = [[3, 3 << shift | lane << 12 | probe, 0, stage << 24, address] for probe, lane, stage, address in numbers]
    planned = SimpleNamespace(regions=["whole", "branch"], accesses=["load", "store"])
    made = [SimpleNamespace(region=region, parts=parts) for region, parts in probes]
    came = counter_recording.charge(account, planned, SimpleNamespace(probes=made), np.array(rows, np.uint32))
    return told, came


def test_rows_are_charged_to_regions_and_to_each_part_of_an_access():
    """Probe 0 notes the stages that begin, 1 a region, and 2 a store of two words."""
    probes = [(None, []), (1, []), (None, [(1, 0), (0, 4)])]
    rows = [(0, 5, 0, 0), (0, 6, 0, 0), (0, 5, 1, 0), (1, 5, 0, 0), (2, 5, 0, 96), (2, 6, 0, 100)]
    assert charged(probes, rows) == (
        [("branch", [5], [(0, 3, 0), (1, 3, 0)]), ("store", [5, 6], [96, 100]), ("load", [5, 6], [100, 104])],
        2,
    )
    assert charged(probes, rows[3:]) == (
        [("branch", [5], []), ("store", [5, 6], [96, 100]), ("load", [5, 6], [100, 104])],
        0,
    )


EQUAL = CounterDiff(None, "nvidia", (1, 1, 1), False, 0, 1, 0, 0, 0, (), {})
UNEQUAL = CounterDiff(None, "nvidia", (1, 1, 1), False, 0, 1, 0, 0, 0, ("one",), {})


@pytest.mark.parametrize(
    ("plain", "zeroes", "zeroed", "result", "says"),
    [
        (EQUAL, "t[0] = 0;", UNEQUAL, EQUAL, False),
        (UNEQUAL, "", EQUAL, UNEQUAL, False),  # there is no workgroup memory to zero
        (UNEQUAL, "t[0] = 0;", EQUAL, EQUAL, True),
        (UNEQUAL, "t[0] = 0;", UNEQUAL, UNEQUAL, False),
    ],
)
def test_a_driver_that_does_not_zero_workgroup_memory_is_said(monkeypatch, plain, zeroes, zeroed, result, says):
    texts = []

    def counted(case, run, planned, info, cut, adapter, say, first=""):
        texts.append(first)
        return zeroed if first else plain

    monkeypatch.setattr(counter_diff.wgpu_client, "require_adapter", lambda adapter: None)
    monkeypatch.setattr(counter_diff, "_fitting", lambda *given: (None, SimpleNamespace(pipeline=None), False))
    monkeypatch.setattr(counter_diff, "plan", lambda run: None)
    monkeypatch.setattr(counter_diff, "_check_subgroups", lambda *given: None)
    monkeypatch.setattr(counter_diff, "zeroing_statements", lambda pipeline: zeroes)
    monkeypatch.setattr(counter_diff, "_counted", counted)
    found = counter_diff.diff_counters(None, "nvidia", None)
    assert (found.differences, found.zeroed) == (result.differences, says)
    assert texts in (["", "t[0] = 0; workgroupBarrier();"], [""])
    assert len(texts) == 1 + (plain is UNEQUAL and bool(zeroes))


def test_an_array_that_shadows_a_texture_has_no_texels(monkeypatch):
    text = """@group(0) @binding(0) var img: texture_2d<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 4>;
fn texel() -> f32 { return textureLoad(img, vec2(), 0).x; }
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
    let first = texel();
    var img = array<f32, 4>(1, 2, 3, 4);
    img[i ^ 1u] = first;
    y[i] = img[i];
}"""
    given = {"img": np.zeros((1, 1, 4), np.float16), "y": np.zeros(4, np.float32)}
    run = bankshot.simulate(text, grid=1, bindings=given)
    assert {site.kind for site in run.program.sites if site.variable == "img"} == {"load", "index"}
    found = {}
    monkeypatch.setattr(counter_recording, "find_regions", lambda pipeline, texels, fused: found.update(texels) or [])
    counter_recording.plan(run)
    assert found == {"img": 8}  # bytes of four halves
