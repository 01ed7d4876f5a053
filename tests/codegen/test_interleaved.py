"""Interleaved workgroups leave the same outputs and findings as workgroups one after the other.

Bankshot interleaves where it estimates a gain; most tests here interleave every kernel that allows it.
"""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.oracle.manifests.reflection import check_module
from bankshot.sim.ir.passes import ALL
from bankshot.sim.launch.threads import THREADS
from bankshot.sim.run import dispatch
from tests.analysis.test_tail_lanes import BEFORE, NUMBERS, SEEN, checked, simulate, source_of
from tests.ir.test_passes import simulate as simulate_with
from tests.ir.test_passes import told
from tests.programs_made import random_programs as rp
from tests.programs_made.project_kernels import project_kernels

SIDE_BY_SIDE = ALL - {"interleaved"}
ALONE = "a shuffle", "votes", "atomics", "unwritten memory"  # bodies in which lanes, or workgroups, see each other


@pytest.fixture
def always_interleaved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interleave every kernel that can be, in grids of any size."""

    def several(_: dispatch.Dispatch, launch: dispatch.Launch) -> int:
        return 16 if launch.can_interleave else 0

    monkeypatch.setattr(dispatch.Dispatch, "_interleaved", several)
    monkeypatch.setenv(THREADS, "1")  # several threads would race where workgroups do


def ran(body: str, size: int, groups: int, **options) -> bankshot.Run:
    """Run a body interleaved, and check that it leaves what it does otherwise."""
    module = checked(source_of(f"let at = group.x * {size}u + i; {body}", size, BEFORE))
    done = simulate(module, size, groups, probes="none", **options)
    not_interleaved = simulate(module, size, groups, probes="none", passes=SIDE_BY_SIDE, **options)
    assert told(done) == told(not_interleaved)
    assert not not_interleaved.program.interleaved
    return done


# ---- the same results --------------------------------------------------------------------------------


@pytest.mark.usefixtures("always_interleaved")
@pytest.mark.parametrize(("size", "groups"), [(128, 5), (40, 37), (13, 20)])
@pytest.mark.parametrize("name", SEEN)
def test_outputs_and_findings_are_the_same(name: str, size: int, groups: int) -> None:
    """In batches of 16 that are not full, and of lanes that fill no vector."""
    done = ran(f"{NUMBERS} {SEEN[name]}", size, groups)
    assert not (done.program.interleaved and name in ALONE)


@pytest.mark.usefixtures("always_interleaved")
@pytest.mark.parametrize("seed", range(400, 445))
def test_random_control_flow(seed: int) -> None:
    """Each invocation logs what a plain interpreter does; eighteen workgroups are two batches."""
    size = (7, 24, 40)[seed % 3]
    count = 18 * size
    given = np.array([(i * 7 + i // 5) % 11 if i % size < 13 else 0 for i in range(count)], np.uint32)
    program = rp.Maker(seed).program()
    bindings = {"out": np.zeros(count * rp.LOGGED, np.uint32), "given": given, "same": 2}
    done = bankshot.simulate(rp.render(program, size), grid=18, bindings=bindings, probes="none", budget=100_000)
    got = done.outputs["out"].reshape(count, rp.LOGGED).tolist()
    assert got == [rp.interpret(program, int(given[i]), 2, i) for i in range(count)]


def test_random_programs_are_interleaved(always_interleaved: None) -> None:
    """More than half of them; the others have no loop, or none in which lanes are inactive."""
    interleaved = []
    for seed in range(400, 420):
        source = rp.render(rp.Maker(seed).program(), 24)
        bindings = {"out": np.zeros(18 * 24 * rp.LOGGED, np.uint32), "given": np.zeros(18 * 24, np.uint32), "same": 2}
        interleaved.append(bankshot.simulate(source, grid=18, bindings=bindings, probes="none").program.interleaved)
    assert sum(interleaved) > 10


KERNELS = {f"{plan.kernel.path.stem}-{plan.kernel.name}": plan for plan in project_kernels()}


@pytest.mark.usefixtures("always_interleaved")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str) -> None:
    plan = KERNELS[name]
    case = plan.case(min(plan.shapes, key=lambda shape: np.prod(list(shape.dims.values()))))
    module, kernel = check_module(case.kernel), case.kernel
    given = {"entry": kernel.entry, "grid": case.grid, "bindings": case.bindings, "overrides": kernel.overrides}
    interleaved, not_interleaved = (simulate_with(p, module, probes="none", **given) for p in (ALL, SIDE_BY_SIDE))
    assert told(interleaved) == told(not_interleaved)


# ---- what shows the order of workgroups --------------------------------------------------------------

LOOP = "if i < 3u { var t = i; for (var k = 0u; k < 4u + group.x % 3u; k++) { t = t * 3u + k; } "


@pytest.mark.usefixtures("always_interleaved")
def test_the_last_workgroup_stores_last() -> None:
    """Interleaved, workgroup 3 would store after workgroup 4, for it takes more iterations."""
    later = "if i < 3u { for (var k = i; k < 9u - group.x; k++) { y[k] = group.x * 10u + i; } }"
    done = ran(later, 64, 5)
    assert done.outputs["y"][:10].tolist() == [40, 40, 40, 40, 40, 30, 20, 10, 0, 0]
    assert not done.program.interleaved


@pytest.mark.usefixtures("always_interleaved")
@pytest.mark.parametrize("first", [0, 16, 35])
def test_a_few_of_many_workgroups_store_to_one_word(first: int) -> None:
    """Five of 40, which run in several parts; the others store where no other does."""
    few = f"let r = group.x - {first}u; if i < 3u && r < 5u "
    stores = "{ for (var k = i; k < 9u - r; k++) { y[k] = r * 10u + i; } } "
    done = ran(few + stores + "else if i < 3u { for (var k = 0u; k < 2u; k++) { y[at + 9u] = k; } }", 64, 40)
    assert done.outputs["y"][:9].tolist() == [40, 40, 40, 40, 40, 30, 20, 10, 0]
    assert not done.program.interleaved


@pytest.mark.usefixtures("always_interleaved")
def test_stores_past_the_end_meet_at_the_last_element() -> None:
    """All stores go to the last of 320 elements; workgroup 4 is the last to store."""
    done = ran(LOOP + "y[at + 1000u] = group.x; }", 64, 5)
    assert done.outputs["y"][-1] == 4
    assert not done.program.interleaved
    nowhere = ran(LOOP + "y[at + 1000u] = group.x; }", 64, 5, out_of_bounds="zero")
    assert not nowhere.outputs["y"].any()
    assert nowhere.program.interleaved


@pytest.mark.usefixtures("always_interleaved")
def test_neighbours_that_share_a_word_do_not_meet() -> None:
    """Two workgroups store to the halves of each word."""
    source = """enable f16; @group(0) @binding(0) var<storage, read_write> h: array<f16>;
    @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {
        if i == 0u { var t = 0h; for (var k = 0u; k <= g.x; k++) { t += f16(k); } h[g.x] = t; } }"""
    done = bankshot.simulate(source, grid=20, bindings={"h": np.zeros(20, np.float16)}, probes="none")
    assert done.outputs["h"].tolist() == [k * (k + 1) / 2 for k in range(20)]
    assert done.program.interleaved


@pytest.mark.usefixtures("always_interleaved")
def test_a_divergent_barrier_is_reported_for_each_workgroup() -> None:
    body = LOOP + "shared_[i] = t; if group.x > 1u { workgroupBarrier(); } y[at] = shared_[i]; }"
    done = ran(body, 64, 5)
    (finding,) = done.findings
    assert (finding.code, finding.count, finding.workgroup) == ("barrier-divergence", 3, (2, 0, 0))
    assert not done.program.interleaved


@pytest.mark.usefixtures("always_interleaved")
def test_an_endless_loop_is_reported_for_its_workgroup() -> None:
    body = "if i < 3u { var t = i; loop { t = t * 5u + 1u; if t % 2u == 3u - group.x { break; } } y[at] = t; }"
    done = ran(body, 64, 6, budget=1000)
    assert [(finding.code, finding.workgroup) for finding in done.findings] == [("endless-loop", (0, 0, 0))]


@pytest.mark.usefixtures("always_interleaved")
@pytest.mark.parametrize(
    "body",
    [
        LOOP + "y[at] += t; }",  # reads what it stores to
        LOOP + "atomicAdd(&count, t); }",
        LOOP + "y[at] = subgroupAdd(t); }",
        "y[at] = i * 3u;",  # has no loop
        "for (var k = 0u; k < 4u; k++) { y[at] = k; }",  # of all lanes
    ],
)
def test_bodies_that_are_never_interleaved(body: str) -> None:
    assert not ran(body, 64, 40).program.interleaved


# ---- where it pays -----------------------------------------------------------------------------------

WORK = "if i < {} {{ var t = i; for (var k = 0u; k < 40u; k++) {{ t = t * 3u + k; t ^= k * 5u; }} y[at] = t; }}"


def worked(count: int) -> list[int]:
    made = []
    for i in range(count):
        t = i
        for k in range(40):
            t = ((t * 3 + k) & 0xFFFFFFFF) ^ (k * 5)
        made.append(t)
    return made


@pytest.mark.parametrize(("size", "active", "pays"), [(256, 2, True), (256, 250, False), (64, 1, True)])
def test_workgroups_are_interleaved_where_few_lanes_have_work(size: int, active: int, pays: bool) -> None:
    done = ran(WORK.format(f"{active}u"), size, 50)
    assert done.program.interleaved == pays
    assert done.outputs["y"].reshape(50, size)[:, :active].tolist() == [worked(active)] * 50
    assert not done.outputs["y"].reshape(50, size)[:, active:].any()


def test_few_workgroups_and_probes_prevent_interleaving() -> None:
    few = WORK.format("2u")
    assert not ran(few, 256, 20).program.interleaved
    module = checked(source_of(f"let at = group.x * 256u + i; {few}", 256))
    for probes in ("lanes", "races", "bounds"):
        assert not simulate(module, 256, 50, probes=probes).program.interleaved


def test_the_sampled_workgroup_leaves_no_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workgroup 25 of 50 is sampled: it stores where workgroup 49 does later, and is stopped before it ends."""
    monkeypatch.setenv(THREADS, "1")
    body = "if i < 250u { var t = 0u; for (var k = 0u; k < 20000u; k++) { t += k; } y[i] = t + group.x; }"
    done = ran(body, 256, 50)
    assert done.outputs["y"][:250].tolist() == [20000 * 19999 // 2 + 49] * 250
    assert done.findings == []
