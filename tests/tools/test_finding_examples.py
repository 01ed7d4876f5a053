"""The examples of docs/findings.md show what the page says."""

import pytest

from bankshot.sim.findings.table import KINDS
from tools.finding_examples import FOLDER, examples

EXAMPLES = examples()


def test_each_finding_has_an_example_and_a_cured_kernel_and_no_file_is_left_over():
    files = {f"{code}{end}" for code in KINDS for end in (".wgsl", ".cured.wgsl")}
    assert {path.name for path in FOLDER.iterdir()} == files


@pytest.mark.parametrize("code", KINDS)
def test_an_example_has_its_finding_and_the_cured_kernel_has_none(code):
    example, cured = EXAMPLES[code]
    assert code in {each.code for each in example.findings}
    assert not cured.findings
