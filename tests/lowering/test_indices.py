"""Indices out of bounds are found wherever WGSL keeps them in bounds; indices in bounds are not."""

import numpy as np
import pytest

import bankshot
from tests.programs_made.dispatch import run

NESTED = "struct Row { cells: array<u32, 2> } var<workgroup> rows: array<Row, 3>;"


@pytest.mark.parametrize(
    ("before", "body", "message", "count"),
    [
        ("", "var a: array<u32, 3>; a[i] = 1u; y[i] = a[0];", "index 3 of a, which has 3 elements", 1),
        ("", "var v: vec2<u32>; y[i] = v[i];", "index 2 of v, which has 2 elements", 2),
        ("", "let m = mat2x2f(); y[i] = u32(m[i].x);", "index 2 of m, which has 2 elements", 2),
        ("", "y[i] = array(1u, 2u, 3u)[i];", "index 3 of array(1u, 2u, 3u), which has 3 elements", 1),
        ("var<private> p: array<u32, 3>;", "y[i] = p[i];", "index 3 of p, which has 3 elements", 1),
        ("", "var a: array<u32, 3>; let q = &a; y[i] = q[i - 1u];", "index -1 of q, which has 3 elements", 1),
        (NESTED, "rows[0].cells[i] = 1u; y[i] = i;", "store of rows[0].cells[2], which has 2 elements", 2),
        (NESTED, "rows[i / 2u].cells[i] = 1u; y[i] = i;", "index 2 of rows[i / 2u].cells, which has 2 elements", 2),
        (NESTED, "rows[i].cells[i % 2u] = 1u; y[i] = i;", "index 3 of rows, which has 3 elements", 1),
    ],
)
def test_an_index_out_of_bounds_is_found(before, body, message, count):
    (finding,) = run(body, before=before, probes=["bounds"]).findings
    assert (finding.code, finding.message, finding.count) == ("out-of-bounds", message, count)


def test_an_index_in_bounds_is_no_finding():
    body = "var a: array<array<u32, 2>, 4>; a[i][i / 2u] = 7u; rows[i % 3u].cells[i % 2u] = 1u; y[i] = a[i][0];"
    assert run(body, before=NESTED).findings == []


def test_inactive_lanes_do_not_count():
    assert run("var a: array<u32, 2>; if i < 2u { a[i] = 1u; } y[i] = a[0];").findings == []


def test_nothing_is_found_without_the_probe():
    body = "var a: array<u32, 2>; a[i] = 1u; y[i] = a[0];"
    plain, looked = run(body, probes="none"), run(body, probes="bounds")
    assert plain.findings == []
    assert len(plain.program.code) < len(looked.program.code)
    assert {site.site.kind for site in looked.sites} == {"store"}


# ---- the result of each policy ------------------------------------------------------------------------------

GRID = """
@group(0) @binding(0) var<storage, read_write> y: array<u32, 4>;
@group(0) @binding(1) var<storage, read_write> a: array<vec4<u32>, 2>;
@group(0) @binding(2) var<storage, read_write> c: array<array<atomic<u32>, 2>, 2>;
var<private> p: array<u32, 3>;
@compute @workgroup_size(1) fn main() {
    let five = 5u + y[0];
    let one = 1u + y[0];
    BODY
}
"""
POLICIES = ("clamp", "zero", "wrap")


def outputs(body, policy, **more):
    given = {"y": np.zeros(4, np.uint32), "a": np.arange(1, 9, dtype=np.uint32), "c": np.zeros(4, np.uint32)}
    return bankshot.simulate(GRID.replace("BODY", body), grid=1, bindings=given, out_of_bounds=policy, **more)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[0] = a[one][five];", (8, 0, 6)),  # past the last component of a vector
        ("y[0] = a[five][one];", (6, 0, 6)),
        ("y[0] = a[five][five];", (8, 0, 6)),
        ("for (var k = 0u; k < 3u; k++) { p[k] = k + 1u; } y[0] = p[five];", (3, 0, 3)),
        ("p[0] = 7u; p[five] = 9u; y[0] = p[0] * 100u + p[2] * 10u;", (790, 700, 790)),
        ("p[1] = 4u; p[five - 1u] = 9u; y[0] = p[1] * 10u + p[2];", (49, 40, 90)),
        ("var v = vec3(1u, 2u, 3u); v[five - 1u] = 9u; y[0] = v.x * 100u + v.y * 10u + v.z;", (129, 123, 193)),
        ("y[0] = array(5u, 6u)[five];", (6, 0, 6)),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_loads_and_variables_past_the_end(body, expected, policy):
    assert outputs(body, policy).outputs["y"][0] == expected[POLICIES.index(policy)]


@pytest.mark.parametrize(
    ("policy", "a", "c"),
    [
        ("clamp", [1, 2, 3, 4, 5, 6, 7, 99], [0, 0, 0, 1]),
        ("zero", [1, 2, 3, 4, 5, 6, 7, 8], [0, 0, 0, 0]),
        ("wrap", [1, 2, 3, 4, 5, 99, 7, 8], [0, 0, 0, 1]),
    ],
)
def test_stores_and_atomics_past_the_end(policy, a, c):
    done = outputs("a[one][five] = 99u; atomicAdd(&c[one][five], 1u);", policy)
    assert done.outputs["a"].tolist() == a
    assert done.outputs["c"].tolist() == c


@pytest.mark.parametrize("policy", POLICIES)
def test_accesses_in_bounds_do_not_depend_on_the_policy(policy):
    body = "a[one][one] = 9u; p[one] = a[one - 1u][one]; y[0] = p[one]; atomicAdd(&c[one][one], 2u);"
    done = outputs(body, policy)
    assert done.outputs["y"][0] == 2
    assert done.outputs["a"].tolist() == [1, 2, 3, 4, 5, 9, 7, 8]
    assert done.outputs["c"].tolist() == [0, 0, 0, 2]
    assert done.findings == []


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("y[0] = a[one][five];", "harmful"),
        ("a[one][five] = 99u;", "harmful"),
        ("y[0] = p[five];", "unseen"),  # zeros, wherever
        ("p[0] = 3u; y[0] = p[five + 1u];", "harmful"),  # wrapped around, it is the first
    ],
)
def test_a_replay_decides_whether_it_matters(body, verdict):
    (finding,) = outputs(body, "clamp").findings
    assert (finding.code, finding.verdict) == ("out-of-bounds", verdict)


def test_an_array_of_one_element_is_reported_in_the_singular():
    (finding,) = outputs("var one_cell: array<u32, 1>; one_cell[one] = 1u; y[0] = one_cell[0];", "clamp").findings
    assert finding.message == "index 1 of one_cell, which has 1 element"


def test_a_pointer_is_named_with_its_target():
    (finding,) = outputs("let row = &a[1]; (*row)[five] = 1u;", "clamp").findings
    assert finding.message == "store of (*row)[5] in a, which has 4 elements"


# ---- matrices in memory -------------------------------------------------------------------------------------

MATRICES = [(columns, rows) for columns in (2, 3, 4) for rows in (2, 3, 4)]


@pytest.mark.parametrize(("columns", "rows"), MATRICES)
@pytest.mark.parametrize("space", ["storage, read", "uniform", "workgroup", "private", "function"])
def test_a_column_and_an_element_of_a_matrix_are_where_they_were_stored(space, columns, rows):
    """By constant and by computed indices; in a buffer, columns of three rows take the room of four."""
    type_ = f"mat{columns}x{rows}f"
    given = np.arange(1, columns * rows + 1, dtype=np.float32).reshape(columns, rows)
    bound = space in ("storage, read", "uniform")
    source = f"@group(0) @binding(0) var<{space}> m: {type_};" if bound else ""
    if space in ("workgroup", "private"):
        source = f"var<{space}> m: {type_};"
    made = f"{type_}({', '.join(f'{x}.0' for x in range(1, columns * rows + 1))})"
    begin = "" if bound else f"var m = {made};" if space == "function" else f"m = {made};"
    reads = "".join(f"y[{c * rows + r}] = m[{c}][{r}];" for c in range(columns) for r in range(rows))
    text = f"""{source}
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @group(0) @binding(2) var<storage, read_write> z: array<f32>;
        @compute @workgroup_size(1) fn main() {{
            {begin}
            {reads}
            for (var c = 0u; c < {columns}u; c++) {{
                let column = m[c];
                for (var r = 0u; r < {rows}u; r++) {{ z[c * {rows}u + r] = column[r] + m[c][r]; }}
            }}
        }}"""
    padded = np.zeros((columns, 4 if rows > 2 else 2), np.float32)
    padded[:, :rows] = given
    outputs = {name: np.zeros(columns * rows, np.float32) for name in "yz"}
    done = bankshot.simulate(text, grid=1, bindings={**outputs, **({"m": padded} if bound else {})})
    assert done.outputs["y"].tolist() == given.reshape(-1).tolist()
    assert done.outputs["z"].tolist() == (2 * given).reshape(-1).tolist()


@pytest.mark.parametrize("index", ["i << 2u", "(i + 1u - 1u) << 2u", "(i << 1u) * 2u", "u32(i32(i) << 2u)"])
def test_an_index_may_be_shifted(index):
    body = f"t[{index}] = i + 1u; y[i] = t[i * 4u];"
    assert run(body, before="var<workgroup> t: array<u32, 16>;").outputs["y"][:4].tolist() == [1, 2, 3, 4]
