"""Advice with predicted times, on a device whose costs are known."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle.advise import layout_choice, layout_search
from bankshot.oracle.advise.advice import Advice, AdviceReport, Rewritten, Trial
from bankshot.oracle.advise.array_layouts import Change
from bankshot.oracle.cli.main import main
from bankshot.oracle.reports import advise_report

SHADER = """\
const PITCH = 32u;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> t: array<f32, 32u * PITCH>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {
  for (var k = 0u; k < 32u; k++) { t[k * PITCH + i] = x[w.x * 1024u + k * 32u + i]; }
  workgroupBarrier();
  for (var k = 0u; k < 32u; k++) { y[w.x * 1024u + k * 32u + i] = t[i * PITCH + k]; }
}
"""


@pytest.fixture(scope="module")
def shader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("shader") / "k.wgsl"
    file.write_text(SHADER)
    return file


@cache
def advise(shader: Path, device: str, *options: str) -> str:
    args = ["advise", str(shader), "--device", device, "--grid", "800", "--bind", "x=normal:f32:819200",
            "--bind", "y=zeros:f32:819200", *options]  # fmt: skip
    return CliRunner().invoke(main, args).stdout


def test_times_before_and_after_are_shown(shader: Path) -> None:
    (line,) = [each for each in advise(shader, "nvidia-h200").splitlines() if "predicted time on nvidia-h200: " in each]
    assert line.endswith(" us with the change")
    zeros = np.zeros(819_200, np.float32)
    run = bankshot.simulate(SHADER, grid=800, bindings={"x": zeros, "y": zeros}, device="nvidia-h200")
    parts = run.predicted_time.parts
    assert f" us, mostly {max(parts, key=parts.__getitem__)}; " in line


def test_a_better_layout_is_predicted_to_be_faster(shader: Path) -> None:
    (case,) = json.loads(advise(shader, "nvidia-h200", "--json"))["cases"]
    before, after = case["predicted_us"]
    assert after < before


def test_a_device_without_costs_and_with_other_banks_shows_none(shader: Path) -> None:
    assert "predicted" not in advise(shader, "amd")
    (case,) = json.loads(advise(shader, "amd", "--json"))["cases"]
    assert (case["predicted_us"], case["predicted_on"]) == ([], None)


def test_by_default_times_are_those_of_the_shipped_profile_that_counts_alike(shader: Path) -> None:
    (case,) = json.loads(advise(shader, "nvidia", "--json"))["cases"]
    (same,) = json.loads(advise(shader, "nvidia-h200", "--json"))["cases"]
    assert case["predicted_on"] == {"device": "nvidia-h200", "calibrated": True}
    assert case["predicted_us"] == same["predicted_us"]


def test_a_device_that_was_not_calibrated_shows_a_ratio_and_no_time(shader: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "nvidia-h200"\nname = "mine"\ncores = 60\n')
    (line,) = [each for each in advise(shader, str(tmp_path / "mine.toml")).splitlines() if "predicted time on" in each]
    assert line.split("; ")[0].endswith("predicted time on mine: for ranking only, the device was not calibrated")
    assert line.endswith(" of that as written")
    assert "us" not in line.split()
    (case,) = json.loads(advise(shader, str(tmp_path / "mine.toml"), "--json"))["cases"]
    assert case["predicted_us"] == []
    assert case["predicted_relative"][0] == 1.0 > case["predicted_relative"][1]
    trials = [case["arrays"][0][which] for which in ("written", "best")]
    assert [(trial["predicted_us"], trial["predicted_relative"]) for trial in trials] == [
        (None, 1.0),
        (None, case["predicted_relative"][1]),
    ]


def made(*figures: tuple[float | None, int]) -> Advice:
    """Advice on layouts with these predicted times and wavefronts, of which the first is as written."""
    trials = [Trial(n, bytes=400, wavefronts=wavefronts, us=us) for n, (us, wavefronts) in enumerate(figures)]
    return Advice("t", "PITCH", (), tuple(trials))


def test_the_shortest_predicted_time_is_best_even_with_more_wavefronts() -> None:
    found = made((10.0, 90), (8.0, 40), (9.0, 30))
    assert found.best.pitch == 1
    assert found.slower
    assert not made((10.0, 90), (8.0, 30), (9.0, 40)).slower


def test_a_layout_with_fewer_wavefronts_that_is_slower_is_named_with_both_figures() -> None:
    assert advise_report._proof(made((10.0, 90), (8.0, 40), (9.0, 30))) == (
        "changed to 2, it takes 30 wavefronts, 0 of them excess, but is predicted to be 12.5% slower at this size"
    )


def test_a_slower_change_is_refused_with_what_it_saves() -> None:
    assert layout_search._saved((100, 50), (60, 50)) == "saves 40 wavefronts"
    assert layout_search._saved((2_100, 50), (60, 40)) == "saves 2,040 wavefronts and 10 sectors"


def test_the_layout_with_the_fewest_wavefronts_is_that_of_each_array_over_all_its_pitches() -> None:
    other = replace(made((10.0, 50), (11.0, 45)), array="u")
    found = layout_choice.fewest_of_arrays([made((10.0, 90), (8.0, 40)), made((10.0, 90), (9.0, 30)), other])
    assert [(array, trial.wavefronts, trial.us) for array, trial in found] == [("t", 30, 9.0), ("u", 45, 11.0)]


# Layouts of arrays as (microseconds, wavefronts, bytes) of the text with each alone, the first as written: 400 bytes.
EITHER = {"t": [(10, 4, 400), (12, 8, 300)], "u": [(10, 4, 400), (11, 8, 300)]}
FITTING = {
    "the array that costs least to change": (EITHER, 300, [0, 1]),
    "both where one alone does not fit": (EITHER, 299, [1, 1]),
    "none where all do not fit": (EITHER, 199, None),
    "of those as cheap the fewest changes": (
        {"t": [(10, 4, 400), (10, 4, 300)], "u": [(10, 4, 400), (10, 4, 300)]}, 300, [1, 0]),
    "more memory for one that others make room for": (
        {"t": [(10, 9, 400), (7, 4, 450)], "u": [(10, 4, 400), (11, 8, 200)]}, 300, [1, 1]),
    "of those as fast the fewest wavefronts": (
        {"t": [(10, 4, 400), (10.05, 8, 300)], "u": [(10, 4, 400), (10.01, 9, 300)]}, 300, [1, 0]),
    "without times the fewest wavefronts": (
        {"t": [(None, 4, 400), (None, 9, 300)], "u": [(None, 4, 400), (None, 8, 300)]}, 300, [0, 1]),
    "one array": ({"t": [(10, 4, 400), (12, 8, 300), (11, 8, 350)]}, 350, [2]),
}  # fmt: skip


@pytest.mark.parametrize("name", FITTING)
def test_the_layouts_that_fit_into_less_memory_together(name: str) -> None:
    arrays, most, chosen = FITTING[name]
    advice = [
        Advice(
            array, "P", (), tuple(Trial(n, us=us, wavefronts=cost, bytes=size) for n, (us, cost, size) in enumerate(s))
        )
        for array, s in arrays.items()
    ]
    found = layout_choice.fitting(advice, 400, most)
    if chosen is None:
        assert [each.accepted for each in found] == [[], []]
    else:
        assert [each.best.pitch for each in found] == chosen
        assert 400 + sum(each.best.bytes - 400 for each in found) <= most


def test_a_refused_layout_says_whether_other_arrays_take_the_memory() -> None:
    two = [replace(made((10.0, 4), (12.0, 8)), array=array) for array in "tu"]
    two = [replace(each, trials=(each.trials[0], replace(each.trials[1], bytes=300))) for each in two]
    words = "more than 300 bytes of workgroup memory"
    both, one = layout_choice.fitting(two, 400, 300), layout_choice.fitting(two[:1], 400, 300)
    assert {trial.refused for each in both for trial in each.trials} == {
        None,
        f"{words}, beside the layouts of other arrays",
    }
    assert one[0].trials[0].refused == words


@pytest.mark.parametrize(
    ("us", "words"),
    [((100.0, 80.0), "predicted to be 25.0% slower at this size"), ((200.0, 100.0), ""), ((), "")],
)
def test_layouts_with_the_fewest_wavefronts_are_compared_with_the_change_that_is_shown(us: tuple, words: str) -> None:
    run: Any = None
    assert AdviceReport(run, run, "nvidia", (), (), fewest=Trial(0, us=100.0), predicted_us=us).slowdown == words


def test_of_layouts_that_take_as_long_the_one_with_fewest_wavefronts_is_best() -> None:
    assert made((11.0, 90), (10.0, 50), (10.09, 30), (10.2, 20)).best.pitch == 2  # within a percent, and not
    assert made((10.0, 90), (10.0, 90)).ok


def test_a_layout_is_not_better_than_the_text_if_it_is_predicted_to_be_slower() -> None:
    """However little: the change would save wavefronts that cost no time."""
    found = made((10.0, 90), (10.001, 30))
    assert (found.ok, found.slower) == (True, True)
    assert made((10.0, 90), (10.0, 30)).best.pitch == 1
    without = replace(found, trials=(replace(found.trials[0], refused="more than 300 bytes"), found.trials[1]))
    assert without.best.pitch == 1  # the text is none to choose


def test_without_times_wavefronts_decide() -> None:
    assert made((None, 90), (None, 40), (None, 30)).best.pitch == 2


COUNTERS = {"shared_wavefronts": 100.0, "global_sectors": 50.0}
MOST_BYTES = 16_384


@pytest.mark.parametrize(
    ("timed", "rewritten", "chosen"),
    [
        (True, (7.0, 140), "rewrite"),  # faster, with more wavefronts and sectors
        (True, (8.05, 60), "rewrite"),  # as fast, with fewer
        (True, (9.0, 60), "layout"),  # slower
        (False, (9.0, 60), "rewrite"),  # times are not known: fewer wavefronts and sectors
    ],
)
def test_the_change_is_the_one_with_the_shortest_predicted_time(timed: bool, rewritten: tuple, chosen: str) -> None:
    """The layout saves 60 of 100 wavefronts and takes 8 us."""
    layout, rewrite = Change(overrides={"P": 33}), Change(overrides={"P": 1})
    advice = Advice("t", "P", (), (Trial(0, wavefronts=100, us=10.0), Trial(1, change=layout, wavefronts=40, us=8.0)))
    us, cost = rewritten
    tried = Rewritten("another", rewrite, wavefronts=cost - 50, sectors=50, us=us)
    if not timed:
        advice = Advice("t", "P", (), tuple(replace(trial, us=None) for trial in advice.trials))
        tried = replace(tried, us=None)
    found = layout_choice.cheapest(COUNTERS, [advice], None, [tried], MOST_BYTES)
    assert found is (layout if chosen == "layout" else rewrite)
