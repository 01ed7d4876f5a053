"""When a run is compared with its golden, what is written, and which cause a change has."""

from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle.diagnosis.mismatch import Diagnosis
from bankshot.oracle.goldens import golden_store
from bankshot.oracle.judge import golden_check
from bankshot.oracle.judge.audit import audit
from bankshot.oracle.judge.options import Options
from bankshot.oracle.manifests.manifest_loader import load
from tests.scaling import PARAMS, SHADER, manifest

REFERENCE = """\
import numpy as np
def twice(arrays, dims): return {"y": 2.0 * arrays["x"]}
def right(arrays, dims): return {"y": np.float32(2.5) * arrays["x"]}
"""


@pytest.fixture
def judged(tmp_path):
    """`judged(expect, shader, **options)`: the audit of a kernel without a GPU."""

    def run(expect="golden = true", shader=SHADER, kernel="", **options):
        (tmp_path / "scale.wgsl").write_text(shader)
        (tmp_path / "refs.py").write_text(REFERENCE)
        (tmp_path / "scale.toml").write_text(manifest(PARAMS, f"\n[expect]\n{expect}\n", kernel=kernel))
        made = load(tmp_path / "scale.toml")
        return audit(made.case(made.shapes[0]), Options(gpu=False, **options))

    return run


@pytest.mark.parametrize(
    ("expect", "options", "state", "files"),
    [
        ("golden = true", {"update": True}, "written", ["scale-N-40.json"]),
        ('golden = "outputs"', {"update": True}, "written", ["scale-N-40.json", "scale-N-40.npz"]),
        ("golden = true", {}, "missing", []),
        ("golden = false", {"update": True}, None, []),
        ("", {"update": True}, None, []),
        ("golden = true", {"update": True, "golden": False}, None, []),
    ],
)
def test_a_golden_is_written_only_where_both_ask_for_it(judged, tmp_path, expect, options, state, files):
    verdict = judged(expect, **options).golden
    assert (verdict and verdict.state) == state
    written = sorted(path.suffix for path in (tmp_path / "golden").glob("*")) if (tmp_path / "golden").exists() else []
    assert written == sorted("." + name.partition(".")[2] for name in files)


def test_nothing_is_written_where_another_check_fails(judged, tmp_path):
    failed = judged(kernel='reference = "refs.py:twice"', update=True)  # the kernel multiplies by 2.5
    assert failed.golden.state == "missing"
    assert not (tmp_path / "golden").exists()


def test_a_golden_names_its_kernel_and_leaves_out_free_outputs(judged, tmp_path):
    judged(update=True)
    (path,) = (tmp_path / "golden").glob("*.json")
    made = golden_store.read(path)
    assert (made.owner, made.title, [*made.outputs], made.adapter) == ("scale.toml", "scale N=40", ["y"], None)
    judged('golden = true\nfree = ["y"]', kernel='reference = "refs.py:right"', update=True)
    assert golden_store.read(path).outputs == {}


def test_the_advice_names_the_command_that_writes_the_golden(judged):
    assert judged(how="make goldens").golden.advice.startswith("make it with make goldens, ")


def test_a_change_has_a_cause_only_where_no_check_has_named_one(judged):
    judged('golden = "outputs"', update=True)
    other = SHADER.replace("params.factor * x", "2.0 * params.factor * x")
    changed = judged('golden = "outputs"', other)
    assert (changed.golden.state, changed.golden.likely.name) == ("changed", "wrong factor")
    known = judged('golden = "outputs"', other, kernel='reference = "refs.py:twice"')
    assert known.golden.state == "changed"
    assert known.golden.likely is None


# ---- causes of a change --------------------------------------------------------------------------------

COSTS = dict.fromkeys(
    ("shared_wavefronts", "shared_ideal_wavefronts", "global_sectors", "global_ideal_sectors", "barriers", "flops",
     "global_bytes", "active_lanes", "workgroup_memory_bytes"), 4,
)  # fmt: skip
NOW = np.arange(4, dtype=np.float32)
CAUSE = Diagnosis("swapped dims", "rows lie another dim apart")


@pytest.fixture
def cause(monkeypatch):
    """`cause(wrong, ...)`: the cause of a change of `a` and `b`, of outputs diagnosed and inputs tried, both listed."""

    def find(wrong=(), a=True, b=True, unread=None, late=(), reference="a reference", **counters):
        tried = []
        monkeypatch.setattr(golden_check, "diagnose", lambda m: tried.append(m.output) or CAUSE)
        monkeypatch.setattr(golden_check, "explain", lambda m, rows: tried.append(f"unread {m.output}")
                            or (unread, late))  # fmt: skip
        bindings = [SimpleNamespace(var=name, name=name) for name in ("x", "a", "b")]
        run = SimpleNamespace(outputs={"a": NOW, "b": NOW}, counters=COSTS | counters)
        same, other = golden_check.goldens.digest(NOW), golden_check.goldens.digest(NOW + 1)
        old = SimpleNamespace(outputs={"a": other if a else same, "b": other if b else same}, arrays={}, counters=COSTS)
        monkeypatch.setattr(golden_check.goldens, "read", lambda path: old)
        case = SimpleNamespace(kernel=SimpleNamespace(bindings=bindings))
        found = golden_check.golden_cause(case, run, reference, wrong, SimpleNamespace(path=None))
        return found, tried

    return find


def test_the_first_output_that_no_check_has_diagnosed_names_the_cause(cause):
    assert cause() == (CAUSE, ["a"])
    assert cause({"a"}) == (CAUSE, ["b"])
    assert cause(a=False) == (CAUSE, ["b"])
    assert cause({"a"}, b=False) == (None, [])
    assert cause({"a", "b"}) == (None, [])
    assert cause({"a"}, a=False, b=False, flops=9) == (None, [])


def test_a_change_of_counters_alone_is_an_input_no_longer_read_or_a_cost(cause):
    unread = Diagnosis("missing term", "x is not read")
    assert cause(a=False, b=False, unread=unread, flops=9) == (unread, ["unread a"])
    found, tried = cause(a=False, b=False, flops=9)
    assert (str(found), tried) == (
        "likely performance: work: 4 -> 9 floating point operations, and no output is wrong", ["unread a", "unread b"]
    )  # fmt: skip
    assert cause(a=False, b=False) == (None, ["unread a", "unread b"])
    assert cause(a=False, b=False, reference=None) == (None, [])


def test_classes_that_time_did_not_allow_are_named(cause):
    found, tried = cause(a=False, b=False, late=("missing term",), barriers=5)
    assert found.name == "performance: barriers"
    assert "not tried within 60 s: missing term" in found.evidence
    assert tried == ["unread a"]


def test_what_a_rerun_gives_is_compared_by_the_digest_of_the_golden():
    case = SimpleNamespace(kernel=SimpleNamespace(bindings=[SimpleNamespace(var="y", name="out")]))
    old = SimpleNamespace(outputs={"y": golden_check.goldens.digest(NOW + 1)}, arrays={})
    (found,) = golden_check._mismatches(case, SimpleNamespace(outputs={"y": NOW}), None, old)
    assert [bool(found.same(values)) for values in (NOW, NOW + 1, (NOW + 1).astype(np.float64))] == [False, True, False]


@pytest.mark.parametrize("name", ["a new output", "no array"])
def test_what_a_golden_does_not_hold_is_no_mismatch(name):
    case = SimpleNamespace(kernel=SimpleNamespace(bindings=[SimpleNamespace(var="y", name="y")]))
    old = SimpleNamespace(outputs={} if name == "a new output" else {"y": "another"}, arrays={})
    output = NOW if name == "a new output" else [NOW]
    assert [*golden_check._mismatches(case, SimpleNamespace(outputs={"y": output}), None, old)] == []


def test_an_input_that_is_no_longer_read_shows_in_any_output(cause, monkeypatch):
    unread = Diagnosis("missing term", "x is not read")
    cause(a=False, b=False)
    monkeypatch.setattr(golden_check, "explain", lambda m, rows: (unread if m.output == "b" else None, ()))
    bindings = [SimpleNamespace(var=name, name=name) for name in ("a", "b")]
    run, case = (
        SimpleNamespace(outputs={"a": NOW, "b": NOW}),
        SimpleNamespace(kernel=SimpleNamespace(bindings=bindings)),
    )
    assert golden_check._unread(case, run, "a reference", None) == (unread, ())
