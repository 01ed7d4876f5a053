"""Traces, compared with values worked out by hand for each line of a kernel."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle.cli.main import main
from bankshot.sim.launch import tracing
from bankshot.sim.machine import instruction as field
from bankshot.sim.machine import opcodes as op

OUT = "@group(0) @binding(0) var<storage, read_write> out: array<u32, 64>;\n"


def run(body, name=None, before="", lanes=(0,), *, size=4, grid=1, workgroup=(0, 0, 0), limit=1 << 18,
        device="nvidia", schedule="lockstep"):  # fmt: skip
    """Run a kernel whose body starts at line 10."""
    assert before.count("\n") <= 5
    lines = "\n" * (5 - before.count("\n"))
    wgsl = f"{OUT}{before}{lines}@compute @workgroup_size({size})\nfn main(@builtin(local_invocation_index) i: u32,\n"
    wgsl += f"@builtin(workgroup_id) group: vec3<u32>) {{\n{body}\n}}\n"
    watched = None if name is None else bankshot.Trace(name, workgroup, lanes, limit)
    return bankshot.simulate(
        wgsl, grid=grid, bindings={"out": np.zeros(64, np.uint32)}, trace=watched, device=device, schedule=schedule
    )


def trace(*arguments, **options):
    """The rows of a trace, as line, lane, name, old and new."""
    return [(row.line - 9, row.lane, row.name, row.old, row.new) for row in run(*arguments, **options).trace]


def test_a_variable_of_a_function():
    body = "var a = 3u;\na = a + i;\na = a;\na *= 2u;\na++;\nout[i] = a;"
    assert trace(body, "a", lanes=(0, 2)) == [
        (1, 0, "a", None, 3),
        (1, 2, "a", None, 3),
        (2, 2, "a", 3, 5),  # in lane 0 nothing changes
        (4, 0, "a", 3, 6),
        (4, 2, "a", 5, 10),
        (5, 0, "a", 6, 7),
        (5, 2, "a", 10, 11),
    ]


def test_divergent_branches():
    body = "var a: u32;\nif i < 2u {\na = 1u;\n} else {\na = 2u;\n}\nout[i] = a;"
    assert trace(body, "a", lanes=None) == [
        *((1, lane, "a", None, 0) for lane in range(4)),
        (3, 0, "a", 0, 1),
        (3, 1, "a", 0, 1),
        (5, 2, "a", 0, 2),
        (5, 3, "a", 0, 2),
    ]


def test_a_divergent_loop():
    body = "var sum = 0u;\nfor (var k = 0u; k < 9u; k++) {\nif k == 1u { continue; }\nif k > i { break; }\n"
    body += "sum += k + 1u;\n}"
    assert trace(f"{body}\nout[i] = sum;", "sum", lanes=(0, 3)) == [
        (1, 0, "sum", None, 0),
        (1, 3, "sum", None, 0),
        (5, 0, "sum", 0, 1),  # k = 0
        (5, 3, "sum", 0, 1),
        (5, 3, "sum", 1, 4),  # k = 2
        (5, 3, "sum", 4, 8),  # k = 3
    ]
    # `continue` and the last turn: k counts on until the lane breaks, with k = i + 1 or, past the skipped 1, k = 2
    counts = [row for row in trace(f"{body}\nout[i] = sum;", "k", lanes=(0,)) if row[1] == 0]
    assert counts == [(2, 0, "k", None, 0), (2, 0, "k", 0, 1), (2, 0, "k", 1, 2)]


def test_a_let_begins_anew_each_time():
    body = "for (var k = 0u; k < 3u; k++) {\nlet square = k * k;\nout[i] += square;\n}"
    assert trace(body, "square") == [(2, 0, "square", None, n * n) for n in range(3)]


def test_a_switch_and_an_early_return():
    body = "var a = 0u;\nswitch i {\ncase 0u: { a = 5u; }\ncase 1u: { return; }\ndefault: { a = 6u; }\n}\n"
    body += "a += 1u;\nout[i] = a;"
    assert trace(body, "a", lanes=(0, 1, 2))[3:] == [
        (3, 0, "a", 0, 5),
        (5, 2, "a", 0, 6),
        (7, 0, "a", 5, 6),
        (7, 2, "a", 6, 7),
    ]


def test_components_of_composites():
    before = "struct Point { at: vec2<f32>, seen: bool }\n"
    body = "var p = Point(vec2(1.0, 2.0), false);\np.at.y = 5.0;\np.at *= 2.0;\np.seen = true;\n"
    body += "var q = p;\nq.at[i & 1u] = 0.5;\nout[i] = u32(p.at.x + q.at.y);"
    assert trace(body, "p", before) == [
        (1, 0, "p", None, (1.0, 2.0, False)),
        (2, 0, "p.at.y", 2.0, 5.0),
        (3, 0, "p.at.x", 1.0, 2.0),
        (3, 0, "p.at.y", 5.0, 10.0),
        (4, 0, "p.seen", False, True),
    ]
    assert trace(body, "q", before, lanes=(1, 2)) == [
        (5, 1, "q", None, (2.0, 10.0, True)),
        (5, 2, "q", None, (2.0, 10.0, True)),
        (6, 1, "q.at.y", 10.0, 0.5),
        (6, 2, "q.at.x", 2.0, 0.5),
    ]


def test_arrays_and_matrices():
    body = "var m: mat2x3<f32>;\nm[1].z = 4.0;\nm[i & 1u] = vec3(1.0, 0.0, 2.0);\nout[i] = u32(m[1].z);"
    assert trace(body, "m", lanes=(1,))[1:] == [
        (2, 1, "m[1].z", 0.0, 4.0),
        (3, 1, "m[1].x", 0.0, 1.0),
        (3, 1, "m[1].z", 4.0, 2.0),
    ]
    body = (
        "var a: array<array<i32, 3>, 2>;\na[1][2] = -4;\na[i][i + 1u] = 7;\na[9u + i][0] = 1;\nout[i] = u32(a[1][0]);"
    )
    assert trace(body, "a", lanes=(1,))[1:] == [
        (2, 1, "a[1][2]", 0, -4),
        (3, 1, "a[1][2]", -4, 7),
        (4, 1, "a[1][0]", 0, 1),  # an index past the end is kept inside
    ]


CALLEE = "fn add(to: ptr<function, u32>, n: u32) -> u32 {\nlet both = *to + n;\n*to = both;\nreturn both;\n}\n"


def test_rows_name_inlined_functions():
    body = "var a = 1u;\nlet b = add(&a, 10u) + add(&a, i);\nout[i] = a + b;"
    found = run(body, "a", CALLEE, lanes=(3,)).trace
    assert [(row.line, row.function, row.old, row.new) for row in found] == [
        (10, "main", None, 1),
        (4, "add", 1, 11),
        (4, "add", 11, 14),
    ]
    assert [(row.line, row.function, row.new) for row in run(body, "both", CALLEE, lanes=(3,)).trace] == [
        (3, "add", 11),
        (3, "add", 14),
    ]
    assert [(row.line, row.new) for row in run(body, "add.n", CALLEE, lanes=(3,)).trace] == [(2, 10), (2, 3)]
    assert [row.new for row in run(body, "main.a", CALLEE, lanes=(3,)).trace] == [1, 11, 14]
    assert str(run(body, "a", CALLEE, lanes=(3,)).trace[1]) == "shader.wgsl:4: lane 3: a 1 -> 11  in add"


def test_private_variables():
    before = "var<private> p: i32 = -2;\nfn up() { p += 3; }\n"
    found = run("up();\np = p * 2;\nout[i] = u32(p);", "p", before).trace
    assert [(row.line, row.function, row.old, row.new) for row in found] == [
        (2, "", None, -2),
        (3, "up", -2, 1),
        (11, "main", 1, 2),
    ]


def test_workgroup_memory_is_followed_through_all_lanes():
    before = "struct Cell { n: u32, w: vec3<f32> }\nvar<workgroup> tile: array<Cell, 4>;\n"
    body = "tile[i].n = i + 1u;\ntile[i].w.y = f32(i);\nworkgroupBarrier();\ntile[3u - i].n = 9u;\nout[i] = tile[i].n;"
    assert trace(body, "tile", before, lanes=(0, 1)) == [
        (1, 0, "tile[0].n", 0, 1),
        (1, 1, "tile[1].n", 0, 2),
        (2, 1, "tile[1].w.y", 0.0, 1.0),
        (4, 0, "tile[3].n", 4, 9),  # what lane 3 had stored
        (4, 1, "tile[2].n", 3, 9),
    ]


def test_out_of_bounds_accesses_are_traced_where_they_go():
    before = "var<workgroup> tile: array<u32, 4>;\n"
    assert trace("tile[i + 3u] = i + 5u;\nworkgroupBarrier();\nout[i] = tile[i];", "tile", before, lanes=(0, 2)) == [
        (1, 0, "tile[3]", 0, 5),
        (1, 2, "tile[3]", 6, 7),  # after lane 1
    ]


@pytest.mark.parametrize(
    ("call", "changes"),
    [  # of lanes 0 to 3, one after the other, from 8
        ("atomicAdd(&n, i)", [(1, 8, 9), (2, 9, 11), (3, 11, 14)]),
        ("atomicSub(&n, i)", [(1, 8, 7), (2, 7, 5), (3, 5, 2)]),
        ("atomicMax(&n, i * 5u)", [(2, 8, 10), (3, 10, 15)]),
        ("atomicMin(&n, 9u - i)", [(2, 8, 7), (3, 7, 6)]),
        ("atomicAnd(&n, i + 8u)", []),
        ("atomicOr(&n, i)", [(1, 8, 9), (2, 9, 11)]),
        ("atomicXor(&n, i)", [(1, 8, 9), (2, 9, 11), (3, 11, 8)]),
        ("atomicStore(&n, i)", [(0, 8, 0), (1, 0, 1), (2, 1, 2), (3, 2, 3)]),
        ("_ = atomicExchange(&n, i)", [(0, 8, 0), (1, 0, 1), (2, 1, 2), (3, 2, 3)]),
        ("_ = atomicCompareExchangeWeak(&n, 7u + i, i)", [(1, 8, 1)]),
        ("_ = atomicLoad(&n)", []),
    ],
)
def test_atomics(call, changes):
    body = f"if i == 0u {{ atomicStore(&n, 8u); }}\nworkgroupBarrier();\n{call};\nout[i] = atomicLoad(&n);"
    found = trace(body, "n", "var<workgroup> n: atomic<u32>;\n", lanes=None)
    assert found == [(1, 0, "n", 0, 8), *((3, lane, "n", old, new) for lane, old, new in changes)]


def test_signed_atomics():
    body = "atomicMin(&n, -i32(i));\nout[i] = u32(atomicLoad(&n));"
    assert trace(body, "n", "var<workgroup> n: atomic<i32>;\n", lanes=(2,)) == [(1, 2, "n", -1, -2)]


def test_half_precision():
    wgsl = "enable f16;\nvar<workgroup> w: array<f16, 4>;\n@group(0) @binding(0) var<storage, read_write> out: f32;\n"
    wgsl += "@compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) {\n"
    wgsl += "var a = f16(i) + 0.1h;\nw[i * 2] = a;\nout = f32(w[0]);\n}\n"
    near = float(np.float16(1.1))

    def found(name):
        given = {"grid": 1, "bindings": {"out": np.zeros(1, np.float32)}, "trace": bankshot.Trace(name, lanes=(1,))}
        return [(row.name, row.old, row.new) for row in bankshot.simulate(wgsl, **given).trace]

    assert found("a") == [("a", None, near)]
    assert found("w") == [("w[2]", 0.0, near)]


@pytest.mark.parametrize("size", [1, 4, 64, 256])
def test_one_workgroup_of_many(size):
    """For workgroups that share a batch, and for large ones."""
    body = "var a = group.x * 100u + group.y;\na += i;\nout[0] = a;"
    options = {"size": size, "grid": (3, 2), "workgroup": (2, 1, 0), "lanes": (size - 1,)}
    expected = [(1, size - 1, "a", None, 201), (2, size - 1, "a", 201, 200 + size)]
    assert trace(body, "a", **options) == expected[: 1 + (size > 1)]


@pytest.mark.parametrize("schedule", ["lockstep", "subgroup-serial", "reversed", "random(3)"])
def test_lanes_keep_their_numbers_in_every_schedule(schedule):
    body = "var a = i;\na += 1000u;\nout[i & 63u] = a;"
    options = {"size": 96, "schedule": schedule, "lanes": (5, 40, 95)}
    for lane in (5, 40, 95):
        rows = [row[1:] for row in trace(body, "a", **options) if row[1] == lane]
        assert rows == [(lane, "a", None, lane), (lane, "a", lane, lane + 1000)]


def test_an_unused_variable_is_traced():
    assert trace("var unused = i + 1u;\nunused = 7u;\nout[i] = i;", "unused") == [
        (1, 0, "unused", None, 1),
        (2, 0, "unused", 1, 7),
    ]


def test_tracing_changes_nothing_else():
    """Outputs, counters and program stay: a trace is a separate run."""
    body = "var a = i;\nfor (var k = 0u; k < i; k++) {\na = a * 3u + k;\n}\nout[i] = a;"
    plain, traced = run(body), run(body, "a", lanes=None)
    assert plain.outputs["out"].tolist() == traced.outputs["out"].tolist()
    assert plain.counters == traced.counters
    assert (plain.trace, plain.program.trace_points) == ([], [])
    assert np.array_equal(plain.program.code, traced.program.code)
    assert op.TRACE not in plain.program.code[:, field.OP]
    for lane in range(4):
        assert [row.new for row in traced.trace if row.lane == lane][-1] == plain.outputs["out"][lane]


def test_tracing_does_not_change_rounding():
    """A product that is fused into a sum stays fused, and the trace shows it rounded."""
    body = "let x = 1.0 + f32(i) * 0x1p-12;\nlet square = x * x;\nout[i] = bitcast<u32>(square - 1.0);"
    devices = ("nvidia", "lavapipe")  # the one fuses here, the other does not
    runs = [run(body, "square", lanes=(1,), device=device) for device in devices]
    plain = [run(body, device=device) for device in devices]
    assert [r.outputs["out"].tolist() for r in runs] == [r.outputs["out"].tolist() for r in plain]
    assert runs[0].outputs["out"][1] != runs[1].outputs["out"][1]
    assert [row.new for r in runs for row in r.trace] == [1 + 2.0**-11] * 2


def test_more_values_than_the_limit():
    body = "var a = 0u;\nfor (var k = 0u; k < 9u; k++) {\na += 1u;\n}\nout[i] = a;"
    found = run(body, "a", limit=4)
    assert ([row.new for row in found.trace], found.trace_missed) == ([0, 1, 2, 3], 6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (bankshot.Trace("b"), "'main' reaches no variable 'b'\nhint: there are: i, group, a"),
        (bankshot.Trace("out"), "'out' is in storage memory, and only variables of a workgroup can be traced"),
        (bankshot.Trace("main.i.x"), "reaches no variable"),
        (
            bankshot.Trace("a", workgroup=(1, 0, 0)),
            r"workgroup \(1, 0, 0\) of the trace is outside the grid \(1, 1, 1\)",
        ),
        (bankshot.Trace("a", lanes=(0, 4)), "lane 4 of the trace is out of range; a workgroup has 4"),
    ],
)
def test_variables_that_cannot_be_traced(given, message):
    with pytest.raises(bankshot.WgslError, match=message):
        run("var a = i;\nout[i] = a;", given.variable, workgroup=given.workgroup, lanes=given.lanes)


# ---- the command -------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inputs = "@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3<u32>"
    head = f"{OUT}@compute @workgroup_size(8) fn main({inputs}) {{\n"
    body = "var a = vec2(f32(i), 1.0);\na.x += 0.25;\nout[id.x] = u32(a.x);\n}\n"
    (tmp_path / "k.wgsl").write_text(head + body)
    return lambda *options: CliRunner().invoke(main, ["run", "k.wgsl", "--grid", "2", *options])


def test_the_command_prints_the_trace(command):
    result = command("--trace", "a", "--workgroup", "1", "--lanes", "0-1,7")
    assert result.exit_code == 0, result.output
    assert [line for line in result.stdout.splitlines() if line.startswith("k.wgsl:")] == [
        "k.wgsl:3: lane 0: a = (0, 1)  in main",
        "k.wgsl:3: lane 1: a = (1, 1)  in main",
        "k.wgsl:3: lane 7: a = (7, 1)  in main",
        "k.wgsl:4: lane 0: a.x 0 -> 0.25  in main",
        "k.wgsl:4: lane 1: a.x 1 -> 1.25  in main",
        "k.wgsl:4: lane 7: a.x 7 -> 7.25  in main",
    ]
    (case,) = json.loads(command("--trace", "a", "--lanes", "all", "--json").stdout)["cases"]
    assert (len(case["trace"]["rows"]), case["trace"]["missed"]) == (16, 0)
    row = {"file": "k.wgsl", "line": 4, "lane": 7, "name": "a.x", "old": 7.0, "new": 7.25, "function": "main"}
    assert case["trace"]["rows"][-1] == row
    assert "trace" not in json.loads(command("--json").stdout)["cases"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--trace", "b"), "'main' reaches no variable 'b'"),
        (("--trace", "a", "--lanes", "3-1"), "--lanes: `3-1` is not a list of lanes like 0-3,7"),
        (("--trace", "a", "--lanes", "0-99999999"), "is not a list of lanes"),
        (("--trace", "a", "--lanes", "x"), "is not a list of lanes"),
        (("--trace", "a", "--lanes", "8"), "lane 8 of the trace is out of range; a workgroup has 8"),
        (("--trace", "a", "--workgroup", "2"), "workgroup (2, 0, 0) of the trace is outside the grid (2, 1, 1)"),
        (("--trace", "a", "--workgroup", "1,2,3,4"), "--workgroup: `1,2,3,4` is not a place in the grid like 2,1,0"),
        (("--trace", "a", "--workgroup", "-1"), "workgroup (-1, 0, 0) of the trace is outside the grid"),
    ],
)
def test_invalid_trace_options(command, options, message):
    result = command(*options)
    assert (result.exit_code, message in result.stderr) == (2, True), result.output


def test_eight_components_of_a_composite_are_shown():
    assert tracing._shown((*range(8),)) == "(0, 1, 2, 3, 4, 5, 6, 7)"
    assert tracing._shown((*range(9),)) == "(0, 1, 2, 3, 4, 5, 6, 7, …)"
