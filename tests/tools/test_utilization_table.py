"""The table of docs/utilization.md: its kernels are those of `shaders/`, and rows of small ones are as computed now."""

import re

import pytest

from bankshot.oracle.manifests.cases import Request, plans
from tools import utilization_table
from tools.claims.bench import SHADERS

ROWS = {found[1]: found[0] for found in re.finditer(r"^\| `(\w+)` \|.*$", utilization_table.PAGE.read_text(), re.M)}
PLANS = {plan.kernel.name: plan for plan in plans([SHADERS], Request())}


def test_the_table_has_each_kernel():
    assert list(ROWS) == list(PLANS)


@pytest.mark.parametrize("name", ["rmsnorm", "silu", "ladder_one_thread", "q4_fused_small_k", "q4_fused_multicol"])
def test_a_row_is_as_computed_now(name):
    assert utilization_table.row(PLANS[name]) == ROWS[name]
