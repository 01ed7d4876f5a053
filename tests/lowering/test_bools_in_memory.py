"""Bools in workgroup memory and in variables take a word each, wherever they are."""

from __future__ import annotations

import pytest

from tests.programs_made.dispatch import values

FLAGS = "struct Flags { a: bool, n: u32, b: bool, c: vec3<bool>, d: bool, e: array<bool, 3> }\n"
STORED = (
    "v.e = array(false, false, false); v.a = i == 0u; v.n = 7u; v.b = i == 1u; "
    "v.c = vec3(true, i > 1u, false); v.d = i == 3u; v.e[i % 3u] = true;"
)
# a, n, b, c.x, c.y, c.z, d and the three of e, in bits; of the invocation alone, worked out by hand.
READ = (
    "y[i] = u32(v.a) + v.n * 2u + u32(v.b) * 16u + u32(v.c.x) * 32u + u32(v.c.y) * 64u + u32(v.c.z) * 128u + "
    "u32(v.d) * 256u + u32(v.e[0]) * 512u + u32(v.e[1]) * 1024u + u32(v.e[2]) * 2048u;"
)
COMMON = 7 << 1 | 1 << 5
ALONE = [COMMON | 1 | 1 << 9, COMMON | 1 << 4 | 1 << 10, COMMON | 1 << 6 | 1 << 11, COMMON | 1 << 6 | 1 << 8 | 1 << 9]


@pytest.mark.parametrize(
    ("before", "start"),
    [
        ("", "var v: Flags;"),
        ("var<private> v: Flags;", ""),
        ("var<workgroup> all: array<Flags, 4>;", "let p = &all[i];"),
        ("var<workgroup> all: array<array<Flags, 2>, 2>;", "let p = &all[i / 2u][i % 2u];"),
    ],
    ids=["local", "private", "workgroup", "nested"],
)
@pytest.mark.parametrize("probes", ["none", "all"])
def test_members_of_structs(before, start, probes):
    body = f"{start} {STORED} {READ}"
    if "let p" in start:
        body = body.replace("v.", "(*p).")
    assert values(body, before=FLAGS + before, probes=probes) == ALONE


def test_elements_that_others_store():
    body = """
        flags[i] = i % 3u == 0u; rows[i / 2u][i % 2u] = vec2(i > 1u, i == 2u); if i == 1u { one = true; }
        workgroupBarrier();
        let at = 3u - i;
        let row = rows[at / 2u][at % 2u];
        y[i] = u32(flags[at]) + u32(row.x) * 2u + u32(row.y) * 4u + u32(one) * 8u;"""
    before = "var<workgroup> flags: array<bool, 4>; var<workgroup> rows: array<array<vec2<bool>, 2>, 2>;"
    assert values(body, before=before + "var<workgroup> one: bool;") == [1 | 2 | 8, 2 | 4 | 8, 8, 1 | 8]
