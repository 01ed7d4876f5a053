"""Golden files: what they hold, when they are written, and who may."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.goldens import golden_files
from bankshot.oracle.goldens import golden_store as goldens
from bankshot.oracle.goldens.golden_lines import Line

Y = np.arange(6, dtype=np.float32).reshape(2, 3)


def golden(y=Y, arrays=False, **given):
    facts = {
        "owner": "k.toml", "title": "k N=6", "grid": (1, 1, 1), "device": "nvidia", "simulator": "1.0",
        "adapter": None, "counters": {"flops": 12, "barriers": 1, "working_invocations": 1 / 3},
        "lines": (Line("k.wgsl", 3, "let é = x[i];", {"flops": 12}),),
    }  # fmt: skip
    outputs = {"y": goldens.digest(y)}
    return goldens.Golden(**facts | given, outputs=outputs, arrays={"y": y} if arrays else {})


@pytest.fixture
def path(tmp_path):
    (tmp_path / "k.toml").write_text("")
    return golden_files.place(tmp_path, "k", "N=6")


def check(path, new, update=False):
    return goldens.check(path, new, update, "HOW")


def test_a_golden_round_trips(path):
    for new in (golden(), golden(lines=()), golden(arrays=True, adapter="llvmpipe (CPU, Vulkan)")):
        new.write(path)
        old = goldens.read(path)
        assert replace(old, arrays={}) == replace(new, arrays={})
        assert {name: array.tobytes() for name, array in old.arrays.items()} == {
            name: array.tobytes() for name, array in new.arrays.items()
        }
    assert sorted(file.name for file in path.parent.iterdir()) == ["k-N6.json", "k-N6.npz"]
    golden().write(path)
    assert [file.name for file in path.parent.iterdir()] == ["k-N6.json"]


def test_keys_are_sorted_and_a_line_of_source_is_a_row(path):
    text = golden().text()
    assert list(json.loads(text)) == sorted(json.loads(text))
    assert '    {"counters": {"flops": 12}, "file": "k.wgsl", "line": 3, "text": "let é = x[i];"}\n' in text
    assert '    "flops": 12,\n' in text


def test_a_golden_is_missing_then_unchanged(path):
    verdict = check(path, golden())
    assert (verdict.state, verdict.ok, path.exists()) == (goldens.MISSING, False, False)
    assert "make it with HOW" in str(verdict)
    assert check(path, golden(), update=True).state == goldens.WRITTEN
    assert check(path, golden()).state == goldens.UNCHANGED


@pytest.mark.parametrize(
    "other",
    [{"simulator": "2.0"}, {"adapter": "another"}, {"lines": (Line("k.wgsl", 99, "let é = x[i];", {"flops": 12}),)}],
    ids=str,
)
def test_recorded_information_is_not_compared(path, other):
    golden().write(path)
    assert check(path, golden(**other)).state == goldens.UNCHANGED
    before = path.read_bytes()
    assert check(path, golden(**other), update=True).state == goldens.UNCHANGED
    assert path.read_bytes() == before


def test_a_change_is_reported_and_written_on_request(path):
    golden().write(path)
    worse = golden(lines=(Line("k.wgsl", 5, "let é = x[i];", {"flops": 24}),), simulator="2.0")
    verdict = check(path, worse)
    assert (verdict.state, verdict.ok) == (goldens.CHANGED, False)
    assert verdict.sentences == ("k.wgsl:5: 12 -> 24 floating point operations",)
    assert "it was made by bankshot 1.0, this is 2.0; if this is what you want, HOW writes it anew" in str(verdict)
    assert check(path, worse, update=True).state == goldens.WRITTEN
    assert check(path, worse).state == goldens.UNCHANGED


def test_one_changed_bit_of_an_output_is_detected(path):
    flipped = Y.copy()
    flipped.view(np.uint32)[1, 2] ^= 1
    golden().write(path)
    assert check(path, golden(flipped)).sentences == ("y: differs from the golden",)
    assert check(path, golden(Y.reshape(3, 2))).sentences == ("y: float32[2,3] -> float32[3,2]",)
    assert check(path, replace(golden(), outputs={})).sentences == ("y: float32[2,3] -> no output",)
    golden(arrays=True).write(path)
    verdict = check(path, golden(flipped, arrays=True))
    assert verdict.sentences == ("y: 1 of 6 elements differ from the golden",)
    assert verdict.outputs[0].comparison.worst[0].index == (1, 2)


def test_outputs_are_stored_on_request(path):
    golden().write(path)
    assert check(path, golden(arrays=True)).state == goldens.UNCHANGED
    assert check(path, golden(arrays=True), update=True).state == goldens.WRITTEN
    assert path.with_suffix(".npz").exists()


def test_another_device_is_not_compared_but_may_be_written(path):
    golden().write(path)
    verdict = check(path, golden(device="lavapipe", counters={"flops": 0}))
    assert (verdict.state, verdict.ok) == (goldens.OTHER_DEVICE, False)
    assert "made for device nvidia, and this run is charged as lavapipe" in str(verdict)
    assert (verdict.unchecked, verdict.differs) == (True, False)
    assert check(path, golden(device="lavapipe"), update=True).state == goldens.WRITTEN
    assert goldens.read(path).device == "lavapipe"


def test_two_owners_of_one_golden(path):
    golden().write(path)
    for update in (False, True):
        verdict = check(path, golden(owner="other.toml"), update)
        assert (verdict.state, verdict.ok) == (goldens.OTHER_OWNER, False)
        assert "it belongs to k.toml (k N=6), and other.toml (k N=6) has the same name; rename one" in str(verdict)


@pytest.mark.parametrize("name", ["file", "allow_pickle", "args", "compress", "self", "y.0"])
def test_outputs_may_have_any_name(path, name):
    """NumPy's function that writes several arrays has parameters of such names."""
    replace(golden(arrays=True), arrays={name: Y}, outputs={name: goldens.digest(Y)}).write(path)
    kept = goldens.read(path)
    assert list(kept.arrays) == [name]
    assert kept.arrays[name].tolist() == Y.tolist()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04....", b"\x93NUMPY", b"garbage" * 99])
def test_broken_outputs_are_a_usage_error(path, content):
    golden(arrays=True).write(path)
    path.with_suffix(".npz").write_bytes(content)
    with pytest.raises(UsageError, match="cannot be read as a golden"):
        goldens.read(path)


def test_damage_anywhere_in_stored_outputs_is_a_usage_error(path):
    golden(arrays=True).write(path)
    whole = path.with_suffix(".npz").read_bytes()
    for at in range(0, len(whole), 7):
        path.with_suffix(".npz").write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            kept = goldens.read(path)
        except (UsageError, MemoryError):
            continue
        assert kept.arrays == {} or "y" not in kept.arrays or kept.arrays["y"].tobytes() == Y.tobytes()


@pytest.mark.parametrize("arrays", [False, True])
def test_a_full_disk_leaves_the_golden_as_it_was(path, monkeypatch, arrays):
    golden(arrays=True).write(path)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}

    def full(self, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(golden_files.Path, "replace", full)
    with pytest.raises(OSError, match="No space left on device"):
        golden(arrays=arrays, counters={"flops": 0}).write(path)
    assert path.read_bytes() == before[path.name]
    assert {file.name for file in path.parent.iterdir()} <= set(before)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 1}', '{"schema": 7, "lines": []}'])
def test_a_broken_golden_is_a_usage_error(path, text):
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(UsageError, match=r"k-N6\.json: .* anew"):
        check(path, golden())


def test_free_outputs_are_not_stored(tmp_path):
    run = SimpleNamespace(
        outputs={"y": Y, "z": Y}, counters={}, sites=[], grid=(1, 1, 1), device=SimpleNamespace(name="nvidia")
    )
    new = goldens.of_run(run, folder=tmp_path, owner="k.toml", title="k", arrays=True, free=["z"])
    assert (list(new.outputs), list(new.arrays)) == (["y"], ["y"])


def test_outputs_of_every_kind_have_names():
    found = goldens._arrays({"t": [Y, Y[:1]], (0, 3): Y, "raw": b"\1\2"})
    assert {name: array.shape for name, array in found.items()} == {
        "t.0": (2, 3),
        "t.1": (1, 3),
        "0.3": (2, 3),
        "raw": (2,),
    }


# ---- whose they are ----------------------------------------------------------------------------------


def test_unused_goldens_are_listed(tmp_path, path):
    golden().write(path)
    golden(title="k N=7").write(golden_files.place(tmp_path, "k", "N=7"))
    golden(owner="gone.toml").write(golden_files.place(tmp_path, "gone"))
    (tmp_path / "there.toml").write_text("")
    golden(owner="there.toml").write(golden_files.place(tmp_path, "there"))
    (path.parent / "not-ours.json").write_text('{"owner": "k.toml", "title": "k"}')
    (path.parent / "broken.json").write_text("{")
    left = golden_files.unused(tmp_path / "k.toml", [path])
    assert [file.name for file in left] == ["gone.json", "k-N7.json"]
    golden_files.remove(left)
    golden_files.remove(left)  # another process may have been faster
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "broken.json", "k-N6.json", "not-ours.json", "there.json",
    ]  # fmt: skip


@pytest.mark.parametrize(("ci", "may"), [("true", False), ("1", False), ("", True), ("false", True), ("0", True)])
def test_nothing_is_written_where_ci_is_set(monkeypatch, ci, may):
    monkeypatch.setenv("CI", ci)
    if may:
        golden_files.may_write("HOW")
    else:
        with pytest.raises(UsageError, match=r"^HOW: CI is set, and goldens are never written there"):
            golden_files.may_write("HOW")


@pytest.mark.parametrize(("parts", "name"), [
    (("k", ""), "k.json"),
    (("test_a", "test_b[1-x/y z]", "2"), "test_a-test_b[1-x-y-z]-2.json"),
])  # fmt: skip
def test_names_are_valid_file_names(tmp_path, parts, name):
    assert golden_files.place(tmp_path, *parts) == tmp_path / "golden" / name
