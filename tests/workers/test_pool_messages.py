"""What a pool makes of the messages, deaths and delays of its processes; a process is one end of a pipe here."""

import os
import pickle
from io import BytesIO
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest

from bankshot.oracle.child_process import ending
from bankshot.oracle.errors import Died, TookTooLong, UsageError
from bankshot.oracle.workers import pool
from bankshot.oracle.workers.pool import TaskError, TaskProgress, TaskResult, Worker, WorkerPool
from bankshot.sim.launch.threads import THREADS


class Process:
    """A process that is ended by the pool."""

    def __init__(self, code=0):
        self.exitcode, self.calls = code, []

    def kill(self):
        self.calls.append("kill")

    def join(self):
        self.calls.append("join")


@pytest.fixture
def made(monkeypatch):
    """`made(count, …)`: a pool, and the other ends of the pipes of its workers, in the order of their starts."""
    ends = []

    def start(self):
        here, there = Pipe()
        ends.append(there)
        return Worker(Process(), here, ready=self._prepare is None)

    monkeypatch.setattr(WorkerPool, "_start", start)
    monkeypatch.setattr(pool, "processors", lambda: 8)
    return lambda count, **given: (WorkerPool(count, None, **given), ends)


@pytest.mark.parametrize(("count", "threads"), [(1, 8), (2, 4), (3, 2), (8, 1), (9, 1), (20, 1)])
def test_processes_share_the_processors_evenly(made, count, threads):
    crew, ends = made(count)
    assert (crew._threads, len(ends)) == (threads, count)


def test_an_idle_worker_is_given_a_task_and_returns_its_progress_and_result(made):
    crew, (first, second) = made(2)
    with crew:
        assert (len(crew.idle), crew.tasks) == (2, [])
        worker = crew.idle[0]
        worker.give("a")
        assert first.recv() == "a"
        assert (crew.tasks, crew.idle, worker.busy) == (["a"], [crew._workers[1]], True)
        first.send(TaskProgress("half"))
        assert [*crew.hear()] == [("a", TaskProgress("half"))]
        assert (crew.tasks, worker.last) == (["a"], None)
        first.send(TaskResult(7))
        assert [*crew.hear()] == [("a", TaskResult(7))]
        assert (crew.tasks, worker.task, worker.last, worker.busy) == ([], None, "a", False)
        worker.give("b")
        first.send(TaskError(ValueError("x")))
        ((task, heard),) = crew.hear()
        assert (task, str(heard.error), worker.last) == ("b", "x", "b")
        assert not second.poll()
    assert [each.process.calls for each in crew._workers] == [["kill", "join"]] * 2


def test_several_workers_are_heard_at_once(made):
    crew, (first, second) = made(2)
    for worker, task in zip(list(crew.idle), "ab", strict=True):
        worker.give(task)
    second.send(TaskResult(2))
    first.send(TaskResult(1))
    assert [*crew.hear()] == [("a", TaskResult(1)), ("b", TaskResult(2))]


def test_the_other_processes_start_when_the_first_is_prepared(made):
    crew, ends = made(3, prepare=lambda: None)
    assert (len(ends), crew.idle) == (1, [])
    ends[0].send(None)
    assert [*crew.hear()] == []
    assert (len(ends), len(crew.idle), len(crew._workers)) == (3, 1, 3)
    ends[2].send(None)
    assert [*crew.hear()] == []
    assert (len(ends), len(crew.idle)) == (3, 2)


def test_a_process_that_cannot_be_prepared_ends_the_pool(made):
    crew, ends = made(2, prepare=lambda: None)
    ends[0].close()
    with pytest.raises(
        UsageError, match="a worker process could not be started: the process that ran it exited with code 0"
    ):
        list(crew.hear())


@pytest.mark.parametrize(
    ("code", "stderr", "words", "tail"),
    [
        (-9, None, "died of SIGKILL; perhaps there was not enough memory", ""),
        (-11, b"", "died of SIGSEGV", "exit code -11"),
        (3, b" panicked\n \n", "exited with code 3", "panicked"),
        (None, b"\xff", "exited with code 0", "\ufffd"),
    ],
)
def test_a_process_that_dies_is_replaced(made, code, stderr, words, tail):
    crew, ends = made(2)
    worker, other = crew._workers
    worker.process.exitcode = code
    worker.stderr = None if stderr is None else BytesIO(stderr)
    worker.give("a")
    ends[0].close()
    ((task, heard),) = crew.hear()
    assert (task, type(heard.error)) == ("a", Died)
    assert (str(heard.error), heard.error.stderr_tail) == (f"the process that ran it {words}", tail)
    assert (len(ends), crew._workers[1] is other, crew._workers[0] is worker, crew.tasks) == (3, True, False, [])
    assert worker.process.calls == ["join", "kill", "join"]


def test_a_task_without_progress_takes_too_long(made, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(pool, "time", SimpleNamespace(monotonic=lambda: now[0]))
    crew, ends = made(2, limit=5.0)
    first, second = crew._workers
    first.give("a")
    now[0] = 103.0
    second.give("b")
    assert (first.since, second.since) == (100.0, 103.0)
    assert (crew._left(first), crew._left(second), crew._until_late([first, second])) == (2.0, 5.0, 2.0)
    now[0] = 104.0
    ends[0].send(TaskProgress("more"))
    assert [*crew.hear()] == [("a", TaskProgress("more"))]
    assert first.since == 104.0
    now[0] = 108.0
    ((task, heard),) = crew.hear()
    assert (task, type(heard.error), crew.tasks) == ("b", TookTooLong, ["a"])
    assert crew._until_late([first]) == 1.0
    now[0] = 200.0
    assert crew._until_late([first]) == 0.0


def test_without_a_limit_only_the_preparation_takes_too_long(made, monkeypatch):
    monkeypatch.setattr(pool, "time", SimpleNamespace(monotonic=lambda: 100.0))
    crew, _ = made(1)
    assert (crew._left(crew._workers[0]), crew._until_late(crew._workers), crew._until_late([])) == (
        float("inf"),
        None,
        None,
    )
    crew, _ = made(1, prepare=lambda: None)
    crew._workers[0].since = 40.0
    assert crew._until_late(crew._workers) == pool.STARTING - 60 == 840.0


def test_a_pool_wakes_for_others(made):
    crew, _ = made(1)
    crew.idle[0].give("a")
    woken, wake = Pipe(duplex=False)
    wake.send_bytes(b"0")
    assert [*crew.hear([woken])] == []


def test_a_task_for_a_process_that_has_died_is_noticed_later(made):
    crew, ends = made(1)
    ends[0].close()
    crew.idle[0].give("a")
    assert crew.tasks == ["a"]
    ((task, heard),) = crew.hear()
    assert (task, type(heard.error)) == ("a", Died)


# ---- the environment, and answers ----------------------------------------------------------------------


def test_what_a_process_inherits(monkeypatch):
    monkeypatch.setenv(THREADS, "7")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    monkeypatch.delenv("LP_NUM_THREADS", raising=False)
    monkeypatch.delenv(pool.SAFE_PATH, raising=False)
    before = dict(os.environ)
    with pool._inherited(2):
        inside = [os.environ[name] for name in (THREADS, pool.SAFE_PATH, "OPENBLAS_NUM_THREADS", "LP_NUM_THREADS")]
    assert inside == ["2", "1", "5", "2"]
    assert dict(os.environ) == before


def test_results_and_errors_of_a_task():
    said = []
    assert pool._done(lambda task, report: report("x") or task * 2, 4, said.append) == TaskResult(8)
    assert said == ["x"]

    def fails(task, report):
        raise task

    done = pool._done(fails, UsageError("no file"), None)
    assert (type(done.error), str(done.error)) == (UsageError, "no file")
    with pytest.raises(ConnectionError):
        pool._done(fails, ConnectionError(), None)


def test_a_result_that_cannot_be_sent_is_an_error():
    sent = []

    def send(heard):
        sent.append(pickle.loads(pickle.dumps(heard)))

    pool._answer(SimpleNamespace(send=send), TaskResult(lambda: 0))
    assert [type(each) for each in sent] == [TaskError]
    assert "pickle" in str(sent[0].error)
    pool._answer(SimpleNamespace(send=send), TaskResult(5))
    assert sent[1] == TaskResult(5)

    def gone(heard):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        pool._answer(SimpleNamespace(send=gone), TaskResult(5))


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exited with code 0"), (1, "exited with code 1"), (-6, "died of SIGABRT"), (-1000, "died of signal 1000"),
     (-9, "died of SIGKILL; perhaps there was not enough memory")],
)  # fmt: skip
def test_how_a_process_ended(code, words):
    assert ending(code) == words
