"""The steps around a run: progress, the reference, drivers, and what an audit leaves out and says."""

import re
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.judge import audit as audits
from bankshot.oracle.judge import case_run
from bankshot.oracle.judge.audit import ENDLESS, STOPPED, audit
from bankshot.oracle.judge.options import Log, Options
from bankshot.oracle.judge.verdict import judged_as
from bankshot.oracle.manifests.manifest_loader import load
from bankshot.sim.wgsl.diagnostics import WgslError
from tests.scaling import PARAMS, SHADER, manifest

REFERENCES = """\
import numpy as np
from bankshot.oracle.references import Expected
def right(arrays, dims): return {"y": np.float32(2.5) * arrays["x"]}
def later(arrays, dims): return NotImplemented
def bounds(arrays, dims): return {"y": Expected(arrays["x"].astype(np.float64), np.arange(40) - 3.0)}
"""


@pytest.fixture
def case(tmp_path):
    def make(*expect, kernel="", shader=SHADER, **given):
        (tmp_path / "scale.wgsl").write_text(shader)
        (tmp_path / "refs.py").write_text(REFERENCES)
        text = manifest(PARAMS, f"\n[expect]\n{chr(10).join(expect)}\n", kernel=kernel, **given)
        (tmp_path / "scale.toml").write_text(text)
        made = load(tmp_path / "scale.toml")
        return made.case(made.shapes[0])

    return make


RIGHT = 'reference = "refs.py:right"'

# ---- progress ------------------------------------------------------------------------------------------


def test_each_tenth_is_reported_once_and_neither_the_start_nor_the_end(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    said = []
    progress = case_run._tenths(said.append)
    progress(50, 100)  # too early
    now[0] = 1.0
    progress(55, 100)
    now[0] = 1.01
    for done in (0, 9, 10, 19, 20, 20, 29, 47, 44, 99, 100):
        progress(done, 100)
    assert said == [10, 20, 40, 90]


def test_steps_are_timed_by_their_names(monkeypatch):
    times = iter([3.0, 5.5])
    monkeypatch.setattr(time, "perf_counter", lambda: next(times))
    seconds = {"before": 1.0}
    assert case_run.timed(seconds, "step", lambda: "result") == "result"
    assert seconds == {"before": 1.0, "step": 2.5}


def test_a_simulation_says_what_it_begins(case):
    said = []
    case_run.simulate(case(), "amd", "none", said.append)
    case_run.simulate(case(), "nvidia", ("all", "touched"), said.append)
    assert said == ["simulating as amd", "simulating as nvidia with all counters"]


# ---- the reference -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "rules", "message"),
    [
        (
            'reference = "refs.py:bounds"',
            "",
            r"refs.py:bounds gives a bound of -3 for y\[0\], and bounds are 0 or more",
        ),
        ('reference = "refs.py:none"', {}, "none"),
        (RIGHT, {"x": None}, r"\[expect\] has a rule for x, and reference refs.py:right gives y"),
    ],
)
def test_a_reference_that_does_not_fit_is_an_error_of_the_manifest(case, kernel, rules, message):
    made = case(kernel=kernel)
    made = replace(made, kernel=replace(made.kernel, rules=rules))
    with pytest.raises(UsageError, match=rf"^{re.escape(str(made.kernel.path))}: .*{message}"):
        case_run.expected_outputs(made)


def test_rules_need_no_outputs_of_a_reference_that_is_to_be_written(case):
    made = case('y = "exact"', kernel='reference = "refs.py:later"')
    assert case_run.expected_outputs(made) == {}
    assert [*case_run.expected_outputs(case('y = "exact"', kernel=RIGHT))] == ["y"]


def test_arrays_of_other_names_than_a_reference_takes_are_an_error_with_its_place(case):
    made = case(kernel='reference = "matmul"')
    words = r"scale.toml:5:13: reference matmul takes .* and the bindings are x, y, params"
    with pytest.raises(UsageError, match=words):
        case_run.find_reference(made)


def test_a_reference_that_is_missing_is_found_before_the_run(case, monkeypatch):
    monkeypatch.setattr(audits, "_simulate", lambda *_: pytest.fail("the kernel ran"))
    with pytest.raises(UsageError, match="none"):
        audit(case(kernel='reference = "refs.py:none"'), Options(gpu=False))


# ---- on both sides -------------------------------------------------------------------------------------


def test_an_error_of_wgpu_comes_before_one_of_the_simulator(monkeypatch):
    done = []
    monkeypatch.setattr(
        case_run, "begin_on_gpu", lambda case, adapter: SimpleNamespace(done=lambda: done.append(1) or 7)
    )
    assert case_run.run_on_both(None, None, lambda: "run") == (7, "run")
    assert done == [1]

    def fails():
        raise WgslError

    with pytest.raises(WgslError):
        case_run.run_on_both(None, None, fails)
    assert done == [1, 1]


@pytest.mark.parametrize("text", [None, "another text"])
def test_wgpu_runs_the_text_of_the_case_or_another(case, monkeypatch, text):
    made, begun = case(), []
    monkeypatch.setattr(case_run.gpu, "begin", lambda *given, **named: begun.append((given, named)))
    case_run.begin_on_gpu(made, "llvm", repeats=3, text=text)
    ((source, entry, grid, bindings), named), = begun  # fmt: skip
    assert (entry, grid, named["adapter"], named["repeats"]) == ("scale", (2, 1, 1), "llvm", 3)
    assert source == (text or SHADER)
    assert {*bindings} - {*made.bindings} == ({*case_run.kept_floats.DATA} if text else set())
    assert (named["slots"] is None, named["module"] is None) == (text is not None, text is not None)


@pytest.mark.parametrize(("given", "repeats"), [({}, 1), ({"repeats": 3}, 3)])
def test_wgpu_runs_a_case_once_or_as_often_as_asked(case, monkeypatch, given, repeats):
    begun = []
    monkeypatch.setattr(
        case_run.gpu, "begin", lambda *_, **named: begun.append(named["repeats"]) or SimpleNamespace(done=lambda: 7)
    )
    assert case_run.run_on_gpu(case(), None, **given) == 7
    case_run.begin_on_gpu(case(), None, **given)
    assert begun == [repeats, repeats]


# ---- what an audit leaves out --------------------------------------------------------------------------


def said_of(run, **options):
    log = Log()
    return audits._what_can_be_judged(Options(require_gpu=False, **options), run, log), log


def run_of(exact=True, loops=False):
    findings = [SimpleNamespace(code="endless-loop" if loops else "race")]
    return SimpleNamespace(coverage=SimpleNamespace(exact=exact), findings=findings, silenced=[])


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("golden", [False, True])
def test_what_a_run_rules_out(gpu, golden):
    given = {"gpu": gpu, "golden": golden}
    options, log = said_of(run_of(), **given)
    assert (options.gpu, options.golden, log.notes) == (gpu, golden, [])
    assert log.left_out == ([] if gpu else ["with wgpu: not asked for"])
    options, log = said_of(run_of(exact=False, loops=True), **given)
    assert (options.gpu, options.golden, log.left_out) == (False, False, [])
    assert log.notes == ["outputs and expected counters of a sample are not judged"]
    options, log = said_of(run_of(loops=True), **given)
    assert (options.gpu, options.golden, log.left_out) == (False, False, [ENDLESS] if gpu else [])
    assert log.notes == [STOPPED, *([f"not compared {ENDLESS}"] if gpu else [])]


@pytest.mark.parametrize(
    ("kernel", "suffix", "note"),
    [
        ("", ".toml", "no reference to compare with: the manifest names none"),
        ("", ".wgsl", "no reference to compare with"),
        ('reference = "refs.py:later"', ".toml",
         "no reference to compare with: refs.py:later returns NotImplemented; write it"),
        (RIGHT, ".toml", None),
    ],
)  # fmt: skip
def test_a_case_without_a_reference_says_so(case, kernel, suffix, note):
    made = case(kernel=kernel)
    made = replace(made, kernel=replace(made.kernel, path=made.kernel.path.with_suffix(suffix)))
    log = Log()
    truth = audits._compute_reference(made, run_of(), log)
    assert (log.notes, [*truth], [*log.seconds]) == (
        [note] if note else [], [] if note else ["y"], ["reference"] if kernel else [],
    )  # fmt: skip
    for run in (run_of(exact=False), run_of(loops=True)):
        log = Log()
        assert (audits._compute_reference(made, run, log), log.notes) == ({}, [])


def test_a_whole_audit(case):
    """40 products: 80 requests of 32 lanes, the last of which has 8."""
    said = []
    made = audit(case("flops = 40", "global_bytes = 9", kernel=RIGHT), Options(gpu=False, record=False), said.append)
    assert [(each.counter, each.ok) for each in made.counters] == [("flops", True), ("global_bytes", False)]
    assert [(each.output, each.truth, each.ok) for each in made.outputs] == [("y", "reference", True)]
    assert (made.device, made.devices, made.adapters, made.recordings, made.stopped) == ("nvidia", (), (), None, False)
    assert made.not_compared == ("with wgpu: not asked for",)
    assert {*made.seconds} == {"simulator, all probes", "reference"}
    assert "computing the reference" in said
    assert "recording accesses" not in said
    assert made.coverage.counters == 2


def test_an_audit_records_and_charges_other_devices_where_asked(case):
    said = []
    made = audit(case(kernel=RIGHT), Options(gpu=False, record=True, also=("amd-rdna",)), said.append)
    assert [each.device.name for each in made.devices] == ["nvidia", "amd-rdna"]
    assert made.recordings is not None
    assert (made.recordings.accesses, made.recordings.timeline) == ((), None)
    assert "recording accesses" in said
    assert "other devices" in made.seconds
    other = judged_as(made, made.devices[1])
    assert (other.device, other.outputs) == ("amd-rdna", made.outputs)


def test_a_reason_that_is_not_needed_and_a_question_are_noted(case):
    made = case('unchecked = { y = "scratch" }', kernel=RIGHT)
    made = replace(made, kernel=replace(made.kernel, questions=("how many?",)))
    notes = audit(made, Options(gpu=False)).notes
    assert notes[-2:] == (
        "y is checked in full; [expect] unchecked need not name it", "question in scale.toml: how many?"
    )  # fmt: skip
    assert not any(
        "need not name it" in note for note in audit(case('unchecked = { y = "s" }'), Options(gpu=False)).notes
    )


def test_a_stopped_run_has_no_outputs(case):
    endless = SHADER.replace(
        "    if id.x", "    for (var k = 0u; k < 2u; k *= 1u) { if x[0] == 1e9 { break; } }\n    if id.x"
    )
    made = audit(case(kernel=f"budget = 1000\n{RIGHT}", shader=endless), Options(gpu=False, update=True))
    assert (made.stopped, made.outputs, made.golden) == (True, (), None)
    assert STOPPED in made.notes
    assert np.isfinite(made.seconds["simulator, all probes"])
