"""Manifests in a folder: none is skipped in silence, and files of other programs are."""

import os

import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests import cases, manifest_files
from bankshot.oracle.manifests.cases import Broken, Request, plans

SHADER = (
    "@group(0) @binding(0) var<storage, read_write> y: array<f32, 4>;"
    "@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[i] = 1; }"
)
GOOD = """[kernel]
source = "k.wgsl"
dispatch = [1]
dims = { N = 4 }

[bind.y]
dtype = "f32"
shape = [4]
init = "zeros"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "k.wgsl").write_text(SHADER)
    (tmp_path / "good.toml").write_text(GOOD)
    return tmp_path


def broken_in(folder):
    """The plans of a folder, and the errors of what is broken in it, by name."""
    broken: list[Broken] = []
    found = plans([folder], Request(), broken)
    return [plan.kernel.name for plan in found], {each.path.name: str(each.error) for each in broken}


# Attempts at a manifest, and what an audit of their folder says about each.
ATTEMPTS = {
    "bom": (b"\xef\xbb\xbf" + GOOD.encode(), "begins with a byte order mark; save it as UTF-8 without one"),
    "wide": (GOOD.encode("utf-16"), "is not UTF-8 text (byte 0)"),
    "wide-without-mark": (GOOD.encode("utf-16-le"), "holds a null character"),
    "null": (b"\0" + GOOD.encode(), ":1: holds a null character"),
    "array": (GOOD.replace("[kernel]", "[[kernel]]"), "`kernel` must be a table, not [{"),
    "upper-case": (GOOD.replace("[kernel]", "[Kernel]"), "lacks `kernel`; is `Kernel` meant to be it?"),
    "misspelled": (GOOD.replace("[kernel]", "[kernal]"), "lacks `kernel`; is `kernal` meant to be it?"),
    "other-name": ('[shader]\nsource = "k.wgsl"\ndispatch = [1]\n', "lacks `kernel`"),
    "dispatch-alone": ("[shader]\ndispatch = [1]\n", "lacks `kernel`"),
    "source-alone": ('[shader]\nsource = "k.wgsl"\n', "lacks `kernel`"),
    "without-header": (GOOD.replace("[kernel]", ""), "lacks `kernel`"),
    "only-variants": ('[[variant]]\nbind.y.init = "zeros"\n', "lacks `kernel`"),
    "only-sweep": ("[[sweep]]\nN = 4\n", "lacks `kernel`"),
    "string": ('kernel = "k.wgsl"\n', "`kernel` must be a table, not 'k.wgsl'"),
    "empty": ("", "lacks `kernel`"),
    "no-toml": ("[kernel\n", ":1: expected"),
    "neither": ("<xml>\n", ":1: "),
    "deep": (GOOD.replace("[1]", "[" * 5000 + "]" * 5000), "deep.toml"),  # depending on the limit of recursion
    "Upper.TOML": (b"\xef\xbb\xbf" + GOOD.encode(), "begins with a byte order mark"),
}


def test_attempts_at_a_manifest_are_errors_of_their_own(folder):
    for name, (content, _) in ATTEMPTS.items():
        file = folder / (name if "." in name else f"{name}.toml")
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    good, broken = broken_in(folder)
    assert good == ["good"]
    for name, (_, message) in ATTEMPTS.items():
        assert message in broken.pop(name if "." in name else f"{name}.toml"), name
    assert broken == {}
    with pytest.raises(UsageError):  # without a list for them, the first error ends the command
        plans([folder], Request())


OTHERS = {
    "pyproject": '[project]\nname = "k"\n[tool.ruff]\nline-length = 120\n',
    "Cargo": '[package]\nname = "kernel"\n[[bin]]\nname = "kernel"\n[features]\nkernel = []\n',
    "settings": "width = 100\n[bench]\nseconds = 3\n",
    "template": "[package]\nname = {{ name }}\n",
    "rules": '[[rule]]\nkernel = "gemv"\nbecause = "one row"\n',
    "nested": "[tool.kernel]\nsource = 'k.wgsl'\n",
}


def test_files_of_other_programs_are_no_manifests(folder):
    for name, content in OTHERS.items():
        (folder / f"{name}.toml").write_text(content)
    assert broken_in(folder) == (["good"], {})


def test_links_are_followed_once(folder):
    (folder / "dangling.toml").symlink_to(folder / "nothing.toml")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "k.wgsl").write_text(SHADER)
    (elsewhere / "linked.toml").write_text(GOOD)
    inside = folder / "inside"
    inside.mkdir()
    (inside / "folder").symlink_to(elsewhere)
    (inside / "loop").symlink_to(folder)
    assert broken_in(inside)[0].count("linked") == 1
    good, broken = broken_in(folder)
    assert sorted(good) == ["good", "linked"]
    assert list(broken) == ["dangling.toml"]
    assert "is a link to a missing file" in broken["dangling.toml"]
    with pytest.raises(UsageError, match="is a link to a missing file"):
        plans([folder / "dangling.toml"], Request())


def test_a_shader_beside_a_dangling_manifest_is_no_bare_shader(folder):
    (folder / "k.toml").symlink_to(folder / "nothing.toml")
    with pytest.raises(UsageError, match="is a link to a missing file"):
        plans([folder / "k.wgsl"], Request())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_without_opening_it(folder):
    os.mkfifo(folder / "pipe.toml")
    assert "it is a pipe, not a regular file" in broken_in(folder)[1]["pipe.toml"]
    os.mkfifo(folder / "data.npy")
    (folder / "good.toml").write_text(GOOD.replace('init = "zeros"', 'file = "data.npy"'))
    (plan,) = plans([folder / "good.toml"], Request())
    with pytest.raises(UsageError, match="it is a pipe, not a regular file"):
        next(plan.cases())


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="root reads files and folders of any mode")
def test_what_may_not_be_read_is_an_error(folder):
    (folder / "closed").mkdir(mode=0)
    (folder / "secret.toml").write_text(GOOD)
    (folder / "secret.toml").chmod(0)
    assert set(broken_in(folder)[1]) == {"closed", "secret.toml"}


def test_a_folder_that_cannot_be_listed_is_an_error(folder, monkeypatch):
    (folder / "closed").mkdir()
    plain = os.scandir

    def scandir(place):
        if os.fspath(place).endswith("closed"):
            raise PermissionError(13, "Permission denied", os.fspath(place))
        return plain(place)

    monkeypatch.setattr(os, "scandir", scandir)
    assert broken_in(folder) == (["good"], {"closed": f"{folder / 'closed'}: this folder cannot be read"})


def test_a_file_that_cannot_be_opened_is_an_error(folder, monkeypatch):
    def denied(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(manifest_files, "require_regular", denied)
    assert manifest_files.manifests_in(folder) == [folder / "good.toml"]


def test_paths_with_control_characters_are_refused(folder):
    (folder / "a\n::error::b.toml").write_text(GOOD)
    with pytest.raises(UsageError, match=r"a\\n::error::b.toml: the name of this file holds control characters"):
        plans([folder], Request())


def test_errors_of_the_system_are_sentences(folder, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(cases.manifest_loader, "load_all", full)
    assert broken_in(folder)[1] == {"good.toml": f"{folder / 'good.toml'}: No space left on device"}


# ---- planning ----------------------------------------------------------------------------------------

DIGITS, LONG = "9" * 400, "n" * 5000


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("N = 4", f"N = {DIGITS}", "`N` is 99999"),
        ("N = 4", f"N = {'9' * 5000}", "a number has too many digits"),
        ("N = 4", '"N\\u001b" = 4', r"without control characters, and 'N\x1b' is not"),
        ("dispatch =", f'name = "{LONG}"\ndispatch =', "`name` has 5,000 characters, and at most 2,000 are allowed"),
        ("dispatch", 'name = "a\\n::error::b"\ndispatch', r"`name` holds control characters: 'a\n::error::b'"),
        ("k.wgsl", "k\\u0000.wgsl", r"`source` holds control characters: 'k\x00.wgsl'"),
        ("bind.y", f"bind.{LONG}", "a name must be short"),
        ("dispatch", f'include_dirs = ["{LONG}"]\ndispatch', "`include_dirs` has 5,000 characters"),
        ("[1]", f'["{"(" * 5000}1{")" * 5000}"]', "`dispatch` has 10,001 characters"),
        ("[1]", f'["{"+".join("N" * 490)}"]', None),
        ("[4]", f"[{DIGITS}]", "and no binding holds more than 4,294,967,292"),
        ('shape = [4]\ninit = "zeros"', f"values = [{DIGITS}]", "…, which is no float32"),
        ('init = "zeros"', f'init = "zeros"\nlevels = {DIGITS}', "`levels` is 99999"),
        ("dispatch", f"budget = {DIGITS}\ndispatch", "`budget` is 99999"),
        ("[1]", "[" * 400 + "]" * 400, "`dispatch` holds [[[[["),
    ],
)
def test_extreme_values_are_errors_of_the_manifest(folder, old, new, message):
    (folder / "good.toml").write_text(GOOD.replace(old, new, 1))
    broken: list[Broken] = []
    made = plans([folder], Request(), broken)
    if message is None:
        assert [case.grid for plan in made for case in plan.cases()] == [(4 * 490, 1, 1)]
        return
    with pytest.raises(UsageError) as caught:
        raise broken[0].error if broken else _first_error(made)
    assert message in str(caught.value)


def _first_error(made):
    for plan in made:
        list(plan.cases())
    return AssertionError("it was planned")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("rcae", "`allow` names 'rcae', which is no finding; did you mean `race`?"),
        ("out_of_bounds", "did you mean `out-of-bounds`?"),
        ("everything", "which is no finding; there are race, "),
    ],
)
def test_allow_names_findings(folder, code, message):
    (folder / "good.toml").write_text(f'{GOOD}\n[expect]\nallow = ["race", "{code}"]\n')
    assert message in broken_in(folder)[1]["good.toml"]
