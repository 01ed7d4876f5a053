"""The whole path, with nothing made up: WGSL text, simulator, reference, wgpu, command line."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle.audit import Options, audit
from bankshot.oracle.cli.main import main
from bankshot.oracle.judge.golden_check import golden_place
from bankshot.oracle.manifests.cases import Request, plans
from tests.scaling import PARAMS, manifest
from tests.scaling import SHADER as SCALE

SHADERS = Path(__file__).parents[2] / "shaders"


MANIFEST = manifest(PARAMS, '\n[expect]\nflops = "N"\n')


def bankshot(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "scale.wgsl").write_text(SCALE)
    return tmp_path


QUICK = [
    pytest.param(kernel, shape, id=f"{kernel.name} {shape}")
    for kernel, shapes in ((plan.kernel, plan.shapes) for plan in plans([SHADERS], Request(quick=True)))
    for shape in shapes
]


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(("kernel", "shape"), QUICK)
def test_our_kernels_are_clean(kernel, shape):
    """Outputs against reference and wgpu, counters against the manifest, no finding that is not accepted."""
    result = audit(kernel.case(shape), Options())
    assert result.ok, result
    assert any("wgpu on" in check.against for check in result.outputs)


def test_every_golden_of_ours_is_held_against_a_run():
    """In `test_our_kernels_are_clean`: each belongs to a quick shape that wants one."""
    wanted = {golden_place(kernel, shape) for kernel, shape in (case.values for case in QUICK) if shape.golden}
    assert len(wanted) >= 8
    assert set(SHADERS.rglob("golden/*.json")) == wanted


@pytest.mark.usefixtures("adapter")
def test_a_struct_is_laid_out_alike_for_both(folder):
    (folder / "scale.toml").write_text(MANIFEST)
    result = bankshot("audit", folder, "--json")
    assert result.exit_code == 0, result.output
    (case,) = json.loads(result.stdout)["cases"]
    assert case["outputs"][0]["mismatches"] == 0
    assert case["counters"]["flops"] == 40


@pytest.mark.usefixtures("adapter")
def test_a_shader_without_a_manifest_is_told_what_it_lacks(folder):
    result = bankshot("audit", folder / "scale.wgsl")
    assert result.exit_code == 2
    assert "there is no manifest scale.toml" in result.stderr
    assert "--bind x=…   array<f32>, storage, read" in result.stderr
    assert "--bind params=…   Params, uniform" in result.stderr
    # 2.5f has the bits 0x40200000
    data = ["--bind", "x=ones:f32:40", "--bind", "y=zeros:f32:40", "--bind", "params=u32:40,0x40200000"]
    result = bankshot("run", folder / "scale.wgsl", *data, "--grid", "2,1,1", "--save", f"y={folder / 'y.npy'}")
    assert result.exit_code == 0, result.output
    assert np.load(folder / "y.npy").tolist() == [2.5] * 40


@pytest.mark.usefixtures("adapter")
def test_a_wrong_simulator_would_be_noticed(folder, monkeypatch):
    """One bit of the simulator's output turned over is a difference with place, bits and ULP."""
    from bankshot.oracle.judge.case_run import simulate

    (folder / "scale.toml").write_text(MANIFEST)

    def tampered(*arguments):
        run = simulate(*arguments)
        run.outputs["y"].view(np.uint32)[7] ^= 1
        return run

    monkeypatch.setattr("bankshot.oracle.judge.diff.simulate", tampered)
    result = bankshot("diff", folder)
    assert result.exit_code == 1
    assert "1 of 40 elements (2.50%), rule exact, up to 1 ULP apart" in result.stdout
    assert "[7]" in result.stdout


# ---- errors: each one clear, with its place, exit 2 and no traceback ---------------------------------


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("x[id.x];", "x[id.x]", 8),
        ("params.factor *", "parms.factor *", 8),
        ("params.factor * x[id.x]", "params.factor + 1u", 8),
        ("params.factor * x[id.x]", "max(params.factor)", 8),
        ("params.factor * x[id.x]", "no_such_function(1)", 8),
        ("workgroup_size(32)", "workgroup_size(id)", 5),
    ],
)
@pytest.mark.parametrize("verb", ["check", "audit", "run"])
def test_a_broken_shader(folder, verb, old, new, line):
    assert SCALE.count(old) == 1
    file = folder / "scale.wgsl"
    file.write_text(SCALE.replace(old, new))
    result = bankshot(verb, file)
    assert result.exit_code == 2
    assert f"{file}:{line}:" in result.stderr
    assert "error: " in result.stderr
    assert "^" in result.stderr
    assert "Traceback" not in result.output


GIVEN = {"x": "x=ones:f32:40", "y": "y=zeros:f32:40", "params": "params=u32:40,0"}


@pytest.mark.parametrize(
    ("change", "extra", "message"),
    [
        ({"params": "params=u32:40"}, (), "params has 4 bytes, and Params needs 8"),
        ({"x": "x=ones:f16:40"}, (), "x is float16, and array<f32> holds float32"),
        ({}, ("--grid", "70000,1,1"), "which is 65,535"),
        ({}, ("--grid", "1,1,1,1"), "--grid: `1,1,1,1` has 4 sizes, a grid has at most three"),
        ({}, ("--device", "voodoo"), "voodoo"),
        ({}, ("--override", "WG=8"), "WG"),
        ({"z": "z=ones:f32:4"}, (), "uses no binding named z"),
        ({"x": None}, (), "--bind x=…   array<f32>, storage, read"),
    ],
)
def test_data_that_does_not_fit(folder, change, extra, message):
    binds = [part for value in (GIVEN | change).values() if value for part in ("--bind", value)]
    result = bankshot("run", folder / "scale.wgsl", *binds, *extra)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_files_that_are_no_kernels(folder):
    (folder / "broken.toml").write_bytes(b"\xff\xfe")
    (folder / "image.wgsl").write_text(
        "@group(0) @binding(0) var t: texture_2d<f32>; @group(0) @binding(1) var<storage, read_write> y: array<f32, 4>;"
        "@compute @workgroup_size(1) fn f() { y[0] = textureLoad(t, vec2(0, 0), 0).x; }"
    )
    (folder / "pixels.wgsl").write_text("@fragment fn f() -> @location(0) vec4<f32> { return vec4<f32>(); }")
    (folder / "bytes.wgsl").write_bytes(b"\xff\xfe")
    for name, message in {
        "": "broken.toml: is not UTF-8 text",
        "broken.toml": "is not UTF-8 text",
        "image.wgsl": "--bind t=…   texture_2d<f32>",
        "pixels.wgsl": "the shader has no compute entry point",
        "bytes.wgsl": "is not UTF-8 text",
    }.items():
        result = bankshot("audit", folder / name)
        assert (result.exit_code, message in result.stderr) == (2, True), result.output


@pytest.mark.usefixtures("adapter")
def test_a_texture_of_the_command_line(folder):
    (folder / "image.wgsl").write_text(
        "@group(0) @binding(0) var t: texture_2d<f32>; @group(0) @binding(1) var s: sampler;"
        "@group(0) @binding(2) var<storage, read_write> y: array<vec4f, 4>;"
        "@compute @workgroup_size(4) fn f(@builtin(local_invocation_index) i: u32) {"
        "    y[i] = textureSampleLevel(t, s, vec2(f32(i), 0.5) / 4, 0.0);"
        "}"
    )
    result = bankshot("diff", folder / "image.wgsl", "--bind", "t=normal:f32:5,6,4")
    assert result.exit_code == 0, result.output
    result = bankshot("audit", folder / "image.wgsl", "--bind", "t=normal:f32:5,6,4")
    assert (result.exit_code, "default contents for s (sampler)" in result.output) == (0, True), result.output
    result = bankshot("diff", folder / "image.wgsl", "--bind", "t=normal:f32:5,6,3")
    assert (result.exit_code, "t has 3 channels of float32" in result.stderr) == (2, True)


def test_a_manifest_that_the_shader_does_not_fit(folder):
    (folder / "scale.toml").write_text(MANIFEST.replace("[bind.x]", "[bind.xs]"))
    result = bankshot("run", folder)
    assert (result.exit_code, "the shader has no binding xs, did you mean 'x'?" in result.stderr) == (2, True)
    (folder / "scale.toml").write_text(MANIFEST.replace("factor =", "facter ="))
    result = bankshot("run", folder)
    assert result.exit_code == 2
    assert "binding params has no member facter; it has n, factor" in result.stderr


def test_counters_alone_tell_nothing_of_outputs(folder):
    (folder / "scale.toml").write_text(MANIFEST)
    both, alone = (
        json.loads(bankshot("run", folder, "--json", *more).stdout)["cases"][0]
        for more in ((), ("--probes", "counters"))
    )
    assert (list(both["outputs"]), list(alone["outputs"])) == (["y"], [])
    assert alone["counters"]["flops"] == both["counters"]["flops"] == 40
