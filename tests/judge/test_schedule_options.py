"""Which schedules a case compares, the command that shows a difference again, and what an exploration is judged by."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.judge.coverage import CaseOutcome
from bankshot.oracle.judge.explored import Explored, ProgressModels
from bankshot.oracle.judge.schedule_options import ScheduleOptions, agreement_entry, schedules_of


def case(path="scale.toml", name="scale", dims=None, default=None, **kernel):
    made = SimpleNamespace(path=Path(path), name=name, dims=default or {}, **kernel)
    return SimpleNamespace(kernel=made, shape=SimpleNamespace(dims=dims or {}))


COMMANDS = {
    "a manifest": (case(), "nvidia", "run scale.toml"),
    "another kernel of a manifest": (case(name="rows"), "nvidia", "run scale.toml --kernel rows"),
    "a shader": (case("scale.wgsl"), "nvidia", "run scale.wgsl"),
    "an entry point of a shader": (case("scale.wgsl", "rows"), "nvidia", "run scale.wgsl"),
    "another suffix": (case("scale.TOML", "rows"), "nvidia", "run scale.TOML --kernel rows"),
    "a device": (case(), "amd", "run scale.toml --device amd"),
    "a dim": (case(dims={"N": 8}, default={"N": 4}), "nvidia", "run scale.toml --set N=8"),
    "a dim without a default": (case(dims={"N": 8}), "nvidia", "run scale.toml --set N=8"),
    "one dim of three": (
        case(dims={"M": 4, "N": 8, "K": 2}, default={"M": 4, "N": 4, "K": 2}), "nvidia", "run scale.toml --set N=8"
    ),
    "two dims of three": (
        case(dims={"M": 5, "N": 4, "K": 3}, default={"M": 4, "N": 4, "K": 2}), "amd",
        "run scale.toml --set M=5 --set K=3 --device amd",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_of_a_case_names_what_is_not_its_default(name):
    made, device, words = COMMANDS[name]
    schedules = ScheduleOptions(5, 3, 1.5, ("--budget", "7")).of(made, device)
    assert " ".join(schedules.command) == f"bankshot {words} --budget 7"
    assert (schedules.count, schedules.seed, schedules.seconds) == (5, 3, 1.5)


@pytest.mark.parametrize(("path", "given", "left_out"), [
    ("k.toml", False, False), ("k.toml", True, True), ("k.wgsl", False, True), ("k.wgsl", True, True),
    ("k.TOML", False, False),
])  # fmt: skip
def test_a_command_leaves_out_a_grid_that_no_manifest_has(path, given, left_out):
    assert ScheduleOptions(2, grid=given).of(case(path), "nvidia").grid == left_out


def test_a_manifest_asks_for_schedules_or_for_none():
    assert schedules_of(case(schedules=None, seed=4)) is None
    assert schedules_of(case(schedules=3, seed=4)) == ScheduleOptions(3, 4)
    assert schedules_of(case(schedules=3, seed=0)) == ScheduleOptions(3, 0, None, (), False)


class Agreement(SimpleNamespace):
    def __str__(self):
        return "2 of 3 agree"


def test_the_entry_of_schedules_that_were_compared():
    assert agreement_entry(SimpleNamespace(agreement=None)) is None
    seen = Agreement(asked=3, seen=2, seed=7, seconds=1.5, differing=("mirrored",), endless=())
    assert agreement_entry(SimpleNamespace(agreement=seen)) == {
        "asked": 3, "seen": 2, "seed": 7, "seconds": 1.5, "differing": ["mirrored"], "endless": [],
        "text": "2 of 3 agree",
    }  # fmt: skip


# ---- explorations ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "outcome"),
    [
        ([], CaseOutcome.UNCHECKED),
        (["spin"], CaseOutcome.UNCHECKED),  # as the manifest allows
        (["race"], CaseOutcome.FAILED),
        (["spin", "race"], CaseOutcome.FAILED),
        (["race", "spin"], CaseOutcome.FAILED),
    ],
)
@pytest.mark.parametrize("suffix", ["toml", "wgsl"])
def test_an_exploration_fails_by_findings_that_are_not_allowed(codes, outcome, suffix):
    found = SimpleNamespace(findings=[SimpleNamespace(code=code) for code in codes])
    made = Explored(case(f"k.{suffix}", allow=("spin",)), "nvidia", found)
    assert (made.outcome, made.ok) == (outcome, outcome is not CaseOutcome.FAILED)
    assert (made.compared.truths, made.compared.bare) == ((), suffix == "wgsl")


@pytest.mark.parametrize(
    ("names", "within", "wrong"),
    [
        ("fair,nonsense", "fair", "--progress cannot be 'nonsense'"),
        ("fair", "nonsense", "--within cannot be 'nonsense'"),
        ("nonsense", "other", "--progress cannot be 'nonsense'"),
        ("all,fair", "fair", "--progress cannot be 'all'"),
        ("all", "", "--within cannot be ''"),
    ],
)
def test_unknown_progress_models_are_named(names, within, wrong):
    with pytest.raises(UsageError, match=f"^{wrong}; the progress models are "):
        ProgressModels.parse(names, within)


@pytest.mark.parametrize(
    ("names", "models"),
    [
        ("all", ("fair", "hsa", "obe", "hsa+obe", "lobe", "none")),
        ("obe,hsa", ("obe", "hsa")),
        ("fair", ("fair",)),
        ("fair,,", ("fair",)),
        ("", ()),
    ],
)
def test_progress_models_are_named_in_order(names, models):
    assert ProgressModels.parse(names, "hsa") == ProgressModels(models, "hsa")
