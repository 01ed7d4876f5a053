"""The account shares nothing with what it checks: of `sim` it imports names of places and types."""

import ast
from pathlib import Path

import pytest

from bankshot.oracle.gpu_account.account import COUNTERS
from bankshot.sim.run.counters import SITE_COUNTERS

FILES = sorted((Path(__file__).parents[2] / "oracle" / "gpu_account").glob("*.py"))
ALLOWED = {"...sim.fast_dataclass", "...sim.wgsl", "...sim.wgsl.source"}  # and, of sim.wgsl, these:
NAMES_OF_WGSL = {"typed", "types"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_of_the_simulator_only_the_typed_module_is_imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level > 1:
            module = "." * node.level + (node.module or "")
            assert module in ALLOWED, f"{path.name}:{node.lineno}: {module}"
            if module == "...sim.wgsl":
                assert {alias.name for alias in node.names} <= NAMES_OF_WGSL
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        assert not [name for name in names if name.startswith("bankshot")]


def test_there_is_an_account_of_every_counter_of_a_place():
    assert set(COUNTERS) == {row.key for row in SITE_COUNTERS}
