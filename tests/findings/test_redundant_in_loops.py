"""A barrier in a loop, after others: who accesses a word decides whether it orders anything, not the other barriers."""

import numpy as np
import pytest

import bankshot

SHADER = """
@group(0) @binding(0) var<storage, read_write> y: array<u32, 64>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    t[i] = i;
    workgroupBarrier();
    var v = t[63u - i];
    workgroupBarrier();
    for (var k = 0u; k < 4u; k++) {
        BODY
        workgroupBarrier(); // in the loop
    }
    y[i] = t[i] + v;
}"""
LINE = 1 + SHADER[: SHADER.index("workgroupBarrier(); // in")].count("\n")


def redundant(body: str) -> list[int]:
    run = bankshot.simulate(
        bankshot.check(SHADER.replace("BODY", body), uniformity="off"),
        grid=1, bindings={"y": np.zeros(64, np.uint32)}, probes=["redundant"],
    )  # fmt: skip
    return [f.span.line for f in run.findings if f.code == "redundant-barrier" and f.span]


@pytest.mark.parametrize(
    "body", ["t[i] += v;", "t[i] = k;", "v += t[i];", "v += t[63u - i];", "if k > 1u { t[i] = v; }"]
)
def test_one_that_orders_nothing(body: str) -> None:
    """Each word has one invocation that stores to it, or none."""
    assert LINE in redundant(body)


@pytest.mark.parametrize(
    "body",
    [
        "if (i & 1u) == (k & 1u) { t[i ^ (k & 1u)] += v; }",  # a word of one invocation, then of another
        "if k == 0u { t[i] = v; } else { v += t[63u - i]; }",
        "if k == 3u { t[i] = v; } else { v += t[63u - i]; }",
        "if i == k { t[5] += v; }",
    ],
)
def test_one_that_is_needed(body: str) -> None:
    assert LINE not in redundant(body)
