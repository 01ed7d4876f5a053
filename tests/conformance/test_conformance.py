"""We agree with the conformance suite: on a sample here, on everything by `python -m tests.conformance`."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance import data
from tests.conformance.__main__ import main
from tests.conformance.judging import HARMLESS, Verdict, judge

Read = Callable[[str], Iterator[data.Record]]

SAMPLES = {"expr": 24, "exec": 6, "valid": 8}  # of every test the normal run takes one record in so many, one at least
MANY = 8  # a record of more dispatches than this is left to the whole run: some take seconds


def _is_short(record: data.Record) -> bool:
    return sum(op["op"] == "dispatch" for op in record.get("ops", ())) <= MANY


@pytest.mark.parametrize(("kind", "least"), [("expr", 666), ("exec", 320), ("valid", 1500)])
def test_a_sample_of_every_test_passes(conformance: Read, kind: str, least: int) -> None:
    candidates = (r for r in conformance(kind) if _is_short(r) and r["id"] not in data.listed())
    judged = [(record["id"], judge(kind, record)) for record in data.sample(candidates, SAMPLES[kind])]
    wrong = [
        f"{name}: {verdict.outcome}: {verdict.said}" for name, verdict in judged if verdict.outcome not in HARMLESS
    ]
    assert not wrong, "\n".join(wrong)
    assert sum(verdict.outcome == "passed" for _, verdict in judged) >= least


def test_what_must_be_rejected_is_as_common_as_what_must_be_accepted(conformance: Read) -> None:
    """Else a checker that says yes, or no, to everything would do well."""
    chosen = Counter(record["expect"] for record in data.sample(conformance("valid"), SAMPLES["valid"]))
    assert min(chosen[True], chosen[False]) > 500


def test_what_is_listed_is_there_and_differs(conformance: Read) -> None:
    found = {}
    for kind in data.KINDS:
        found |= {r["id"]: judge(kind, r) for r in conformance(kind) if r["id"] in data.listed()}
    assert found == {name: Verdict("listed", reason) for name, reason in data.listed().items()}


VALUES = {
    "id": "values",
    "wgsl": "@group(0) @binding(0) var<storage, read_write> r: array<f32, 2>;\n"
    "@compute @workgroup_size(1) fn main() { r[0] = 1.5; r[1] = 2.5; }",
    "entry": "main",
    "dispatch": [1, 1, 1],
    "inp": None,
    "out": {"g": 0, "b": 0, "size": 8, "stride": 4},
    "comps": [[0, "f32"]],
    "exp": [["v", 1.5], ["i", 2, 3]],
}
REFERENCE = {"ref": ["dawn-ss"], "data": "AQAAAA=="}
READ: data.Record = {
    "id": "read",
    "shaders": [],
    "buffers": [{"size": 4, "init": None}],
    "ops": [
        {"op": "write", "buf": 0, "off": 0, "data": "AQAAAA=="},
        {"op": "read", "buf": 0, "off": 0, "size": 4, "expect": {"kind": "equal", "dt": "u32", "data": "AQAAAA=="}},
    ],
}
MODULE = {"id": "module", "wgsl": "const a = 1;", "kind": "module", "expect": True}


@pytest.mark.parametrize(
    ("kind", "record", "changes", "outcome"),
    [
        ("expr", VALUES, {}, "passed"),
        ("expr", VALUES, {"exp": [["v", 1.5], ["i", 2.6, 3]]}, "failed"),
        ("expr", VALUES, {"exp": [["a", ["v", 1], ["v", 2]], ["p"]]}, "failed"),
        ("expr", VALUES, {"exp": [["p"], ["i", "-inf", "inf"]]}, "uncompared"),
        ("expr", VALUES, {"exp": [["c", ["p"]], ["a", ["v", 0], ["p"]]]}, "uncompared"),
        ("expr", VALUES, {"exp": [["p"], ["i", "-inf", 3]]}, "passed"),
        ("expr", VALUES, {"exp": [["p"], ["p"]], "wgsl": "fn"}, "failed"),
        ("exec", READ, {}, "passed"),
        ("exec", READ, {"ops": READ["ops"][:1]}, "uncompared"),
        ("exec", READ, {"ops": [{**READ["ops"][1], "expect": None}]}, "uncompared"),
        (
            "exec",
            READ,
            {"ops": [{**READ["ops"][1], "expect": {"kind": "refs", "refs": [REFERENCE], "words": []}}]},
            "uncompared",
        ),
        ("expr", VALUES, {"wgsl": VALUES["wgsl"].replace("1.5", "x")}, "failed"),
        ("expr", VALUES, {"comps": None}, "crashed"),
        ("valid", MODULE, {}, "passed"),
        ("valid", MODULE, {"expect": False}, "failed"),
        ("valid", MODULE, {"wgsl": "const a = b;"}, "failed"),
        ("valid", MODULE, {"wgsl": "const a = b;", "expect": False}, "passed"),
        ("valid", MODULE, {"kind": "warning"}, "failed"),
    ],
)
def test_the_judge(kind: str, record: data.Record, changes: data.Record, outcome: str) -> None:
    assert judge(kind, {**record, **changes}).outcome == outcome


def test_what_is_listed_and_passes_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "listed", lambda: {"module": "a reason"})
    assert judge("valid", MODULE).outcome == "failed"
    assert judge("valid", {**MODULE, "expect": False}) == Verdict("listed", "a reason")


def test_the_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows by test, the text of what fails, totals; 0 only where everything passed or is listed."""
    named = {"test": "webgpu:shader,validation,decl:names", "compute_only": True}
    modules = [
        {**named, **MODULE},
        {**named, **MODULE, "id": "wrong", "expect": False},
        {**named, **MODULE, "id": "listed", "expect": False},
    ]
    with gzip.open(tmp_path / "valid.dev.jsonl.gz", "wt") as file:
        file.writelines(f"{json.dumps(module)}\n" for module in modules)
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    monkeypatch.setattr(data, "listed", lambda: {"listed": "a reason"})
    monkeypatch.setattr(sys, "argv", ["conformance", "--kind", "valid", "--jobs", "1"])
    with pytest.raises(SystemExit) as left:
        main()
    shown = capsys.readouterr().out
    assert left.value.code == 1
    assert re.search(r"^ +1 +1 +0 +1 +0 +0  valid validation,decl:names$", shown, re.M)
    assert "--- wrong\nconst a = 1;\n>>> failed: accepted" in shown
    assert re.search(r"^ +0 +1 +0 +1 +0 +0 +2 +50\.00 .*valid: to be rejected$", shown, re.M)
    monkeypatch.setattr(sys, "argv", ["conformance", "module", "--kind", "valid", "--jobs", "1"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
