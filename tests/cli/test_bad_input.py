"""Every kind of bad input through the command line: one clear sentence with its place, exit code 2, no traceback."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from tests.scaling import PARAMS, SHADER, manifest

MANIFEST = manifest(
    PARAMS,
    """
[[sweep]]
N = [8, 40]
cost = "quick"

[expect]
y = { rule = "close", rtol = 1.0, atol = 0.0 }
barriers = 0
""",
)
# Of a command that was refused nothing, of an audit which cases it could not run.
NOT_RUN = (
    r"((.+\n  ERROR    .+\n\n(  could not be run in .+\n\n)?)+"
    r"audit: 0 of (\d) cases clean; \4 could not be run; took .+\n)?"
)
GIVEN = {"x": "ones:f32:40", "y": "zeros:f32:40", "params": "u32:40,0"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.wgsl").write_text(SHADER)
    return tmp_path


def bankshot(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def run(*extra, verb="run", **binds):
    """A verb on the shader with no manifest, its bindings given but for what is changed."""
    given = [part for name, data in (GIVEN | binds).items() for part in ("--bind", f"{name}={data}")]
    return bankshot(verb, "scale.wgsl", *given, *extra)


def refused(result, *messages):
    assert result.exit_code == 2, result.output
    assert re.fullmatch(NOT_RUN, result.stdout), result.stdout
    assert "Traceback" not in result.output
    assert "bug in bankshot" not in result.output
    for message in messages:
        assert message in result.stderr, result.stderr


def test_what_the_tables_change_is_right():
    assert run().exit_code == 0
    Path("scale.toml").write_text(MANIFEST)
    assert bankshot("run", "scale.toml").exit_code == 0


# ---- files that are no shaders -----------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["check", "run", "audit", "diff"])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("random.wgsl", b"\x93NUMPY\x01\x00\xff", "error: random.wgsl is not UTF-8 text (byte 0)"),
        ("null.wgsl", b"fn f() {}\0", "null.wgsl:1:10: error: null character"),
        ("none.wgsl", None, "error: none.wgsl: there is no such file"),
        ("wide.wgsl", "fn f() {}".encode("utf-16"), "error: wide.wgsl is not UTF-8 text (byte 0)"),
    ],
)
def test_files(folder, verb, name, content, message):
    if content is not None:
        (folder / name).write_bytes(content)
    refused(bankshot(verb, name), message)


@pytest.mark.parametrize("content", ["", " \n// nothing\n"])
def test_an_empty_shader_is_valid_and_cannot_be_run(folder, content):
    (folder / "empty.wgsl").write_text(content, encoding="utf-8")
    assert bankshot("check", "empty.wgsl").stdout == "empty.wgsl: ok, no entry point\n"
    for verb in ("run", "audit", "diff"):
        refused(bankshot(verb, "empty.wgsl"), "error: empty.wgsl: the shader has no compute entry point\n")


def test_folders(folder):
    (folder / "sub.wgsl").mkdir()
    refused(bankshot("check", "sub.wgsl"), "error: sub.wgsl: holds no .wgsl file\n")
    refused(bankshot("run", "sub.wgsl"), "error: sub.wgsl: holds no manifest")
    (folder / "broken.toml").mkdir()
    refused(bankshot("run", "broken.toml"), "error: broken.toml: holds no manifest")


@pytest.mark.parametrize(("verb", "file"), [("check", "scale.wgsl"), ("run", "scale.wgsl"), ("run", "scale.toml")])
def test_a_file_that_may_not_be_read(folder, monkeypatch, verb, file):
    def denied(self, *arguments, **options):
        raise PermissionError(13, "Permission denied", str(self))

    (folder / file).touch()
    monkeypatch.setattr(Path, "read_text", denied)
    refused(bankshot(verb, file), file, "Permission denied")


# ---- data and options --------------------------------------------------------------------------------


def npy(array):
    np.save("made.npy", array)
    return Path("made.npy").read_bytes()


WHOLE = np.ones(40, np.float32)
NOT_WHOLE = "error: x.npy: is not a whole .npy file of plain numbers ("


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: npy(WHOLE)[:100], NOT_WHOLE),
        (lambda: npy(WHOLE)[:7], NOT_WHOLE),
        (lambda: npy(WHOLE)[:-1], NOT_WHOLE),
        (lambda: b"", NOT_WHOLE),
        (lambda: b"hello", NOT_WHOLE),
        (lambda: b"PK\x03\x04....", NOT_WHOLE),
        (lambda: npy(np.array([{}], object)), NOT_WHOLE),
        (lambda: npy(WHOLE).replace(b"(40,)", b"(99999999999999,)"), "error: out of memory (Unable to"),
        (lambda: npy(WHOLE.astype(np.float64)), "scale.wgsl:2:42: error: x is float64, and array<f32> holds float32"),
        (lambda: npy(WHOLE.astype(">f4")), "scale.wgsl:2:42: error: x is big-endian"),
        (lambda: npy(np.array(["a"])), "scale.wgsl:2:42: error: x is <U1"),
        (lambda: npy(WHOLE[:0]), "scale.wgsl:2:42: error: x has 0 bytes, and array<f32> needs at least 4"),
    ],
)
def test_array_files(folder, content, message):
    (folder / "x.npy").write_bytes(content())
    refused(run(x="x.npy"), message)


def test_other_array_files(folder):
    refused(run(x="none.npy"), "error: none.npy: there is no such file")
    refused(run(x="."), "error: .: cannot be read: Is a directory")
    np.savez(folder / "two.npz", a=WHOLE, b=WHOLE)
    refused(run(x="two.npz"), "two.npz: holds several arrays")
    (folder / "odd.bin").write_bytes(b"12345")
    refused(run(x="odd.bin"), "x has 5 bytes, which is not a multiple of 4")
    (folder / "whole.bin").write_bytes(WHOLE.tobytes())
    assert run(x="whole.bin").exit_code == 0


@pytest.mark.parametrize(
    ("binds", "message"),
    [
        (
            {"x": "zeros:f32:25000000000"},
            "error: binding x would have 100,000,000,000 bytes, and no binding holds",
        ),
        ({"x": "normal:f32:1" + ",1" * 40}, "error: binding x has 41 sizes, and an array at most 32"),
        ({"x": "normal:f32:1" + "0" * 30}, "bytes, and no binding holds more than 4,294,967,292"),
        ({"x": "normal:f32:0"}, "a number below 1"),
        ({"x": "normal:f64:40"}, "f64 is no type; there are f32, f16, i32, u32"),
        ({"x": "f16:1e40"}, "error: binding x is given 1e+40, which is no float16"),
        ({"params": "u32:40,4294967296"}, "error: binding params is given 4294967296, which is no uint32"),
        ({"params": "u32:40,-1"}, "error: binding params is given -1, which is no uint32"),
        ({"params": "u32:40,x"}, "`40,x` is not a list of u32 numbers"),
        ({"params": "u32:40"}, "scale.wgsl:4:36: error: params has 4 bytes, and Params needs 8"),
        ({"z": "ones:f32:4"}, "error: scale.wgsl: scale uses no binding named z; it uses x, y, params"),
    ],
)
def test_bindings(binds, message):
    refused(run(**binds), message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--grid 0", "error: --grid: `0` holds a number below 1"),
        ("--grid 4,0", "error: --grid: `4,0` holds a number below 1"),
        ("--grid -3", "error: --grid: `-3` holds a number below 1"),
        ("--grid 1e3", "error: --grid: `1e3` is not a list of integers like 12,8,1"),
        ("--grid 1,,2", "is not a list of integers"),
        ("--grid 1,1,1,1", "has 4 sizes, a grid has at most three"),
        ("--grid 65536", "workgroups along x: 65,536 is over maxComputeWorkgroupsPerDimension, which is 65,535"),
        ("--grid 1,1,70000", "workgroups along z: 70,000 is over"),
        ("--grid 65535,65535,65535", "the grid has 9,006,786,944,172,000 invocations, and the simulator runs at most"),
        (f"--grid 1{'0' * 40}", "is over maxComputeWorkgroupsPerDimension"),
        ("--set N=8", "error: scale.wgsl: --set gives sizes to a manifest's dims, and scale.wgsl has no manifest"),
        ("--set N", "error: --set N: write NAME=VALUE"),
        ("--set N=x", "error: --set: `x` is not a list of integers"),
        ("--set N=1,2", "error: --set: `1,2` must be one integer"),
        ("--bind x=ones:f32:40", "error: --bind: x is given 2 times"),
        ("--bind x", "error: --bind x: write NAME=FILE.npy, NAME=u32:1,2,3 or NAME=normal:f32:512,768"),
        ("--override WG=8", "error: the module has no override 'WG'"),
        ("--override WG=x", "error: --override: `x` is neither a number nor true or false"),
        ("--override WG=1 --override WG=1", "error: --override: WG is given 2 times"),
        ("--entry nope", "error: scale.wgsl: no compute entry point is named nope; there are scale"),
        ("--device voodoo", "error: --device: there is no device 'voodoo'; the devices are nvidia"),
        ("--probes lanes,voodoo", "error: probes must be one of all, none, counters, lanes"),
        ("--save z=z.npy", "error: --save: no output is named z; the outputs are y"),
        ("--save x=x.npy", "error: --save: no output is named x; the outputs are y"),
        ("--save y=y.txt", "error: --save y: y.txt must end in .npy"),
        ("--save y=none/y.npy", "error: --save y=none/y.npy: cannot be written: there is no folder none"),
        ("--nonsense", "No such option"),
    ],
)
def test_options(options, message):
    refused(run(*options.split()), message)


# ---- manifests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('source = "scale.wgsl"', "source = 3", "scale.toml:2: `source` must be a string, not 3"),
        ('source = "scale.wgsl"', 'source = "."', "scale.toml:2: source . does not exist"),
        ('source = "scale.wgsl"', "", "scale.toml:1: [kernel] lacks `source`"),
        ("dims = { N = 40 }", "dims = { N = -1 }", "scale.toml:3: `N` must be a non-negative integer, not -1"),
        ("dims = { N = 40 }", "dims = { N = true }", "scale.toml:3: `N` must be a non-negative integer, not True"),
        ("dims = { N = 40 }", 'dims = { "a b" = 1 }', "scale.toml:3: `a b` cannot be the name of a dimension"),
        ("dims = { N = 40 }", "dims = { ceil = 1 }", "scale.toml:3: `ceil` cannot be the name of a dimension"),
        ("dims = { N = 40 }", "dims = 3", "scale.toml:3: `dims` must be a table, not 3"),
        ('["ceil(N / 32)"]', "[]", "scale.toml:4: `dispatch` must be one to three numbers or expressions, not 0"),
        ('["ceil(N / 32)"]', "[true]", "scale.toml:4: `dispatch` holds True, which is not an integer or a string"),
        ('["ceil(N / 32)"]', "[0]", "scale.toml: at N=8: the dispatch is 0 workgroups, and each size must be at"),
        ('["ceil(N / 32)"]', '["N", "-N"]', "scale.toml: at N=8: the dispatch is 8 x -8 workgroups"),
        ('["ceil(N / 32)"]', '["N / 0"]', "scale.toml: at N=8: `N / 0` divides by zero"),
        ('["ceil(N / 32)"]', '["N / 3"]', "scale.toml: at N=8: `N / 3` is 8/3, not an integer"),
        ('["ceil(N / 32)"]', '["max(N)"]', "in `max(N)` a function has the wrong number of operands"),
        ('["ceil(N / 32)"]', '["N ** 9999999"]', "only integers, dimensions, + - * / // %"),
        ('["ceil(N / 32)"]', f'["{"(" * 999}N{")" * 999}"]', "is not arithmetic"),
        ('["ceil(N / 32)"]', '["a\\u0000"]', "`dispatch` holds control characters"),
        ('["ceil(N / 32)"]', "[70000]", "workgroups along x: 70,000 is over"),
        ("[kernel]", "[kernel]\noverrides = { WG = 8 }", "error: the module has no override 'WG'"),
        ("[kernel]", "[kernel]\noverrides = { WG = [1] }", "scale.toml:2: `overrides` holds [1], which is not"),
        ("[kernel]", "[kernel]\ndefines = { A = [1] }", "scale.toml:2: `defines` holds [1], which is not"),
        ("[kernel]", '[kernel]\ndefines = { "a b" = 1 }', "error: 'a b' is not a name that can be defined"),
        ("[kernel]", "[kernel]\ninclude_dirs = [3]", "scale.toml:2: `include_dirs` holds 3, which is not a string"),
        ("[kernel]", '[kernel]\ninclude_dirs = ["no"]', "scale.toml:2: `include_dirs`: there is no folder no"),
        ("[kernel]", "[kernel]\npreprocess = []", "scale.toml:2: `preprocess` must be a string, not []"),
        ("[kernel]", '[kernel]\nentry = "nope"', "error: scale.wgsl: no compute entry point is named nope"),
        ("[kernel]", '[kernel]\nreference = "nope"', "error: scale.toml: no reference is named nope; there are"),
        ("[kernel]", "x = 3\n[kernel]", "scale.toml:1: the file has an unknown key `x`"),
        ("[kernel]", "[kernel", "scale.toml:1: expected"),
        ('"normal"', '"normal"\nseed = -1', "scale.toml:6: `seed` must be 0 or more, not -1"),
        ('"normal"', '"normal"\nvar = "z"', "error: scale.toml: [bind.x]: the shader has no binding z; it has x, y"),
        ('init = "normal"', 'file = "no.npy"', "scale.toml: at N=8: no.npy: there is no such file"),
        ('init = "normal"', 'file = "."', "scale.toml: at N=8: .: cannot be read: Is a directory"),
        ('shape = ["N"]\ninit = "normal"', "values = []", "x has 0 bytes, and array<f32> needs at least 4"),
        ('shape = ["N"]\ninit = "normal"', "values = [[1]]", "scale.toml:8: `values` holds [1], which is not"),
        ('shape = ["N"]\ninit = "normal"', "values = [1e40]", "binding x is given 1e+40, which is no float32"),
        ('shape = ["N"]\ninit = "normal"', 'shape = ["N - 50"]\ninit = "ones"', "binding x would have the shape [-42]"),
        ('shape = ["N"]\ninit = "normal"', 'shape = [1.5]\ninit = "ones"', "scale.toml:8: `shape` holds 1.5, which"),
        ('n = "N"', "n = 1.5", "scale.toml: at N=8: binding params.n is given 1.5, which is no uint32"),
        ('n = "N"', "n = -1", "scale.toml: at N=8: binding params.n is given -1, which is no uint32"),
        ('n = "N"', "n = [true]", "scale.toml:17: `struct` holds True in a list, which is no number"),
        ('n = "N"', "m = 3", "scale.toml: at N=8: binding params has no member m; it has n, factor"),
        ("N = [8, 40]", "N = []", "scale.toml:19: `N` is an empty list, so that there is nothing to run"),
        ("N = [8, 40]", "N = [-1]", "scale.toml:20: `N` must be a non-negative integer, not -1"),
        ("N = [8, 40]", "N = [0]", "scale.toml: at N=0: the dispatch is 0 workgroups, and each size must be at least"),
        ("rtol = 1.0", "rtol = -1", "scale.toml:24: `y`: rtol must be 0 or more, not -1"),
        ("rtol = 1.0", "rtol = nan", "scale.toml:24: `y`: rtol must be 0 or more, not nan"),
        ("rtol = 1.0", 'rtol = "x"', "scale.toml:24: `rtol` must be an integer or a number, not 'x'"),
        ("rtol = 1.0", "max = 1", "scale.toml:24: [expect.y] has an unknown key `max`"),
        ("y = { rule", "z = { rule", "scale.toml:24: `z` is no binding of this manifest; there are x, y, params"),
        ("y = { rule", "y = { roule", "scale.toml:24: [expect.y] lacks `rule`; is `roule` meant to be it?"),
        ("barriers = 0", 'barriers = "N / 0"', "error: scale.toml: at N=8: `N / 0` divides by zero"),
        ("barriers = 0", "barriers = true", "scale.toml:25: `barriers` must be an integer or a string, not True"),
        ("barriers = 0", "berriers = 0", "error: scale.toml: [expect] names berriers, which is no output and no"),
        ("barriers = 0", "allow = [3]", "scale.toml:25: `allow` holds 3, which is not a string"),
    ],
)
def test_manifests(folder, old, new, message):
    assert old in MANIFEST
    (folder / "scale.toml").write_text(MANIFEST.replace(old, new, 1))
    refused(bankshot("audit", "scale.toml", "--no-gpu"), message)


def test_a_rule_for_what_the_reference_does_not_give(folder, monkeypatch):
    from bankshot.oracle.references import Expected, reference_registry

    other = {"z": Expected(np.zeros(40))}
    monkeypatch.setitem(reference_registry._references, "none", lambda arrays, dims: other)
    (folder / "scale.toml").write_text(MANIFEST.replace("[kernel]", '[kernel]\nreference = "none"'))
    refused(bankshot("audit", "scale.toml", "--no-gpu"), "error: scale.toml: [expect] has a rule for y, and reference")


def test_dims_of_the_command_line(folder):
    (folder / "scale.toml").write_text(MANIFEST)
    refused(bankshot("run", "scale.toml", "--set", "Q=3"), "scale.toml: no dimension is named Q; there are N")
    refused(bankshot("run", "scale.toml", "--set", "N=3", "--set", "N=4"), "--set: N is given 2 times")
    refused(
        bankshot("run", "scale.toml", "--bind", "x=ones:f32:3"), "float32[3] does not fit the manifest's float32[40]"
    )


# ---- nothing that was written is lost ----------------------------------------------------------------


def test_one_bad_file_does_not_hide_the_others(folder):
    result = bankshot("check", "scale.wgsl", "none.wgsl", "scale.wgsl")
    assert (result.exit_code, result.stdout.count("scale.wgsl: ok")) == (2, 2)
    assert result.stderr == "error: none.wgsl: there is no such file\n"


def test_what_was_found_before_an_error_is_reported(folder):
    text = MANIFEST.replace("N = [8, 40]", "N = [8, 41]").replace('"ceil(N / 32)"', '"33 / (41 - N)"')
    (folder / "scale.toml").write_text(text)
    result = bankshot("audit", "scale.toml", "--no-gpu", "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["ok"], len(report["cases"])) == (2, False, 2)
    assert report["error"] == "scale.toml: at N=41: `33 / (41 - N)` divides by zero"
    assert [case["outcome"] for case in report["cases"]] == ["unchecked", "error"]
    assert report["cases"][1]["error"] == report["error"]
    result = bankshot("audit", "scale.toml", "--no-gpu")
    assert (result.exit_code, "scale  N=8" in result.stdout) == (2, True)


def test_a_save_that_fails_leaves_the_file_that_was_there(folder, monkeypatch):
    (folder / "y.npy").write_bytes(b"before")

    def full(file, array):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    refused(run("--save", "y=y.npy"), "error: --save y=y.npy: cannot be written: No space left on device")
    assert (folder / "y.npy").read_bytes() == b"before"
    assert [path.name for path in folder.iterdir() if path.suffix == ".new"] == []


def test_one_file_is_not_written_by_several_kernels(folder):
    for name in ("a", "b"):
        (folder / f"{name}.toml").write_text(MANIFEST)
    refused(
        bankshot("run", ".", "--save", "y=y.npy"), "--save: several kernels would write to the same file; choose one"
    )


def test_a_machine_without_memory(monkeypatch):
    def none(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("bankshot.oracle.cli.simulated_run.simulate", none)
    refused(run(), "error: out of memory (none is left)")
