"""A case checked on an adapter that is made up: its times and notes, and which of its errors end the audit."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle import wgpu_client
from bankshot.oracle.errors import DriverDied, GpuError, Lacking, NoAdapter, TooLarge
from bankshot.oracle.judge import adapter_checks, case_run, diff
from bankshot.oracle.judge.adapter_checks import find_adapters
from bankshot.oracle.judge.coverage import CaseOutcome
from bankshot.oracle.judge.options import Log, Options
from bankshot.oracle.judge.run_result import RunResult
from bankshot.oracle.judge.verdict import Audit
from bankshot.oracle.manifests.manifest_loader import load
from bankshot.oracle.wgpu_client import AdapterInfo
from bankshot.oracle.wgpu_client.gpu_run import GpuRun
from tests.scaling import PARAMS, SHADER, manifest

LLVMPIPE = AdapterInfo("llvmpipe", "CPU", "Vulkan", "llvmpipe", "1", "0")
NVIDIA = AdapterInfo("GeForce", "DiscreteGPU", "Vulkan", "NVIDIA", "1", "0")
UNKNOWN = AdapterInfo("Mystery 3000", "DiscreteGPU", "Vulkan", "mystery", "1", "0")


@pytest.fixture
def case(tmp_path):
    (tmp_path / "scale.wgsl").write_text(SHADER)
    (tmp_path / "scale.toml").write_text(manifest(PARAMS))
    kernel = load(tmp_path / "scale.toml")
    return kernel.case(kernel.shapes[0])


@pytest.fixture
def checked(case, monkeypatch):
    """The checks of the case on an adapter, and the log. `fails`: the error of its run."""

    def check(info, device="lavapipe", fails=None, off=0.0, part=slice(None), **options):
        def begin(given, adapter, repeats=1, text=None):
            def done():
                if fails is not None:
                    raise fails
                y = np.zeros(40, np.float32)
                y[part] = np.float32(2.5) * given.arrays["x"][part] + np.float32(off)
                return GpuRun({"y": y}, info, (9.0,), (0.5, 0.25, 0.75), took=1.5)

            return SimpleNamespace(done=done)

        monkeypatch.setattr(wgpu_client, "require_adapter", lambda name: info)
        monkeypatch.setattr(case_run, "begin_on_gpu", begin)
        log, given = Log(), Options(device=device, require_gpu=False, **options)
        run = case_run.simulate(case, device, "none")
        return adapter_checks.adapter_checks(case, run, {}, given, None, log), log

    return check


def test_the_seconds_of_an_adapter_are_those_of_its_worker_and_its_clock(checked):
    (check,), log = checked(LLVMPIPE)
    assert (check.output, check.ok) == ("y", True)
    assert log.seconds == {"wgpu on llvmpipe": 1.5, "kernel on llvmpipe": 0.25}
    assert (log.notes, log.left_out) == ([], [])


def test_a_diff_has_the_seconds_of_the_adapters_clock(case, monkeypatch):
    monkeypatch.setattr(diff, "require_adapter", lambda name: LLVMPIPE)
    made = GpuRun({"y": np.float32(2.5) * case.arrays["x"]}, LLVMPIPE, (9.0,), (0.5, 0.25, 0.75), took=1.5)
    monkeypatch.setattr(diff, "run_on_gpu", lambda case, adapter: made)
    done = diff.diff(case, None, diff.Options(device="lavapipe"))
    assert [check.ok for check in done.outputs] == [True]
    assert done.seconds["kernel on llvmpipe"] == 0.25


@pytest.mark.parametrize(
    ("info", "asked", "device"),
    [(LLVMPIPE, None, "lavapipe"), (LLVMPIPE, "nvidia", "nvidia"), (UNKNOWN, None, "lavapipe"),
     (UNKNOWN, "nvidia", "nvidia"), (NVIDIA, None, "nvidia"), (NVIDIA, "lavapipe", "lavapipe")],
)  # fmt: skip
def test_a_diff_is_made_as_the_device_asked_for_or_the_adapters(case, monkeypatch, info, asked, device):
    monkeypatch.setattr(diff, "require_adapter", lambda name: info)
    made = GpuRun({"y": np.float32(2.5) * case.arrays["x"]}, info, (9.0,), (0.5, 0.25, 0.75), took=1.5)
    monkeypatch.setattr(diff, "run_on_gpu", lambda case, adapter: made)
    done = diff.diff(case, None, diff.Options(device=asked))
    assert (done.device, done.ok, f"simulator as {device}" in done.seconds) == (device, True, True)


def test_the_adapter_of_an_audit_is_the_first():
    both = SimpleNamespace(adapters=(LLVMPIPE, UNKNOWN))
    assert Audit.adapter.fget(both) is LLVMPIPE


def test_an_adapter_that_rounds_otherwise_is_compared_with_a_run_as_it(checked):
    _, log = checked(LLVMPIPE, device="nvidia")
    assert set(log.seconds) == {"wgpu on llvmpipe", "kernel on llvmpipe", "simulator as lavapipe"}
    assert 0 < log.seconds["simulator as lavapipe"] < 60
    assert log.notes == []


def test_an_adapter_of_no_profile_is_compared_under_the_device(checked):
    (check,), log = checked(UNKNOWN, device="nvidia")
    assert check.ok
    assert set(log.seconds) == {"wgpu on Mystery 3000", "kernel on Mystery 3000"}
    assert log.notes == [
        "no device profile is known to round as Mystery 3000 does; bits are compared under nvidia"
    ]  # fmt: skip


def test_a_wrong_element_fails_the_check(checked):
    (check,), _ = checked(LLVMPIPE, off=1.0)
    assert (check.ok, check.comparison.mismatches) == (False, 40)


# ---- outputs that depend on the order of invocations ---------------------------------------------------


def found(code, *outputs):
    return SimpleNamespace(code=code, outputs=outputs)


@pytest.mark.parametrize(
    ("findings", "silenced", "variables"),
    [
        ([], [], set()),
        ([found("atomic-order", "y", "z")], [], {"y", "z"}),
        ([found("atomic-order", "y")], [found("atomic-order", "z")], {"y", "z"}),
        ([found("race", "y"), found("atomic-order", "z")], [found("race", "x")], {"z"}),
        ([found("atomic-order", ("y", 1), 7, "z")], [], {"z"}),  # parts of variables have no names
    ],
)
def test_outputs_in_any_order_are_those_of_findings_on_atomics(findings, silenced, variables):
    assert adapter_checks._unordered(SimpleNamespace(findings=findings, silenced=silenced)) == variables


def test_each_output_left_out_for_its_order_is_noted(checked, monkeypatch):
    names = {"y", "x", "params"}
    monkeypatch.setattr(adapter_checks, "_unordered", lambda run: names)
    (check,), log = checked(LLVMPIPE)
    assert check.ok
    reason = "is not compared with wgpu on llvmpipe: it depends on the order of invocations"
    assert log.notes == [f"params {reason}", f"x {reason}"]
    assert log.left_out == ["with wgpu in full: outputs depend on the order of invocations"] * 2
    checks, log = checked(LLVMPIPE, off=1.0)
    assert (checks, [note.partition(" ")[0] for note in log.notes]) == ([], ["params", "x", "y"])


def test_a_part_of_a_grid_is_noted_and_compared_without_the_reference(checked, case, monkeypatch):
    """1 of 2 workgroups: 32 of 40 elements."""
    part = replace(case, grid=(1, 1, 1))
    monkeypatch.setattr(adapter_checks, "cut", lambda case, run, adapter: part)
    (check,), log = checked(LLVMPIPE, part=slice(32))
    assert check.comparison.unchecked_count == 8
    assert check.comparison.unchecked[32:].all()
    assert log.left_out == ["with llvmpipe in full: a software adapter runs a part of a long grid"]
    assert len(log.notes) == 1
    assert log.notes[0].startswith("llvmpipe ran 1 of 2 workgroups, compared with the same ones here")
    assert "simulator as lavapipe" in log.seconds


# By error: whether an audit goes on without wgpu where it need not run there, and where it must.
ERRORS = {GpuError: (True, False), Lacking: (True, True), TooLarge: (True, True), DriverDied: (False, False)}


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("insists", [False, True])
def test_an_error_of_wgpu_ends_the_audit_or_not(checked, kind, insists):
    options = {"adapter": "llvmpipe"} if insists else {}
    if not ERRORS[kind][insists]:
        with pytest.raises(kind, match="why"):
            checked(LLVMPIPE, fails=kind("why"), **options)
        return
    checks, log = checked(LLVMPIPE, fails=kind("why"), **options)
    assert (checks, log.left_out, log.seconds) == ([], ["with wgpu: why"], {})


@pytest.mark.parametrize(("options", "insists"), [
    ({"require_gpu": False}, False), ({"require_gpu": True}, True), ({"require_gpu": False, "adapter": "h200"}, True),
])  # fmt: skip
def test_no_adapter_is_an_error_only_where_one_is_asked_for(monkeypatch, options, insists):
    def none(name):
        raise NoAdapter("install one")

    monkeypatch.setattr(wgpu_client, "require_adapter", none)
    log = Log()
    if insists:
        with pytest.raises(NoAdapter):
            find_adapters(Options(**options), log)
        return
    assert find_adapters(Options(**options), log) == {}
    assert (log.left_out, log.notes) == (["with wgpu: install one"], ["not compared with wgpu: install one"])


def test_each_adapter_asked_for_is_found_once(monkeypatch):
    monkeypatch.setattr(wgpu_client, "require_adapter", lambda name: name)
    monkeypatch.setattr(wgpu_client, "parse_adapters", lambda names: names.split(",") if names else [None])
    assert find_adapters(Options(adapter="llvmpipe,h200"), Log()) == {"llvmpipe": "llvmpipe", "h200": "h200"}
    assert find_adapters(Options(), Log()) == {None: None}


# ---- a run that is compared with nothing ---------------------------------------------------------------

FINDINGS = {
    "none": ([], True),
    "information": ([("info", "redundant-barrier")], True),
    "a warning": ([("warning", "uninit")], False),
    "an error": ([("error", "race")], False),
    "an error that the manifest allows": ([("error", "atomic-order")], True),
    "a warning that the manifest allows": ([("warning", "atomic-order")], True),
    "an error beside one that it allows": ([("error", "atomic-order"), ("error", "race")], False),
    "an error beside information": ([("info", "redundant-barrier"), ("error", "race")], False),
}


@pytest.mark.parametrize("name", FINDINGS)
@pytest.mark.parametrize("loops", [False, True])
def test_a_run_fails_by_findings_that_count(name, loops):
    found, accepted = FINDINGS[name]
    case = SimpleNamespace(kernel=SimpleNamespace(allow=("atomic-order",)))
    findings = [SimpleNamespace(severity=severity, code=code) for severity, code in found]
    silenced = [SimpleNamespace(severity="error", code="endless-loop")] if loops else []
    result = RunResult(case, "nvidia", SimpleNamespace(findings=findings, silenced=silenced), {})
    assert result.outcome is (CaseOutcome.UNCHECKED if accepted else CaseOutcome.FAILED)
    assert result.ok == (accepted and not loops)
