"""Shaders of other projects: finding them, generating their inputs, and their verdicts."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle.cli.main import main
from bankshot.oracle.corpus import corpus_survey as corpus
from bankshot.oracle.corpus import embedded
from bankshot.oracle.corpus.difference import differences
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.corpus.trial import VERDICTS, Trial, trials
from bankshot.oracle.guesses import invented_inputs
from bankshot.oracle.manifests.reflection import has_float_arithmetic, inexact_builtins

ENTRY = "@compute @workgroup_size(1) fn main() {}"

# ---- shaders -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "text", "line"),
    [
        (".wgsl", ENTRY, 1),
        (".js", f"const a = 1;\nconst code = /* wgsl */ `{ENTRY}`;", 2),
        (".ts", f"// it`s\nconst b = `${{[1].map(x => `<${{x}}>`)}}`;\nconst code = `{ENTRY}`;", 3),
        (".mjs", f"const quote = '`';\n/* ` */ const code = `{ENTRY}`;", 2),
        (".html", f"<p>don't</p>\n<script>const code = `{ENTRY}`;</script>", 2),
        (".html", f'<script type="x-shader/x-compute">{ENTRY}</script>', 1),
        (".cpp", f'auto s = "a";\nauto code = R"wgsl({ENTRY})wgsl";', 2),
        (".rs", f'let s = "";\nlet code = r#"{ENTRY}"#;', 2),
        (".rs", f'let code = "\n{ENTRY}";', 1),
        (".py", f'code = """{ENTRY}"""', 1),
    ],
)
def test_wgsl_is_found_in_files_and_literals(tmp_path, suffix, text, line):
    file = tmp_path / f"shader{suffix}"
    file.write_text(text)
    (found,) = embedded.shaders(file)
    assert (found.text.strip(), found.line) == (ENTRY, line)
    assert embedded.files(tmp_path, embedded=True) == [file]
    assert embedded.files(tmp_path, embedded=False) == ([file] if suffix == ".wgsl" else [])


def test_escapes_of_a_template_literal_are_undone_and_substitutions_stay(tmp_path):
    file = tmp_path / "a.js"
    file.write_text("x = `@compute fn main() { \\`\\${ ${size} }`; y = `no shader`;")
    (found,) = embedded.shaders(file)
    assert found.text == "@compute fn main() { `${ ${size} }"


def test_names_in_templates_are_replaced():
    shader = Shader(Path("a.js"), 1, "@workgroup_size({{ size }}) ${type.name} ${other} {{x + 1}}")
    filled = embedded.filled(shader, {"size": "8, 8", "type.name": "f32"})
    assert filled.text == "@workgroup_size(8, 8) f32 ${other} {{x + 1}}"


# ---- inputs ------------------------------------------------------------------------------------------


def pipeline(declarations, body="", workgroup="1", params=""):
    text = f"enable f16; {declarations} @compute @workgroup_size({workgroup}) fn main({params}) {{ {body} }}"
    module = bankshot.check(text)
    return module.pipeline(None, invented_inputs.override_values(module))


def test_a_layout_has_the_kind_of_each_two_bytes():
    struct = "struct S { a: f32, b: vec2<f16>, c: vec3<u32>, d: atomic<u32>, e: array<f16> }"
    made = pipeline(f"{struct} @group(0) @binding(0) var<storage, read_write> s: S;", "_ = &s;")
    (type_,) = made.store_types.values()
    codes = invented_inputs.layout(type_, invented_inputs.Recipe("", (1,), 1, tail=2))
    f, h, w, n, _ = invented_inputs.SINGLE, invented_inputs.HALF, invented_inputs.WHOLE, invented_inputs.COUNTER, 0
    # WebGPU asks for 48 bytes, in which e has eight elements.
    assert codes.tolist() == [f, f, h, h, _, _, _, _, w, w, w, w, w, w, n, n, *[h] * 8]


def test_integers_in_uniform_buffers_are_sizes_and_atomics_start_at_zero():
    made = pipeline(
        """
        @group(0) @binding(0) var<uniform> u: vec4<u32>;
        @group(0) @binding(1) var<storage, read_write> c: array<atomic<u32>, 4>;
        @group(0) @binding(2) var<storage> x: array<f32>;
        """,
        "_ = &u; _ = &c; _ = &x;",
    )
    recipe = invented_inputs.Recipe("", (4, 8), 1 << 32, tail=100)
    given = invented_inputs.bindings(made, recipe)
    assert set(given["u"].view(np.uint32).tolist()) <= {4, 8}
    assert given["c"].view(np.uint32).tolist() == [0, 0, 0, 0]
    x = given["x"].view(np.float32)
    assert x.shape == (100,)
    assert np.abs(x).max() <= 1
    assert x.min() < 0 < x.max()
    again = invented_inputs.bindings(made, recipe)
    assert all(given[name].tobytes() == again[name].tobytes() for name in given)


def test_overrides_without_a_default_get_a_value():
    declarations = "override n: u32; @id(7) override f: f32; override on: bool; override has = 3;"
    made = pipeline(declarations, "_ = f; _ = on; _ = has;", workgroup="n")
    assert {o.name: value for o, value in made.values.items()} == {"n": 4, "f": 0.5, "on": True, "has": 3}


@pytest.mark.parametrize(
    ("params", "body", "grid"),
    [
        ("", "", (1, 1, 1)),
        ("@builtin(local_invocation_id) l: vec3<u32>", "_ = l.x;", (1, 1, 1)),
        ("@builtin(global_invocation_id) g: vec3<u32>", "_ = g.x;", (6, 1, 1)),
        ("@builtin(global_invocation_id) g: vec3<u32>", "_ = g.yx;", (3, 2, 1)),
        ("@builtin(global_invocation_id) g: vec3<u32>", "_ = g.x; let h = g; _ = h;", (3, 2, 2)),
        (
            "@builtin(workgroup_id) w: vec3<u32>, @builtin(global_invocation_id) g: vec3<u32>",
            "_ = w.z + g.x;",
            (3, 1, 2),
        ),
        ("i: In", "_ = i.id.y;", (1, 6, 1)),
    ],
)
def test_a_grid_extends_along_the_axes_that_the_shader_reads(params, body, grid):
    made = pipeline("struct In { @builtin(global_invocation_id) id: vec3<u32> }", body, params=params)
    assert invented_inputs.grid(made.entry) == grid


def test_inexact_operations_are_found_through_calls():
    made = pipeline(
        "fn g(x: f32) -> f32 { return sin(x) / exp2(x); } fn f(x: f32) -> f32 { return g(x); }", "_ = f(2);"
    )
    assert inexact_builtins(made.entry) == ["/", "exp2", "sin"]
    assert not has_float_arithmetic(made.entry)
    assert has_float_arithmetic(pipeline("", "var x = 1.0; x += x;").entry)
    assert not has_float_arithmetic(pipeline("", "var x = 1u; x += x;").entry)


@pytest.mark.parametrize(
    ("type_", "shape", "dtype"),
    [
        ("texture_2d<f32>", (64, 64, 4), np.uint8),
        ("texture_2d_array<u32>", (4, 64, 64, 4), np.uint32),
        ("texture_3d<i32>", (32, 32, 32, 4), np.int32),
        ("texture_depth_cube", (6, 64, 64, 1), np.uint16),
        ("texture_storage_1d<rgba16float, write>", (64, 4), np.float16),
        ("texture_storage_2d<rgb10a2unorm, write>", (64, 64), np.uint32),
    ],
)
def test_textures_are_arrays_of_their_format(type_, shape, dtype):
    text = f"enable f16; requires texture_formats_tier1; @group(0) @binding(0) var x: {type_};"
    module = bankshot.check(f"{text} @compute @workgroup_size(1) fn main() {{ _ = textureDimensions(x); }}")
    made = invented_inputs.bindings(module.pipeline(), invented_inputs.RECIPES[0])["x"]
    first = made[0] if isinstance(made, list) else made
    assert (first.shape, first.dtype) == (shape, dtype)
    assert isinstance(made, list) == ("storage" not in type_)


# ---- verdicts ----------------------------------------------------------------------------------------

Y = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;"
ID = "@builtin(global_invocation_id) id: vec3<u32>"


def one(text, skip=0):
    (made,) = trials(Shader(Path("a.wgsl"), 1, text), None, skip)
    return made


def test_differences_go_by_kind_and_nans_are_equal():
    codes = np.array(
        [invented_inputs.SINGLE] * 4 + [invented_inputs.WHOLE] * 2 + [invented_inputs.PADDING] * 2, np.uint8
    )
    ours = np.array([0x7FC00000, 0x3F800000, 5, 1], np.uint32).view(np.uint8)
    theirs = np.array([0xFFC00001, 0x3F800001, 6, 2], np.uint32).view(np.uint8)
    whole, single = differences("y", codes, ours, theirs)
    assert (whole.count, whole.first, whole.ours, whole.theirs) == (1, 8, 5, 6)
    assert (single.count, single.first, single.ulp) == (1, 4, 1)
    assert single.error == pytest.approx(2**-23)


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(
    ("text", "verdict", "why"),
    [
        (f"{Y} @compute @workgroup_size(64) fn main({ID}) {{ y[id.x] = id.x; }}", "equal", ""),
        (f"{Y} @compute @workgroup_size(64) fn main({ID}) {{ let old = y[id.x]; }}", "equal", "no output changed"),
        ("fn helper() {}", "no-compute", ""),
        ("@compute @workgroup_size({{size}}) fn main() {}", "not-wgsl", "a template: {{size}}"),
        ("@compute @workgroup_size(${n}) fn main() {}", "not-wgsl", "a template: ${n}"),
        (
            "#import other\n@compute @workgroup_size(1) fn main() { }",
            "not-wgsl",
            "for another preprocessor: #import other",
        ),
        ("var<push_constant> a: u32; fn f() { let b = a; }", "not-wgsl", "an extension of wgpu: push_constant"),
        ("fn f() { let a = b; }", "not-wgsl", "'b' is not declared"),
        ("@compute @workgroup_size(1u, 2i) fn main() {}", "refused", "must all be i32 or all u32"),
        (
            "fn f() -> u32 { return subgroupAdd(1u); } @compute @workgroup_size(4) fn main() { _ = f(); }",
            "equal",
            "not standard: `enable subgroups;` is missing",
        ),
        (
            "const a = determinant(mat2x2(1, 2, 3, 4)); @compute @workgroup_size(1) fn main() { var x = a; }",
            "only-here",
            "wgpu",
        ),
        ("@compute @workgroup_size(1) fn main() { var i = 1u; while i > 0 { i |= 1u; } }", "endless", "line 1"),
        (
            f"{Y} @compute @workgroup_size(64) fn main({ID}) {{ y[id.x + 1048576u] = 1u; }}",
            "equal",  # under the policy of the adapter
            "no output changed",
        ),
        (
            f"""enable subgroups; {Y} @compute @workgroup_size(32) fn main({ID}) {{
                let v = id.x * 7u; if id.x < 256u {{ y[id.x] = subgroupShuffleXor(v, 16u); }}
            }}""",
            "explained",
            "inactive-lane, line 2: this subgroupShuffleXor reads a lane that is inactive or outside the subgroup",
        ),
        (
            f"""{Y} @compute @workgroup_size(64) fn main({ID}) {{
                if id.x == 0u {{ for (var i = 0u; i < 70000; i++) {{ y[0] = i; }} }}
            }}""",
            "explained",
            "the driver leaves loops after 65,535 turns; under that limit, all outputs agree",
        ),
        (
            f"""{Y.replace("u32", "f32")} @vertex fn vs() -> @builtin(position) vec4f {{ return nothing; }}
            @compute @workgroup_size(64) fn main({ID}) {{ y[id.x] = 1.0; }}""",
            "equal",
            "a vertex or fragment stage is wrong, and left out: 'nothing' is not declared",
        ),
        (
            f"""@group(0) @binding(1) var to: texture_storage_2d<rgba16float, write>; {Y.replace("u32", "f32")}
            @compute @workgroup_size(64) fn main({ID}) {{
                y[id.x] = exp(y[id.x] * 3.3 * 5.1);
                textureStore(to, vec2u(id.x, 0u), vec4f(y[id.x], sin(f32(id.x) * 3.3), f32(id.x) * 3.3 * 5.1, 1.0));
            }}""",
            "within",
            "the error bounds of what it computes allow it",
        ),
        (
            """@group(0) @binding(0) var source: texture_2d<f32>; @group(0) @binding(1) var how: sampler;
            @group(0) @binding(2) var to: texture_storage_2d<rgba8unorm, write>;
            @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
                let texel = textureSampleLevel(source, how, (vec2f(id.yx) + 0.5) / 64, 0);
                textureStore(to, id.xy, texel.bgra);
            }""",
            "equal",
            "",
        ),
        (
            """@group(0) @binding(0) var<storage, read_write> y: array<f32>;
            @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
                y[id.x] = pow(abs(y[id.x]), 1.7) + exp(y[id.x]) * log(3.0 + y[id.x]);
            }""",
            "within",
            "the error bounds of what it computes allow it",
        ),
        (  # far off, as nearly all of it cancels; no input is a float, so none can be nudged
            f"""{Y.replace("u32", "f32")} @compute @workgroup_size(64) fn main({ID}) {{
                let a = f32(id.x % 256u) * 0.01;
                y[id.x] = 1e6 * (cos(a + 1e-5) - cos(a));
            }}""",
            "within",
            "the error bounds of what it computes allow it",
        ),
        (
            f"""{Y.replace("u32", "f32")} @compute @workgroup_size(64) fn main({ID}) {{
                y[id.x] = tan(f32(id.x * 1234567u));
            }}""",
            "unchecked",
            "WGSL bounds no error of",
        ),
    ],
)
def test_verdicts(text, verdict, why):
    made = one(text)
    assert made.verdict == verdict, made
    assert why in made.why
    assert bool(made.rerun) == (verdict in ("within", "explained", "unchecked"))


# ---- surveys -----------------------------------------------------------------------------------------


def stumbling(task, report):
    """Crash or hang if the shader asks for it."""
    for entry in task.shader.text.split()[task.skip :]:
        stage = "wgpu" if entry.startswith("wgpu") else "simulate"
        report((None if entry == "unread" else entry, stage))
        if entry.endswith("dies"):
            os.write(2, b"thread panicked at /a/b.rs:1:2:\nno luck\n")
            os._exit(3)
        if entry.endswith("hangs"):
            time.sleep(60)
        report(Trial(task.shader.name, 1, entry, "equal"))


@pytest.mark.usefixtures("adapter")
def test_a_lost_worker_costs_one_entry_point():
    texts = ["good wgpu-dies good", "dies", "wgpu-hangs good", "good"]
    found = [corpus.Collection(Path("all"), tuple(Shader(Path(f"{i}.wgsl"), 1, text) for i, text in enumerate(texts)))]
    corpus.corpus(found, corpus.Options(jobs=2, limit=5), work=stumbling)
    made = [(t.shader, t.entry, t.verdict) for t in found[0].trials]
    assert made == [
        ("0.wgsl", "good", "equal"),
        ("0.wgsl", "wgpu-dies", "wgpu-died"),
        ("0.wgsl", "good", "equal"),
        ("1.wgsl", "dies", "crash"),
        ("2.wgsl", "wgpu-hangs", "wgpu-died"),
        ("2.wgsl", "good", "equal"),
        ("3.wgsl", "good", "equal"),
    ]
    assert (
        found[0].trials[1].why == "wgpu: the driver crashed: panic, no luck (b.rs:1:2); --adapter NAME chooses another"
    )
    slow = "took longer than 5 s; --limit SECONDS gives it longer, as some drivers compile for minutes"
    assert found[0].trials[4].why == f"wgpu: {slow}"


@pytest.mark.usefixtures("adapter")
def test_wgpu_receives_the_expanded_includes(tmp_path):
    (tmp_path / "four.wgsl").write_text("const four = 4u;")
    text = f'#include "four.wgsl"\n{Y} @compute @workgroup_size(four) fn main({ID}) {{ y[id.x] = four; }}'
    (made,) = trials(Shader(tmp_path / "a.wgsl", 1, text), None)
    assert made.verdict == "equal", made


@pytest.mark.usefixtures("adapter")
def test_the_command_tries_a_folder(tmp_path):
    (tmp_path / "good.wgsl").write_text(f"{Y} @compute @workgroup_size(64) fn main({ID}) {{ y[id.x] = id.x; }}")
    (tmp_path / "template.js").write_text("x = `@compute @workgroup_size(${n}) fn main() {}`;")
    (tmp_path / "filled.js").write_text("x = `@compute @workgroup_size(${m}) fn main() {}`;")
    options = ["--embedded", "--fill", "m=4", "--jobs", "1"]
    result = CliRunner().invoke(main, ["corpus", str(tmp_path), *options, "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    (folder,) = report["folders"]
    assert (report["ok"], folder["modules"], folder["verdicts"]) == (True, 3, {"equal": 2, "not-wgsl": 1})
    assert {"simulate", "wgpu"} <= folder["trials"][1]["seconds"].keys()


def test_a_folder_without_shaders_is_refused(tmp_path):
    result = CliRunner().invoke(main, ["corpus", str(tmp_path)])
    assert result.exit_code == 2
    assert "no WGSL found; --embedded also searches the string literals" in result.stderr


def test_every_verdict_has_a_column():
    from bankshot.oracle.reports import corpus_report as report_corpus

    counted = {name for _, names in (*report_corpus._MODULES, *report_corpus._ENTRIES) for name in names}
    assert counted == set(VERDICTS) - {"no-compute"}
