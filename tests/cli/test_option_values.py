"""What the texts of options stand for, which cases run when, and what streams write: each without a command."""

import errno
import io
import os
from contextlib import suppress
from types import SimpleNamespace

import pytest

from bankshot.oracle.cli import audit_cases, options, streams
from bankshot.oracle.cli.audit_cases import Audits, in_turn
from bankshot.oracle.errors import Died, GpuError, NoAdapter, UsageError
from bankshot.oracle.exit_codes import WRONG_USE
from bankshot.oracle.workers.pool import TaskError, TaskProgress, TaskResult
from bankshot.oracle.workers.scheduler import Scheduler, Size
from bankshot.sim.wgsl.diagnostics import WgslError

# ---- options -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("false", False), ("7", 7), ("0x1f", 31), ("0b11", 3), ("-4", -4), ("0.5", 0.5), ("1e3", 1000.0),
     ("inf", float("inf"))],
)  # fmt: skip
def test_values_of_overrides(text, value):
    made = options._override(text)
    assert (made, type(made)) == (value, type(value))


@pytest.mark.parametrize("text", ["True", "yes", "1u", "", "0x"])
def test_values_that_no_override_has(text):
    with pytest.raises(UsageError, match=rf"^--override: `{text}` is neither a number nor true or false$"):
        options._override(text)


def test_macros_are_1_without_a_value():
    assert options.defines_of(["A=8", "B", "C=", "D=a=b", "A=9"]) == {"A": "9", "B": "1", "C": "", "D": "a=b"}


@pytest.mark.parametrize("text", ["N", "N=", "=4", "=", ""])
def test_a_pair_has_a_name_and_a_value(text):
    assert options.pairs("--set", ["N=4", "M=a=b"]) == [("N", "4"), ("M", "a=b")]
    with pytest.raises(UsageError, match=f"^--set {text}: write NAME=VALUE$"):
        options.pairs("--set", ["N=4", text])


def test_a_name_is_given_once():
    assert options.once("--set", [("N", 4), ("M", 5)]) == {"N": 4, "M": 5}
    with pytest.raises(UsageError, match=r"^--set: N is given 3 times$"):
        options.once("--set", [("N", 4), ("M", 5), ("N", 4), ("N", 6)])


@pytest.mark.parametrize(
    ("sample", "check", "workgroups"), [(None, False, "classes"), (None, True, "check"), (5, False, 5)]
)
def test_the_workgroups_that_run(sample, check, workgroups):
    assert options.workgroups_of(sample, check) == workgroups
    with pytest.raises(UsageError, match="pass one of them"):
        options.workgroups_of(1, True)


GIVEN = {"kernel": None, "sets": (), "binds": (), "grid": None, "entry": None, "overrides": (), "budget": None,
         "defines": (), "include_dirs": (), "preprocess": None}  # fmt: skip


def test_a_request_holds_what_options_say():
    made = options.request_of(
        {**GIVEN, "kernel": "k", "sets": ("N=4",), "grid": "2,3", "entry": "main", "overrides": ("W=0x10", "B=true"),
         "budget": 9, "defines": ("A",), "preprocess": "cpp"}, quick=True, sweep=False,
    )  # fmt: skip
    assert (made.kernel, made.dims, made.grid, made.entry, made.budget) == ("k", {"N": 4}, (2, 3, 1), "main", 9)
    assert (made.overrides, made.defines, made.preprocess) == ({"W": 16, "B": True}, {"A": "1"}, "cpp")
    assert (made.quick, made.sweep, made.code) == (True, False, True)
    plain = options.request_of(GIVEN)
    assert (plain.grid, plain.dims, plain.quick, plain.sweep, plain.code) == (None, {}, False, True, True)


def test_a_preprocessor_is_code():
    with pytest.raises(UsageError, match="--preprocess runs a command, and --no-code runs none"):
        options.request_of({**GIVEN, "preprocess": "cpp"}, code=False)
    assert not options.request_of(GIVEN, code=False).code


# ---- cases in order ------------------------------------------------------------------------------------


def sizes(*times):
    return [Size(time, 0) for time in times]


@pytest.mark.parametrize(
    ("seconds", "times", "done", "long"),
    [
        (9.0, (1, 1, 1, 1), 0, False),  # nothing is known yet
        (1.9, (1, 9, 9), 1, False),  # it is too early
        (2.0, (1, 1, 1), 1, False),  # as much again twice: 4 seconds
        (2.1, (1, 1, 1), 1, True),
        (9.0, (1, 9), 1, False),  # one more case has no company
        (9.0, (1, 9, 9), 1, True),
        (9.0, (9, 1, 1), 1, False),
        (4.0, (1, 1, 1, 1, 1), 2, True),
        (4.0, (1, 1, 1, 1), 2, False),
    ],
)
def test_an_audit_is_long_by_what_its_first_cases_took(seconds, times, done, long):
    assert audit_cases._long(seconds, sizes(*times), done) == long


@pytest.mark.parametrize(
    ("read", "written", "dims", "time", "size"),
    [
        (0, 0, {}, 1 + 1 / 5e8, 0),
        (1_000, 10, {"N": 4}, 1 + 1_010 / 2e7 + 4 / 5e8, 10_800),
        (2e7, 0, {"M": 1_000, "N": 500_000}, 1 + 1 + 1, 2e8),
        (0, 2e7, {"N": 0}, 1 + 1 + 1 / 5e8, 16e8),
    ],
)
def test_the_estimated_cost_of_a_case(read, written, dims, time, size):
    plan = SimpleNamespace(numbers=lambda shape: (read, written))
    made = audit_cases.size_of(plan, SimpleNamespace(dims=dims))
    assert (made.time, made.bytes, made.kernel) == (pytest.approx(time), size, id(plan))

    def cannot(shape):
        raise UsageError("no such size")

    assert audit_cases.size_of(SimpleNamespace(numbers=cannot), SimpleNamespace(dims={})).bytes == 0


class Case(Audits):
    """Audits whose results are words."""

    def failed(self, number, error):
        return f"failed {number}: {error}"

    def unplanned(self):
        return iter(["unplanned"])

    def sizes(self):
        return sizes(*[1] * len(self.cases))

    def __call__(self, number, say):
        return f"case {number}"


def audits(*kernels, kind=Case):
    plans = [SimpleNamespace(kernel=SimpleNamespace(name=name), shapes=shapes) for name, shapes in kernels]
    return kind(plans, None, None)


def meter():
    said = []
    return SimpleNamespace(stage=lambda *words: said.append(words), said=said)


def test_cases_are_numbered_over_kernels_and_shapes():
    made = audits(("a", ["N=1", "N=2"]), ("b", [""]))
    assert [made.title(number) for number in range(3)] == ["a N=1", "a N=2", "b"]


@pytest.mark.parametrize("jobs", [None, 1])
def test_few_cases_run_in_this_process(monkeypatch, jobs):
    monkeypatch.setattr(audit_cases, "WorkerPool", None)
    made = audits(("a", ["1", "2", "3"]))
    assert [*in_turn(made, jobs, meter())] == ["case 0", "case 1", "case 2", "unplanned"]


class Pool:
    """A pool of which each task gives what `outcomes` says, one message at a time."""

    def __init__(self, count, work, outcomes):
        self.count, self.outcomes, self.given = count, outcomes, []
        self.workers = [SimpleNamespace(last=None, task=None, give=None) for _ in range(count)]
        for worker in self.workers:
            worker.give = lambda number, worker=worker: (self.given.append(number), setattr(worker, "task", number))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    @property
    def idle(self):
        return [worker for worker in self.workers if worker.task is None]

    @property
    def tasks(self):
        return [worker.task for worker in self.workers if worker.task is not None]

    def hear(self):
        for worker in reversed(self.workers):  # the last comes first
            if worker.task is not None:
                number, heard = worker.task, self.outcomes[worker.task].pop(0)
                if not isinstance(heard, TaskProgress):
                    worker.last, worker.task = worker.task, None
                yield number, heard
                return


def on_processes(monkeypatch, outcomes, count=2):
    pools = []
    monkeypatch.setattr(
        audit_cases, "WorkerPool", lambda count, work: pools.append(Pool(count, work, outcomes)) or pools[-1]
    )
    made, progress = audits(("k", [f"N={n}" for n in range(len(outcomes))])), meter()
    scheduler = Scheduler(sizes(*[1] * len(outcomes)), count)
    return audit_cases._on_processes(made, scheduler, count, progress), progress.said, pools


def test_results_come_in_order_whichever_process_is_first(monkeypatch):
    outcomes = [[TaskProgress("simulating"), TaskResult("r0")], [TaskResult("r1")], [TaskResult("r2")]]
    results, said, pools = on_processes(monkeypatch, outcomes)
    assert [*results] == ["r0", "r1", "r2"]
    assert said == [("k N=0", "simulating", 1)]
    assert [(pool.count, pool.given) for pool in pools] == [(2, [0, 1, 2])]


def test_a_case_whose_process_dies_runs_once_more_alone_and_then_fails(monkeypatch):
    died = [TaskError(Died("it died of SIGKILL")), TaskError(Died("it died again"))]
    results, said, _ = on_processes(monkeypatch, [died, [TaskResult("r1")]])
    assert [*results] == ["failed 0: k N=0: it died again", "r1"]
    assert said == [("k N=0", "it died of SIGKILL; once more, alone", 1, True)]
    once = [TaskError(Died("it died")), TaskResult("r0")]
    assert [*on_processes(monkeypatch, [once, [TaskResult("r1")]])[0]] == ["r0", "r1"]


def test_an_error_of_the_request_ends_the_audit_after_the_cases_before_it(monkeypatch):
    outcomes = [[TaskResult("r0")], [TaskError(NoAdapter("none"))], [TaskResult("r2")], [TaskResult("r3")]]
    results, _, _ = on_processes(monkeypatch, outcomes)
    assert next(results) == "r0"
    with pytest.raises(NoAdapter):
        next(results)
    assert outcomes[3] == [TaskResult("r3")]  # it was never begun


class Judged(Audits):
    """Audits that raise an error."""

    error: Exception

    def _audited(self, number, plan, shape, say):
        raise self.error

    def failed(self, number, error):
        return f"failed: {type(error).__name__}"


@pytest.mark.parametrize(
    ("error", "as_in_manifest", "debug", "raised"),
    [
        (NoAdapter("none"), True, 0, True),
        (ConnectionError(), True, 0, True),
        (UsageError("no file"), True, 0, False),
        (UsageError("no file"), False, 0, True),
        (GpuError("refused"), False, 0, False),
        (ValueError("ours"), True, 0, False),
        (ValueError("ours"), True, 1, True),
        (MemoryError(), True, 1, False),
        (WgslError(), True, 1, False),
    ],
)
def test_errors_of_a_case_are_its_result_and_others_are_raised(monkeypatch, error, as_in_manifest, debug, raised):
    monkeypatch.setattr(audit_cases, "debug_level", lambda: debug)
    plan = SimpleNamespace(kernel=SimpleNamespace(name="k"), shapes=[""],
                           request=SimpleNamespace(as_in_manifest=as_in_manifest))  # fmt: skip
    made = Judged([plan], None, None)
    made.error = error
    if raised:
        with pytest.raises(type(error)):
            made(0, None)
    else:
        assert made(0, None) == f"failed: {type(error).__name__}"


# ---- streams -------------------------------------------------------------------------------------------


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        with suppress(OSError):
            os.close(descriptor)


def output(descriptor, encoding="utf-8"):
    return streams.Output(io.TextIOWrapper(io.FileIO(descriptor, "w", closefd=False), encoding=encoding))


@pytest.mark.parametrize(
    ("encoding", "written"),
    [("utf-8", "a\\x1b[ö\n".encode()), ("latin-1", "a\\x1b[ö\n".encode("latin-1")), ("ascii", b"a\\x1b[\\xf6\n"),
     ("US-ASCII", b"a\\x1b[\\xf6\n"), ("cp1252", "a\\x1b[ö\n".encode("latin-1"))],
)  # fmt: skip
def test_what_a_stream_cannot_hold_is_escaped(pipe, encoding, written):
    made = output(pipe[1], encoding)
    assert made.write("a\x1b[ö\n") == 5
    made.flush()
    assert os.read(pipe[0], 100) == written


def test_progress_bars_are_written_as_they_are(pipe):
    made = output(pipe[1])
    made.unescaped.write("\x1b[2K")
    made.unescaped.flush()
    assert os.read(pipe[0], 100) == b"\x1b[2K"
    assert (made.unescaped.fileno(), made.unescaped.isatty(), made.isatty()) == (pipe[1], False, False)


def test_a_reader_that_leaves_is_no_failure_of_the_command(pipe, monkeypatch, capsys):
    made = output(pipe[1])
    monkeypatch.setattr(streams, "_outputs", {"stdout": made})
    os.close(pipe[0])
    made.write("lost")
    made.flush()
    assert made.raw.failure.errno == errno.EPIPE
    assert [streams.finish(code) for code in (0, 1, 2)] == [0, 1, 2]
    assert capsys.readouterr().err == ""
    made.raw.failure = OSError(errno.ENOSPC, "No space left on device")
    assert [streams.finish(code) for code in (0, 1, WRONG_USE, 70)] == [WRONG_USE, WRONG_USE, WRONG_USE, 70]
    assert capsys.readouterr().err.splitlines() == ["error: stdout could not be written: No space left on device"] * 4


def test_a_stdout_that_is_closed_is_noted(pipe, monkeypatch, capsys):
    monkeypatch.setattr(streams, "_outputs", {"stdout": output(pipe[1])})
    monkeypatch.setattr(streams, "_closed", {"stdout"})
    assert streams.finish(1) == 1
    assert capsys.readouterr().err == "note: stdout is closed, so that the report was printed nowhere\n"
