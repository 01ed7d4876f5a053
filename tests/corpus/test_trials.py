"""The runs that are tried, the verdicts on modules that cannot run, and the number of processes."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle.corpus import corpus_survey, trial
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.corpus.trial import VERDICTS, Trial
from bankshot.oracle.errors import GpuError
from bankshot.sim.wgsl.diagnostics import Diagnostic, WgslError
from bankshot.sim.wgsl.source import Source, Span

SHADER = """
override width: u32;
@group(0) @binding(0) var<storage, read_write> y: array<u32, 1>;
@compute @workgroup_size(1) fn main() { y[0] = width; }
"""


def module_of(text):
    return trial._Module(Shader(Path("a.wgsl"), 1, text), None, lambda *words: None, None)


# ---- runs --------------------------------------------------------------------------------------------

IDLE, BUSY, BROKEN, STUCK = "idle", "busy", "out-of-bounds", "endless-loop"
LAST = len(trial.RECIPES) - 1


@pytest.mark.parametrize(
    ("kinds", "taken"),
    [
        ({0: BUSY}, 0),
        ({1: BUSY}, 1),
        ({0: IDLE, 1: IDLE}, 0),  # the first that stays in bounds
        ({0: BROKEN, 1: IDLE}, 1),
        ({0: STUCK, LAST: IDLE}, LAST),
        ({0: IDLE, LAST: BUSY}, LAST),
        ({LAST + 1: BUSY}, LAST + 1),  # with other overrides
        ({LAST + 2: IDLE}, LAST + 2),
        ({}, 2 * LAST + 1),  # none stays in bounds: the last
    ],
)
def test_the_first_run_in_bounds_that_changes_an_output_is_taken(monkeypatch, kinds, taken):
    """Runs that `kinds` does not name go out of bounds. All but idle ones change the output."""
    owner = module_of(SHADER)
    module = owner.read()
    entry = trial._Entry(owner, module, module.entry_points[0])
    made = []

    def simulate(given):
        kind = kinds.get(len(made), BROKEN)
        run = SimpleNamespace(
            findings=[SimpleNamespace(code=kind)] if kind in (BROKEN, STUCK) else [],
            outputs={"y": given["y"] + np.uint8(kind != IDLE)},
        )
        made.append((run, dict(entry.overrides)))
        return run

    monkeypatch.setattr(entry, "simulate", simulate)
    found = entry._simulated()
    assert [run is found.result for run, _ in made].index(True) == taken
    recipes = trial.RECIPES
    assert found.recipe == recipes[taken % len(recipes)]
    assert entry.overrides == made[taken][1]  # those of the run
    assert made[-1][1] == {"width": 4 if len(made) <= len(recipes) else 1}


def test_without_overrides_every_recipe_is_tried_once(monkeypatch):
    owner = module_of("@compute @workgroup_size(1) fn main() {}")
    module = owner.read()
    entry = trial._Entry(owner, module, module.entry_points[0])
    made = []
    stuck = SimpleNamespace(findings=[SimpleNamespace(code=STUCK)], outputs={})
    monkeypatch.setattr(entry, "simulate", lambda given: made.append(given) or stuck)
    entry._simulated()
    assert len(made) == len(trial.RECIPES)


@pytest.mark.parametrize(("budget", "verdict"), [(900, "endless"), (1_200, "only-here")])
def test_the_budget_limits_the_turns_of_a_loop(monkeypatch, budget, verdict):
    text = "@compute @workgroup_size(1) fn main() { for (var i = 0; i < 1000; i++) { workgroupBarrier(); } }"

    def refuse(entry, given):
        raise GpuError("no")

    monkeypatch.setattr(trial._Entry, "on_wgpu", refuse)
    made = list(trial.trials(Shader(Path("a.wgsl"), 1, text), None, budget=budget))
    assert [each.verdict for each in made] == [verdict]


# ---- modules -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "placed", "theirs", "verdict", "why"),
    [
        ("a\nb", True, None, "refused", "it is wrong (odd, line 2)"),
        ("a\nb", False, None, "refused", "it is wrong"),
        ("a\nb", True, "\n naga says no\nmore", "not-wgsl", "it is wrong (odd, line 2); wgpu says: naga says no"),
        ("a\n{{ size }}", True, None, "not-wgsl", "a template: {{size}}; it is wrong (odd, line 2)"),
        ("a\n${ size }", False, None, "not-wgsl", "a template: ${size}; it is wrong"),
        ("a\n#if X", True, None, "not-wgsl", "for another preprocessor: #if X; it is wrong (odd, line 2)"),
        ("a\nvar x: i64;", True, None, "not-wgsl", "an extension of wgpu: i64; it is wrong (odd, line 2)"),
    ],
)
def test_a_module_that_is_refused(monkeypatch, text, placed, theirs, verdict, why):
    owner = module_of(text)
    error = WgslError(Diagnostic("error", "odd", "it is wrong", Span(Source(text), 2, 3) if placed else None))

    def refuse(uniformity):
        raise error

    monkeypatch.setattr(owner, "check", refuse)
    monkeypatch.setattr(trial.wgpu_client, "refusal", lambda *given: theirs)
    made = owner.read()
    assert (made.entry, made.lines, made.verdict, made.why) == (None, 2, verdict, why)


def test_each_verdict_says_whether_it_shows_a_fault():
    about_modules = {"no-compute", "not-wgsl", "refused"}
    faults = {"refused", "no-data", "differs", "unsupported", "too-slow", "crash"}
    others = {"equal", "within", "explained", "unchecked", "only-here", "not-started", "endless", "wgpu-died"}
    assert {*VERDICTS} == about_modules | faults | others
    assert {name for name, row in VERDICTS.items() if row.about == "module"} == about_modules
    assert {name for name in VERDICTS if not corpus_survey.good(Trial("a", 1, None, name))} == faults
    assert len({row.words for row in VERDICTS.values()}) == len(VERDICTS)


# ---- processes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("jobs", "shaders", "processes"), [(1, 3, 1), (2, 3, 2), (9, 3, 3), (0, 3, 1), (4, 0, 1)])
def test_no_more_processes_than_shaders(monkeypatch, jobs, shaders, processes):
    class Stop(Exception):
        """Raised before any process starts."""

    @contextmanager
    def pool(count, *given, **options):
        asked.append(count)
        raise Stop
        yield

    asked = []
    monkeypatch.setattr(corpus_survey, "WorkerPool", pool)
    monkeypatch.setattr(corpus_survey.wgpu_client, "require_adapter", lambda name: None)
    found = corpus_survey.Collection(Path("all"), tuple(Shader(Path(f"{i}.wgsl"), 1, "") for i in range(shaders)))
    with pytest.raises(Stop):
        corpus_survey.corpus([found], corpus_survey.Options(jobs=jobs))
    assert asked == [processes]


def test_the_words_of_a_trial_are_its_reason_and_the_notes_of_its_module():
    owner = module_of(SHADER)
    assert owner.trial("main", "ok").why == ""
    owner.notes.append("enabled f16")
    assert owner.trial("main", "ok").why == "enabled f16"
    assert owner.trial("main", "skipped", "takes too long").why == "takes too long; enabled f16"
