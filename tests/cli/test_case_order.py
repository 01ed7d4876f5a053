"""The cost of cases by their sizes, when other processes start, and which case of a kernel is its first."""

from types import SimpleNamespace

import pytest

from bankshot.oracle.cli import audit_cases
from bankshot.oracle.cli.audit_cases import Audits, in_turn, size_of
from bankshot.oracle.errors import GpuError, NoAdapter, UsageError
from bankshot.oracle.manifests.cases import Broken, Request, plans
from bankshot.oracle.manifests.manifest import LARGEST, Shape
from bankshot.oracle.workers.scheduler import Size
from tests.scaling import PARAMS, SHADER, manifest


def plan(read, written, name="k", dims=({},), as_in_manifest=True):
    def numbers(shape):
        if read is None:
            raise UsageError("no such size")
        return read, written

    kernel = SimpleNamespace(name=name, source=f"{name}.wgsl", path=f"{name}.toml")
    request = SimpleNamespace(as_in_manifest=as_in_manifest)
    shapes = tuple(Shape(each) for each in dims)
    return SimpleNamespace(numbers=numbers, kernel=kernel, request=request, shapes=shapes, assumed=(), case=lambda s: s)


# Numbers that a case reads and writes, and its sizes; its time and its bytes.
COSTS = [
    (0, 0, {}, 1 + 1 / 5e8, 0),
    (100, 10, {}, 1 + 110 / 2e7 + 1 / 5e8, 100 * 10 + 10 * 80),
    (0, 0, {"N": 1000, "M": 3000}, 1 + 3e6 / 5e8, 0),
    (0, 0, {"N": 0, "M": 3000}, 1 + 3e3 / 5e8, 0),
    (0, 0, {"N": -5, "M": 3000}, 1 + 3e3 / 5e8, 0),
    (None, None, {"N": 10**30}, 1 + LARGEST / 5e8, 0),
    (10**30, 0, {}, 1 + LARGEST / 2e7 + 1 / 5e8, 10**31),
]


@pytest.mark.parametrize(("read", "written", "dims", "time", "bytes_"), COSTS)
def test_the_cost_of_a_case(read, written, dims, time, bytes_):
    made = plan(read, written)
    assert size_of(made, Shape(dims)) == Size(pytest.approx(time, rel=1e-12), bytes_, id(made))


# Seconds so far, the times of all cases, how many are done; whether the rest takes more than four seconds.
LONG = [
    (1.9, [1, 100, 100], 1, False),  # too early to say
    (2.0, [1, 100, 100], 1, True),
    (3.0, [1, 100, 100], 0, False),
    (9.0, [1, 100], 1, False),  # one more needs no other process
    (2.0, [1, 1, 1], 1, False),  # 4 s, not more
    (2.1, [1, 1, 1], 1, True),
    (8.0, [1, 1, 0.25, 0.25], 2, False),
    (8.0, [1, 1, 0.6, 0.6], 2, True),
]


@pytest.mark.parametrize(("seconds", "times", "done", "long"), LONG)
def test_when_other_processes_start(seconds, times, done, long):
    assert audit_cases._long(seconds, [Size(each, 0) for each in times], done) is long


class Progress:
    def __init__(self):
        self.stages = []

    def stage(self, *words):
        self.stages.append(words)


@pytest.fixture
def audited(monkeypatch):
    """`audited(work, errors)`: the results of an audit whose cases raise these errors, by number."""

    def run(work, errors, broken=()):
        left = dict(errors)

        def audit(case, options, say):
            number = next(numbers)
            say("running")
            if number in left:
                raise left[number]
            return SimpleNamespace(noting=lambda notes: "result")

        numbers = iter(range(99))
        monkeypatch.setattr(audit_cases, "audit", audit)
        monkeypatch.setattr(audit_cases, "audited_case", lambda *given: given)
        failed = lambda name, source, path, shape, error, wanted, number: (name, str(shape), str(error), number)  # noqa: E731
        monkeypatch.setattr(audit_cases, "failed_case", failed)
        progress = Progress()
        found = []
        try:
            found += in_turn(Audits(work, None, "wanted", broken), None, progress)
        except Exception as error:
            found.append(error)
        return found, progress.stages

    monkeypatch.setattr(audit_cases, "_long", lambda *given: False)
    return run


def test_results_come_in_order_and_the_first_of_each_kernel_is_marked(audited):
    work = [plan(0, 0, "a", [{"N": 1}, {"N": 2}]), plan(0, 0, "b"), plan(0, 0, "a", [{"N": 3}])]
    broken = [Broken(SimpleNamespace(stem="c"), UsageError("bad"))]
    found, stages = audited(work, {}, broken)
    assert found == [("result", "wanted", 1, True), ("result", "wanted", 2, False), ("result", "wanted", 3, True),
                     ("result", "wanted", 4, False), ("c", "", "bad", 5)]  # fmt: skip
    assert stages == [("a N=1", "running"), ("a N=2", "running"), ("b", "running"), ("a N=3", "running")]


# The error; whether the request is as in the manifest; whether the audit goes on.
ERRORS = [
    (UsageError("wrong"), True, True),
    (UsageError("wrong"), False, False),
    (GpuError("wrong"), True, True),
    (GpuError("wrong"), False, True),
    (NoAdapter("wrong"), True, False),
    (ConnectionError("wrong"), True, False),
    (ValueError("wrong"), False, True),
    (MemoryError("wrong"), True, True),
]


@pytest.mark.parametrize(("error", "as_in_manifest", "goes_on"), ERRORS)
def test_which_errors_end_an_audit(audited, error, as_in_manifest, goes_on):
    work = [plan(0, 0, "a", [{"N": 1}, {"N": 2}, {"N": 3}], as_in_manifest)]
    found, _ = audited(work, {1: error})
    assert found[0] == ("result", "wanted", 1, True)
    rest = [("a", "N=2", "wrong", 2), ("result", "wanted", 3, False)] if goes_on else [error]
    assert found[1:] == rest


@pytest.mark.parametrize(("error", "raised"), [(ValueError("wrong"), True), (MemoryError("wrong"), False)])
def test_internal_errors_are_raised_for_debugging(audited, monkeypatch, error, raised):
    monkeypatch.setattr(audit_cases, "debug_level", lambda: 1)
    found, _ = audited([plan(0, 0, "a")], {0: error})
    assert found == [error if raised else ("a", "", "wrong", 1)]


def test_sizes_are_those_of_the_manifest(tmp_path):
    (tmp_path / "scale.wgsl").write_text(SHADER)
    (tmp_path / "scale.toml").write_text(manifest(PARAMS))
    (made,) = plans([tmp_path], Request())
    (size,) = Audits([made], None, None).sizes()
    assert (size.time, size.bytes) == (pytest.approx(1 + 81 / 2e7 + 40 / 5e8), 41 * 10 + 40 * 80)
