"""An index that WGSL keeps inside is told of, wherever it is; one that is inside is not."""

import pytest
from dispatch import run

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
        (NESTED, "rows[0].cells[i] = 1u; y[i] = i;", "store of rows[2], which has 2 elements", 2),
        (NESTED, "rows[i / 2u].cells[i] = 1u; y[i] = i;", "index 2 of rows[i / 2u].cells, which has 2 elements", 2),
        (NESTED, "rows[i].cells[i % 2u] = 1u; y[i] = i;", "index 3 of rows, which has 3 elements", 1),
    ],
)
def test_an_index_outside_is_found(before, body, message, count):
    (finding,) = run(body, before=before, probes=["bounds"]).findings
    assert (finding.code, finding.message, finding.count) == ("out-of-bounds", message, count)


def test_an_index_inside_is_not():
    body = "var a: array<array<u32, 2>, 4>; a[i][i / 2u] = 7u; rows[i % 3u].cells[i % 2u] = 1u; y[i] = a[i][0];"
    assert run(body, before=NESTED).findings == []


def test_only_lanes_that_come_to_it_count():
    assert run("var a: array<u32, 2>; if i < 2u { a[i] = 1u; } y[i] = a[0];").findings == []


def test_nothing_is_looked_at_without_the_probe():
    body = "var a: array<u32, 2>; a[i] = 1u; y[i] = a[0];"
    plain, looked = run(body, probes="none"), run(body, probes="bounds")
    assert plain.findings == []
    assert len(plain.program.code) < len(looked.program.code)
    assert {site.site.kind for site in looked.sites} == {"store"}
