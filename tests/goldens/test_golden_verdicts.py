"""What a comparison with a golden says, word by word, for each kind of change."""

from dataclasses import replace

import numpy as np
import pytest

from bankshot.oracle.goldens import golden_store as goldens
from tests.goldens import test_goldens
from tests.goldens.test_goldens import Y, check, golden

path = test_goldens.path
F64, SHORT = Y.astype(np.float64), Y[:1]
RECORD = np.zeros(2, [("a", np.float32), ("b", np.uint32)])


def kept(y):
    return golden(y, arrays=True)


AGAIN = "if this is what you want, HOW writes it anew"
MORE = "in all: 64 -> 1,280 bytes of workgroup memory"
OLD, NEW = (golden(counters={"workgroup_memory_bytes": size}) for size in (64, 1280))
# The golden, None where there is none; the run, whether to update; the state, what has changed, and the advice.
VERDICTS = {
    "none": (None, OLD, False, "missing", [], "make it with HOW, look at it, and commit it"),
    "none, update": (None, OLD, True, "written", [], ""),
    "same": (OLD, OLD, False, "unchanged", [], ""),
    "same, update": (OLD, OLD, True, "unchanged", [], ""),
    "a counter": (OLD, NEW, False, "changed", [MORE], AGAIN),
    "a counter, update": (OLD, NEW, True, "written", [MORE], ""),
    "another release": (OLD, replace(NEW, simulator="2.0"), False, "changed", [MORE],
                        f"it was made by bankshot 1.0, this is 2.0; {AGAIN}"),
    "another release alone": (OLD, replace(OLD, simulator="2.0"), False, "unchanged", [], ""),
    "an output": (golden(), golden(Y + 1), False, "changed", ["y: differs from the golden"], AGAIN),
    "another shape": (golden(), golden(SHORT), False, "changed", ["y: float32[2,3] -> float32[1,3]"], AGAIN),
    "another output": (golden(), replace(golden(), outputs={"z": goldens.digest(Y)}), False, "changed",
                       ["y: float32[2,3] -> no output", "z: no output -> float32[2,3]"], AGAIN),
    "elements": (kept(Y), kept(Y + np.float32([[1], [0]])), False, "changed",
                 ["y: 3 of 6 elements differ from the golden"], AGAIN),
    "elements of another shape": (kept(Y), kept(SHORT), False, "changed", ["y: float32[2,3] -> float32[1,3]"], AGAIN),
    "elements of another type": (kept(Y), kept(F64), False, "changed", ["y: float32[2,3] -> float64[2,3]"], AGAIN),
    "elements that were not kept": (golden(), kept(Y + 1), False, "changed", ["y: differs from the golden"], AGAIN),
    "elements that are kept from now on": (golden(), kept(Y), True, "written", [], ""),
    "elements that are kept no more": (kept(Y), golden(), True, "written", [], ""),
    "elements that are still kept": (kept(Y), kept(Y), True, "unchanged", [], ""),
    "a device": (golden(), golden(device="lavapipe"), False, "other device", [],
                 "it was made for device nvidia, and this run is charged as lavapipe; use --device nvidia, or make it "
                 "anew"),
    "a device of old": (golden(device="vax"), golden(), False, "other device", [],
                        "it was made for device vax, and this run is charged as nvidia; no such device is shipped; use "
                        "--device with its file, or make it anew"),
    "a device, update": (golden(), golden(device="lavapipe"), True, "written", [], ""),
    "an owner": (golden(), golden(owner="o.toml"), True, "other owner", [],
                 "it belongs to k.toml (k N=6), and o.toml (k N=6) has the same name; rename one"),
    "a title": (golden(), golden(title="k N=7"), False, "other owner", [],
                "it belongs to k.toml (k N=6), and k.toml (k N=7) has the same name; rename one"),
}  # fmt: skip
STATES = {
    # whether the golden is as it should be, and whether the run fails; the words of the headline
    "missing": (goldens.MISSING, False, "there is none"),
    "written": (goldens.WRITTEN, True, "written"),
    "unchanged": (goldens.UNCHANGED, True, "unchanged"),
    "changed": (goldens.CHANGED, False, "the run has changed"),
    "other device": (goldens.OTHER_DEVICE, False, "not compared"),
    "other owner": (goldens.OTHER_OWNER, False, "belongs to another owner"),
}


def files(path):
    return {file.name: file.read_bytes() for file in path.parent.glob("*")}


@pytest.mark.parametrize("name", VERDICTS)
def test_the_verdict_on_a_run(path, name):
    old, new, update, state, said, advice = VERDICTS[name]
    if old is not None:
        old.write(path)
    before = files(path)
    verdict = check(path, new, update)
    expected, ok, words = STATES[state]
    assert (verdict.state, verdict.ok) == (expected, ok)
    assert verdict.sentences == tuple(said)
    assert verdict.advice == advice
    assert str(verdict) == "\n".join([f"golden {path.name}: {words}", *said, *([advice] if advice else [])])
    assert (files(path) != before) == (state == "written")
    assert path.with_suffix(".npz").exists() == bool(new.arrays if state == "written" else old and old.arrays)
    compared = state in ("written", "unchanged", "changed")
    assert verdict.held == (tuple(new.outputs) if compared else ())


def test_structs_are_not_compared_by_element():
    assert goldens._compared(RECORD, RECORD) is None
    assert goldens._compared(None, Y) is None
    assert goldens._compared(Y, None) is None
    assert goldens._compared(Y, Y).ok
    assert goldens._compared(Y, F64) is None
    assert goldens._compared(Y, SHORT) is None
