"""Loops that run long: those whose state repeats are proven to be endless, others are stopped at a limit, and kernels
that end are not affected."""

from time import thread_time

import numpy as np
import pytest

import bankshot
from bankshot.sim.launch import long_loops

HEAD = """@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> flag: array<atomic<u32>, 4>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {
var n = 0u; let at = id.x;
"""
STILL_RUNS = "was still running"


def run(body, grid=1, **options):
    text = HEAD + body + "\n}"
    arrays = {"y": np.zeros(64 * grid, np.uint32), "x": np.arange(64, dtype=np.uint32), "flag": np.zeros(4, np.uint32)}
    bindings = {name: array for name, array in arrays.items() if name in body}
    return bankshot.simulate(text, grid=grid, bindings=bindings, **options)


def endless(body, grid=1, **options):
    """The only finding, in words, and the source of the loop."""
    found = run(body, grid, **options)
    (finding,) = [each for each in found.findings if each.code == "endless-loop"]
    return finding.message, (HEAD + body)[finding.span.start :]


@pytest.fixture
def impatient(monkeypatch):
    """Batches pause from the first backward jump on, and are soon stopped."""
    monkeypatch.setattr(long_loops, "_FIRST_PAUSE", 1)
    monkeypatch.setattr(long_loops, "_PER_WORD", 0)


@pytest.fixture
def short_limits(impatient, monkeypatch):
    monkeypatch.setattr("bankshot.sim.run.prepared.WORK", 1 << 24)
    monkeypatch.setattr(long_loops, "_WATCHED_SECONDS", 0)


@pytest.mark.parametrize("probes", ["none", "all"])
@pytest.mark.parametrize(("body", "period", "named"), [
    ("loop { n = x[i]; if n > 99u { break; } } y[at] = n;", "every iteration", "loop"),
    ("while n < 3u { n = (n + 1u) % 3u; } y[at] = n;", "every 3 iterations", "while"),
    ("for (var k = 0u; k < 9u; k += k) { for (var j = 0u; j < 5u; j++) { n ^= j; } } y[at] = n;",
     "every 2 iterations", "for (var k"),
    ("for (var k = 0u; k < 9u; k += k) { for (var j = 0u; j < 5u; j++) { n += j % 2u; } n %= 3u; } y[at] = n;",
     "every 3 iterations", "for (var k"),
    ("for (var k = 0u; k < 9u; k++) { for (var j = 0u; j < 64u; j += j) { n ^= 1u; } } y[at] = n;",
     "every 2 iterations", "for (var j"),
    ("if at == 7u { while n < 3u { n = (n + 1u) % 3u; } } y[at] = n;", "every 3 iterations", "while"),
    ("for (var k = 0u; k < 9u; k += k) { t[i] = i; workgroupBarrier(); n = t[63u - i]; workgroupBarrier(); }",
     "every iteration", "for"),
    ("while n < 2u { t[i] = 1u - t[i]; workgroupBarrier(); }", "every 2 iterations", "while"),
    ("loop { y[i] = 1u - y[i]; if y[i] == 2u { break; } }", "every 2 iterations", "loop"),
    ("while y[63] == 0u { y[i] = 0u; }", "every iteration", "while"),
    ("var p: array<u32, 5>; while n < 9u { n = (n + 1u) % 5u; p[n] ^= i; } y[at] = p[n];",
     "every 10 iterations", "while"),
])  # fmt: skip
def test_a_state_that_repeats_proves_that_the_loop_does_not_end(body, period, named, probes, impatient):
    message, source = endless("\n" + body, probes=probes)
    assert message == f"this loop does not end: its state repeats {period}; the run was stopped"
    assert source.startswith(named)


@pytest.mark.parametrize(("body", "grid"), [
    ("while y[4000] == 0u { n ^= y[at]; } y[at] = 1u;", 64),  # a later workgroup stores
    ("while n < 0xffffffffu { n++; } y[at] = n;", 1),
    ("loop { y[at] += 1u; if y[at] == 0xffffffffu { break; } }", 1),
    ("loop { t[i] += 1u; if t[i] == 0xffffffffu { break; } }", 1),
])  # fmt: skip
@pytest.mark.parametrize("probes", ["none", "all"])
def test_a_state_that_others_or_the_loop_may_change_proves_nothing(body, grid, probes, short_limits):
    message, _ = endless(body, grid, probes=probes)
    assert STILL_RUNS in message
    assert "loop iterations" in message


@pytest.mark.parametrize("probes", ["none", "all"])
def test_a_state_of_all_that_repeats_proves_that_they_wait_in_vain(probes):
    message, source = endless("\nwhile atomicLoad(&flag[0]) == 0u { } y[at] = 1u;", probes=probes)
    assert "it waits for others, which have ended or wait, too, and the state of all repeats" in message
    assert source.startswith("while")


@pytest.mark.parametrize("probes", ["none", "all"])
def test_others_go_on_while_a_loop_waits_on_a_plain_load(probes):
    """Other invocations run the code after the loop."""
    done = run("if i == 0u { while y[1] == 0u { } } else { y[at] = 1u; }", probes=probes)
    assert "endless-loop" not in {finding.code for finding in done.findings}
    assert done.outputs["y"].tolist() == [0] + [1] * 63


def test_the_proof_comes_without_test_settings():
    """The default, with all probes and a long body: some hundredths of a second."""
    body = "while n < 3u {" + "n = n * 3u + y[i] * 2u;" * 200 + "n = 1u; }"
    message, _ = endless(body)
    assert "its state repeats every iteration" in message


def test_an_explicit_budget_comes_first(impatient):
    message, _ = endless("while n < 3u { n = (n + 1u) % 3u; }", budget=2)
    assert "exceeded 2 loop iterations" in message


FINITE = {
    "counts": "while n < 300u { n++; y[at] += n; }",
    "counts in workgroup memory": "while t[i] < 300u { t[i] += 1u; } y[at] = t[i];",
    "counts in storage": "while y[at] < 300u { y[at] += 1u; }",
    "nested": """for (var k = 0u; k < 40u; k++) {
        for (var j = 0u; j < k % 7u; j++) { n += x[(j + i) % 64u]; } }
        y[at] = n;""",
    "barriers": """for (var k = 0u; k < 40u; k++) {
        t[i] = n + k; workgroupBarrier(); n += t[63u - i]; workgroupBarrier(); }
        y[at] = n;""",
    "divergent": "while n < i * 5u { n += 1u + n % 2u; } y[at] = n;",
    "one lane": "if i == 9u { while n < 300u { n += 1u; } } y[at] = n;",
    "waits": "if i == 0u { atomicStore(&flag[0], 1u); } while atomicLoad(&flag[0]) == 0u { } y[at] = 1u;",
    "sums of products": """var a = array<f32, 4>(); for (var k = 0u; k < 90u; k++) {
        for (var j = 0u; j < 4u; j++) { a[j] += f32(x[(k + j) % 64u]) * f32(x[i]); } } y[at] = u32(a[0] + a[3]);""",
    "stays the same until memory says so": "while n < 5u { y[at] += 1u; if y[at] == 200u { n = 5u; } }",
}


@pytest.mark.parametrize("body", FINITE.values(), ids=FINITE)
@pytest.mark.parametrize("probes", ["none", "counters", "all"])
@pytest.mark.parametrize("grid", [1, 12])
def test_pauses_change_no_result(body, probes, grid, monkeypatch):
    def results():
        found = run(body, grid, probes=probes)
        outputs = {name: output.tolist() for name, output in found.outputs.items()}
        return outputs, found.counters, [str(finding) for finding in found.findings]

    expected = results()
    assert "endless" not in str(expected)
    monkeypatch.setattr(long_loops, "_FIRST_PAUSE", 1)
    monkeypatch.setattr(long_loops, "_PER_WORD", 0)
    assert results() == expected
    monkeypatch.setattr(long_loops, "_WATCHED_SECONDS", 0)
    assert results() == expected


@pytest.mark.parametrize("probes", ["none", "all"])
def test_a_loop_that_computes_one_lane_may_make_more_iterations(probes):
    """All of them in a quarter of a second: the limit is one of time, not of iterations."""
    found = run("for (var k = 0u; k < 12000000u; k++) { n = n * 5u + 1u; } y[at] = n;", 4, probes=probes)
    assert found.findings == []
    assert found.finished == 4


def test_operations_cost_what_they_take(short_limits):
    """The iterations up to the limit of work: sin takes 15 times as long as a product, and one lane less than 64."""

    def iterations(statement):
        message, _ = endless(f"var f = f32(i); while n < 0xffffffffu {{ n += 1u; {statement} }} y[at] = u32(f);")
        return int(message.split("after ")[1].split()[0].replace(",", ""))

    products, curves, uniform = map(iterations, ("f = f * f;" * 8, "f = sin(f);" * 8, "n += n * n;" * 4))
    assert 8 * curves < products < uniform


@pytest.mark.parametrize("workgroups", ["all", "classes", 2])
def test_a_kernel_that_is_slow_with_probes_is_run_without_them(workgroups, short_limits, monkeypatch):
    body = "for (var k = 0u; k < 200u; k++) { y[at] += x[(i * k) % 64u]; }"
    found = run(body, 8, workgroups=workgroups)
    assert found.findings == []
    monkeypatch.setattr("bankshot.sim.run.prepared.WORK", 1 << 14)
    message, _ = endless(body, 8, workgroups=workgroups)
    assert STILL_RUNS in message


def test_the_limit_does_not_depend_on_probes(short_limits):
    """The run without probes decides, and its iterations are reported."""
    body = "while n < 0xffffffffu { n++; y[at] = n; }"
    (first, _), (second, _) = endless(body, 2, probes="none"), endless(body, 2, probes="all")
    assert first == second


def test_a_stopped_run_keeps_the_counters_of_what_ran(short_limits, monkeypatch):
    monkeypatch.setattr(long_loops, "_WATCHED_SECONDS", 60)
    found = run("while n < 0xffffffffu { n++; y[at] = n; }")
    (store,) = [site for site in found.sites if site.kind == "store"]
    assert store.active_lanes > 64
    assert found.finished == 0
    assert found.outputs["y"].min() > 0


def test_the_workgroup_is_named(short_limits):
    found = run("if at / 64u == 9u { while n < 3u { n = 2u - n; } } y[at] = n;", 16)
    (finding,) = found.findings
    assert finding.workgroup == (8, 0, 0)  # eight workgroups run side by side
    assert found.finished == 8


# Statements of a loop that ends only when a random number is 0: all kinds of work, cheap and expensive.
BODIES = {
    "nothing else": "",
    "many statements": " ".join(f"s = s * {2 * k + 3}u + (s >> {k % 31 + 1}u);" for k in range(200)),
    "loads from anywhere": "n ^= x[s % arrayLength(&x)];",
    "several loads": "n ^= x[s % arrayLength(&x)] ^ x[(s * 3u) % arrayLength(&x)] ^ x[(s * 5u) % arrayLength(&x)];",
    "stores to anywhere": "y[s % arrayLength(&y)] = n;",
    "loads of one invocation": "if at == 0u { n ^= x[s % arrayLength(&x)]; }",
    "workgroup memory": "t[s % 64u] = s; n += t[(s >> 9u) % 64u];",
    "atomic operations": "atomicAdd(&total, s & 3u);",
    "an array of the invocation": "held[s % 64u] += s; n += held[(s >> 7u) % 64u];",
    "a large array, zeroed": "var zeroed: array<u32, 4096>; zeroed[s % 4096u] = s; n += zeroed[n % 4096u];",
    "a large array, copied": "var copied = large; large[s % 4096u] = copied[n % 4096u] + 1u;",
    "branches": "if (s & 1u) == 1u { n += 1u; } else { n *= 3u; } if (s & 2u) == 2u { n -= 1u; }",
    "a loop inside": "for (var k = 0u; k < (s & 15u); k++) { n ^= k; }",
    "division": "n = s / (n % 7u + 1u) + s % 1000003u;",
    "transcendental functions": "f = sin(f) + exp(cos(f)) + pow(abs(f) + 1.5, 1.3);",
    "matrices": "f = determinant(mat4x4f(vec4f(f), vec4f(1, 2, 3, 4), vec4f(2, f, 3, 1), vec4f(f32(s), 1, f, 2)));",
}


ANY_BODY = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<u32>;
var<workgroup> t: array<u32, 64>;
var<workgroup> total: atomic<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) at: u32) {
    var f = f32(at); var n = x[at]; var s = at + 1u; var held: array<u32, 64>; var large: array<u32, 4096>;
    loop { s = s * 1664525u + 1013904223u; if s == 0u && f == 1e9 { break; } STATEMENTS }
    y[at] = n + u32(f) + held[at] + large[n % 4096u] + t[at] + atomicLoad(&total);
}
"""


def test_any_body_is_given_up_within_four_times_as_long_as_a_simple_one(monkeypatch):
    """The times of this thread for a part of the limit, which a simple body reaches in about half a second."""
    monkeypatch.setattr("bankshot.sim.run.prepared.WORK", long_loops.WORK >> 4)
    many = np.arange(1 << 24, dtype=np.uint32)  # 64 MiB, more than caches hold

    def seconds(statements):
        bindings = {"x": many, "y": many.copy()}
        start = thread_time()
        done = bankshot.simulate(ANY_BODY.replace("STATEMENTS", statements), grid=1, bindings=bindings, probes="none")
        taken = thread_time() - start
        assert [finding.code for finding in done.findings] == ["endless-loop"]
        return taken

    simple = max(seconds(""), seconds("n += 1u;"))
    times = {name: seconds(body) / simple for name, body in BODIES.items()}
    assert max(times.values()) < 4, times
