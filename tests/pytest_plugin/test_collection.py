"""What the plugin collects, deselects and keeps, by fakes of pytest's objects."""

import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.judge import golden_check
from bankshot.oracle.manifests import manifest_loader
from bankshot.oracle.manifests.manifest import Shape
from bankshot.oracle.pytest_plugin import hooks
from bankshot.oracle.pytest_plugin.hooks import CheckFailed, CiReport

# ---- goldens that no test uses -----------------------------------------------------------------------


class Module:
    def __init__(self, path):
        self.path = path


@pytest.fixture
def module(tmp_path):
    """A test file with goldens: three of its tests, two of another file."""
    (tmp_path / "golden").mkdir()
    return Module(tmp_path / "test_a.py")


def test_goldens_of_tests_that_are_gone(module, monkeypatch):
    owners = {
        "a1": ("test_a.py", "test_one 2"), "a2": ("test_a.py", "test_two[x-1]"), "a3": ("test_a.py", "test_gone[x]"),
        "b1": ("test_b.py", "test_gone"),
    }  # fmt: skip
    beside = {Path(name): SimpleNamespace(file=file, title=title) for name, (file, title) in owners.items()}
    monkeypatch.setattr(hooks, "goldens_beside", lambda path: beside)
    made = []
    monkeypatch.setattr(hooks.UnusedItem, "of", lambda parent, name, left: made.append((parent, name, left)) or name)

    def item(name, parent=module):
        return SimpleNamespace(name=name, getparent=lambda kind: parent)

    elsewhere = Module(module.path.parent / "other" / "test_c.py")
    items = [item("test_one"), item("test_two[y-2]"), item("doc", None), item("test_c", elsewhere)]
    assert list(hooks._unused_of_tests(items)) == ["unused goldens"]
    assert made == [(module, "unused goldens", [Path("a3")])]
    del beside[Path("a1")], beside[Path("a2")], beside[Path("a3")]
    assert list(hooks._unused_of_tests(items)) == []  # none is of this file


@pytest.mark.parametrize(
    ("name", "function"),
    [("test_a", "test_a"), ("test_a[x 1]", "test_a"), ("test_a 2", "test_a"), ("test_a[x] 2", "test_a")],
)
def test_the_function_of_a_test(name, function):
    assert hooks._function(name) == function


def collected_of(kernels, monkeypatch, goldens=()):
    """The tests of a manifest with these kernels, given by name and shapes, and the goldens that it claims."""
    named = [SimpleNamespace(name=name, shapes=shapes) for name, shapes in kernels]
    claimed = []
    monkeypatch.setattr(manifest_loader, "load_all", lambda path: named)
    monkeypatch.setattr(golden_check, "golden_place", lambda kernel, shape: Path(f"{kernel.name} {shape}"))
    monkeypatch.setattr(hooks, "goldens_beside", lambda path: goldens)
    monkeypatch.setattr(hooks, "unused", lambda path, places: claimed.extend(places) or ["left"])
    monkeypatch.setattr(hooks.KernelItem, "of", lambda parent, name, kernel, shape: (name, kernel.name, str(shape)))
    monkeypatch.setattr(hooks.UnusedItem, "of", lambda parent, name, left: (name, left))
    manifest = hooks.Manifest.__new__(hooks.Manifest)
    manifest.path = Path("k.toml")
    return list(manifest.collect()), claimed


def test_a_test_has_the_name_of_its_kernel_and_its_sizes(monkeypatch):
    none, small, large = Shape({}), Shape({"N": 1, "M": 2}, golden=True), Shape({"N": 3}, golden="outputs")
    found, claimed = collected_of([("a", [none]), ("b", [small, large, Shape({"N": 4})])], monkeypatch)
    assert found == [("a", "a", ""), ("b[N=1,M=2]", "b", "N=1 M=2"), ("b[N=3]", "b", "N=3"), ("b[N=4]", "b", "N=4")]
    assert claimed == []
    found, claimed = collected_of([("a", [none]), ("b", [small, large])], monkeypatch, ["a golden"])
    assert found[3:] == [("unused goldens", ["left"])]
    assert claimed == [Path("b N=1 M=2"), Path("b N=3")]


def test_a_manifest_that_cannot_be_read_is_one_test(monkeypatch):
    def fail(path):
        raise error

    error = UsageError("k.toml: no")
    monkeypatch.setattr(manifest_loader, "load_all", fail)
    monkeypatch.setattr(hooks.BrokenItem, "of", lambda parent, name, error: (name, error))
    manifest = hooks.Manifest.__new__(hooks.Manifest)
    manifest.path = Path("k.toml")
    assert list(manifest.collect()) == [("k", error)]


def collected(arguments=(), sweep=False, last_failed=False):
    """What is left of two tests, one of which is heavy; what was deselected; whether goldens were looked for."""
    config = SimpleNamespace(
        args=list(arguments),
        getoption=lambda name, default=False: {"--bankshot-sweep": sweep, "lf": last_failed}.get(name, default),
        hook=SimpleNamespace(pytest_deselected=lambda items: deselected.extend(items)),
    )
    deselected, looked = [], []
    quick, heavy = (hooks.KernelItem.__new__(hooks.KernelItem) for _ in range(2))
    quick.shape, heavy.shape = SimpleNamespace(cost="quick"), SimpleNamespace(cost="heavy")
    items = [quick, heavy, "test"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hooks, "_unused_of_tests", lambda items: looked.append(1) or ["unused"])
        hooks.pytest_collection_modifyitems(config, items)
    names = {id(quick): "quick", id(heavy): "heavy"}
    return [names.get(id(each), each) for each in items], [names[id(each)] for each in deselected], bool(looked)


def test_heavy_shapes_and_unused_goldens():
    assert collected() == (["quick", "test", "unused"], ["heavy"], True)
    assert collected(["tests"]) == (["quick", "test", "unused"], ["heavy"], True)
    assert collected(sweep=True) == (["quick", "heavy", "test", "unused"], [], True)
    # A part of a file, or what failed last, does not show which goldens are unused.
    assert collected(["tests", "tests/a.py::test_b"]) == (["quick", "test"], ["heavy"], False)
    assert collected(last_failed=True) == (["quick", "test"], ["heavy"], False)


# ---- what tests keep ---------------------------------------------------------------------------------


def entry(**given):
    facts = {"figures": {}, "outcome": "", "compared": (), "adapter": None, "plain": lambda: dict(given)} | given
    return SimpleNamespace(**facts)


def test_entries_become_properties():
    item = SimpleNamespace(stash={}, user_properties=[])
    hooks.keep(item, [entry(figures={"flops": 3, "sectors": 4}, outcome="clean", compared=("reference", "wgpu"),
                            adapter="a")])  # fmt: skip
    hooks.keep(item, [entry(outcome="failed")])
    assert item.user_properties == [
        ("bankshot.flops", 3), ("bankshot.sectors", 4), ("bankshot.outcome", "clean"),
        ("bankshot.compared", "reference; wgpu"), ("bankshot.adapter", "a"), ("bankshot.outcome", "failed"),
    ]  # fmt: skip
    assert len(item.stash[hooks.ENTRIES]) == 2


@pytest.mark.parametrize(
    ("when", "passed", "kept", "reported"),
    [
        ("call", True, [{"ok": False, "remarks": [1], "name": "a"}], [{"ok": True, "remarks": [], "name": "a"}]),
        ("call", False, [{"ok": True, "remarks": [1]}, {"ok": True}], [{"ok": False, "remarks": [1]}, {"ok": False}]),
        ("call", True, None, None),
        ("setup", True, [{"ok": True}], None),
        ("teardown", False, [{"ok": True}], None),
    ],
)
def test_entries_travel_with_the_report_of_the_call(when, passed, kept, reported):
    item = SimpleNamespace(stash={} if kept is None else {hooks.ENTRIES: kept})
    report = SimpleNamespace(passed=passed)
    steps = hooks.pytest_runtest_makereport(item, SimpleNamespace(when=when))
    next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send(report)
    assert end.value.value is report
    assert getattr(report, hooks.ATTRIBUTE, None) == reported


def ci(update=False, sarif=None):
    options = {"--bankshot-sarif": sarif, hooks.UPDATE: update}
    return CiReport(SimpleNamespace(getoption=options.get))


def test_the_entries_of_all_reports_are_collected():
    made = ci()
    for entries in ([{"a": 1}], None, [{"b": 2}, {"c": 3}]):
        made.pytest_runtest_logreport(SimpleNamespace(**({} if entries is None else {hooks.ATTRIBUTE: entries})))
    assert made.entries == [{"a": 1}, {"b": 2}, {"c": 3}]


def test_nothing_is_reported_of_tests_without_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    said = []
    ci(update=True).pytest_terminal_summary(SimpleNamespace(write_line=said.append))
    assert (said, list(tmp_path.iterdir())) == ([], [])
    ci(sarif=str(tmp_path / "a.sarif")).pytest_terminal_summary(SimpleNamespace(write_line=said.append))
    assert (said, [each.name for each in tmp_path.iterdir()]) == ([], ["a.sarif"])
    with pytest.raises(pytest.UsageError, match=r"^--bankshot-sarif .*no/a\.sarif: cannot be written"):
        ci(sarif=str(tmp_path / "no" / "a.sarif")).pytest_terminal_summary(SimpleNamespace(write_line=said.append))


# ---- failures ----------------------------------------------------------------------------------------


def test_the_headline_of_a_failure():
    plain = CheckFailed("first\nsecond")
    assert (plain.headline, plain.file, plain.line, str(plain)) == ("first", "", 0, "first\nsecond")
    assert hooks._crash(plain) == ("first", "", 0)
    assert hooks._crash(CheckFailed("report", "head", "k.wgsl", 7)) == ("head", "k.wgsl", 7)
    assert hooks._crash(UsageError("wrong\nmore")) == ("wrong", "", 0)


@pytest.mark.parametrize("count", [37, 38, 39, 60])
def test_a_failure_fits_a_screen(monkeypatch, count):
    """At most 38 lines, the last of which counts those that are left out; then the command that shows them all."""
    from bankshot.oracle.reports import audit_text

    costs = []

    def show(out, result, cost):
        costs.append(cost)
        out.print("\n".join(f"line {number}" for number in range(1, count + 1)) + "\n\n")

    monkeypatch.setattr(audit_text, "show_failure", show)
    path = SimpleNamespace(kernel=SimpleNamespace(path=Path("k.toml")))
    lines = hooks._report(SimpleNamespace(case=path), "auto").splitlines()
    assert lines[-1] == "  in full: bankshot audit k.toml -v"
    whole = [f"line {number}" for number in range(1, count + 1)]
    assert lines[:-1] == (whole if count <= 38 else [*whole[:37], f"  {count - 37} more lines"])
    for style in ("short", "line", "long"):
        hooks._report(SimpleNamespace(case=path), style)
    assert costs == [True, False, False, True]


@pytest.mark.parametrize("update", [True, False])
@pytest.mark.parametrize("left", [[], ["a.json", "b.json"]])
def test_unused_goldens_fail_or_are_removed(monkeypatch, update, left):
    removed = []
    monkeypatch.setattr(hooks, "remove", removed.extend)
    item = hooks.UnusedItem.__new__(hooks.UnusedItem)
    item.left, item.config = [Path(each) for each in left], SimpleNamespace(getoption=lambda name: update)
    if left and not update:
        with pytest.raises(CheckFailed) as error:
            item.runtest()
        words = "unused goldens:\n  a.json\n  b.json\npytest --bankshot-update removes them"
        assert str(error.value) == words
    else:
        item.runtest()
    assert removed == (item.left if update else [])


def test_the_entry_point_is_the_plugin():
    project = Path(__file__).parents[2] / "pyproject.toml"
    declared = tomllib.loads(project.read_text())["project"]["entry-points"]["pytest11"]
    assert declared == {"bankshot": "bankshot.oracle.pytest_plugin.hooks"}
