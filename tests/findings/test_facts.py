"""Each finding of a kernel with several: its line, times, first workgroup, lanes and words, worked out by hand.

Three workgroups of 64 invocations run the bodies; `test_twins` describes their names.
"""

from __future__ import annotations

import pytest

from tests.findings.test_twins import HEAD, findings

FIRST_LINE = HEAD.count("\n") + 8  # of a body

# Code -> lines of a body, each with what its finding says: times, workgroup, lanes and message; None without one.
FACTS: dict[str, list[tuple[str, tuple[int, int, tuple[int, ...], str] | None]]] = {
    "out-of-bounds": [
        ("y[at + 150u] = 1u;", (150, 0, (42,), "store of y[192], which has 192 elements")),
        ("if i < 9u { v[at / 4u + 46u].z = 1u; }", (19, 0, (8,), "store of v[48], which has 48 elements")),
        ("f[at] = f32(x[at * 2u]);", (96, 1, (32,), "load of x[192], which has 192 elements")),
        ("y[at] = x[at - 1u];", (1, 0, (0,), "load of x[-1], which has 192 elements")),
        ("if g == 2u { y[at] = t[i + 65u]; }", (1, 2, (63,), "load of t[128], which has 128 elements")),
        ("y[at] = x[at];", None),
    ],
    "division-by-zero": [
        ("y[at] = i / (i & 1u);", (96, 0, (0,), "invocation 0 computes 0 / 0 = 0")),
        ("y[at] += i % (i & 3u);", (48, 0, (0,), "invocation 0 computes 0 % 0 = 0")),
        ("if g == 1u && i > 60u { y[at] = 7u / (i - 63u); }", (1, 1, (63,), "invocation 63 computes 7 / 0 = 7")),
        ("y[at] = u32(-8 / (i32(i) - 5));", (3, 0, (5,), "invocation 5 computes -8 / 0 = -8")),
        ("y[at] = 7u / (i + 1u);", None),
    ],
    "shift-count": [
        ("y[at] = 1u << i;", (96, 0, (32,), "invocation 32 computes 1 << 32 = 1")),
        ("if g > 0u { y[at] += 8u >> (i + 28u); }", (120, 1, (4,), "invocation 4 computes 8 >> 32 = 8")),
        ("y[at] = u32(-8 >> (i & 33u));", (96, 0, (32,), "invocation 32 computes -8 >> 32 = -8")),
        ("y[at] = 1u << (i & 31u);", None),
    ],
    "conversion": [
        ("y[at] = u32(f32(i) * 1e9);", (177, 0, (5,), "invocation 5 computes u32(5e+09) = 4294967040")),
        ("y[at] += u32(-f32(i));", (189, 0, (1,), "invocation 1 computes u32(-1.0) = 0")),
        ("y[at] += u32(i32(f32(i) * 1e9));", (183, 0, (3,), "invocation 3 computes i32(3e+09) = 2147483520")),
        ("if g == 2u { y[at] = u32(i32(-1e8 * f32(i))); }", (42, 2, (22,), "i32(-2.2e+09) = -2147483648")),
        ("y[at] = u32(f32(i) * 1e7);", None),
    ],
    "not-finite": [
        ("f[at] = f32(i) / f32(i);", (3, 0, (0,), "invocation 0 computes 0.0 / 0.0 = nan")),
        ("f[at] += log(f32(i));", (3, 0, (0,), "invocation 0 computes log(0.0) = -inf")),
        ("if g == 2u { f[at] = sqrt(f32(i) - 3.0); }", (3, 2, (0,), "invocation 0 computes sqrt(-3.0) = nan")),
        ("f[at] = exp(f32(i) + 30.0);", (15, 0, (59,), "invocation 59 computes exp(89.0) = inf")),
        ("f[at] = sqrt(f32(i));", None),
    ],
    "barrier-divergence": [
        ("if i < 5u { workgroupBarrier(); }", (3, 0, tuple(range(5, 64)), "59 of 64 invocations do not reach this")),
        ("if g == 1u && i >= 5u { workgroupBarrier(); }", (1, 1, (0, 1, 2, 3, 4), "barrier: 0 to 4")),
        ("if g > 0u && i % 63u != 0u { storageBarrier(); }", (2, 1, (0, 63), "2 of 64 invocations do not reach")),
        ("workgroupBarrier();", None),
    ],
    "uninit": [
        ("y[at] = t[i];", (192, 0, (0,), "invocation 0 loads t[0], which was never written")),
        ("if i < 40u { t[i] = 1u; } y[at] = t[i];", (72, 0, (40,), "invocation 40 loads t[40], which was never")),
        ("if g == 2u && i == 5u { y[at] = total; }", (1, 2, (5,), "invocation 5 loads total, which was never written")),
        ("if g > 0u { y[at] = grid[9][i & 7u]; }", (128, 1, (0,), "invocation 0 loads grid[9][0], which was never")),
        ("s[i] = 1.0; f[at] = s[i];", None),
    ],
    "race": [
        ("t[i] = i; y[at] = t[63u - i];", (192, 0, (63, 0), "invocation 0 loads t[63], and invocation 63 stores")),
        ("workgroupBarrier(); if g > 0u { total = g + i; }", (126, 1, (0, 1), "invocation 1 stores to total, and inv")),
        ("if g == 2u { s[i / 2u] = f32(i); }", (32, 2, (0, 1), "invocation 1 stores to s[0], and invocation 0 stores")),
        ("workgroupBarrier(); if i == 3u { total = 1u; }", None),
    ],
}  # fmt: skip


@pytest.mark.parametrize("batch", [512, 1], ids=["workgroups side by side", "one by one"])
@pytest.mark.parametrize("code", FACTS)
def test_every_finding_of_a_kernel(code, batch, monkeypatch):
    from bankshot.sim.run import dispatch

    monkeypatch.setattr(dispatch, "_LANES_PER_BATCH", batch)
    body = "\n".join(line for line, _ in FACTS[code])
    found = {each.span.line - FIRST_LINE: each for each in findings(body) if each.code == code}
    assert sorted(found) == [number for number, (_, facts) in enumerate(FACTS[code]) if facts]
    for number, (_, facts) in enumerate(FACTS[code]):
        if facts:
            times, workgroup, lanes, words = facts
            finding = found[number]
            assert (finding.count, finding.workgroup, finding.lanes) == (times, (workgroup, 0, 0), lanes), finding
            assert words in finding.message
