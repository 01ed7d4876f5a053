"""Running on an adapter (a software one suffices), and its errors when wgpu refuses."""

import builtins
import pickle
import time
import tomllib
from contextlib import nullcontext
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.oracle import wgpu_client
from bankshot.oracle.child_process import answered
from bankshot.oracle.errors import GpuError, Lacking, NoAdapter, TooLarge, UsageError
from bankshot.oracle.judge import audit, case_run
from bankshot.oracle.judge.options import Options
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.wgpu_client import Slot, adapter_choice, gpu_run
from bankshot.oracle.wgpu_client.directives import without_directives
from bankshot.oracle.wgpu_worker import device_dispatch, serve, wgpu_library, worker_process
from bankshot.oracle.wgpu_worker.messages import Abilities, AdapterInfo
from tests.scaling import PARAMS, SHADER, manifest

DOUBLE = """
override FACTOR: f32 = 2.0;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(2) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<uniform> n: u32;
@compute @workgroup_size(4)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < n { y[id.x] += FACTOR * x[id.x]; }
}
"""
SLOTS = [Slot("x", 0, 0, "storage-read"), Slot("n", 0, 1, "uniform"), Slot("y", 2, 3, "storage-write")]


def bindings():
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    return {"x": x, "n": np.array([5], np.uint32), (2, 3): y}


@pytest.mark.usefixtures("adapter")
def test_outputs_have_the_keys_and_shapes_of_the_inputs():
    given = bindings()
    run = wgpu_client.run(DOUBLE, "scale", (2, 1, 1), given, slots=SLOTS, overrides={"FACTOR": 10})
    assert list(run.outputs) == [(2, 3)]
    np.testing.assert_array_equal(run.outputs[2, 3], np.array([[1, 11, 21], [31, 41, 1]], np.float32))
    np.testing.assert_array_equal(given[2, 3], np.ones((2, 3), np.float32))
    assert run.adapter.name
    assert run.adapter.version


@pytest.mark.usefixtures("adapter")
def test_every_repetition_starts_from_fresh_contents():
    run = wgpu_client.run(DOUBLE, "scale", (2, 1, 1), bindings(), slots=SLOTS, repeats=3)
    assert run.outputs[2, 3][0, 2] == 5
    assert len(run.seconds) == 3
    assert all(s > 0 for s in run.seconds)


@pytest.fixture
def made(monkeypatch):
    """Count the pipelines created, with the worker's questions answered in this process."""

    def put(question, *given):
        known = answered(serve.QUESTIONS[question], pickle.loads(pickle.dumps(given, pickle.HIGHEST_PROTOCOL)))
        return SimpleNamespace(answer=lambda: known[1])

    monkeypatch.setattr(worker_process, "put", put)
    monkeypatch.setattr(worker_process, "tell", put)
    return lambda: device_dispatch._pipeline.cache_info().misses


@pytest.mark.usefixtures("adapter")
def test_a_run_uses_the_prepared_pipeline(made):
    module = bankshot.check(DOUBLE.replace("FACTOR * x", "x[0] + FACTOR * x"))
    before = made()
    wgpu_client.prepare(module, "scale", overrides={"FACTOR": 3}, adapter=None).join()
    assert made() == before + 1
    for size in (2, 3):
        given = {"x": np.arange(size, dtype=np.float32), "y": np.ones(size, np.float32), "n": np.array([9], np.uint32)}
        done = wgpu_client.run(module.source.text, "scale", (1, 1, 1), given, overrides={"FACTOR": 3}, module=module)
        assert done.outputs["y"].tolist() == [1 + 3 * i for i in range(size)]
    assert made() == before + 1
    wgpu_client.run(module.source.text, "scale", (1, 1, 1), given, overrides={"FACTOR": 4}, module=module)
    assert made() == before + 2


@pytest.mark.usefixtures("adapter")
def test_the_preparation_dispatches_no_workgroup(monkeypatch):
    asked = []
    monkeypatch.setattr(worker_process, "tell", lambda question, request: asked.append((question, request)))
    module = bankshot.check(DOUBLE)
    wgpu_client.prepare(module, "scale", overrides={"FACTOR": 3}, adapter=None).join()
    ((question, request),) = asked
    assert (question, request.entry, request.grid, request.repeats) == ("dispatch", "scale", (0, 0, 0), 1)


@pytest.mark.usefixtures("adapter")
def test_the_run_reports_errors_of_the_preparation(capsys):
    source = "@compute @workgroup_size(1) fn main() { let big = array<u32, 3>(1, 2, 3); _ = big[0]; }"
    module = bankshot.check(f"enable subgroups; {source}")
    wgpu_client.prepare(module, "main", overrides=None, adapter="no such adapter").join()
    with pytest.raises(NoAdapter):
        wgpu_client.run(module.source.text, "main", (1, 1, 1), {}, adapter="no such adapter", module=module)
    refused = bankshot.check(
        "@compute @workgroup_size(1, 1, 64) fn main() {} @compute @workgroup_size(99999) fn other() {}"
    )
    wgpu_client.prepare(refused, "other", overrides=None, adapter=None).join()
    with pytest.raises(GpuError, match="refused"):
        wgpu_client.run(refused.source.text, "other", (1, 1, 1), {}, module=refused)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("adapter")
def test_a_binding_beyond_the_adapters_limit_is_named():
    most = adapter_choice.abilities(adapter_choice.number_of(None)).limits["max-uniform-buffer-binding-size"]
    given = {**bindings(), "n": np.zeros(most // 4 + 1, np.uint32)}
    with pytest.raises(TooLarge, match=f"binding n holds {most + 4:,} bytes, and .+ binds at most {most:,}"):
        wgpu_client.run(DOUBLE, "scale", (2, 1, 1), given, slots=SLOTS)


@pytest.mark.usefixtures("adapter")
def test_bytes_give_bytes():
    given = {name: array.tobytes() for name, array in bindings().items()}
    run = wgpu_client.run(DOUBLE, "scale", (2, 1, 1), given, slots=SLOTS)
    assert np.frombuffer(run.outputs[2, 3], np.float32).tolist() == [1, 3, 5, 7, 9, 1]


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(
    ("wgsl", "grid", "message"),
    [
        ("fn f( {", (1, 1, 1), "expected identifier"),
        ("@compute @workgroup_size(1) fn g() {}", (1, 1, 1), "entry point"),
        ("@compute @workgroup_size(4096) fn f() {}", (1, 1, 1), "must be less or equal"),
        ("@compute @workgroup_size(1) fn f() {}", (65536, 1, 1), "65535"),
    ],
)
def test_refusals_carry_the_message_of_wgpu(wgsl, grid, message):
    with pytest.raises(GpuError, match=message) as caught:
        wgpu_client.run(wgsl, "f", grid, {}, slots=[])
    assert "wgpuDevice" not in str(caught.value)


@pytest.mark.usefixtures("adapter")
def test_a_buffer_that_is_too_small_is_refused():
    given = {**bindings(), (2, 3): b""}
    with pytest.raises(UsageError, match="binding y holds 0 bytes"):
        wgpu_client.run(DOUBLE, "scale", (2, 1, 1), given, slots=SLOTS)
    with pytest.raises(UsageError, match=r"binding y \(group 2, binding 3\) is not given"):
        wgpu_client.run(DOUBLE, "scale", (2, 1, 1), {"x": given["x"], "n": given["n"]}, slots=SLOTS)


@pytest.mark.usefixtures("adapter")
def test_the_subgroups_directive_does_not_stop_wgpu():
    wgsl = "enable subgroups;\n@compute @workgroup_size(1) fn f() {}"
    assert wgpu_client.run(wgsl, "f", (1, 1, 1), {}, slots=[]).outputs == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("enable subgroups;\nconst x = 1;", "                 \nconst x = 1;"),
        ("enable f16, subgroups;", "enable f16           ;"),
        ("enable f16, subgroups,;", "enable f16            ;"),
        ("enable\n  subgroups , f16;\n", "enable\n              f16;\n"),
        ("enable subgroups, f16, dual_source_blending;", "enable            f16, dual_source_blending;"),
        ("enable f16, subgroups, clip_distances;", "enable f16           , clip_distances;"),
        ("/* c */ enable f16; enable subgroups; // c", "/* c */ enable f16;                   // c"),
        ("fn f() {}", "fn f() {}"),
        ("requires no, yes, no, yes;", "requires     yes    , yes;"),
        ("requires no;\nrequires yes, no, yes, yes;", "            \nrequires yes    , yes, yes;"),
        ("requires yes, no;", "requires yes    ;"),
        ("enable f16;\nenable f16, subgroups, clip_distances;", "enable f16;\nenable f16           , clip_distances;"),
        ("enable subgroup_size_control, f16;", "enable                        f16;"),
        ("diagnostic(off, x.y); requires no;", "diagnostic(off, x.y);             "),
        ("requires subgroup_id;\nrequires\r\nno, yes;", "                     \nrequires\r\n    yes;"),
        ("// enable subgroups;", "// enable subgroups;"),
        ("enable f16;", "enable f16;"),
        ("enable subgroups; fn (", "                  fn ("),
        ("enable subgroups /*;*/; @", "enable subgroups /*;*/; @"),
        ("diagnostic(off, subgroups);", "diagnostic(off, subgroups);"),
    ],
)
def test_blanking_directives_moves_nothing_else(before, after):
    assert without_directives(before, lambda kind, name: name != "yes") == after
    assert without_directives(before, lambda kind, name: False) == before


@pytest.mark.usefixtures("adapter")
def test_only_refused_directives_are_removed():
    text = "requires pointer_composite_access, subgroup_id;\nenable f16, subgroups;\n"
    assert wgpu_client.for_wgpu(text) == "requires pointer_composite_access             ;\nenable f16           ;\n"
    assert (
        wgpu_client.refusal(wgpu_client.for_wgpu(text + "@compute @workgroup_size(1) fn f() {}"), pipeline=True) is None
    )


def test_a_shader_that_would_crash_wgpu_is_refused(adapter):
    wgsl = """
fn f(p: ptr<function, u32>) { *p = 1; }
@compute @workgroup_size(1) fn main() { var a: array<u32, 2>; f(&a[1]); }
"""
    with pytest.raises(
        GpuError, match=r"would crash on this shader:\nshader.wgsl:3:65: warning: wgpu aborts"
    ) as caught:
        wgpu_client.run(wgsl, "main", (1, 1, 1), {}, slots=[])
    assert adapter.wgpu in str(caught.value)


def test_an_adapter_knows_its_profile():
    def profile(name):
        return wgpu_client.AdapterInfo(name, "CPU", "Vulkan", "", "1", "0.32").profile

    assert profile("llvmpipe (LLVM 15.0.6, 256 bits)") == "lavapipe"
    assert profile("NVIDIA H200") == "nvidia"
    assert profile("SwiftShader Device (Subzero)") == "swiftshader"
    assert profile("Some other chip") is None


@pytest.mark.usefixtures("adapter")
def test_a_missing_adapter_is_named():
    with pytest.raises(NoAdapter, match="no adapter matches 'voodoo'; there are: "):
        wgpu_client.require_adapter("voodoo")


def test_without_wgpu_the_message_says_how_to_install_it(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("wgpu"):
            raise ImportError("No module named 'wgpu'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    for owner, cached in (
        (wgpu_library, wgpu_library.library),
        (wgpu_library, wgpu_library._adapters),
        (adapter_choice, adapter_choice._offers),
    ):
        monkeypatch.setattr(owner, cached.__name__, cached.__wrapped__)
    monkeypatch.setattr(worker_process, "ask", lambda question, *given: serve.QUESTIONS[question](*given))
    assert wgpu_client.adapters() == []
    with pytest.raises(NoAdapter, match="pip install 'bankshot"):
        wgpu_client.require_adapter()


def test_a_wgpu_that_is_too_old_is_refused(monkeypatch):
    """The oldest accepted version is the one that the package requires."""
    wgpu = pytest.importorskip("wgpu", reason="wgpu is not installed; pip install 'bankshot[gpu]'")
    wanted = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (required,) = wanted["optional-dependencies"]["gpu"]
    assert required.startswith(
        f"wgpu>={'.'.join(map(str, wgpu_library.OLDEST))},<0."
    )  # it uses what wgpu-py keeps private
    monkeypatch.setattr(wgpu, "version_info", (0, 30, 9))
    with pytest.raises(NoAdapter, match=r"too old, 0\.31 is needed; install it with"):
        wgpu_library.library.__wrapped__()


@pytest.mark.parametrize(
    ("info", "size"), [({"subgroup_min_size": 8}, 8), ({"stackgroup_min_size": 4}, 4), ({"vendor": "some"}, 0)]
)
def test_subgroup_sizes_are_read_by_either_name_and_may_be_missing(info, size):
    assert wgpu_library._subgroup_size(info, "min") == size


def test_an_audit_waits_for_its_preparation(monkeypatch):
    """A thread that still imports wgpu while a test changes its modules would leave it half imported."""
    plan = next(iter(plans([Path(__file__).parents[2] / "shaders" / "swiglu.toml"], Request(dims={"M": 1, "K": 4}))))
    started = []

    def slow(*_, **__):
        started.append(Thread(target=time.sleep, args=(0.5,)))
        started[-1].start()
        return started[-1]

    monkeypatch.setattr(wgpu_client, "prepare", slow)
    for fails in (False, True):
        monkeypatch.setattr(audit, "find_adapters", lambda *_, fails=fails: 1 / 0 if fails else {})
        with pytest.raises(ZeroDivisionError) if fails else nullcontext():
            audit.audit(plan.case(plan.shapes[0]), Options())
        assert not started[-1].is_alive()
    assert len(started) == 2


def test_the_preparation_uses_the_overrides_of_the_case(monkeypatch, tmp_path):
    """The overrides computed from the dims, as in the run; other ones would compile an unused pipeline."""
    shader = SHADER.replace("struct", "override LANES: u32 = 1;\nstruct").replace("size(32)", "size(LANES)")
    (tmp_path / "scale.wgsl").write_text(shader)
    (tmp_path / "scale.toml").write_text(manifest(PARAMS, kernel='overrides = { LANES = "2 * N" }', n=16))
    (plan,) = plans([tmp_path / "scale.toml"], Request())
    given = []
    monkeypatch.setattr(wgpu_client, "prepare", lambda module, entry, **how: given.append(how["overrides"]))
    case_run.prepare_on_gpu(plan.case(plan.shapes[0]), None)
    assert given == [{"LANES": 32}]


@pytest.mark.parametrize(
    ("enables", "features", "lacking"),
    [
        ((), (), None),
        (("f16",), (), "the shader enables f16, and made up has no shader-f16"),
        (("f16",), ("shader-f16",), None),
        (("subgroups",), ("shader-f16",), "the shader enables subgroups, and made up has no subgroup"),
        (("f16", "subgroups"), ("shader-f16",), "the shader enables subgroups, and made up has no subgroup"),
        (("f16", "subgroups"), ("shader-f16", "subgroup"), None),
        (("clip_distances",), (), None),  # which no compute shader uses
    ],
)
def test_an_adapter_needs_the_features_that_a_shader_enables(enables, features, lacking):
    text = "".join(f"enable {name}; " for name in enables) + "@compute @workgroup_size(1) fn main() {}"
    made_up = AdapterInfo("made up", "CPU", "Vulkan", "", "", "0.32")
    with pytest.raises(Lacking, match=lacking) if lacking else nullcontext():
        gpu_run._refuse(text, None, made_up, Abilities(frozenset(features), {}))


def test_an_error_of_wgpu_loses_the_lines_about_wgpu_itself():
    error = "Validation Error\n\nCaused by:\n  In wgpuDeviceCreateComputePipeline\n    Shader is wrong\n  see line 3\n"
    assert device_dispatch._plain(ValueError(error)) == "Shader is wrong\n  see line 3"
    assert device_dispatch._plain(ValueError("lost")) == "lost"
