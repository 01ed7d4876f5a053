"""What a finding says: both places, lanes, values, advice, and whether outputs depend on it."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
var<workgroup> t: array<u32, 64>;
var<workgroup> s: array<f32, 64>;
var<workgroup> total: u32;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {
    let at = group.x * 64u + i; _ = &x;
"""
FIRST = len(HEAD.splitlines()) + 1  # line of the body


def run(body: str, groups: int = 2, before: str = "", **options) -> bankshot.Run:
    count = 64 * groups
    bindings = {"y": np.zeros(count, np.uint32), "x": np.ones(count, np.float32)}
    module = bankshot.check(before + HEAD + body + "\n}", uniformity="off")
    return bankshot.simulate(module, grid=groups, bindings=bindings, **{"cures": False, **options})


def only(body: str, code: str, **options) -> bankshot.Finding:
    (finding,) = [f for f in run(body, **options).findings if f.code == code]
    return finding


def lines(finding: bankshot.Finding) -> list[int]:
    return [span.line - FIRST + 1 for _, span in finding.spans]


# ---- races -------------------------------------------------------------------------------------------


def test_a_race_names_both_places_lanes_values_and_the_word():
    finding = only("t[i] = i * 3u;\nlet n = t[(i + 1u) % 64u];\nworkgroupBarrier();\ny[at] = n;", "race")
    assert finding.message == "invocation 0 loads t[1], and invocation 1 stores to it; no barrier orders them"
    assert (lines(finding), finding.lanes, finding.workgroup, finding.epoch) == ([2, 1], (1, 0), (0, 0, 0), 0)
    assert finding.notes[0].message == "the store of 3 is here"
    assert finding.hint == f"put workgroupBarrier() between line {FIRST} and line {FIRST + 1}"
    assert finding.count == 2 * 64


def test_a_race_that_comes_round_with_the_loop():
    body = """for (var k = 0u; k < 2u; k++) {
        t[i] = k;
        workgroupBarrier();
        y[at] += t[63u - i];
    }"""
    finding = only(body, "race")
    assert (
        finding.hint
        == f"put workgroupBarrier() after line {FIRST + 3}, before the next iteration reaches line {FIRST + 1}"
    )
    assert finding.notes[0].message == "the load is here; the store changes its value from 0 to 1"
    assert finding.epoch == 1


def test_a_race_of_one_statement_may_be_between_iterations():
    finding = only("for (var half = 32u; half > 0u; half /= 2u) { if i < half { t[i] += t[i + half]; } }", "race")
    assert finding.hint == (
        f"put workgroupBarrier() between the two accesses, or after line {FIRST} if they are in different iterations"
    )


def test_the_barrier_of_the_wrong_kind_is_pointed_at():
    finding = only("t[i] = i;\nstorageBarrier();\ny[at] = t[63u - i];", "race")
    assert finding.notes[1].message == "storageBarrier orders storage memory, not workgroup memory"
    assert lines(finding) == [3, 1, 2]
    assert finding.hint == "use workgroupBarrier() there"
    assert (finding.verdict, finding.severity) == ("wrong-barrier", "error")


@pytest.mark.parametrize(("barrier", "codes"), [("texture", []), ("storage", ["race"]), ("workgroup", ["race"])])
def test_textures_have_a_barrier_of_their_own(barrier, codes):
    text = f"""
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var p: texture_storage_2d<r32uint, read_write>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {{
    textureStore(p, vec2u(i, 0u), vec4u(i));
    {barrier}Barrier();
    y[i] = textureLoad(p, vec2u(63u - i, 0u)).x;
}}"""
    bindings = {"y": np.zeros(64, np.uint32), "p": np.zeros((1, 64), np.uint32)}
    assert [f.code for f in bankshot.simulate(text, grid=1, bindings=bindings).findings] == codes


def test_two_workgroups():
    finding = only("y[i] = group.x + 5u;", "race")
    assert "of workgroup (1, 0, 0) stores to y[0]" in finding.message
    assert "nothing orders workgroups" in finding.message
    assert finding.notes[0].message == "one stores 5 here, the other 6"
    assert (finding.severity, finding.verdict) == ("error", "harmful")


def test_each_pair_of_places_is_one_finding():
    body = "t[i] = i;\ny[at] = t[63u - i];\ny[at] += t[62u - i % 63u];"
    assert sorted(lines(f) for f in run(body).findings) == [[2, 1], [3, 1]]


def test_a_whole_subgroup_stores_one_value():
    finding = only("total = 9u;\nworkgroupBarrier();\ny[at] = total;", "race")
    assert (finding.verdict, finding.severity) == ("same-value", "warning")
    assert finding.notes[0].message == "both store 9"


def test_a_race_that_no_output_shows():
    finding = only("t[i / 2u] = i;\nworkgroupBarrier();\ny[at] = min(t[i / 2u], 0u);", "race")
    assert (finding.verdict, finding.severity) == ("unseen", "warning")


def test_a_race_that_changes_outputs_says_how():
    finding = only("t[i] = i;\ny[at] = t[63u - i];", "race", groups=1)
    assert (finding.verdict, finding.severity) == ("harmful", "error")
    expected = "run subgroup-serial, 32 of 64 elements of y differ, the first is y[0]: 0 instead of 63"
    assert finding.notes[-1].message == expected


def test_values_of_every_type_are_shown():
    body = "s[0] = f32(i) / 2.0;\nworkgroupBarrier();\ny[at] = u32(s[0]);"
    assert only(body, "race").notes[0].message == "one stores 0.0 here, the other 0.5"


@pytest.mark.parametrize("size", [8, 32, 64])
def test_a_kernel_that_takes_a_subgroup_for_ordered(size):
    """No barrier among what is thought to be one subgroup: a race whatever its size is."""
    body = "t[i] = i;\ny[at] = t[i ^ 16u];"
    finding = only(body, "race", groups=1, device=bankshot.devices.NVIDIA.with_(subgroup_size=size))
    assert finding.verdict == "harmful"  # an invocation may run alone
    seen = run(
        body,
        groups=1,
        device=bankshot.devices.NVIDIA.with_(subgroup_size=size),
        schedule="subgroup-serial",
        probes="none",
    )
    right = [i ^ 16 for i in range(64)]
    assert (seen.outputs["y"].tolist() == right) == (size > 16)


def test_what_nobody_is_told_of_is_not_run_again(monkeypatch):
    assert only("t[i] = i;\ny[at] = t[63u - i];", "race", replay=False).verdict is None


def test_threads_see_the_races_of_other_threads(monkeypatch):
    def found(threads):
        monkeypatch.setattr("os.cpu_count", lambda: threads)
        done = run("if i == 0u { y[group.x / 100u] = group.x; }", groups=200)
        return [(f.count, f.message, f.lanes) for f in done.findings], done.outputs["y"][:2].tolist()

    assert found(1) == found(2) == found(5)
    assert found(2)[1] == [99, 199]


# ---- unwritten memory --------------------------------------------------------------------------------


def test_unwritten_memory_that_an_output_hangs_on():
    finding = only("y[at] = u32(s[i] + 1.0);", "uninit")
    assert finding.message == "invocation 0 loads s[0], which was never written"
    assert (finding.verdict, finding.severity, finding.count) == ("harmful", "warning", 128)


def test_the_component_that_nobody_wrote_is_named():
    before = "var<workgroup> q: array<vec4u, 64>;"
    finding = only("q[i].x = 1u; q[i].z = 3u; y[at] = dot(q[63u - i], vec4u(1u));", "uninit", before=before)
    assert finding.message == "invocation 0 loads q[63].y, which was never written"


def test_unwritten_memory_that_no_output_hangs_on():
    finding = only("y[at] = select(t[i], 3u, x[at] > 0.0);", "uninit")
    assert (finding.verdict, finding.severity) == ("unseen", "info")


@pytest.mark.parametrize(
    ("body", "moved_by"),
    [
        ("y[at] = t[i];", "NaNs"),
        ("y[at] = t[i] & 1u;", "all bits set"),
        ("y[at] = max(t[i], 0xFFFFFFF0u);", "all bits set"),
        ("y[at] = t[i] - t[63u - i];", "another value in each word"),
        ("y[at] = u32(t[i] == t[63u - i]);", "another value in each word"),
    ],
)
def test_unwritten_memory_is_filled_with_several_patterns(body: str, moved_by: str) -> None:
    findings = run(body).findings
    assert findings
    for finding in findings:
        assert (finding.code, finding.verdict) == ("uninit", "harmful")
        assert f"with {moved_by} in memory that was never written" in finding.notes[-1].message


ATOMICS = "var<workgroup> a: atomic<u32>; var<workgroup> other: array<atomic<u32>, 64>;"


@pytest.mark.parametrize(
    ("body", "does"),
    [
        ("y[at] = atomicLoad(&a);", "this atomicLoad reads a"),
        ("y[at] = atomicLoad(&a) & 1u;", "this atomicLoad reads a"),
        ("y[at] = workgroupUniformLoad(&a) * 2u;", "this workgroupUniformLoad reads a"),
        ("y[at] = atomicExchange(&other[i], i);", "this atomicExchange updates other"),
        ("atomicMax(&a, 3u); workgroupBarrier(); y[at] = atomicLoad(&a);", "this atomicMax updates a"),
    ],
)
def test_atomics_read_unwritten_memory(body: str, does: str) -> None:
    finding = only(body, "uninit", before=ATOMICS)
    assert (finding.verdict, finding.message) == ("harmful", f"{does}, which was never written")


def test_an_atomic_load_of_stored_memory_is_no_finding() -> None:
    body = "atomicStore(&other[i], i); workgroupBarrier(); y[at] = atomicLoad(&other[63u - i]);"
    assert not run(body, before=ATOMICS).findings


# ---- out of bounds -----------------------------------------------------------------------------------


def test_an_access_outside_that_matters():
    finding = only("y[at] = u32(x[at + 1u] * f32(at));", "out-of-bounds")
    assert (finding.verdict, finding.severity) == ("harmful", "warning")
    change = "discarded, 1 of 128 elements of y differ, the first is y[127]: 0 instead of 127"
    assert change in finding.notes[-1].message


def test_an_access_outside_that_is_masked():
    finding = only("y[at] = select(0u, u32(x[at + 1u]), at < 127u);", "out-of-bounds")
    assert (finding.verdict, finding.severity) == ("unseen", "info")
    assert finding.notes[-1].message == "no output changes under any permitted policy"


def test_an_access_outside_that_no_rerun_judged():
    finding = only("y[at] = select(0u, u32(x[at + 1u]), at < 127u);", "out-of-bounds", replay=False)
    assert (finding.verdict, finding.severity) == (None, "warning")


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_stores_outside_leave_the_same_whatever_the_threads(threads, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: threads)
    assert run("y[at + 1000u] = group.x;", groups=100).outputs["y"][-1] == 99


# ---- schedules ---------------------------------------------------------------------------------------

ORDERS = ["lockstep", "subgroup-serial", "reversed", "random(1)", "random(2)"]
SUM = """t[i] = i + group.x;
for (var d = 32u; d > 0u; d /= 2u) {
    workgroupBarrier();
    if i < d { t[i] += t[i + d]; }
}
workgroupBarrier();
y[at] = t[0];"""


@pytest.mark.parametrize("order", ORDERS)
def test_no_order_changes_a_kernel_without_races(order):
    done = run(SUM, groups=3, schedule=order)
    assert done.outputs["y"].tolist() == [sum(range(64)) + 64 * g for g in range(3) for _ in range(64)]
    assert done.findings == []


@pytest.mark.parametrize("order", ORDERS)
def test_counters_are_those_of_lockstep(order):
    assert run(SUM, schedule=order).counters == run(SUM).counters


def test_who_stores_last():
    body = "total = i;\nworkgroupBarrier();\ny[at] = total;"
    last = {order: int(run(body, groups=1, schedule=order, probes="none").outputs["y"][0]) for order in ORDERS}
    assert (last["lockstep"], last["subgroup-serial"], last["reversed"]) == (63, 63, 0)
    assert last["random(1)"] != last["random(2)"]


def test_a_draw_can_be_repeated():
    body = "t[i] = i;\ny[at] = t[63u - i];"
    one, two = (run(body, schedule="random(7)", probes="none").outputs["y"].tolist() for _ in range(2))
    assert one == two


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [1, 8, 24])
def test_subgroups_stay_together(order, size):
    device = bankshot.devices.get("lavapipe") if hasattr(bankshot.devices, "get") else "lavapipe"
    body = "y[at] = subgroupAdd(i) + subgroupShuffle(i, 0u);"
    source = "enable subgroups;\n" + HEAD.replace("workgroup_size(64)", f"workgroup_size({size})") + body + "\n}"
    done = bankshot.simulate(
        source,
        grid=1,
        bindings={"y": np.zeros(64, np.uint32), "x": np.zeros(64, np.float32)},
        device=device,
        schedule=order,
    )
    width = min(8, size)
    groups = [range(start, start + width) for start in range(0, size, width)]
    assert done.outputs["y"][:size].tolist() == [sum(g) + g[0] for g in groups for _ in g]


def test_a_wait_for_a_later_invocation_ends():
    body = "if i == 0u { while atomicLoad(&flag) == 0u {} } else { atomicStore(&flag, 1u); }\ny[at] = 1u;"
    before = "var<workgroup> flag: atomic<u32>;"
    done = run(body, groups=1, before=before, schedule="subgroup-serial", budget=1000, probes="none")
    assert done.findings == []
    assert done.outputs["y"].tolist()[:64] == [1] * 64


@pytest.mark.parametrize("size", [2, 32, 64])
@pytest.mark.parametrize("groups", [2, 3, 5, 40])
def test_a_store_races_with_loads_of_other_workgroups(size: int, groups: int) -> None:
    """Those of its own workgroup come first, and a barrier orders them."""
    text = f"""
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @group(0) @binding(1) var<storage, read_write> z: array<u32>;
        @compute @workgroup_size({size})
        fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32) {{
            let v = y[0]; storageBarrier();
            if w.x == 0u && i == 0u {{ y[0] = 5u; }}
            z[w.x * {size}u + i] = v;
        }}"""
    bindings = {"y": np.zeros(1, np.uint32), "z": np.zeros(size * groups, np.uint32)}
    (finding,) = bankshot.simulate(text, grid=groups, bindings=bindings).findings
    assert finding.code == "race"
    assert "of workgroup" in finding.message


def test_a_race_of_many_invocations_is_judged_by_subgroups() -> None:
    text = """
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x / 2u] = id.x; }"""
    (finding,) = bankshot.simulate(text, grid=1025, bindings={"y": np.zeros(64 * 1025 // 2, np.uint32)}).findings
    assert (finding.code, finding.verdict) == ("race", "harmful")
    assert "run mirrored" in finding.notes[-1].message


# ---- barriers ----------------------------------------------------------------------------------------

REDUNDANT = {
    "t[i] = i; workgroupBarrier(); y[at] = t[63u - i];": [],
    "t[i] = i; workgroupBarrier(); y[at] = t[i];": [1],
    "t[i] = i; workgroupBarrier(); workgroupBarrier(); y[at] = t[63u - i];": [1, 2],
    "t[i] = i; storageBarrier(); workgroupBarrier(); y[at] = t[63u - i];": [1],
    "t[i] = i; workgroupBarrier(); y[at] = t[63u - i]; workgroupBarrier();": [2],
    "t[i] = i; workgroupBarrier(); y[at] = t[63u - i]; workgroupBarrier(); t[i] = 0u;": [],
    "for (var k = 0u; k < 3u; k++) { t[i] = i; workgroupBarrier(); y[at] = t[63u - i]; workgroupBarrier(); }": [],
    "for (var k = 0u; k < 1u; k++) { t[i] = i; workgroupBarrier(); y[at] = t[63u - i]; workgroupBarrier(); }": [2],
    "if i == 0u { atomicStore(&n, 0u); } workgroupBarrier(); atomicAdd(&n, 1u); workgroupBarrier();"
    "y[at] = atomicLoad(&n);": [],
    "atomicAdd(&n, 1u); workgroupBarrier(); atomicAdd(&n, 1u); workgroupBarrier(); y[at] = atomicLoad(&n);": [1],
    "atomicAdd(&n, 1u); workgroupBarrier(); atomicMax(&n, 40u); workgroupBarrier(); y[at] = atomicLoad(&n);": [2],
    "atomicMax(&n, i); workgroupBarrier(); if i == 9u { y[at] = atomicLoad(&n); }": [],
    "atomicMax(&n, i); workgroupBarrier(); if i == 9u { y[at] = atomicLoad(&n) * 0u; }": [1],
    "workgroupBarrier(); storageBarrier();": [1, 2],
    "workgroupBarrier(); y[at] = 1u; storageBarrier();": [1, 2],
    "atomicAdd(&n, 1u); workgroupBarrier(); y[at] = i;": [1],
    "if i == 0u { total = 3u; } y[at] = workgroupUniformLoad(&total);": [],
    "if i == 0u { total = 3u; } workgroupBarrier(); y[at] = workgroupUniformLoad(&total);": [1],
    "y[at] = i; storageBarrier(); let k = y[group.x * 64u + 63u - i]; storageBarrier(); y[at] = k;": [],
}


@pytest.mark.parametrize("body", REDUNDANT)
def test_barriers_that_order_nothing(body):
    done = run(body.replace("; ", ";\n"), before="var<workgroup> n: atomic<u32>;", probes=["redundant"])
    barriers = [n for n, text in enumerate(body.split("; "), 1) if "Barrier()" in text]
    found = [barriers.index(f.span.line - FIRST + 1) + 1 for f in done.findings if f.code == "redundant-barrier"]
    assert found == REDUNDANT[body]


def test_a_barrier_between_atomic_operations_says_so():
    body = "atomicMax(&n, i); workgroupBarrier(); atomicMax(&n, 7u);"
    (finding,) = run(body, before="var<workgroup> n: atomic<u32>;", probes=["redundant"]).findings
    assert finding.message == (
        "this workgroupBarrier orders nothing in this run: "
        "it separates only atomic operations, and no output changes in other orders without it"
    )


@pytest.mark.parametrize("condition", ["x[0] > 2.0", "group.x > 7u"])
def test_a_barrier_that_is_never_reached_is_not_called_redundant(condition: str) -> None:
    body = f"if {condition} {{ t[i] = i; workgroupBarrier(); y[at] = t[63u - i]; }}"
    assert not run(body, probes=["redundant"]).findings
    assert not run(f"if {condition} {{ workgroupBarrier(); }}", probes=["redundant"]).findings


def test_the_first_invocation_out_of_bounds_is_named_with_its_workgroup():
    source = """
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        var<private> a: array<u32, 3>;
        @compute @workgroup_size(8)
        fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32) {
            a[select(0u, 5u, w.x == 2u && i >= 6u)] = 1u;
            y[w.x * 8u + i] = a[0];
        }
    """
    (finding,) = bankshot.simulate(source, grid=4, bindings={"y": np.zeros(32, np.uint32)}).findings
    assert (finding.code, finding.lanes, finding.workgroup, finding.count) == ("out-of-bounds", (6,), (2, 0, 0), 2)


@pytest.mark.parametrize(
    ("type_", "operands", "says"),
    [("f32", (1 / 3, 0), "computes 0.3333333 / 0.0 = inf"), ("f16", (1 / 3, 0), "computes f16: 0.333252 / 0.0 = inf")],
)
def test_the_operands_of_what_is_not_finite_have_seven_digits(type_, operands, says):
    source = f"""
    enable f16;
    @group(0) @binding(0) var<storage, read> x: array<{type_}>;
    @group(0) @binding(1) var<storage, read_write> y: array<{type_}>;
    @compute @workgroup_size(1) fn main() {{ y[0] = x[0] / x[1]; }}
    """
    dtype = np.float32 if type_ == "f32" else np.float16
    run = bankshot.simulate(source, grid=1, bindings={"x": np.array(operands, dtype), "y": np.zeros(2, dtype)})
    assert [finding.message for finding in run.findings] == [f"invocation 0 {says}"]


def test_other_data_that_a_store_leaves_alone_do_not_hide_that_it_changes_a_value() -> None:
    """Other values of `y` may be those that are stored."""
    text = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> z: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(workgroup_id) w: vec3u, @builtin(global_invocation_id) g: vec3u) {
    var old = 0u;
    if w.x == 0u { old = y[0]; }
    if g.x == 70u { y[0] = VALUE; }
    z[g.x] = old * 0u;
}"""
    for value in (1, 2, 70):
        arrays = {"y": np.zeros(1, np.uint32), "z": np.zeros(128, np.uint32)}
        found = bankshot.simulate(text.replace("VALUE", f"{value}u"), grid=2, bindings=arrays, probes="races").findings
        assert [finding.verdict for finding in found] == ["unseen"]
