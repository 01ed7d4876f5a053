"""Every portability note, compared with wgpu: it must reject the shader of each row, and accept its twin.

A row that wgpu no longer needs fails here; remove it.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle import wgpu_client
from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import DriverDied
from bankshot.oracle.manifests import cases
from bankshot.oracle.manifests.reflection import check_module
from bankshot.sim.models.limits import DEFAULT_LIMITS
from bankshot.sim.wgsl.analysis.portability import (
    ACCEPTED,
    FEATURES,
    KNOWN_ENABLES,
    KNOWN_REQUIRES,
    NOT_CONST,
    ROWS,
    UNKNOWN_BUILTIN_VALUES,
    UNKNOWN_BUILTINS,
)
from bankshot.sim.wgsl.builtins import BUILTINS
from bankshot.sim.wgsl.check.check_module import EXTENSIONS, LANGUAGE_FEATURES

OUT = "@group(0) @binding(0) var<storage, read_write> out: array<u32, 64>;\n"
BUFFERS = "".join(f"@group(0) @binding({i}) var<storage, read> s{i}: array<u32>;\n" for i in range(1, 9))
UNIFORM = "@group(0) @binding(1) var<uniform> u: u32;\n"
POINT = "struct Point { x: u32, y: u32 }\nfn assign(p: ptr<function, u32>) { *p = 1; }\n"


def shader(body="", before="", *, head="", size="64", inputs=""):
    """A compute shader with an output, its pieces put in."""
    start = f"@compute @workgroup_size({size})\nfn main(@builtin(local_invocation_index) i: u32, {inputs}) {{\n"
    return f"{head}{OUT}{before}{start}{body}\nout[i] += 1u;\n}}\n"


def codes(text, severity="warning"):
    return [note.code for note in bankshot.portability(bankshot.check(text)) if note.severity == severity]


def refusal(text, **options):
    """What wgpu says against the shader's pipeline."""
    return wgpu_client.refusal(text, pipeline=True, **options)


@dataclass(frozen=True)
class Case:
    """`wrong` earns the note; `right` says the same, and earns none."""

    code: str
    wrong: str
    right: str
    said: str  # part of what wgpu says


SUBGROUPS = "enable subgroups;\n"
CASES = [
    Case("enable-directive", shader(head=SUBGROUPS), shader(), "enable-extension is not yet supported"),
    Case(
        "buffer-type",
        shader("out[i] = bufferLength(&w);", "var<workgroup> w: buffer<64>;\n"),
        shader("out[i] = 64u;", "var<workgroup> w: array<u32, 16>;\n"),
        "identifier: `buffer`",
    ),
    Case("requires-directive", shader(head="requires unrestricted_pointer_parameters;\n"), shader(), "not yet support"),
    Case(
        "diagnostic-attribute",
        shader("@diagnostic(off, derivative_uniformity) if i > 3 { out[i] = 1; }"),
        shader("if i > 3 { out[i] = 1; }", head="diagnostic(off, derivative_uniformity);\n"),
        "attribute(s) not yet implemented",
    ),
    Case("const-builtin", shader(before="const c = mix(1f, 2f, 0.5f);\n"), shader("let c = mix(1f, 2f, 0.5f);"), "Mix"),
    Case("const-builtin", shader("const c = mix(1f, 2f, 0.5f);"), shader("const c = sqrt(2f);"), "Mix built-in"),
    Case("const-builtin", shader(size="extractBits(64u, 0u, 9u)"), shader(size="max(64u, 1u)"), "ExtractBits built-in"),
    Case(
        "const-builtin",
        shader(before="var<private> a: array<u32, pack4xU8(vec4(9))>;\n"),
        shader(before="var<private> a: array<u32, 9>;\n"),
        "Pack4xU8 built-in",
    ),
    Case(
        "pointer-parameter",
        shader("assign(&w);", "var<workgroup> w: u32;\nfn assign(p: ptr<workgroup, u32>) { *p = 1; }\n"),
        shader("assign();", "var<workgroup> w: u32;\nfn assign() { w = 1; }\n"),
        "which can't be passed into functions",
    ),
    Case(
        "pointer-parameter",
        shader("assign(&out);", "fn assign(p: ptr<storage, array<u32, 64>, read_write>) { p[0] = 1; }\n"),
        shader("let p = &out; p[0] = 1;"),
        "which can't be passed into functions",
    ),
    Case(
        "pointer-parameter",
        shader("out[0] = copied(&u);", UNIFORM + "fn copied(p: ptr<uniform, u32>) -> u32 { return *p; }\n"),
        shader("out[0] = copied(u);", UNIFORM + "fn copied(v: u32) -> u32 { return v; }\n"),
        "which can't be passed into functions",
    ),
    Case(
        "swizzle-assignment",
        shader("var v: vec4<u32>; v.xy = vec2(i);"),
        shader("var v: vec4<u32>; v.x = i; v.y = i;"),
        "assignment",
    ),
    Case(
        "builtin-value",
        shader(inputs="@builtin(workgroup_index) w: u32"),
        shader(inputs="@builtin(workgroup_id) w: vec3<u32>"),
        "unknown builtin",
    ),
    Case(
        "builtin-value",
        shader(inputs="ids: Ids", before="struct Ids { @builtin(global_invocation_index) at: u32 }\n"),
        shader(inputs="ids: Ids", before="struct Ids { @builtin(num_workgroups) n: vec3<u32> }\n"),
        "unknown builtin",
    ),
    Case(
        "builtin-function",
        shader("if subgroupElect() { out[0] = 1; }", head=SUBGROUPS),
        shader("if subgroupBroadcastFirst(n) == n { out[0] = 1; }", inputs="@builtin(subgroup_invocation_id) n: u32",
               head=SUBGROUPS),
        "no definition in scope",
    ),
    *(
        Case("signed-lane", shader(f"out[i] = {name}(i, 1);", head=SUBGROUPS),
             shader(f"out[i] = {name}(i, 1u);", head=SUBGROUPS), "Subgroup operation is invalid")
        for name in ("subgroupBroadcast", "subgroupShuffle", "quadBroadcast", "subgroupShuffleUp",
                     "subgroupShuffleDown", "subgroupShuffleXor")
    ),
    *(
        Case("unseen-return", shader("out[0] = f(i);", f"fn f(n: u32) -> u32 {{ {wrong} }}\n"),
             shader("out[0] = f(i);", f"fn f(n: u32) -> u32 {{ {right} }}\n"), "The `return` expression None")
        for wrong, right in (
            ("loop { return n; }", "loop { return n; } return 0;"),
            ("for (;;) { if n > 3 { return 1; } }", "for (;;) { if n > 3 { break; } } return 1;"),
            ("if n > 1 { return 1; } else { loop { return 2; } }", "if n > 1 { return 1; } else { return 2; }"),
            ("{ loop { return n; } }", "{ return n; }"),
            ("switch n { case 1: { return 1; } default: { loop { return 2; } } }",
             "switch n { case 1: { return 1; } default: { return 2; } }"),
            ("return n; if n > 1 { }", "return n; let unused = 1;"),
        )
    ),
    Case("immediate", shader("out[0] = p;", "var<immediate> p: u32;\n"),
         shader("out[0] = u;", UNIFORM), "IMMEDIATES"),
    *(
        Case("uniform-layout", shader("", f"struct T {{ a: u32 }}\nstruct U {{ {tight} }}\n@group(0) @binding(1) "
                                          "var<uniform> u: U;\n"),
             shader("", f"struct T {{ a: u32 }}\nstruct U {{ {loose} }}\n@group(0) @binding(1) var<uniform> u: U;\n"),
             "Alignment requirements for address space Uniform")
        for tight, loose in (
            ("a: array<u32, 4>", "a: array<vec4<u32>, 1>"),
            ("a: T, b: u32", "a: T, @align(16) b: u32"),
            ("b: u32, a: T", "b: u32, @align(16) a: T"),
            ("b: vec4<u32>, a: array<T, 2>", "b: vec4<u32>, a: vec2<u32>"),
        )
    ),
]  # fmt: skip

# What wgpu does not survive: its process ends.
FATAL = [
    ("var a: array<u32, 4>; assign(&a[i & 3]);", "var a: array<u32, 4>; var b = a[i & 3]; assign(&b); a[i & 3] = b;"),
    ("var a: array<u32, 4>; assign(&a[1]);", "var a: u32; assign(&a);"),
    ("var a: Point; assign(&a.y);", "var a: Point; var y = a.y; assign(&y); a.y = y;"),
    ("var a: Point; let p = &a; let q = &p.y; assign(q);", "var a: u32; let p = &a; let q = p; assign(q);"),
]


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_what_wgpu_refuses_is_noted(case):
    given = case.wrong if case.code.endswith("-directive") else wgpu_client.for_wgpu(case.wrong)
    assert case.said in (refusal(given) or "accepted")
    assert refusal(wgpu_client.for_wgpu(case.right)) is None
    known = {"enable-directive"} if case.wrong.startswith(SUBGROUPS) else set()
    assert set(codes(case.wrong)) - known == {case.code} - known
    assert set(codes(case.right)) <= known


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(("wrong", "right"), FATAL)
def test_what_wgpu_does_not_survive_is_noted(wrong, right):
    assert codes(shader(wrong, POINT)) == ["pointer-argument"]
    assert codes(shader(right, POINT)) == []
    with pytest.raises(DriverDied):
        refusal(shader(wrong, POINT))
    assert refusal(shader(right, POINT)) is None


@pytest.mark.usefixtures("adapter")
def test_a_pointer_that_is_handed_on_whole_is_fine():
    text = shader("var a: u32; twice(&a);", POINT + "fn twice(p: ptr<function, u32>) { assign(p); assign(&*p); }\n")
    assert (codes(text), refusal(text)) == ([], None)


# ---- what wgpu does otherwise ------------------------------------------------------------------------

KEPT = [  # bodies of a loop of i from 0 to 3: as wgpu gets them wrong, and their twins
    ("var v: u32; v += i + 1; out[i] = v;", "var v = 0u; v += i + 1; out[i] = v;"),
    ("var v: bool; out[i] = u32(v); v = true;", "var v = bool(); out[i] = u32(v); v = true;"),
    ("{ var v: vec2u; v.x += i + 1; out[i] = v.x; }", "{ var v: vec2u; v.x = 9; v.x += i + 1; out[i] = v.x; }"),
    ("var v: array<u32, 2>; v[i & 1] += 1; out[i] = v[0];", "var v = array<u32, 2>(); v[i & 1] += 1; out[i] = v[0];"),
    ("var v: Point; v.x = i; if i != 1 { v.y = i + 5; } out[i] = v.y;",
     "var v: Point; v.x = i; if i != 1 { v.y = i + 5; } else { v.y = 7; } out[i] = v.y;"),
    ("if i > 0 { var v: u32; switch i { case 1 { v = 5; } case 3 { return; } default { } } out[i] = v; }",
     "if i > 0 { var v: u32; switch i { case 1 { v = 5; } case 3 { return; } default { v = 4; } } out[i] = v; }"),
    ("var v: u32; loop { if i != 1 { break; } v = 9; break; } out[i] = v;",
     "var v: u32; loop { v = i; if i != 1 { break; } v = 9; break; } out[i] = v;"),
    ("for (var j: u32; j < 2; j++) { out[i] += j + 1; }", "for (var j = 0u; j < 2; j++) { out[i] += j + 1; }"),
    ("var v: u32; let old = v; v = i + 1; out[i] = old;", "var v: u32; v = i + 1; let old = v; out[i] = old;"),
]  # fmt: skip
# Whether these read first is unknown, so there is no note: loops may iterate, and pointers may be written.
DOUBTFUL = [
    "var v: u32; for (var j = 0u; j < 2; j++) { v = j; } out[i] = v;",
    "var v: array<u32, 2>; for (var j = 0u; j < 2; j++) { v[j] = j; } out[i] = v[1];",
    "var v: u32; assign(&v); out[i] = v;",
    "var v: u32; if i == 3 { break; } if i == 2 { continue; } v = i; out[i] = v;",
    "var v: u32; loop { if i == 9 { continue; } v = 4; break; } out[i] = v;",
]


def turns(body):
    loop = f"for (var i = 0u; i < 4; i++) {{ {body} }}"
    return f"{OUT}{POINT}@compute @workgroup_size(1) fn main() {{\n{loop}\n}}\n"


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(("wrong", "right"), KEPT)
def test_what_wgpu_keeps_from_turn_to_turn_is_noted(wrong, right):
    def outcome(body):
        given = {"out": np.zeros(64, np.uint32)}
        here = bankshot.simulate(turns(body), grid=1, bindings=given).outputs["out"]
        there = wgpu_client.run(turns(body), "main", (1, 1, 1), given).outputs["out"]
        return codes(turns(body)), np.array_equal(here, there)

    assert outcome(wrong) == (["kept-value"], False)
    assert outcome(right) == ([], True)


@pytest.mark.parametrize("body", DOUBTFUL)
def test_what_is_doubtful_is_not_noted(body):
    assert codes(turns(body)) == []


def test_only_loops_keep_values():
    assert codes(shader("var v: u32; v += i; out[i] = v;")) == []
    assert codes(shader("for (var j: u32; j < 2; j++) { out[i] += f(j); }",
                        "fn f(i: u32) -> u32 { var v: u32; v += i; return v; }\n")) == []  # fmt: skip


def test_a_continuing_block_reads_what_its_turn_left():
    def loop(first):
        return shader(f"var j = 0u; loop {{ var v: u32; {first} continuing {{ j += v + 1; break if j > 9; }} }}")

    assert codes(loop("if i == 3 { v = 2; }")) == ["kept-value"]
    assert codes(loop("if i == 3 { v = 2; continue; } v = 3;")) == []
    assert codes(loop("v = j;").replace("break if j > 9", "break if v > 9")) == []


def test_no_kernel_here_relies_on_it():
    for plan in cases.plans([Path(__file__).parents[2] / "shaders"], cases.Request()):
        notes = bankshot.portability(check_module(plan.kernel))
        assert "kept-value" not in {note.code for note in notes}


# ---- the sets of names -------------------------------------------------------------------------------

ARGUMENTS = {  # of the builtins that no list of equal arguments fits
    "extractBits": "(9u, 1u, 2u)", "insertBits": "(9u, 3u, 1u, 2u)", "ldexp": "(1.5f, 2i)", "select": "(1f, 2f, true)",
    "refract": "(vec2f(1, 0), vec2f(0, 1), 0.5f)", "bitcast": "<u32>(1.5f)", "smoothstep": "(0f, 1f, 0.5f)",
}  # fmt: skip
VALUES = (
    "0.5f", "1f", "1u", "1i", "vec3f(.5)", "vec4f(.5)", "vec2f(.5)", "vec4u(1)", "vec4i(1)", "mat2x2f(1, 2, 3, 4)",
    "true",
)  # fmt: skip


def constant(name):
    """A const-expression that calls this builtin."""
    lists = [f"({', '.join([value] * count)})" for count in range(1, 5) for value in VALUES]
    for arguments in [ARGUMENTS[name]] if name in ARGUMENTS else lists:
        try:
            bankshot.check(f"const c = {name}{arguments};")
        except bankshot.WgslError:
            continue
        return f"{name}{arguments}"
    raise AssertionError(f"no arguments for {name}")


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("name", [name for name, row in BUILTINS.items() if row.const])
def test_builtins_in_constants(name):
    text = shader(before=f"const c = {constant(name)};\n")
    assert (refusal(text) is not None) == (name in NOT_CONST)
    assert codes(text) == ["const-builtin"] * (name in NOT_CONST)
    runtime = shader(f"let c = {constant(name)};")
    assert (refusal(runtime), codes(runtime)) == (None, [])


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(("kind", "name"), [*(("enable", n) for n in EXTENSIONS), *(("requires", n)
                                            for n in sorted(LANGUAGE_FEATURES))])  # fmt: skip
def test_directives(kind, name):
    text = shader(head=f"{kind} {name};\n")
    refused = name not in KNOWN_ENABLES | KNOWN_REQUIRES
    assert (refusal(text) is not None) == refused
    assert codes(text) == [f"{kind}-directive"] * refused


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(
    "name",
    [
        "local_invocation_id", "global_invocation_id", "workgroup_id", "num_workgroups", "global_invocation_index",
        "workgroup_index", "subgroup_size", "subgroup_invocation_id", "subgroup_id", "num_subgroups",
    ],
)  # fmt: skip
def test_builtin_values(name):
    whole = "subgroup" in name or name.endswith("_index")
    type_ = "u32" if whole else "vec3<u32>"
    text = shader(head=SUBGROUPS, inputs=f"@builtin({name}) v: {type_}")
    assert (refusal(wgpu_client.for_wgpu(text)) is not None) == (name in UNKNOWN_BUILTIN_VALUES)
    assert ("builtin-value" in codes(text)) == (name in UNKNOWN_BUILTIN_VALUES)


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("name", [name for name, row in BUILTINS.items() if row.requires == "subgroups"])
def test_subgroup_builtins(name):
    takes = BUILTINS[name].signatures[0]
    value = "i > 3" if takes.startswith("(bool") else "i"
    arguments = "" if takes.startswith("()") else f"{value}, 1u" if takes.startswith("(T, ") else value
    text = shader(f"let v = {name}({arguments});", head=SUBGROUPS)
    assert (refusal(wgpu_client.for_wgpu(text)) is not None) == (name in UNKNOWN_BUILTINS)
    assert ("builtin-function" in codes(text)) == (name in UNKNOWN_BUILTINS)


# ---- what wgpu accepts -------------------------------------------------------------------------------

ACCEPTS = [
    ("mixed-operators", shader("out[i] = i >> 2 & 3;")),
    ("mixed-operators", shader("out[i] = i & 2 | 3;")),
    ("mixed-operators", shader("out[i] = i + 2 >> 3;")),
    ("mixed-operators", shader("if i > 1 && i < 3 || i == 7 { out[i] = 1; }")),
    ("non-uniform", shader("if i < 3 { workgroupBarrier(); }")),
    ("non-uniform", shader("for (var j = 0u; j < i; j++) { workgroupBarrier(); }")),
    ("non-uniform", shader("if i > 3 { return; } workgroupBarrier();")),
    ("non-uniform", shader("if i < 3 { out[i] = subgroupAdd(i); }", head=SUBGROUPS)),
    ("aliased-pointer", shader("var a = 1u; f(&a, &a);", "fn f(p: ptr<function, u32>, q: ptr<function, u32>) "
                               "{ *p = *q; }\n")),
    ("endless-loop", shader("loop { }")),
    ("literal-above-largest", shader("var x = 3.4028235e38f;")),
    ("literal-above-largest", shader("var x = -65519.0h;", head="enable f16;\n")),
]  # fmt: skip


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(("code", "text"), ACCEPTS)
def test_what_wgpu_accepts_is_said_beside_our_error(tmp_path, code, text):
    assert refusal(wgpu_client.for_wgpu(text)) is None
    with pytest.raises(bankshot.WgslError) as caught:
        bankshot.check(text)
    assert caught.value.diagnostics[0].code == code
    (tmp_path / "k.wgsl").write_text(text)
    for options, expected in (((), 0), (("--portability",), 1)):
        result = CliRunner().invoke(main, ["check", str(tmp_path / "k.wgsl"), *options])
        assert (result.exit_code, result.stderr.count("note: naga (wgpu, Firefox) accepts")) == (2, expected)


def test_every_acceptance_has_its_proof():
    assert {code for code, _ in ACCEPTS} == set(ACCEPTED)


# ---- what a host must ask for ------------------------------------------------------------------------

HUNGRY = [
    ("maxComputeInvocationsPerWorkgroup", {"size": "16, 16, 2"}, {"size": "16, 16"}),
    ("maxComputeWorkgroupSizeX", {"size": "512"}, {"size": "256"}),
    ("maxComputeWorkgroupSizeY", {"size": "1, 512"}, {"size": "1, 256"}),
    ("maxComputeWorkgroupSizeZ", {"size": "1, 1, 128"}, {"size": "1, 1, 64"}),
    ("maxComputeWorkgroupStorageSize", {"before": "var<workgroup> w: array<u32, 4097>;\n", "body": "w[i] = 1;"},
     {"before": "var<workgroup> w: array<u32, 4096>;\n", "body": "w[i] = 1;"}),
    ("maxStorageBuffersPerShaderStage",
     {"before": BUFFERS, "body": "".join(f"out[i] += s{b}[0];" for b in range(1, 9))},
     {"before": BUFFERS, "body": "".join(f"out[i] += s{b}[0];" for b in range(1, 8))}),
    ("maxUniformBuffersPerShaderStage",
     {"before": BUFFERS.replace("storage, read", "uniform").replace("array<u32>", "u32")
      + "".join(f"@group(1) @binding({b}) var<uniform> t{b}: u32;\n" for b in range(5)),
      "body": "".join(f"out[i] += s{b};" for b in range(1, 9)) + "".join(f"out[i] += t{b};" for b in range(5))},
     {"before": BUFFERS.replace("storage, read", "uniform").replace("array<u32>", "u32"),
      "body": "".join(f"out[i] += s{b};" for b in range(1, 9))}),
    ("maxBindGroups", {"before": "@group(4) @binding(0) var<storage, read> g: u32;\n", "body": "out[i] = g;"},
     {"before": "@group(3) @binding(0) var<storage, read> g: u32;\n", "body": "out[i] = g;"}),
]  # fmt: skip


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(("limit", "much", "little"), HUNGRY, ids=[row[0] for row in HUNGRY])
def test_limits(limit, much, little):
    """A device without requested limits rejects what the notes name; wgpu does not count workgroup memory."""
    too_much, enough = (shader(**pieces) for pieces in (much, little))
    refused = refusal(too_much, default_limits=True) is not None
    assert refused == (limit != "maxComputeWorkgroupStorageSize")
    assert refusal(enough, default_limits=True) is None
    notes = [note.message for note in bankshot.portability(bankshot.check(too_much))]
    assert any(f"{limit} of " in note and f"(the default is {DEFAULT_LIMITS[limit]:,})" in note for note in notes)
    assert codes(enough, "info") == []


@pytest.mark.usefixtures("adapter")
def test_features():
    text = shader("out[i] = u32(f16(i));", head="enable f16;\n")
    assert codes(text, "info") == ["feature"]
    assert "f16" in (refusal(text, default_limits=True) or "")
    assert refusal(text) is None
    assert codes(shader(head="enable subgroups;\n"), "info") == ["feature"]
    assert {"f16", "subgroups"} <= set(FEATURES)


def test_an_override_without_a_value_says_nothing_of_limits():
    assert codes(shader(before="override n: u32;\n", size="n"), "info") == []
    assert codes(shader(before="override n: u32 = 512;\n", size="n"), "info") == ["limit", "limit"]


# ---- the command -------------------------------------------------------------------------------------


def test_notes_and_exit_codes(tmp_path):
    file = tmp_path / "k.wgsl"

    def check(text, *options):
        file.write_text(text)
        return CliRunner().invoke(main, ["check", str(file), *options])

    fine, informed, warned = shader(), shader(head="enable f16;\n"), shader(head="enable f16, subgroups;\n")
    assert check(warned).exit_code == 0
    assert [check(text, "--portability").exit_code for text in (fine, informed, warned)] == [0, 0, 1]
    result = check(warned, "--portability")
    assert f"{file}:1:13: warning: wgpu refuses 'enable subgroups'\nenable f16, subgroups;\n" in result.stderr
    assert "hint: leave the line out for wgpu" in result.stderr
    (entry,) = json.loads(check(warned, "--portability", "--json").stdout)["files"]
    assert [(note["code"], note["line"], note["column"]) for note in entry["portability"]] == [
        ("feature", 1, 8),
        ("enable-directive", 1, 13),
        ("feature", 1, 13),
    ]


def test_every_row_has_its_proof():
    proven = {case.code for case in CASES} | {"pointer-argument", "kept-value", "feature", "limit", "language-feature"}
    assert {row.code for row in ROWS} == proven
    assert codes(shader(head="requires pointer_composite_access;\n"), "info") == ["language-feature"]
    assert codes(shader(head="requires subgroup_uniformity;\n"), "info") == []  # wgpu refuses it, which is a warning


def test_a_note_names_included_files(tmp_path):
    (tmp_path / "part.inc").write_text("\nconst c = mix(1f, 2f, 0.5f);\n")
    (tmp_path / "k.wgsl").write_text('#include "part.inc"\n')
    (note,) = bankshot.portability(bankshot.check(tmp_path / "k.wgsl"))
    assert note.span is not None
    assert note.span.place == (str(tmp_path / "part.inc"), 2, 11)
