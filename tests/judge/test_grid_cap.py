"""What a software adapter is spared, and that the report says so."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle import wgpu_client
from bankshot.oracle.audit import Options, audit
from bankshot.oracle.judge import case_run
from bankshot.oracle.judge.grid_cap import MOST_INSTRUCTIONS, cut, halved, words
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.wgpu_client import AdapterInfo
from bankshot.sim.run.executed_instructions import Instructions
from bankshot.sim.wgsl.source import Source, Span

SLOW = AdapterInfo("llvmpipe", "CPU", "Vulkan", "llvmpipe", "", "")
FAST = replace(SLOW, name="H200", kind="DiscreteGPU")


def case_of(kernel, **dims):
    manifest = Path(__file__).parents[2] / "shaders" / "matmul.toml"
    (plan,) = plans([manifest], Request(kernel=kernel, dims=dims, sweep=False))
    return plan.case(plan.shapes[0])


@pytest.fixture
def case():
    return case_of("matmul", M=512)


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


def test_a_software_adapter_runs_part_of_a_long_case(case):
    assert case.grid == (12, 8, 1)
    part = cut(case, run(case, 3 * MOST_INSTRUCTIONS), SLOW)
    assert part.grid == (6, 4, 1)
    assert words(case, part, SLOW).startswith("llvmpipe ran 24 of 96 workgroups, compared with the same ones here")


def test_short_cases_and_gpus_run_the_whole_grid(case):
    assert cut(case, run(case, MOST_INSTRUCTIONS), SLOW) is case
    assert cut(case, run(case, 3 * MOST_INSTRUCTIONS), FAST) is case
    assert cut(case, run(case, MOST_INSTRUCTIONS + 3), SLOW).grid == (6, 8, 1)
    one = replace(case, grid=(1, 1, 1))
    assert cut(one, run(one, 3 * MOST_INSTRUCTIONS), SLOW) is one  # there is no smaller part


def test_free_outputs_of_a_partial_run_are_compared_within_derived_bounds(monkeypatch):
    """A GPU that is far off in one element is reported."""
    case = case_of("matmul_residual_swiglu_a", M=128, K=32, N=64)
    monkeypatch.setattr("bankshot.oracle.judge.grid_cap.MOST_INSTRUCTIONS", 1 << 14)
    monkeypatch.setattr(wgpu_client, "require_adapter", lambda name: SLOW)
    monkeypatch.setattr(wgpu_client, "prepare", lambda *_, **__: None)
    for wrong in (0.0, 1e-3):

        def as_gpu(part, adapter, repeats=1, text=None, wrong=wrong):
            done = case_run.simulate(part, "lavapipe", "none")
            assert np.prod(part.grid) < np.prod(case.grid)
            outputs = {key: array.copy() for key, array in done.outputs.items()}
            outputs["Y"].reshape(-1)[0] *= 1 + wrong
            done = SimpleNamespace(adapter=SLOW, outputs=outputs, clocked={}, took=0.0)
            return SimpleNamespace(done=lambda: done)

        monkeypatch.setattr(case_run, "begin_on_gpu", as_gpu)
        result = audit(case, Options())
        assert any("compared with the same ones here" in note for note in result.notes)
        (check,) = [check for check in result.outputs if check.against.startswith("wgpu")]
        assert (check.output, check.comparison.rule.name, check.ok) == ("Y", "derived", wrong == 0.0)
        assert check.comparison.unbounded == 0
