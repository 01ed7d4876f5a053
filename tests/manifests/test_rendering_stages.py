"""Modules whose vertex or fragment stages are wrong run their compute entry points, here and through wgpu."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.from_python import compute_with_buffers, run_manifest
from bankshot.oracle.manifests.rendering_stages import check_for_compute, stage_notes, without_rendering
from bankshot.sim.wgsl.check.check_module import check
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source

DECLARED = "@group(0) @binding(0) var<storage, read_write> y: array<f32, 64>;\n"
COMPUTE = """
fn shared_by_both(i: u32) -> f32 { return f32(i); }
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    y[i] = shared_by_both(i);
}
"""
SAMPLED = "@group(0) @binding(1) var image: texture_2d<f32>; @group(0) @binding(2) var how: sampler;\n"

WRONG = {  # rendering stages that no compute entry point needs
    "undeclared": "@vertex fn vs() -> @builtin(position) vec4f { return nothing; }",
    "syntax": "@fragment fn fs() -> @location(0) vec4f { return vec4f(1.0 }",
    "called": "fn colour() -> vec4f { return vec4f(nothing); }\n"
    "@fragment fn fs() -> @location(0) vec4f { return colour(); }",
    "called twice removed": "fn a() -> vec4f { return b(); } fn b() -> vec4f { return vec4f(1); }\n"
    "@fragment fn fs() -> @location(0) vec4f { if a().x { return b(); } return a(); }",
    "attributes before and after": "@diagnostic(off, derivative_uniformity) @fragment @must_use fn fs() { return 1; }",
    "not uniform": f"{SAMPLED}@fragment fn fs(@location(0) at: vec2f) -> @location(0) vec4f {{\n"
    "if at.x > 0.0 { return textureSample(image, how, at); } return vec4f(); }",
    "also calls what compute calls": "@vertex fn vs() -> @builtin(position) vec4f { return shared_by_both(1u); }",
    "in comments": "// @compute fn no() {\n/* } /* fn main() { */ */ @vertex fn vs() -> f32 { /* } */ return 1.0; }",
}
OURS = {  # errors that are not of a rendering stage alone
    "in compute": f"{DECLARED}{WRONG['undeclared']}{COMPUTE.replace('f32(i)', 'true')}",
    "shared": f"{DECLARED}{COMPUTE.replace('f32(i)', 'true')}@vertex fn vs() -> f32 {{ return shared_by_both(1u); }}",
    "in no stage": f"{DECLARED}{COMPUTE}fn unused() -> f32 {{ return true; }}\n@vertex fn vs() {{}}",
    "module scope": f"{DECLARED}{COMPUTE}const c: u32 = 1.0;\n{WRONG['undeclared']}",
    "no compute": WRONG["undeclared"],
    "unclosed": f"{DECLARED}{COMPUTE}@vertex fn vs() {{ if (true) {{",
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("first", [True, False], ids=["before compute", "after"])
def test_wrong_rendering_stages_are_left_out(wrong, first):
    text = f"{DECLARED}{wrong if first else ''}{COMPUTE}{'' if first else wrong}"
    module = check_for_compute(Source(text, "k.wgsl"))
    assert [each.name for each in module.entry_points] == ["main"]
    (note,) = stage_notes(module)
    assert note.startswith("a vertex or fragment stage is wrong, and left out: ")
    with pytest.raises(WgslError) as whole:
        check(Source(text, "k.wgsl"))
    assert note.endswith(f"(k.wgsl:{whole.value.diagnostics[0].span.line})")
    assert len(module.source.text) == len(text)
    assert module.source.text.index("y[i] =") == text.index("y[i] =")  # places stay
    assert module.source.line_count == text.count("\n") + 1


@pytest.mark.parametrize("text", OURS.values(), ids=OURS)
def test_other_errors_stay(text):
    with pytest.raises(WgslError) as given:
        check_for_compute(Source(text))
    with pytest.raises(WgslError) as whole:
        check(Source(text))
    assert str(given.value) == str(whole.value)


def test_valid_rendering_stages_stay():
    text = f"{DECLARED}{COMPUTE}@vertex fn vs() -> @builtin(position) vec4f {{ return vec4f(); }}"
    module = check_for_compute(Source(text))
    assert [each.name for each in module.entry_points] == ["main", "vs"]
    assert stage_notes(module) == ()


def test_a_module_without_rendering_stages_has_nothing_to_leave_out():
    assert without_rendering(Source(DECLARED + COMPUTE)) is None


@pytest.fixture
def shader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "k.wgsl"
    path.write_text(f"{DECLARED}{WRONG['called']}{COMPUTE}")
    return str(path)


def bankshot(*arguments):
    return CliRunner().invoke(main, list(arguments))


NOTE = "a vertex or fragment stage is wrong, and left out: "


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("command", ["run", "audit", "diff"])
def test_commands_run_the_compute_stage_and_say_it_once(shader, command):
    done = bankshot(command, shader, "--bind", "y=f32:" + ",".join(["7"] * 64))
    assert done.exit_code == 0, done.output
    assert done.output.count(NOTE) == 1, done.output
    assert "k.wgsl:2)" in done.output
    done = bankshot(command, shader, "--bind", "y=f32:" + ",".join(["7"] * 64), "--json")
    (case,) = json.loads(done.stdout)["cases"]
    assert sum(note.startswith(NOTE) for note in case["notes"]) == 1


def test_init_writes_a_manifest(shader):
    assert bankshot("init", shader).exit_code == 0


def test_check_reports_the_error(shader):
    done = bankshot("check", shader)
    assert done.exit_code == 2
    assert "k.wgsl:2:37: error: 'nothing' is not declared" in done.output


def test_every_way_to_run_a_file_leaves_out_the_same(tmp_path, bankshot, monkeypatch):
    text = DECLARED + WRONG["undeclared"] + COMPUTE
    (tmp_path / "k.wgsl").write_text(text)
    monkeypatch.setattr(bankshot, "test", tmp_path / "test_k.py")
    expected = np.arange(64, dtype=np.float32)
    y = np.zeros(64, np.float32)
    fixture = bankshot.run("k.wgsl", grid=1, bindings={"y": y})
    as_text = bankshot.run(text, grid=1, bindings={"y": y})
    buffers = compute_with_buffers({}, {0: (64, "f")}, tmp_path / "k.wgsl", n=1)
    assert CliRunner().invoke(main, ["init", str(tmp_path / "k.wgsl")]).exit_code == 0
    manifest = run_manifest(tmp_path / "k.toml")
    found = (fixture.outputs["y"], as_text.outputs["y"], buffers[0], manifest.outputs["y"])
    for each in found:
        np.testing.assert_array_equal(np.asarray(each).ravel(), expected)
