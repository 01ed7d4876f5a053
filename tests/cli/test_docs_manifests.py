"""docs/manifests.md is whole: its examples load and run, and it names every key there is."""

import re
from pathlib import Path

import numpy as np
import pytest

from bankshot.oracle.comparison.rules import RULES
from bankshot.oracle.manifests import inputs, manifest_loader
from bankshot.oracle.manifests.dimension_arithmetic import FUNCTIONS
from bankshot.oracle.manifests.quantization import FORMATS
from bankshot.oracle.references import find

PAGE = (Path(__file__).parents[2] / "docs" / "manifests.md").read_text()
BLOCKS = {language: re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) for language in ("toml", "python")}
NAMED = set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "softmax.wgsl").write_text("")
    (tmp_path / "softmax.toml").write_text("\n".join(BLOCKS["toml"]))
    (tmp_path / "softmax_reference.py").write_text(BLOCKS["python"][0])
    return tmp_path


def test_the_example_loads_with_its_variant(folder):
    (kernel,) = manifest_loader.load_all(folder / "softmax.toml")
    assert (kernel.name, kernel.overrides, kernel.counters) == ("softmax_wide", {"WIDTH": 256}, {"barriers": "6 * M"})
    assert [(shape.dims["M"], shape.dims["N"], shape.cost) for shape in kernel.shapes] == [
        *((1, n, "quick") for n in (1, 31, 32, 33)),
        (16, 32000, "heavy"),
    ]


def test_the_reference_of_the_example_computes(folder):
    (kernel,) = manifest_loader.load_all(folder / "softmax.toml")
    case = kernel.case(kernel.shapes[1])
    y = find(kernel.reference, folder)(case.arrays, case.shape.dims)["Y"]
    np.testing.assert_allclose(y.value.sum(), 1.0)
    assert (y.value.shape, y.bound) == ((1, 31), None)


@pytest.mark.parametrize(
    "key",
    [
        *manifest_loader.KERNEL_KEYS,
        *manifest_loader.BIND_KEYS,
        *RULES,
        *inputs.DTYPES,
        *inputs.GENERATORS,
        *FORMATS,
        *FUNCTIONS,
        *("allow", "free", "gpu", "golden", "cost"),
    ],
)
def test_every_key_is_on_the_page(key):
    words = {word for each in NAMED for word in re.findall(r"\w+", each)}
    assert key in words


def test_the_table_of_rules_is_that_of_the_code():
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.split("| rule | accepts |")[1].split("\n\n")[0], re.MULTILINE)
    assert rows == [(rule.name, rule.accepts) for rule in RULES.values()]
