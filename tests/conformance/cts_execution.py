"""Holds the simulator against the execution half of the WebGPU conformance suite.

`python -m tests.conformance.cts_execution expr|exec [SUBSTRING] [--show N] [--jobs N]` runs every record (id holding
SUBSTRING) and prints, by test path, how many passed, failed, were refused as unsupported, or crashed.

The records are read from the folder that BANKSHOT_CONFORMANCE names (default `../shared/conformance`, beside the
repository). An `expr` record is one shader, its input, and for each result what is accepted: exact values or intervals.
An `exec` record is a list of operations on buffers, some of which are dispatches, and some reads with what is expected.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import math
import os
import struct
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sim

Record = dict[str, Any]

FOLDER = Path(os.environ.get("BANKSHOT_CONFORMANCE", Path(__file__).parents[3] / "shared" / "conformance"))
OUTCOMES = ("passed", "failed", "unsupported", "crashed")
_DEVICE = "swiftshader"  # most of the reference outputs, where those of subgroups may differ, are of its subgroup size


def records(name: str) -> Iterator[Record]:
    """Every record of `expr` or `exec`, in the order of the file."""
    with gzip.open(FOLDER / f"{name}.dev.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


@dataclass(frozen=True)
class Verdict:
    """How one record went: one of `OUTCOMES`, and what there is to say about it."""

    outcome: str
    said: str = ""


def judge(record: Record) -> Verdict:
    """Run one record of either kind."""
    try:
        wrong = _expr_failures(record) if "exp" in record else _exec_failures(record)
    except sim.WgslError as error:
        refused = error.diagnostics[0].code == "unsupported"
        return Verdict("unsupported" if refused else "failed", error.diagnostics[0].render())
    except Exception as error:
        return Verdict("crashed", f"{type(error).__name__}: {error}")
    return Verdict("failed", "\n".join(wrong)) if wrong else Verdict("passed")


# ---- expr: values ------------------------------------------------------------------------------------

_FORMATS = {
    "f32": "<f",
    "f16": "<e",
    "u32": "<I",
    "i32": "<i",
    "bool": "<I",
    "abstract-int": "<q",
    "abstract-float": "<d",
}
_SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _expr_failures(record: Record) -> list[str]:
    out = record["out"]
    bindings = {(out["g"], out["b"]): bytes(out["size"])}
    if record["inp"]:
        given = record["inp"]
        bindings[given["g"], given["b"]] = base64.b64decode(given["data"])
    run = sim.simulate(
        record["wgsl"],
        grid=record["dispatch"],
        bindings=bindings,
        entry=record["entry"],
        device=_DEVICE,
        probes="none",
    )
    got = run.outputs[out["g"], out["b"]]
    wrong = []
    for number, expected in enumerate(record["exp"]):
        values = [_scalar(got, number * out["stride"] + offset, kind) for offset, kind in record["comps"]]
        if not accepted(expected, values):
            wrong.append(f"result {number} is {values}, accepted: {expected}")
    return wrong


def _scalar(data: bytes, offset: int, kind: str) -> float:
    value = struct.unpack_from(_FORMATS[kind], data, offset)[0]
    return int(value != 0) if kind == "bool" else value


def accepted(expected: list[Any], values: list[float]) -> bool:
    """Whether the components of one result satisfy an expectation.

    `["p"]` anything, `["v", x]` equal numbers, `["i", lo, hi]` a closed interval (all numbers: NaN too), `["c", …]` one
    expectation for each component, `["a", …]` any of these.
    """
    match expected:
        case ["p"]:
            return True
        case ["a", *choices]:
            return any(accepted(choice, values) for choice in choices)
        case ["c", *each]:
            return len(each) == len(values) and all(accepted(e, [v]) for e, v in zip(each, values, strict=True))
        case ["v", number]:
            return len(values) == 1 and values[0] == _number(number, values[0])
        case ["i", low, high]:
            everything = (low, high) == ("-inf", "inf")
            (value,) = values
            return everything or _number(low, value) <= value <= _number(high, value)
        case _:
            raise ValueError(f"unknown expectation {expected!r}")


def _number(written: Any, like: float) -> float:
    """A number as written: as text where JSON has none like it, and a float that may look like an integer."""
    number = _SPECIAL.get(written) or int(written) if isinstance(written, str) else written
    return float(number) if isinstance(like, float) else number


# ---- exec: operations on buffers ---------------------------------------------------------------------

_LETTERS = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "f16": "e", "f32": "f", "f64": "d"}


def _exec_failures(record: Record) -> list[str]:
    buffers = [bytearray(b["size"]) for b in record["buffers"]]
    for buffer, described in zip(buffers, record["buffers"], strict=True):
        if described["init"]:
            _write(buffer, 0, _unpack(described["init"]))
    wrong = []
    for number, op in enumerate(record["ops"]):
        match op["op"]:
            case "write":
                _write(buffers[op["buf"]], op["off"], _unpack(op["data"]))
            case "copy":
                _write(buffers[op["dst"]], op["do"], buffers[op["src"]][op["so"] : op["so"] + op["size"]])
            case "clear":
                _write(buffers[op["buf"]], op["off"], bytes(op["size"]))
            case "dispatch":
                _dispatch(record, op, buffers)
            case "read":
                got = bytes(buffers[op["buf"]][op["off"] : op["off"] + op["size"]])
                if not _as_expected(op, got):
                    wrong.append(f"operation {number} reads {_shown(op, got)}")
            case other:
                raise ValueError(f"unknown operation {other!r}")
    return wrong


def _unpack(text: str) -> bytes:
    """Base64, of deflated bytes where a `z:` stands before it."""
    return zlib.decompress(base64.b64decode(text[2:])) if text.startswith("z:") else base64.b64decode(text)


def _write(buffer: bytearray, offset: int, data: bytes | bytearray) -> None:
    buffer[offset : offset + len(data)] = data


def _dispatch(record: Record, op: Record, buffers: list[bytearray]) -> None:
    grid = op["wg"]
    if op.get("indirect"):
        buffer, offset = op["indirect"]
        grid = struct.unpack_from("<3I", buffers[buffer], offset)
    places = {(e["g"], e["b"]): (buffers[e["buf"]], e["off"], e["size"]) for e in op["bind"]}
    run = sim.simulate(
        record["shaders"][op["shader"]],
        grid=grid,
        bindings={key: bytes(buffer[start : start + size]) for key, (buffer, start, size) in places.items()},
        entry=op["entry"],
        overrides=op.get("constants") or {},
        device=_DEVICE,
        probes="none",
    )
    for key, data in run.outputs.items():
        buffer, start, _ = places[key]
        _write(buffer, start, data)


def _as_expected(op: Record, got: bytes) -> bool:
    """Whether a read gives the bytes that are wanted, or those of one of the reference implementations."""
    expect = op["expect"]
    if expect is None:
        return True
    if expect["kind"] == "equal":
        want = _unpack(expect["data"])
        letter = _LETTERS[expect["dt"]]
        layout = f"<{len(want) // struct.calcsize(letter)}{letter}"
        return struct.unpack(layout, got[: len(want)]) == struct.unpack(layout, want)
    words = expect.get("words", [[0, (op["size"] + 3) // 4]])
    wanted = [_unpack(reference["data"]) for reference in expect["refs"]]
    return any(all(got[a * 4 : z * 4] == want[a * 4 : z * 4] for a, z in words) for want in wanted)


def _shown(op: Record, got: bytes) -> str:
    """The first words that differ from the nearest thing that was wanted."""
    expect = op["expect"]
    want = _unpack(expect["data"] if expect["kind"] == "equal" else expect["refs"][0]["data"])
    pairs = [(a, got[a : a + 4].hex(), want[a : a + 4].hex()) for a in range(0, min(len(got), len(want)), 4)]
    differing = [f"{g} for {w} at {a}" for a, g, w in pairs if g != w]
    return f"{len(differing)} words that differ: {', '.join(differing[:8])}"


# ---- the whole run -----------------------------------------------------------------------------------


def verdicts(chosen: Iterable[Record], jobs: int = 1) -> Iterator[Verdict]:
    """The verdict on each record, in order."""
    if jobs == 1:
        yield from map(judge, chosen)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(judge, chosen, chunksize=16)


def _print_table(chosen: list[Record], given: list[Verdict], show: int) -> None:
    by_test: dict[str, Counter[str]] = defaultdict(Counter)
    to_show: dict[str, list[tuple[Record, Verdict]]] = defaultdict(list)
    for record, verdict in zip(chosen, given, strict=True):
        by_test[record["test"]][verdict.outcome] += 1
        if verdict.outcome != "passed" and len(to_show[record["test"]]) < show:
            to_show[record["test"]].append((record, verdict))
    print(" ".join(f"{outcome:>11}" for outcome in OUTCOMES), " test")
    for test, counts in sorted(by_test.items(), key=lambda row: (row[1]["passed"] == row[1].total(), row[0])):
        print(
            " ".join(f"{counts[outcome]:11}" for outcome in OUTCOMES), "", test.removeprefix("webgpu:shader,execution,")
        )
        for record, verdict in to_show[test]:
            source = record.get("wgsl") or "\n\n".join(record["shaders"])
            print(f"\n--- {record['id']}\n{source.strip()}\n>>> {verdict.said}\n")
    totals = sum(by_test.values(), Counter())
    print(" ".join(f"{totals[outcome]:11}" for outcome in OUTCOMES), f" of {len(chosen)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("expr", "exec"))
    parser.add_argument("only", nargs="?", default="", help="run only the records whose id holds this")
    parser.add_argument("--show", type=int, default=0, help="print that many records of each test that did not pass")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    args = parser.parse_args()
    chosen = [r for r in records(args.kind) if args.only in (r.get("id") or "")]
    start = time.perf_counter()
    given = list(verdicts(chosen, args.jobs))
    seconds = time.perf_counter() - start
    _print_table(chosen, given, args.show)
    print(f"{seconds:.1f} s, {len(chosen) / seconds:.0f} a second", file=sys.stderr)


if __name__ == "__main__":
    main()
