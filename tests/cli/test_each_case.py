"""The loop over cases that commands share, and the parts of `run` and `--against` that need no kernel."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle.cli import against, each_case, schedule_options, simulated_run
from bankshot.oracle.errors import UsageError
from bankshot.oracle.exit_codes import Failure
from bankshot.oracle.judge.coverage import CaseOutcome, Compared

GOOD, BAD = "good", "bad"


def result(word=GOOD, **given):
    outcome = CaseOutcome.CLEAN if word == GOOD else CaseOutcome.FAILED
    return SimpleNamespace(ok=word == GOOD, outcome=outcome, compared=Compared(("reference",)), **given)


@pytest.fixture
def reported(monkeypatch):
    """`reported(results, …)`: the exit code, what the report got, its outcome, and the number of cases of the meter."""

    def report(results, plans=((1,),), **given):
        totals, added, ended = [], [], []

        @contextmanager
        def meter(total):
            totals.append(total)
            yield SimpleNamespace(finish=lambda: contextmanager(lambda: iter([None]))())

        monkeypatch.setattr(each_case, "meter", meter)
        work = [SimpleNamespace(shapes=shapes, left_out=2) for shapes in plans]
        made = SimpleNamespace(add=added.append, finish=ended.append, abort=lambda *words: ended.append(words))
        with pytest.raises(SystemExit) as left:
            each_case.report_cases("audit", work, lambda progress: iter(results), made, **given)
        return left.value.code, added, ended[0], totals

    return report


@pytest.mark.parametrize(
    ("words", "plans", "more", "times", "code", "total"),
    [
        ([GOOD], [[1]], 0, 1, 0, 1),
        ([GOOD, GOOD, GOOD], [[1, 2], [3]], 0, 1, 0, 3),
        ([GOOD, BAD], [[1, 2]], 0, 1, 1, 2),
        ([BAD], [[1]], 0, 1, 1, 1),
        ([GOOD], [[1, 2]], 0, 1, 1, 2),  # one is missing
        ([GOOD, GOOD], [[1]], 0, 2, 0, 2),
        ([GOOD, GOOD], [[1]], 1, 1, 0, 2),
        ([GOOD], [[1]], 1, 1, 1, 2),
        ([], [[]], 0, 1, 1, 0),  # nothing was audited
    ],
)
def test_a_command_ends_0_where_every_result_is_clean(reported, words, plans, more, times, code, total):
    results = [result(word) for word in words]
    left, added, outcome, totals = reported(results, plans, more=more, times=times)
    assert (left, added, totals) == (code, results, [total])
    assert (outcome.verb, outcome.ok, outcome.error) == ("audit", code == 0, None)
    assert len(outcome.lines) == 1
    assert 0 <= outcome.seconds < 60


@pytest.mark.parametrize(
    ("words", "optional", "code"),
    [
        ([GOOD, BAD], {1}, 0),
        ([BAD, GOOD], {0}, 0),
        ([GOOD, BAD, BAD], {1}, 1),
        ([BAD], {0}, 1),
        ([GOOD, GOOD], set(), 0),
    ],
)
def test_a_result_may_be_passed_over_beside_one_that_is_clean(reported, words, optional, code):
    results = [result(word, may=number in optional) for number, word in enumerate(words)]
    assert reported(results, [range(len(words))], optional=lambda each: each.may)[0] == code


def test_each_error_is_printed_once_and_the_largest_code_is_that_of_the_command(reported, capsys):
    one, other = Failure("error: first", 2), Failure("error: second", 70)
    results = [result(BAD, error=each) for each in (one, other, one, None)]
    code, added, outcome, _ = reported(results, [range(4)], failed=lambda each: each.error)
    assert (code, len(added), outcome.error) == (70, 4, "first\nsecond")
    assert capsys.readouterr().err.splitlines() == ["error: first", "error: second"]
    assert reported([result(GOOD, error=one)], failed=lambda each: each.error)[0] == 2


@pytest.mark.parametrize("error", [UsageError("no file"), MemoryError()])
def test_an_error_that_ends_a_command_is_reported_and_raised(monkeypatch, error):
    aborted = []

    def results(progress):
        raise error
        yield

    report = SimpleNamespace(abort=lambda verb, why: aborted.append((verb, why)))
    with pytest.raises(type(error)):
        each_case.report_cases("diff", [], results, report)
    assert aborted == [("diff", error)]


def test_results_are_computed_for_each_case_of_each_plan():
    def plan(name, *shapes):
        return SimpleNamespace(
            kernel=SimpleNamespace(name=name), cases=lambda: [SimpleNamespace(shape=s) for s in shapes]
        )

    said = []
    progress = SimpleNamespace(stage=lambda title, what: said.append(f"{title}: {what}"))

    def compute(case, say):
        say("computing")
        yield case.shape, 1
        yield case.shape, 2

    results = each_case.results_of([plan("a", "N=1", "N=2"), plan("b", "")], compute)
    assert [*results(progress)] == [("N=1", 1), ("N=1", 2), ("N=2", 1), ("N=2", 2), ("", 1), ("", 2)]
    assert said == ["a N=1: computing", "a N=2: computing", "b: computing"]


# ---- run -----------------------------------------------------------------------------------------------

NAN = np.nan


@pytest.mark.parametrize(
    ("array", "least", "most", "nan", "first"),
    [
        (np.float32([[3, NAN], [-1, 2]]), -1, 3, 1, [3, NAN, -1, 2]),
        (np.uint32(range(8)), 0, 7, 0, [0, 1, 2, 3, 4, 5]),
        (np.float32([NAN, NAN]), None, None, 2, [NAN, NAN]),
        (np.zeros(0, np.int32), None, None, 0, []),
    ],
)
def test_the_summary_of_an_output(array, least, most, nan, first):
    made = simulated_run.summary(array)
    assert made["shape"] == list(array.shape)
    assert (made["dtype"], made["min"], made["max"], made["nan"]) == (array.dtype.name, least, most, nan)
    np.testing.assert_equal(made["first"], first)


def test_outputs_that_changed_by_their_bits():
    zeros = np.zeros(2, np.float32)
    case = SimpleNamespace(bindings={"y": zeros, "z": zeros, "w": zeros})
    run = SimpleNamespace(outputs={"y": zeros + 1, "z": zeros.copy(), "w": -zeros})
    assert [*simulated_run._changed(case, run)] == ["y", "w"]


def test_several_devices_need_all_probes():
    with pytest.raises(UsageError, match="--probes none: several devices need all probes"):
        simulated_run.simulated_run(None, ["nvidia", "amd"], "none", {})


# ---- schedules -----------------------------------------------------------------------------------------

NOTHING = {"entry": None, "binds": (), "overrides": (), "budget": None, "defines": (), "include_dirs": (),
           "preprocess": None, "grid": None}  # fmt: skip
GIVEN = {"entry": "main", "binds": ("x=f32:1", "y=f32:2"), "overrides": ("A=1", "B=2"), "budget": 0,
         "defines": ("D", "E=2"), "include_dirs": (Path("inc"), Path("more")), "preprocess": "cpp -P"}  # fmt: skip


def schedules(request, count=3, seed=None, seconds=None):
    values = {"schedules": count, "seed": seed, "seconds": seconds}
    return schedule_options.schedules_of(values, NOTHING | request)


def test_the_options_that_run_a_case_again():
    assert " ".join(schedules(GIVEN).given) == (
        "--entry main --bind x=f32:1 --bind y=f32:2 --override A=1 --override B=2 --budget 0 -D D -D E=2 "
        "-I inc -I more --preprocess cpp -P"
    )
    assert schedules(GIVEN).given[-1] == "cpp -P"
    assert schedules({}).given == ()


def test_what_schedules_are_compared():
    made = schedules({"grid": (2, 1, 1)}, 5, 7, 1.5)
    assert (made.count, made.seed, made.seconds, made.grid) == (5, 7, 1.5, True)
    made = schedules({})
    assert (made.count, made.seed, made.seconds, made.grid) == (3, 0, None, False)
    assert schedules(GIVEN, None) is None


@pytest.mark.parametrize(("option", "given"), [("--seed", {"seed": 0}), ("--seconds", {"seconds": 2.0})])
def test_options_of_schedules_need_them(option, given):
    with pytest.raises(UsageError, match=f"^{option} belongs to --schedules N, which is not given$"):
        schedules({}, None, **given)


# ---- against -------------------------------------------------------------------------------------------


def test_the_counterpart_of_a_path_in_another_folder(tmp_path, monkeypatch):
    """At the same place, else of the same name; a folder's is the other folder."""
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, names in ((old, ["a/k.toml", "b.toml"]), (new, ["a/k.toml", "c/b.toml", "c/d.toml"])):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("")
    monkeypatch.chdir(new)
    found = {name: against._in_folder(old, Path(name)) for name in ("a/k.toml", "c/b.toml", "c/d.toml", "a", "c", ".")}
    assert found == {"a/k.toml": old / "a/k.toml", "c/b.toml": old / "b.toml", "c/d.toml": old / "d.toml",
                     "a": old / "a", "c": old, ".": old}  # fmt: skip
    assert against._in_folder(old, (new / "a/k.toml").resolve()) == old / "k.toml"


@pytest.mark.parametrize("revision", ["-x", "--all", ""])
def test_options_are_no_revisions(tmp_path, revision):
    with pytest.raises(UsageError, match=f"^--against {revision}: this is no git revision$"):
        against._of_revision(revision, [tmp_path], tmp_path / "files")
