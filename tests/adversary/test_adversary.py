"""Wrong kernels do not pass, and right ones do: `python -m tests.adversary` tries thousands."""

import random

import numpy as np
import pytest

from tests.adversary.drafts import WAYS, Draft
from tests.adversary.kernels import KERNELS
from tests.adversary.slips import slip
from tests.adversary.tries import attempt, audit_command, outputs_of, run_here, write_files
from tests.adversary.wrongness import Output, beyond

BY_NAME = {kernel.name: kernel for kernel in KERNELS}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_right_kernel_passes(name, tmp_path):
    """So that the wrong ones fail because they are wrong."""
    kernel = BY_NAME[name]
    outputs = outputs_of(kernel, kernel.text)
    assert outputs is not None
    assert not any(output.is_gross for output in outputs.values())
    write_files(tmp_path, Draft(kernel, outputs, reference=kernel.reference_text()), kernel.text)
    code, said = run_here(audit_command(tmp_path / "k.toml", False), {})
    assert code == 0, said


@pytest.mark.parametrize("name", BY_NAME)
def test_slips_are_of_many_kinds_and_change_outputs(name):
    kernel, random_ = BY_NAME[name], random.Random(1)
    texts = [slip(kernel.text, random_) for _ in range(40)]
    assert len({*texts} - {kernel.text}) > 15
    ran = [outputs for text in texts[:20] if (outputs := outputs_of(kernel, text))]
    assert any(output.is_gross for outputs in ran for output in outputs.values())


RIGHT = np.array([1.0, -2.0, 4.0])


@pytest.mark.parametrize(
    ("actual", "rule", "limits", "wrong"),
    [
        ([1.0, -2.0, 4.0], "", {}, False),
        ([1.0, -2.0, 4.1], "", {}, False),  # within 5%
        ([1.0, -2.0, 5.0], "", {}, True),
        ([1.0, 2.0, 4.0], "close", {"rtol": 0.3, "atol": 0.01}, True),
        ([1.0, -2.0, 5.0], "close", {"rtol": 0.3, "atol": 0.01}, False),
        ([1.0, np.nan, 4.0], "close", {"rtol": 0.3, "atol": 0.01}, True),
        ([1.0, -2.0, 5.0], "nmse", {"max": 0.01}, True),
        ([1.0, -2.0, 5.0], "nmse", {"max": 0.1}, False),
        ([1.0, -2.0, 5.0], "ulp", {"max": 64}, True),
        ([np.inf, -2.0, 4.0], "ulp", {"max": 64}, True),
    ],
)
def test_what_is_wrong_beyond_a_rule(actual, rule, limits, wrong):
    assert beyond(rule, limits, Output(np.array(actual, np.float32), RIGHT)) == wrong


def test_an_integer_is_wrong_by_its_value():
    assert beyond("ulp", {"max": 64}, Output(np.array([100, 0], np.uint32), np.array([0.0, 0.0])))
    assert not beyond("ulp", {"max": 64}, Output(np.array([50, 0], np.uint32), np.array([0.0, 0.0])))
    assert beyond("exact", {}, Output(np.array([50, 0], np.uint32), np.array([0.0, 0.0])))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", range(6))
def test_a_wrong_kernel_does_not_pass(way, number):
    made = attempt(number, seed=1, way=way, apart=0.0)
    assert not made.is_fooled, str(made)
