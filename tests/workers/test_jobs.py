"""`bankshot audit --jobs`: several processes report what one reports; and those that die, fail, or are stopped."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe, active_children
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli import audit_cases
from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import UsageError
from bankshot.oracle.workers import progress
from bankshot.oracle.workers.pool import TaskError, TaskProgress, TaskResult, WorkerPool
from bankshot.oracle.workers.scheduler import BYTES_EACH, Scheduler, Size
from bankshot.sim.launch.threads import processors
from bankshot.sim.wgsl.diagnostics import Crash
from tests.scaling import PARAMS, SHADER, manifest

ROOT = Path(__file__).parents[2]
SWEEP = '\n[[sweep]]\nN = [32, 40, 64]\n\n[expect]\nflops = "N"\nunchecked = { y = "its costs matter" }\n'
RACY = SHADER.replace("if id.x < params.n {", "y[0] = f32(id.x); if id.x < params.n {")
SECONDS = re.compile(r"(?m)(?<=  )\d+\.\d\d$|(?<=took: ).*$|[\d.]+ (s|ms|us)\b")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Nine cases, six of which are not clean."""
    (tmp_path / "scale.wgsl").write_text(SHADER)
    (tmp_path / "racy.wgsl").write_text(RACY)
    (tmp_path / "clean.toml").write_text(manifest(PARAMS, SWEEP))
    (tmp_path / "counted.toml").write_text(manifest(PARAMS, SWEEP.replace('"N"', '"N + 1"')))
    (tmp_path / "racy.toml").write_text(manifest(PARAMS, SWEEP, source="racy.wgsl"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def unable(folder):
    """Those, and three that cannot be run."""
    (folder / "bad.toml").write_text("[kernel]\nsource = 3\n")
    (folder / "lost.toml").write_text(manifest(source="lost.wgsl"))
    (folder / "typed.toml").write_text(manifest(PARAMS, source="typed.wgsl"))
    (folder / "typed.wgsl").write_text(SHADER.replace("params.factor", "params.n"))
    return folder


def audit(*options):
    return CliRunner().invoke(main, ["audit", ".", *options])


def untimed(text):
    return SECONDS.sub("…", text)


def at_once(jobs, *options):
    """The output and files of an audit, without seconds."""
    result = audit("--jobs", str(jobs), *options)
    return result.exit_code, untimed(result.stdout), result.stderr


# ---- any process may run the cases -------------------------------------------------------------------


@pytest.mark.parametrize("form", [("table",), ("text",), ("github",), ("text", "--listing", "full")], ids="-".join)
def test_output_does_not_depend_on_the_number_of_processes(unable, form):
    (code, one, _), (again, several, _) = (at_once(jobs, "--no-gpu", "--format", *form) for jobs in (1, 2))
    assert (code, again) == (2, 2)
    assert "audit: 3 of 12 cases clean; 3 could not be run" in one
    assert several == one


def test_report_files_do_not_depend_on_the_number_of_processes(unable):
    left = []
    for jobs in (1, 2):
        files = {"--html": unable / f"{jobs}.html", "--sarif": unable / f"{jobs}.sarif"}
        named = [str(each) for pair in files.items() for each in pair]
        result = audit("--jobs", str(jobs), "--no-gpu", "--json", *named)
        assert result.exit_code == 2
        whole = json.loads(result.stdout)
        ran = [case for case in whole["cases"] if "error" not in case]
        assert [case["ok"] for case in ran] == [True] * 3 + [False] * 6
        assert len(whole["cases"]) == 12
        assert all(case.pop("seconds") for case in ran)
        left.append((whole, *(untimed(file.read_text(encoding="utf-8")) for file in files.values())))
    assert left[0] == left[1]


@pytest.mark.usefixtures("adapter")
def test_each_process_has_a_gpu(folder):
    (folder / "racy.toml").unlink()  # what a race leaves on a GPU is not the same twice
    code, one, _ = at_once(1, "--format", "table")
    assert "exact" in one
    assert at_once(2, "--format", "table")[:2] == (code, one)


def test_progress_is_numbered(folder, monkeypatch):
    monkeypatch.setattr(progress, "PERIOD", 0.0)
    _, _, said = at_once(2, "--no-gpu", "--format", "table")
    numbers = {int(found) for found in re.findall(r"^\[(\d+)/9\] \w+ N=\d\d: simulating", said, re.MULTILINE)}
    assert numbers == set(range(1, 10))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_broken_shader_fails_only_its_own_cases(folder, jobs):
    (folder / "d.toml").write_text(manifest(PARAMS, SWEEP, source="broken.wgsl"))
    (folder / "broken.wgsl").write_text(SHADER.replace("x[id.x]", "x[id.x"))
    code, rows, said = at_once(jobs, "--no-gpu", "--format", "table")
    assert (code, rows.splitlines()[-1].split("; comp")[0]) == (
        2,
        "audit: 3 of 12 cases clean; 3 could not be run; 6 failed",
    )
    assert sum(line.startswith(("ok  ", "NOT OK")) for line in rows.splitlines()) == 9
    assert len(re.findall(r"(?m)^ERROR +d +N=\d\d +broken.wgsl:8:41: error: expected", rows)) == 3
    assert said.count("broken.wgsl:8:41: error: expected") == 1
    assert "Traceback" not in said
    result = audit("--jobs", str(jobs), "--no-gpu", "--json")
    whole = json.loads(result.stdout)
    assert (result.exit_code, len(whole["cases"])) == (2, 12)
    assert "broken.wgsl:8:41" in whole["error"]
    places = [case["places"][0] for case in whole["cases"] if "error" in case]
    assert [(each["file"], each["line"], each["column"]) for each in places] == [("broken.wgsl", 8, 41)] * 3


@pytest.mark.usefixtures("unable")
@pytest.mark.parametrize("form", ["text", "github", "table"])
def test_cases_that_cannot_run_are_in_every_report(form):
    """By one process; above, two report what one does."""
    code, text, said = at_once(1, "--no-gpu", "--format", form, "--html", "a.html", "--sarif", "a.sarif")
    page, log = Path("a.html").read_text(encoding="utf-8"), json.loads(Path("a.sarif").read_text())
    assert (code, text.count("ERROR "), page.count('<h2><span class="v bad">error</span>')) == (2, 3, 3)
    assert "audit: 3 of 12 cases clean; 3 could not be run" in text
    found = [result["locations"][0]["physicalLocation"] for result in log["runs"][0]["results"]]
    places = {(each["artifactLocation"]["uri"], each["region"]["startLine"]) for each in found}
    for file, line, words in (
        ("bad.toml", 2, "bad.toml:2: `source` must be a string"),
        ("lost.toml", 2, "lost.toml:2: source lost.wgsl does not exist"),
        ("typed.wgsl", 8, "typed.wgsl:8:"),
    ):
        assert (file, line) in places
        assert all(words in report for report in (text, said, page))


def test_invalid_options_end_an_audit_at_once(folder):
    (folder / "bad.toml").write_text("[kernel]\nsource = 3\n")
    for wrong in (("--set", "Q=3"), ("--kernel", "nope"), ("--bind", "x=u32:1"), ("--adapter", "no such adapter")):
        result = audit(*wrong)
        assert (result.exit_code, result.stdout) == (2, "")
    result = audit("--no-gpu", "--kernel", "clean")
    assert (result.exit_code, result.stderr.count("bad.toml")) == (0, 0)


def test_an_internal_error_fails_only_its_own_case(folder, monkeypatch):
    honest = audit_cases.audit

    def audited(case, *rest):
        if case.kernel.name == "counted":
            raise KeyError("oh")
        return honest(case, *rest)

    monkeypatch.setattr(audit_cases, "audit", audited)
    result = audit("--no-gpu", "--jobs", "1")
    assert (result.exit_code, result.stderr.count("internal error: KeyError: 'oh'\nthis is a bug in bankshot")) == (
        70,
        1,
    )
    assert "audit: 3 of 9 cases clean; 3 could not be run" in result.stdout
    monkeypatch.setenv("BANKSHOT_DEBUG", "1")
    assert isinstance(audit("--no-gpu", "--jobs", "1").exception, KeyError)


# ---- the number of processes -------------------------------------------------------------------------


def test_a_short_audit_stays_in_one_process(folder, monkeypatch):
    monkeypatch.setenv("BANKSHOT_THREADS", "2")
    monkeypatch.setattr(audit_cases, "WorkerPool", None)
    assert audit("--no-gpu").exit_code == 1


def test_a_long_audit_starts_processes_once_it_proves_long(folder, monkeypatch):
    monkeypatch.setenv("BANKSHOT_THREADS", "2")
    _, one, _ = at_once(1, "--no-gpu")
    monkeypatch.setattr(audit_cases, "ALONE", 0.0)
    monkeypatch.setattr(audit_cases, "LEFT", 0.0)
    begun = []
    monkeypatch.setattr(audit_cases, "WorkerPool", lambda count, work: begun.append(count) or WorkerPool(count, work))
    result = audit("--no-gpu")
    assert (result.exit_code, begun) == (1, [2])
    assert untimed(result.stdout) == one


def test_at_most_eight_processes_start(folder, monkeypatch):
    monkeypatch.setenv("BANKSHOT_THREADS", "64")
    monkeypatch.setattr(audit_cases, "ALONE", 0.0)
    monkeypatch.setattr(audit_cases, "LEFT", 0.0)
    begun = []

    def crew(count, work):
        begun.append(count)
        raise UsageError("enough")

    monkeypatch.setattr(audit_cases, "WorkerPool", crew)
    (folder / "long.toml").write_text(manifest(PARAMS, SWEEP.replace("[32, 40, 64]", str(list(range(32, 64))))))
    assert audit("--no-gpu").exit_code == 2
    assert begun == [8]


def test_one_processor_has_one_process(folder, monkeypatch):
    monkeypatch.setenv("BANKSHOT_THREADS", "1")
    monkeypatch.setattr(audit_cases, "ALONE", 0.0)
    monkeypatch.setattr(audit_cases, "LEFT", 0.0)
    monkeypatch.setattr(audit_cases, "WorkerPool", None)
    assert audit("--no-gpu").exit_code == 1


# ---- processes that die, and people who have seen enough ---------------------------------------------

DEADLY = """\
import os, sys, pathlib, signal
parent, died = os.getppid(), pathlib.Path("died")
if b"spawn_main" in pathlib.Path(f"/proc/{parent}/cmdline").read_bytes() and not (ONCE and died.exists()):
    died.touch()
    os.kill(parent, signal.SIGKILL)
sys.stdout.write(sys.stdin.read())
"""


@pytest.fixture
def deadly(folder):
    """Cases 7 to 9 of 12 kill the process that runs them, except the parent."""
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("needs Linux's /proc to tell a worker from the process that started it")
    kernel = f"preprocess = {f'{sys.executable} deadly.py'!r}\n"
    (folder / "deadly.toml").write_text(manifest(PARAMS, SWEEP, kernel=kernel))

    def write(once):
        (folder / "deadly.py").write_text(DEADLY.replace("ONCE", str(once)))

    return write


def test_a_dead_process_fails_only_its_own_case(deadly):
    deadly(once=False)
    code, rows, said = at_once(2, "--no-gpu", "--format", "table")
    assert code == 2
    assert sum(line.startswith(("ok  ", "NOT OK")) for line in rows.splitlines()) == 9
    assert len(re.findall(r"(?m)^ERROR +deadly +N=\d\d +deadly N=\d\d: the process that ran it died", rows)) == 3
    assert "error: deadly N=32: the process that ran it died of SIGKILL; perhaps there was not enough memory" in said
    assert "Traceback" not in said


def test_a_case_is_retried_after_its_process_died_once(deadly):
    deadly(once=True)
    code, rows, said = at_once(2, "--no-gpu", "--format", "table")
    assert (code, rows.splitlines()[-1].split("; comp")[0]) == (1, "audit: 6 of 12 cases clean; 6 failed")
    assert "died of SIGKILL; perhaps there was not enough memory; once more, alone" in said


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT, which only POSIX has")
def test_an_interrupt_leaves_the_rows_and_no_process(folder):
    (folder / "long.toml").write_text(manifest(PARAMS, SWEEP.replace("[32, 40, 64]", str(list(range(1, 999))))))
    command = [sys.executable, "-m", "bankshot", "audit", "long.toml", "--no-gpu", "--format", "table", "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=environment, **pipes, start_new_session=True)
    heading, first = process.stdout.readline(), process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to the workers too
    rows, said = process.communicate(timeout=60)
    assert heading.split()[:2] == ["kernel", "shape"]
    assert first.split()[:3] == ["ok", "long", "N=1"]
    assert process.returncode == 130
    assert len(rows.splitlines()) < 998
    assert "interrupted" in said
    assert "Traceback" not in said
    gone = time.monotonic() + 10
    while time.monotonic() < gone:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a process of the audit lives on")


# ---- which case goes next ----------------------------------------------------------------------------


def order(deal):
    """The cases that processes take in turn, each when it has ended the one before."""
    taken = []
    while (number := deal.take([])) is not None:
        taken.append(number)
    return taken


def test_cases_start_in_order_except_the_longest():
    assert order(Scheduler([Size(1, 0)] * 4, 2)) == [0, 1, 2, 3]
    assert order(Scheduler([Size(1, 0), Size(1, 0), Size(1, 0), Size(9, 0), Size(1, 0)], 2)) == [3, 0, 1, 2, 4]
    assert order(Scheduler([Size(1, 0)] * 9 + [Size(4, 0)], 2)) == [0, 1, 2, 3, 4, 9, 5, 6, 7, 8]
    assert order(Scheduler([Size(1, 0)] * 4, 2, first=2)) == [2, 3]


def test_a_process_prefers_the_kernel_that_it_has_built():
    deal = Scheduler([Size(1, 0, kernel) for kernel in (1, 1, 1, 2, 2, 2, 3)], 2)
    assert [deal.take([]), deal.take([0])] == [0, 3]
    assert [deal.take([0], after=3), deal.take([4], after=0)] == [4, 1]
    assert [deal.take([4], after=1), deal.take([2], after=4)] == [2, 5]
    assert deal.take([5], after=2) == 6
    assert order(Scheduler([Size(1, 0, 1)] * 3, 2)) == [0, 1, 2]
    shared = Scheduler([Size(1, 0, 1)] * 3, 2)
    assert [shared.take([]), shared.take([0])] == [0, 1]  # rather than wait


def test_a_built_kernel_comes_before_one_that_no_process_runs():
    deal = Scheduler([Size(1, 0, kernel) for kernel in (1, 2, 3, 1, 2, 3, 3, 3)], 2)
    assert [deal.take([]), deal.take([0])] == [0, 1]
    assert deal.take([0], after=1) == 4  # kernel 2, which it has built, before kernel 3
    assert deal.take([4], after=0) == 3
    both = Scheduler([Size(1, 0, kernel) for kernel in (1, 2, 1, 2, 2)], 2)
    assert [both.take([]), both.take([0], after=0)] == [0, 2]  # although another process runs that kernel


def test_cases_that_need_too_much_memory_do_not_run_together():
    half = BYTES_EACH
    deal = Scheduler([Size(1, 2 * half), Size(1, half), Size(1, half), Size(1, 1), Size(1, 9 * half)], 2)
    assert deal.take([]) == 0
    assert deal.take([0]) is None
    assert deal.take([]) == 1
    assert deal.take([1]) == 2
    assert deal.take([2]) == 3
    assert deal.take([3]) is None
    assert deal.take([]) == 4  # alone, whatever it holds


def test_memory_for_cases_is_a_gigabyte_and_a_half_for_each_process():
    """Both processes share the sum: what one leaves, the other may take."""
    assert BYTES_EACH == 1.5 * 2**30
    for more, started in ((0, 1), (1, None)):
        deal = Scheduler([Size(1, BYTES_EACH // 2), Size(1, BYTES_EACH * 3 // 2 + more)], 2)
        assert [deal.take([]), deal.take([0])] == [0, started]


def test_a_case_as_long_as_the_share_of_a_process_comes_first():
    """Of 8 in all, the share of 2 processes is 4."""
    assert Scheduler([Size(2, 0), Size(2, 0), Size(4, 0)], 2).take([]) == 2
    assert Scheduler([Size(2, 0), Size(2.5, 0), Size(3.5, 0)], 2).take([]) == 0
    assert Scheduler([Size(2, 0), Size(2, 0), Size(4, 0)], 1).take([]) == 0


def test_retries_of_cases_after_a_failure_are_left_out():
    deal = Scheduler([Size(1, 0)] * 6, 2)
    assert [deal.take([]) for _ in range(6)] == [0, 1, 2, 3, 4, 5]
    assert deal.again(1)
    assert deal.again(4)
    deal.end(4)
    assert order(deal) == [1]
    deal = Scheduler([Size(1, 0)] * 6, 2)
    deal.end(0)
    assert order(deal) == []


def test_after_a_failure_only_earlier_cases_start():
    deal = Scheduler([Size(1, 0)] * 6, 2)
    assert [deal.take([]), deal.take([0])] == [0, 1]
    deal.end(3)
    assert order(deal) == [2]


def test_a_case_whose_process_died_is_retried_once_and_alone():
    deal = Scheduler([Size(1, 0)] * 4, 2)
    assert [deal.take([]), deal.take([0])] == [0, 1]
    assert deal.again(0)
    assert deal.take([1]) is None
    assert deal.take([]) == 0
    assert not deal.again(0)
    assert order(deal) == [2, 3]


# ---- processes ---------------------------------------------------------------------------------------


class Unsendable(Exception):
    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")


def work(task, say):
    say(f"at {task}")
    if task == "threads":
        return processors(), os.environ["OPENBLAS_NUM_THREADS"], os.environ["LP_NUM_THREADS"]
    raise {"use": UsageError("no such thing"), "crash": Crash("oh"), "odd": Unsendable(1, 2)}[task]


def heard(crew, task):
    crew.idle[0].give(task)
    said, made = (next(crew.hear()) for _ in range(2))
    assert said[0] == made[0] == task
    assert said[1] == TaskProgress(f"at {task}")
    return made[1]


def test_processes_share_the_processors(monkeypatch):
    monkeypatch.setenv("BANKSHOT_THREADS", "5")
    monkeypatch.setenv("LP_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with WorkerPool(2, work) as crew:
        assert heard(crew, "threads") == TaskResult((2, "2", "7"))
    assert (os.environ["BANKSHOT_THREADS"], os.environ["LP_NUM_THREADS"]) == ("5", "7")
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def test_errors_are_passed_between_processes():
    with WorkerPool(1, work) as crew:
        for task, kind, words in (
            ("use", UsageError, "no such thing"),
            ("crash", Crash, "internal error: oh\nplease report this, with the shader"),
            ("odd", Crash, "internal error: Unsendable: 1 and 2\nplease report this, with the shader"),
        ):
            failed = heard(crew, task)
            assert isinstance(failed, TaskError)
            assert (type(failed.error), str(failed.error)) == (kind, words)


def nothing(task, say):
    return task


def ready():
    pass


def test_an_idle_process_that_dies_is_no_news():
    with WorkerPool(2, nothing) as crew:
        one, two = crew.idle
        two.process.kill()
        two.process.join()
        one.give("task")
        assert list(crew.hear()) == [("task", TaskResult("task"))]


def test_a_pool_wakes_when_the_first_task_takes_too_long():
    pool = SimpleNamespace(_left=float)
    assert WorkerPool._until_late(pool, [3.0, 5.0]) == 3.0
    assert WorkerPool._until_late(pool, [float("inf"), -1.0]) == 0.0
    assert WorkerPool._until_late(pool, [float("inf")]) is None


def test_the_others_start_when_the_first_process_is_prepared():
    here, there = Pipe()
    there.send(None)  # `hear` returns at once
    with WorkerPool(3, nothing, prepare=ready) as crew:
        assert (len(crew.idle), len(active_children())) == (0, 1)
        end = time.monotonic() + 120
        while len(crew.idle) < 3 and time.monotonic() < end:
            assert list(crew.hear([here])) == []
            time.sleep(0.01)
        assert (len(crew.idle), len(active_children())) == (3, 3)
    with WorkerPool(2, nothing) as crew:
        assert len(crew.idle) == 2


def asleep(task, say):
    time.sleep(task)
    return task


def test_a_task_has_all_of_its_time():
    """Whatever wakes the pool before: here a connection, at once."""
    here, there = Pipe()
    there.send(None)
    with WorkerPool(1, asleep, limit=0.95, prepare=ready) as crew:
        while not crew.idle:
            list(crew.hear())
        crew.idle[0].give(0.1)
        assert list(crew.hear([here])) == []
        assert list(crew.hear()) == [(0.1, TaskResult(0.1))]
        crew.idle[0].give(30)
        ((task, late),) = crew.hear()
        assert (task, type(late.error).__name__) == (30, "TookTooLong")
