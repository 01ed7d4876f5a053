"""-D, -I and --preprocess of every verb that reads shaders, and the places of errors in included files."""

import json
import sys

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main

KERNEL = """\
#include "add.inc"
#ifndef STEP
#error STEP is missing
#endif
@group(0) @binding(0) var<storage, read_write> y: array<f32, 4>;
@compute @workgroup_size(4)
fn scale(@builtin(local_invocation_index) lane: u32) {
    y[lane] = add(y[lane], STEP);
}
"""
MANIFEST = """\
[kernel]
source = "scale.wgsl"
dispatch = [1]
include_dirs = ["lib"]
defines = { STEP = 2.5 }
[bind.y]
dtype = "f32"
shape = [4]
init = "arange"
"""
VERBS = ("check", "run", "audit", "diff")


def bankshot(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "lib" / "add.inc").write_text("fn add(a: f32, b: f32) -> f32 { return a + b; }\n")
    (tmp_path / "scale.wgsl").write_text(KERNEL)
    return tmp_path


def first(result):
    """The first element of the only output of a run."""
    return json.loads(result.stdout)["cases"][0]["outputs"]["y"]["first"][0]


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_them(folder, verb):
    assert bankshot(verb, "scale.wgsl", "-I", "lib", "-DSTEP=1.5").exit_code == 0
    for given, message in {
        ("-I", "lib"): "scale.wgsl:3:1: error: STEP is missing\n#error STEP is missing\n",
        ("-DSTEP=1",): "scale.wgsl:1:1: error: there is no file 'add.inc'\n",
        ("-I", "lib", "-DSTEP=1u"): "scale.wgsl:8:28: error: ",
        ("-I", "lib", "-D", "STEP="): "scale.wgsl:8:",
        ("-I", "lib", "-D", "9=8"): "error: '9' is not a name that can be defined\n",
        ("--preprocess", "no-such-program"): "error: the preprocessor 'no-such-program' cannot be started: ",
    }.items():
        result = bankshot(verb, "scale.wgsl", *given)
        assert result.exit_code == 2, result.output
        assert result.stderr.startswith(message), result.stderr
        assert "Traceback" not in result.output


def test_what_the_command_line_says_comes_before_the_manifest(folder):
    (folder / "scale.toml").write_text(MANIFEST)
    assert first(bankshot("run", "scale.toml", "--json")) == 2.5
    assert first(bankshot("run", "scale.toml", "--json", "-D", "STEP=0.5")) == 0.5
    assert first(bankshot("run", "scale.toml", "--json", "-D", "STEP")) == 1
    (folder / "other" / "add.inc").write_text("fn add(a: f32, b: f32) -> f32 { return a - b; }\n")
    assert first(bankshot("run", "scale.toml", "--json", "-I", "other")) == -2.5


def test_a_manifest_can_name_a_command(folder):
    swap = "import sys; print(sys.stdin.read().replace('a + b', 'a * b').replace('STEP);', 'STEP) + 7;'), end='')"
    command = f"{sys.executable} -c '{swap.replace(chr(39), chr(34))}'"
    (folder / "scale.toml").write_text(MANIFEST.replace("defines", f"preprocess = '''{command}'''\ndefines"))
    assert first(bankshot("run", "scale.toml", "--json")) == 9.5
    assert first(bankshot("run", "scale.toml", "--json", "--preprocess", "cat")) == 2.5


def test_an_error_in_a_file_that_an_included_file_includes(folder):
    (folder / "lib" / "add.inc").write_text('const one = 1;\n\n#include "sub.inc"\n')
    (folder / "lib" / "sub.inc").write_text("\nfn add(a: f32, b: f32) -> f32 {\n    return a + 1u;\n}\n")
    for verb in ("check", "run"):
        result = bankshot(verb, "scale.wgsl", "-I", "lib", "-D", "STEP=1.0")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(
            "lib/sub.inc:3:14: error: operator '+' does not take f32 and u32\n    return a + 1u;\n             ^\n"
        )


def test_counters_stand_beside_the_lines_of_their_files(folder):
    """Of an included file, of the shader after it, and of a file that only a line marker names."""
    (folder / "lib" / "add.inc").write_text(
        'fn add(a: f32, b: f32) -> f32 {\n#line 90 "add.tmpl"\n    return a + b;\n}\n'
    )
    result = bankshot("audit", "scale.wgsl", "-I", "lib", "-D", "STEP=1.0", "--no-gpu", "--listing", "counted")
    assert result.exit_code == 0, result.output
    rows = {" ".join(line.split()) for line in result.stdout.splitlines()}
    assert any(row.startswith("90 1 ") and row.endswith("return a + b;") for row in rows), result.stdout
    assert any(row.startswith("8 1 ") and row.endswith("y[lane] = add(y[lane], STEP);") for row in rows)
