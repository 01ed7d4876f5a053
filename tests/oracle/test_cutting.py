"""What a software adapter is spared, and that the report says so."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from oracle.cutting import MOST_INSTRUCTIONS, cut, halved, words
from oracle.gpu import AdapterInfo
from sim.instructions import Instructions
from sim.wgsl.source import Source, Span

SLOW = AdapterInfo("llvmpipe", "CPU", "Vulkan", "llvmpipe", "", "")
FAST = replace(SLOW, name="H200", kind="DiscreteGPU")


@pytest.fixture
def case():
    from pathlib import Path

    from oracle.kernels.cases import Request, plans

    (plan,) = plans([Path(__file__).parents[2] / "shaders" / "matmul.toml"], Request(kernel="matmul", dims={"M": 512}))
    return plan.case(plan.shapes[0])


def run(case, instructions):
    span, some = Span(Source(""), 0, 0), instructions // 3
    rows = [Instructions("fp32", span, 1, some), Instructions("integer", span, 1, instructions - some)]
    return SimpleNamespace(grid=case.grid, instructions=rows)


@pytest.mark.parametrize(
    ("grid", "most", "expected"),
    [((12, 8, 1), 50, (6, 8, 1)), ((12, 8, 1), 20, (3, 4, 1)), ((7,), 4, (4,)), ((1, 1, 3), 0, (1, 1, 1))],
)
def test_the_longest_axis_is_halved(grid, most, expected):
    assert halved(grid, most) == expected


def test_a_long_case_is_cut_for_a_software_adapter(case):
    assert case.grid == (12, 8, 1)
    part = cut(case, run(case, 3 * MOST_INSTRUCTIONS), SLOW)
    assert part.grid == (6, 4, 1)
    assert words(case, part, SLOW).startswith("llvmpipe ran 24 of 96 workgroups, held against the same ones here")


def test_short_cases_gpus_and_free_outputs_are_not_cut(case):
    assert cut(case, run(case, MOST_INSTRUCTIONS), SLOW) is case
    assert cut(case, run(case, 3 * MOST_INSTRUCTIONS), FAST) is case
    free = replace(case, kernel=replace(case.kernel, free=("Y",)))
    assert cut(free, run(case, 3 * MOST_INSTRUCTIONS), SLOW) is free
