"""User-defined references: functions in a Python file beside the manifest."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import UsageError
from bankshot.oracle.references import Expected, find, reference_process
from bankshot.oracle.references.user_reference import of_file
from tests.scaling import manifest

SHADER = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32)
fn twice(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&x) { y[id.x] = 2 * x[id.x]; }
}
"""
REFERENCES = """\
import numpy as np
from bankshot.oracle.references import Expected

def twice(arrays, dims):
    return {"y": 2 * arrays["x"].astype(np.float64)}

def thrice(arrays, dims):
    return {"y": 3 * arrays["x"]}

def bounded(arrays, dims):
    return {"y": Expected(2 * arrays["x"].astype(np.float64), np.full(dims["N"], 1e-6))}

def short(arrays, dims):
    return {"y": np.zeros(7)}

def raising(arrays, dims):
    return {"y": arrays["z"]}

def alone(arrays, dims):
    return arrays["x"]

def nothing(arrays, dims):
    return {}

def words(arrays, dims):
    return {"y": ["one", "two"]}

def ragged(arrays, dims):
    return {"y": [[1, 2], [3]]}

def imaginary(arrays, dims):
    return {"y": 1j * arrays["x"]}

def leaving(arrays, dims):
    raise SystemExit(3)

def takes_one(arrays):
    return arrays

def of_an_input(arrays, dims):
    return {"x": arrays["x"]}

def two_sizes(arrays, dims):
    return {"y": Expected(2 * arrays["x"], np.zeros(3))}

def deeper(arrays, dims):
    return {"y": np.reshape(arrays["x"], (7, 9))}

def in_rows(arrays, dims):
    return {"y": np.reshape(2.0 * arrays["x"], (5, 8))}

def of_its_size(arrays, dims):
    x = arrays["x"]
    return {"y": 3.0 * (x ** 2 if dims["N"] == 40 and x.all() else x[:7])}

def listed(arrays, dims):
    return {"y": (2.0 * arrays["x"]).tolist()}

def unnamed(arrays, dims):
    raise KeyError()

def other_key(arrays, dims):
    return {"x": 1}["N"]

def two_words(arrays, dims):
    raise KeyError("z", "x")

def _hidden(arrays, dims):
    return {}

def in_place(arrays, dims):
    y = arrays["x"]
    y *= 2
    return {"y": y}
"""


@pytest.fixture
def audit(tmp_path):
    def run(reference, gpu=False):
        (tmp_path / "twice.wgsl").write_text(SHADER)
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "mine" / "refs.py").write_text(REFERENCES)
        (tmp_path / "mine" / "broken.py").write_text("def twice(:\n")
        (tmp_path / "twice.toml").write_text(manifest(source="twice.wgsl", kernel=f'reference = "{reference}"\n'))
        return CliRunner().invoke(main, ["audit", str(tmp_path / "twice.toml"), *(["--no-gpu"] * (not gpu)), "--json"])

    return run


@pytest.mark.parametrize(
    ("function", "rule"),
    [("twice", "derived"), ("bounded", "bound"), ("listed", "derived")],
)
def test_a_function_beside_the_manifest_is_a_reference(audit, function, rule):
    done = audit(f"mine/refs.py:{function}")
    (case,) = json.loads(done.stdout)["cases"]
    (output,) = case["outputs"]
    assert (done.exit_code, output["rule"]["name"], output["ok"]) == (0, rule, True)


def test_it_is_compared_with_the_output(audit):
    done = audit("mine/refs.py:thrice")
    assert (done.exit_code, json.loads(done.stdout)["cases"][0]["outputs"][0]["ok"]) == (1, False)


def test_a_wrong_output_is_reported_where_the_reference_takes_no_other_data(audit):
    """Diagnosis calls it with other data and sizes too, which it need not accept."""
    done = audit("mine/refs.py:of_its_size")
    (output,) = json.loads(done.stdout)["cases"][0]["outputs"]
    assert (done.exit_code, output["ok"]) == (1, False)
    (place,) = output["worst"][0]["index"]  # y is a list of 40, 32 of which workgroup 0 writes
    assert output["worst"][0]["owner"] == f"workgroup ({place // 32}, 0, 0), lane {place % 32}, line 5"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("mine/none.py:twice", "mine/none.py: there is no such file"),
        ("mine/refs:twice", "a reference of your own lies in a Python file, `file.py:function`"),
        ("mine/refs.py:half", "there is no function half; there are Expected, twice, thrice, bounded"),
        ("mine/refs.py:raising", "mine/refs.py:17: raising fails: KeyError: 'z'; the arrays are x, y, the dims N"),
        ("mine/refs.py:nothing", "mine/refs.py:22: nothing returns no output"),
        ("mine/refs.py:in_rows", "in_rows gives an array of [5, 8] for y, which is [40]"),
        ("mine/refs.py:words", "words gives y of <U3, instead of an array of real numbers"),
        ("mine/refs.py:ragged", "ragged gives y as list, with rows of several lengths or what is no number"),
        ("mine/refs.py:imaginary", "imaginary gives y of complex64, instead of an array of real numbers"),
        ("mine/refs.py:leaving", "mine/refs.py:35: leaving fails: SystemExit: 3"),
        ("mine/refs.py:takes_one", "mine/refs.py:37: takes_one fails: TypeError: takes_one() takes 1 positional"),
        ("mine/refs.py:of_an_input", "gives x, which the kernel does not write"),
        ("mine/refs.py:two_sizes", "two_sizes gives y as an array of (40,), and its bound as one of (3,)"),
        ("mine/refs.py:deeper", "mine/refs.py:47: deeper fails: ValueError: cannot reshape array of size 40"),
        ("mine/refs.py:alone", "alone must return a dict of arrays by output, not ndarray"),
        ("mine/refs.py:short", "gives an array of [7] for y, which is [40]"),
        ("mine/refs.py:unnamed", "mine/refs.py:60: unnamed fails: KeyError: \n"),
        ("mine/refs.py:other_key", "mine/refs.py:63: other_key fails: KeyError: 'N'\n"),  # N is a dim
        ("mine/refs.py:two_words", "two_words fails: KeyError: ('z', 'x'); the arrays are x, y, the dims N"),
        ("mine/broken.py:twice", "mine/broken.py:1: cannot be run: SyntaxError"),
        ("twice", "no reference is named twice; there are dequant_q4_k, "),
    ],
)
def test_an_error_in_it_is_explained_in_a_sentence(audit, reference, message):
    done = audit(reference)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.usefixtures("adapter")
def test_it_may_work_in_place(audit):
    done = audit("mine/refs.py:in_place", gpu=True)
    (case,) = json.loads(done.stdout)["cases"]
    assert (done.exit_code, [output["ok"] for output in case["outputs"]]) == (0, [True, True])


def test_the_line_that_fails_is_named_wherever_the_audit_is_run_from(audit, tmp_path, monkeypatch):
    audit("mine/refs.py:raising")
    monkeypatch.chdir(tmp_path / "mine")
    result = CliRunner().invoke(main, ["audit", "../twice.toml", "--no-gpu"])
    line = 1 + REFERENCES[: REFERENCES.index('arrays["z"]')].count("\n")
    assert result.exit_code == 2
    assert f"refs.py:{line}: raising fails: KeyError: 'z'" in result.stderr


def test_a_file_saved_twice_in_a_second_is_read_again(tmp_path, monkeypatch):
    """Both versions have one size, so that Python's bytecode cache would take them for equal."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "mine.py"
    for factor in (2, 3):
        file.write_text(f"def scale(arrays, dims):\n    return {{'y': [{factor}.0]}}\n")
        os.utime(file, (1e9, 1e9))
        assert of_file(file, "scale")({}, {})["y"].value.tolist() == [factor]
    assert list(tmp_path.iterdir()) == [file]


# ---- the process that runs references ----------------------------------------------------------------

WILD = """\
import os, sys, time
import numpy as np
import beside

def good(arrays, dims):
    print("seen on stderr", file=sys.stderr)
    return {"y": beside.TWO * arrays["x"]}

def exits(arrays, dims):
    os._exit(0)

def crashes(arrays, dims):
    os.kill(os.getpid(), 11)

def prints(arrays, dims):
    print("::error::pwned\\x1b[2J")
    return {"y": 2 * arrays["x"]}

def writes(arrays, dims):
    os.write(1, b"{}")
    return {"y": 2 * arrays["x"]}

def reads(arrays, dims):
    sys.stdin.read()
    return {"y": 2 * arrays["x"]}

def interrupts(arrays, dims):
    raise KeyboardInterrupt

def hangs(arrays, dims):
    while True:
        pass

def closes(arrays, dims):
    os.closerange(3, 99)
    time.sleep(1e6)

def simulates(arrays, dims):
    import bankshot
    kernel = "@group(0) @binding(0) var<storage, read_write> y: array<u32>; @compute @workgroup_size(1) fn f() {}"
    return bankshot.simulate(kernel, grid=1, bindings={"y": np.zeros(3, np.uint32)}).outputs

def masks(arrays, dims):
    return {"y": np.ma.array(2 * arrays["x"], mask=[True, False, True])}
"""


@pytest.fixture
def wild(tmp_path, monkeypatch):
    """Call a reference that does what it should not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wild.py").write_text(WILD)
    (tmp_path / "beside.py").write_text("TWO = 2\n")

    def call(name):
        return find(f"wild.py:{name}", Path())({"x": np.arange(3)}, {"N": 3})["y"].value.tolist()

    return call


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("exits", "wild.py: exits: the process that ran it exited with code 0"),
        ("crashes", "wild.py: crashes: the process that ran it died of SIGSEGV"),
        ("prints", r"wild.py: prints prints to stdout, .*; use sys.stderr: ::error::pwned\\x1b\[2J$"),
        ("writes", "wild.py: writes prints to stdout, which belongs to the report; use sys.stderr: {}"),
        ("interrupts", "wild.py:2[0-9]+: interrupts fails: KeyboardInterrupt"),
        ("hangs", "wild.py: hangs: the process that ran it did not answer for 2 s and was ended; --limit"),
        ("closes", "wild.py: closes: the process that ran it (exited|died|did)"),
        ("simulates", "simulates fails: ImportError: a reference cannot run the simulator, which would be"),
        ("masks", "masks gives y as a masked array; set the bound to infinity where any value is correct"),
    ],
)
def test_what_a_reference_does_to_its_process_is_an_error_of_its_case(wild, monkeypatch, name, message, capfd):
    assert wild("good") == [0, 2, 4]
    if name in ("hangs", "closes"):
        monkeypatch.setenv("BANKSHOT_LIMIT", "2")
    with pytest.raises(UsageError, match=message):
        wild(name)
    assert wild("good") == [0, 2, 4]
    assert capfd.readouterr().out == ""


def test_a_reference_may_print_to_stderr(wild, monkeypatch, capfd):
    monkeypatch.setattr(reference_process, "_process", None)
    assert wild("good") == [0, 2, 4]
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "seen on stderr\n")


def test_prints_are_noticed_before_python_writes_its_buffer(wild, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    monkeypatch.setattr(reference_process, "_process", None)
    for _ in range(3):  # each is quoted alone
        with pytest.raises(UsageError, match=r"prints prints to stdout, .*; use sys.stderr: ::error::pwned\\x1b\[2J$"):
            wild("prints")
    assert wild("good") == [0, 2, 4]


def test_a_reference_has_no_standard_input(wild):
    assert wild("reads") == [0, 2, 4]


def test_one_process_serves_all_references(wild):
    wild("good")
    process = reference_process.begin()
    wild("reads")
    assert reference_process.begin() is process


def test_modules_beside_a_reference_are_those_of_its_folder(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "near.py").write_text(f"NAME = {len(name) + (name == 'two')}\n")
        (tmp_path / name / "json.py").write_text("raise SystemExit('not this one')\n")
        (tmp_path / name / "own.py").write_text(
            "import json, near\ndef f(arrays, dims):\n    import near as again\n    return {'y': [again.NAME]}\n"
        )
    for name, expected in (("one", 3), ("two", 4), ("one", 3)):
        assert find("own.py:f", tmp_path / name)({}, {})["y"].value.tolist() == [expected]


def test_an_audit_goes_on_after_a_reference_that_exits(tmp_path):
    (tmp_path / "twice.wgsl").write_text(SHADER)
    (tmp_path / "wild.py").write_text(WILD)
    (tmp_path / "beside.py").write_text("TWO = 2\n")
    for name in ("exits", "good", "prints"):
        (tmp_path / f"{name}.toml").write_text(manifest(source="twice.wgsl", kernel=f'reference = "wild.py:{name}"\n'))
    done = CliRunner().invoke(main, ["audit", str(tmp_path), "--no-gpu", "--json"])
    document = json.loads(done.stdout)
    assert (done.exit_code, document["ok"]) == (2, False)
    assert [case["ok"] for case in document["cases"]] == [False, True, False]


@pytest.mark.parametrize(("returned", "bound"), [((64,), (64, 1)), ((64, 1), (64,)), ((1, 8, 8), (8, 1, 8))])
def test_axes_of_length_1_may_be_added_or_left_out(returned, bound):
    values = np.arange(64.0)
    expected = Expected(values.reshape(returned), 2 * values.reshape(returned)).shaped(bound)
    assert (expected.value.shape, expected.bound.shape) == (bound, bound)
    assert expected.value.ravel().tolist() == values.tolist()
    assert expected.bound.ravel().tolist() == (2 * values).tolist()
    assert Expected(values).shaped((8, 8)) is None


def test_an_error_names_its_file_once(tmp_path):
    (tmp_path / "refs.py").write_text("def f(arrays, dims):\n    raise ValueError('no')\nF = len\ndef _g(): pass\n")
    with pytest.raises(UsageError) as caught:
        find("refs.py:f", tmp_path)({}, {})
    assert str(caught.value) == f"{tmp_path / 'refs.py'}:2: f fails: ValueError: no"
    with pytest.raises(UsageError) as caught:
        find("refs.py:h", tmp_path)
    assert str(caught.value) == f"{tmp_path / 'refs.py'}: there is no function h; there are f, F"
    (tmp_path / "none.py").write_text("")
    with pytest.raises(UsageError, match=r"none\.py: there is no function h; there are none$"):
        find("none.py:h", tmp_path)


def test_a_reference_is_loaded_when_it_is_found(tmp_path):
    """A wrong file is an error before anything runs."""
    (tmp_path / "refs.py").write_text("raise SystemExit('at once')\n")
    with pytest.raises(UsageError, match=r"refs\.py:1: cannot be run: SystemExit: at once$"):
        find("refs.py:f", tmp_path)


def test_a_module_is_imported_once_for_all_references_of_a_folder(tmp_path):
    (tmp_path / "counted.py").write_text("import os\nTIMES = [os.getpid()]\n")
    lines = (
        "import counted\ndef f(arrays, dims):\n    counted.TIMES.append(1)\n    return {'y': [len(counted.TIMES)]}\n"
    )
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(lines)
    assert [find(f"{name}.py:f", tmp_path)({}, {})["y"].value.tolist() for name in ("one", "two")] == [[2], [3]]
