"""A rule is one class: what it says of itself is what the manifest parser, comparisons and reports use."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from bankshot.oracle.comparison.compare import compare
from bankshot.oracle.comparison.rules import RULES, Judgement, Limits, OutputRule, Pair, Parameter, Rule, output_rule
from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests import manifest_loader
from bankshot.oracle.reports.check_words import comparison_words

MANIFEST = """\
[kernel]
source = "k.wgsl"
dims = {}
dispatch = [1]
[bind.y]
dtype = "f32"
shape = [4]
init = "zeros"
[expect]
y = { rule = "sign", RULE }
"""


@pytest.fixture
def _sign(monkeypatch):
    """One more rule: elements may differ in sign only, and `most` of them must not differ at all."""
    monkeypatch.setitem(RULES, "exact", RULES["exact"])  # restores the table afterwards
    monkeypatch.setattr("bankshot.oracle.comparison.rules.RULES", dict(RULES))
    from bankshot.oracle.comparison import rules

    monkeypatch.setattr(manifest_loader, "RULES", rules.RULES)

    class Sign(OutputRule):
        name: ClassVar[str] = "sign"
        accepts: ClassVar[str] = "the same magnitude"
        measure: ClassVar[str] = "elements of another magnitude"
        parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("most", 0),)

        def judge(self, pair: Pair, limits: Limits) -> Judgement:
            wrong = np.abs(pair.actual) != np.abs(pair.rounded)
            count, limit = float(np.count_nonzero(wrong)), self.limit("most", limits)
            return Judgement(wrong & (count > limit), count, limit)

        def combine(self, scores):
            return sum(scores)

    output_rule(Sign)


@pytest.fixture
def load(tmp_path):
    def load(rule):
        (tmp_path / "k.wgsl").write_text("")
        (tmp_path / "k.toml").write_text(MANIFEST.replace("RULE", rule))
        return manifest_loader.load(tmp_path / "k.toml").rules["y"]

    return load


@pytest.mark.usefixtures("_sign")
def test_one_class_is_a_rule_of_manifests_comparisons_and_reports(load):
    rule = load("most = 1")
    assert (rule, str(rule)) == (Rule("sign", {"most": 1}), "sign most 1")
    one, other = np.array([1, -2, 3], np.float32), np.array([-1, 2, 3], np.float32)
    assert compare(one, other, rule).ok
    wrong = compare(one, other + 1, rule)
    assert (wrong.ok, wrong.mismatches, wrong.score, wrong.limit) == (False, 3, 3.0, 1.0)
    assert comparison_words(wrong).startswith(
        "3 of 3 elements (100.00%), rule sign most 1, elements of another magnitude 3 (limit 1)"
    )
    for limits, message in (("least = 1", "has an unknown key `least`"), ("most = -1", "`y`: most must be 0 or more")):
        with pytest.raises(UsageError, match=message):
            load(limits)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_describes_itself(name):
    rule = RULES[name]
    assert rule.name == name
    assert rule.accepts
    assert rule.measure
    assert all(f"`{p.name}`" in rule.accepts or p.name in rule.accepts for p in rule.parameters)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("limit", [-1, float("nan")])
def test_limits_are_not_negative(name, limit):
    for parameter in RULES[name].parameters:
        with pytest.raises(UsageError, match=f"^{parameter.name} must be 0 or more, not"):
            RULES[name].check({parameter.name: limit})


def test_close_takes_two_limits_or_none(tmp_path):
    """A manifest is refused when it is read, with its line."""
    (tmp_path / "k.wgsl").write_text("")
    (tmp_path / "k.toml").write_text(MANIFEST.replace('"sign", RULE', '"close", rtol = 1e-3'))
    with pytest.raises(UsageError, match=r"k\.toml:10: `y`: rule close takes both rtol and atol, or neither"):
        manifest_loader.load(tmp_path / "k.toml")


def test_each_parameter_has_its_own_default():
    class Two(OutputRule):
        name: ClassVar[str] = "two"
        parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("least", 1), Parameter("most", 2))

        def judge(self, pair: Pair, limits: Limits) -> Judgement:
            raise NotImplementedError

    assert [Two().limit(name, {}) for name in ("least", "most")] == [1, 2]
    assert Two().limit("most", {"most": 3}) == 3


def test_only_a_mean_over_the_output_needs_all_elements_at_once():
    """The others are judged in parts, so that they need little memory."""
    assert [name for name, row in RULES.items() if row.whole] == ["nmse"]
