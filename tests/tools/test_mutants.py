"""The mutants of `tools.mutants`: each operator changes what it says, and nothing that no test can see."""

import ast
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools.mutants import choice, reach
from tools.mutants.__main__ import alive
from tools.mutants.areas import AREAS
from tools.mutants.code import Code, Edit
from tools.mutants.named import named
from tools.mutants.operators import OPERATORS
from tools.mutants.reach import Reach, measured
from tools.mutants.report import EQUIVALENT, equivalents, share, states, table, write
from tools.mutants.trial import ALIVE, BROKEN, KILLED, TIMEOUT, Result, Trials

ROOT = Path(__file__).parents[2]

# Operator -> a text, and what it may become.
MADE = {
    "compare": ("x = a < b <= c\n", {"x = a <= b <= c\n", "x = a < b < c\n"}),
    "arithmetic": ("x = (a + b) * c\nx -= 1\n", {"x = (a - b) * c\nx -= 1\n", "x = (a + b) + c\nx -= 1\n",
                                                 "x = (a + b) * c\nx += 1\n"}),
    "swap": ("x = a - (b + c)\n", {"x = ((b + c)) - (a)\n"}),
    "mask": ("x = [a & 3 for a in b if a]\n", {"x = [a  for a in b if a]\n", "x = [ 3 for a in b if a]\n",
                                               "x = [a & 3 for a in b if True]\n"}),
    "connective": ("x = a and b or c\n", {"x = a or b or c\n", "x = a and b and c\n"}),
    "operand": ("x = a and b\n", {"x = True and b\n", "x = a and True\n"}),
    "negation": ("x = not a\nif a:\n    f()\n", {"x = a\nif a:\n    f()\n", "x = not a\nif not (a):\n    f()\n"}),
    "constant": ("x = 3, True\n", {"x = 4, True\n", "x = 2, True\n", "x = 3, False\n"}),
    "row": ("x = {a: b, c: d, e: f}\n", {"x = {c: d, e: f}\n", "x = {a: b, e: f}\n", "x = {a: b, c: d}\n"}),
    "statement": ("f()\nx[0] = a\nx += a\n", {"pass\nx[0] = a\nx += a\n", "f()\npass\nx += a\n",
                                              "f()\nx[0] = a\npass\n"}),
    "guard": ("while a:\n    if b:\n        continue\n", {"while a:\n    if False:\n        continue\n"}),
    "early": ("for a in b:\n    f()\n    g()\n", {"for a in b:\n    f()\n    g(); break\n"}),
    "name": ("x = min(a, np.maximum(b, c))\n", {"x = max(a, np.maximum(b, c))\n", "x = min(a, np.minimum(b, c))\n"}),
    "choice": ("x = a if b else c\n", {"x = a if True else c\n", "x = a if False else c\n"}),
}  # fmt: skip
# What no test can see: words, types, and what is as fast.
LEFT_ALONE = '''\
"""A module, 1 < 2."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    X = 1 + 2


def f(a: "1 + 2" = None) -> int | None:
    """A function, 1 + 2."""
    assert a < 2
    print(1 + 2, f"{1 + 2}")
    y = zip(a, strict=True)
    K = Callable[[int, str], None]

    @overload
    def g(*, eq: bool = True): ...

    return None


class A:
    """A class."""

    x: int | None

    def __repr__(self):
        return 1 + 2
'''


def made(path, text):
    path.write_text(text)
    return Code(path, path.name)


def test_every_operator_has_an_example():
    assert set(MADE) == {row.name for row in OPERATORS}


@pytest.mark.parametrize("name", MADE)
def test_an_operator_makes_these_mutants(name, tmp_path):
    text, wanted = MADE[name]
    code = made(tmp_path / "m.py", text)
    assert {code.changed(edit).decode() for edit in edits(name, code)} == wanted


def test_words_and_types_are_left_alone(tmp_path, monkeypatch):
    made(tmp_path / "m.py", LEFT_ALONE)
    monkeypatch.setattr(choice, "ROOT", tmp_path)
    assert choice.candidates("m.py") == []


def edits(name, code):
    (rule,) = (row.rule for row in OPERATORS if row.name == name)
    return [edit for node in ast.walk(code.tree) for edit in rule(node, code)]


def test_a_mutant_that_is_the_same_program_or_none_is_left_out(tmp_path):
    code = made(tmp_path / "m.py", "x = 1\n")
    place, _ = edits("constant", code)
    assert code.mutant("constant", place).after == "x = 2"
    assert code.mutant("constant", type(place)(place.start, place.end, "(1)")) is None
    assert code.mutant("constant", type(place)(place.start, place.end, ")")) is None


def test_a_seed_chooses_the_same_mutants_in_every_area():
    areas = [area for area in AREAS if area.name in ("comparison", "ir", "workers")]
    first, again, other = (choice.choose(30, seed, areas) for seed in (1, 1, 2))
    assert first == again != other
    for area in areas:
        assert sum(mutant.file in area.files(ROOT) for mutant in first) >= 6


def test_more_mutants_include_those_of_a_smaller_count():
    areas = [area for area in AREAS if area.name == "comparison"]
    few, many = ({each.key for each in choice.choose(count, 1, areas)} for count in (8, 30))
    assert few < many


def test_a_change_of_the_code_leaves_most_mutants_as_they_were(tmp_path):
    lines = [f"    if a > {number} and b < {number}: c += {number}" for number in range(2, 90)]

    def chosen(name, body):
        code = made(tmp_path / name, "\n".join(["def f(a, b, c):", *body]))
        pool = [choice.Candidate(code, row.name, edit) for row in OPERATORS for edit in edits(row.name, code)]
        return {each.key[1:] for each in choice.pick(pool, 40, 1)}

    changed = ["    b = a - c if a else c + 1", *lines[:40], *lines[42:]]
    assert len(chosen("m.py", lines) & chosen("m.py", changed)) >= 35


def test_mutants_of_a_result_are_tried_again_where_they_were_alive(tmp_path: Path) -> None:
    mutants = [found for each in choice.candidates("sim/ir/simplify.py")[:8] if (found := each.mutant()) is not None]
    states = (KILLED, ALIVE, TIMEOUT, BROKEN)
    write(tmp_path / "result.json", [Result(*pair) for pair in zip(mutants, ["ir"] * 4, states, strict=False)])
    assert {each.key for each in alive(tmp_path / "result.json")} == {mutants[1].key, mutants[3].key}


def test_every_file_with_code_belongs_to_one_area():
    files = [file for area in AREAS for file in area.files(ROOT)]
    assert len(files) == len(set(files))
    of_rooms = {f.relative_to(ROOT).as_posix() for top in ("sim", "oracle") for f in (ROOT / top).rglob("*/*.py")}
    assert {f for f in of_rooms - set(files) if not f.endswith("__init__.py")} == set()


def test_the_tests_of_every_area_exist():
    for area in AREAS:
        assert (ROOT / area.tests).is_dir() or area.name in ("sim", "oracle"), area.name
        assert all((ROOT / path).exists() for path in area.compiled), area.name


SOURCE = """\
TABLE = {
    "a": 1,
    "b": 2,
}


def used(x):
    return (
        x < TABLE["a"]
    )


def unused(x):
    return x + 1


def in_child(x):
    return x + 2
"""
LATE = """\
TABLE = {1: 2}


def used(x):
    return x not in TABLE
"""
TESTS = """\
import os
import subprocess
import sys

from sim import room


def test_used():
    assert room.used(0)


def test_other():
    assert room


def test_first():
    from sim import late

    assert late


def test_second():
    from sim import late

    assert late.used(2)


def test_child():
    subprocess.run([sys.executable, "-c", "from sim import room; room.in_child(1)"], check=True)
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small repository, and what is measured of it."""
    pytest.importorskip("coverage")
    tmp_path = tmp_path_factory.mktemp("small")
    for name, text in (
        ("sim/room.py", SOURCE),
        ("sim/late.py", LATE),
        ("sim/__init__.py", ""),
        ("tests/test_room.py", TESTS),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "oracle").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BANKSHOT_CACHE", str(tmp_path / "cache"))
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        return tmp_path, Reach([measured(tmp_path, "tests/test_room.py", Trials(tmp_path, 1, 10).measure)])


def test_a_process_that_was_killed_has_measured_nothing(tmp_path):
    coverage = pytest.importorskip("coverage")
    source, killed, ended = (tmp_path / name for name in ("source.py", "data.1", "data.2"))
    source.write_text("def f():\n    return 1\n")
    killed.touch()
    data = coverage.CoverageData(str(ended))
    data.set_context("tests/test_a.py|tests/test_a.py::test_f")
    data.add_lines({str(source): [2]})
    data.write()
    assert reach._combine([killed], tmp_path / "none", tmp_path) == set()
    assert reach._combine([killed, ended], tmp_path / "both", tmp_path) == {"source.py"}
    assert reach._lines(tmp_path / "both") == {
        "source.py": {"tests/test_a.py|tests/test_a.py::test_f": bytes([1 << 2])}
    }


def reached(small, before, name="sim/room.py"):
    folder, reach = small
    code = Code(folder / name, name)
    start = code.source.index(before.encode())
    mutant = code.mutant("constant", Edit(start, start + 1, "9"))
    found = reach.tests(mutant.file, mutant.lines, mutant.in_function)
    return {test.partition("::")[2] for test in found}


def test_a_line_has_the_tests_that_run_it(small):
    assert reached(small, "x < TABLE") == {"test_used"}
    assert reached(small, "1\n\n\ndef in_child") == set()
    assert reached(small, "2,\n}") == {"test_used"}  # runs at import: the tests that run other lines


def test_a_line_that_a_child_process_runs_has_all_tests_of_the_file(small):
    assert reached(small, "x + 2") == {"test_used", "test_other", "test_first", "test_second", "test_child"}


def test_a_file_that_the_first_test_imports_has_the_tests_that_use_it_later(small):
    assert reached(small, "2}", "sim/late.py") == {"test_first", "test_second"}


def test_a_test_file_runs_again_only_when_a_source_changes_of_which_it_runs_a_function(tmp_path, monkeypatch):
    pytest.importorskip("coverage")
    monkeypatch.setenv("BANKSHOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    function = "def f():\n    return 1\n"
    test = "from sim import imported, used\ndef test_a():\n    assert used.f()\n"

    def runs(name, **added):
        root = tmp_path / name
        for path in ("sim/used.py", "sim/imported.py", "sim/__init__.py", "tests/test_a.py"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(test if "test" in path else function + added.get(Path(path).stem, ""))
        ran = []
        found = measured(root, "tests/test_a.py", lambda *given: ran.append(1) or Trials(root, 1, 10).measure(*given))
        assert Reach([found]).tests("sim/used.py", [2], in_function=True)
        assert not Reach([found]).tests("sim/imported.py", [2], in_function=True)
        return bool(ran)

    assert runs("first")
    assert not runs("second", imported="ROW = 1\n")
    assert runs("third", used="ROW = 1\n")


@pytest.fixture(scope="module")
def every_named():
    return named(ROOT)


def test_named_mutants_still_have_their_texts(every_named):
    assert len(every_named) >= 30


def test_equivalent_mutants_are_of_lines_that_exist():
    for file, _, before, after in equivalents():
        lines = {" ".join(line.split()) for line in (ROOT / file).read_text(encoding="utf-8").splitlines()}
        assert before in lines or any(before.startswith(line) for line in lines if line), (file, before)
        assert before != after


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    """Trials in a folder, with one server."""
    folder = tmp_path_factory.mktemp("trials")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        yield Trials(folder, 1, 10)


@pytest.mark.parametrize(
    ("test", "state"),
    [
        ("assert True", ALIVE),
        ("assert False", KILLED),
        ("while True: pass", TIMEOUT),
        ("import os; os._exit(3)", KILLED),
        ("import os; os._exit(4)", KILLED),  # as where a plugin cannot be imported
    ],
)
def test_the_state_of_a_mutant(test, state, trials, tmp_path, monkeypatch):
    (tmp_path / "test_a.py").write_text(f"def test_a():\n    {test}\n")
    monkeypatch.setattr(trials, "limit_of", lambda tests, compiling: 2.0)
    assert trials.ran(tmp_path.parent, [str(tmp_path / "test_a.py")], [], tmp_path / "cache")[0] == state


@pytest.mark.parametrize(
    ("tests", "failed", "state"),
    [
        (["test_a.py::test_a"], [], KILLED),
        (["test_a.py::test_a"], ["test_a.py::test_a[1]"], ALIVE),
        (["test_a.py::test_a", "test_a.py::test_b"], ["test_a.py::test_a"], KILLED),
        ([], [], ALIVE),
    ],
    ids=["all are gone", "they fail without a mutant", "one does", "of a file"],
)
def test_a_mutant_that_hides_the_tests_is_killed(tests, failed, state, tmp_path, monkeypatch):
    trials = Trials(tmp_path, 1, 10)
    trials.failed = failed
    (tmp_path / "test_a.py").write_text("")
    no_test = SimpleNamespace(code=5, record={"failed": []}, output="")
    monkeypatch.setattr(trials, "limit_of", lambda tests, compiling: 10)
    monkeypatch.setattr(trials, "_pytest", lambda *given, **named: no_test)
    assert trials.ran(tmp_path, ["test_a.py"], tests, tmp_path / "cache")[0] == state


def test_a_mutant_whose_tests_are_missing_was_not_run(tmp_path):
    ran = Trials(tmp_path, 1, 10).ran(tmp_path, ["test_b.py"], [], tmp_path / "cache")
    assert ran == (BROKEN, "there is no test_b.py")


def test_mutants_without_end_have_a_column_and_count(every_named):
    results = [Result(m, "ir", state) for m, state in zip(every_named, (KILLED, TIMEOUT, TIMEOUT, ALIVE), strict=False)]
    head, row, *_ = table(results).splitlines()
    assert [row[head.index(name) + len(name) - 1] for name in ("mutants", KILLED, TIMEOUT, ALIVE)] == list("4121")
    assert share(results) == pytest.approx(3 / 4)


def test_equivalent_mutants_and_those_that_were_not_run_do_not_count(every_named):
    mutants = every_named[:4]
    results = [Result(m, "ir", state) for m, state in zip(mutants, (KILLED, KILLED, ALIVE, BROKEN), strict=True)]
    assert share(results) == pytest.approx(2 / 3)
    key = next(iter(equivalents()))
    same = type(mutants[0])(key[0], key[1], 1, mutants[0].edit, key[2], key[3])
    assert states([*results, Result(same, "ir", ALIVE)])[-1] == EQUIVALENT
    assert share([*results, Result(same, "ir", ALIVE)]) == pytest.approx(2 / 3)


USED = """\
WORDS = {1: 2, 3: 4}
ALL = [WORDS, 5]
LEFT = 6


def f(a, b=7):
    c = LEFT
    return a, b, c


def g():
    return ALL
"""


def test_who_uses_a_statement_outside_functions(tmp_path):
    """A table may be part of another; a default belongs to the body of its function."""
    code = made(tmp_path / "m.py", USED)
    found = [code.mutant("constant", edit) for edit in edits("constant", code)]
    users = {each.before: each.users for each in found if each is not None}
    assert users == {
        "WORDS = {1: 2, 3: 4}": (12,),
        "ALL = [WORDS, 5]": (12,),
        "LEFT = 6": (7,),
        "def f(a, b=7):": (7, 8),
    }
