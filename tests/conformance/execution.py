"""Holds the simulator against a record of values (`expr`) or of operations on buffers (`exec`).

Each function returns what is wrong, one line each, and raises what the simulator raises.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from typing import Any

import bankshot

from .data import Record

_DEVICES = {"dawn-ss": "swiftshader", "wgpu-lvp": "lavapipe"}  # reference implementation -> what it ran on
_DEVICE = "swiftshader"  # where the record does not say

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


def expr_failures(record: Record) -> list[str]:
    """The results that are not accepted."""
    out = record["out"]
    bindings: dict[Any, Any] = {(out["g"], out["b"]): bytes(out["size"])}
    if record["inp"]:
        given = record["inp"]
        bindings[given["g"], given["b"]] = base64.b64decode(given["data"])
    run = bankshot.simulate(
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


def accepts_everything(expected: list[Any]) -> bool:
    """Whether an expectation rejects no value."""
    match expected:
        case ["p"] | ["i", "-inf", "inf"]:
            return True
        case ["c", *each]:
            return all(map(accepts_everything, each))
        case ["a", *choices]:
            return any(map(accepts_everything, choices))
        case _:
            return False


def _number(written: Any, like: float) -> float:
    """A number as written: as text where JSON has none like it, and a float that may look like an integer."""
    number = _SPECIAL.get(written) or int(written) if isinstance(written, str) else written
    return float(number) if isinstance(like, float) else number


# ---- exec: operations on buffers ---------------------------------------------------------------------

_LETTERS = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "f16": "e", "f32": "f", "f64": "d"}


def exec_failures(record: Record) -> list[str]:
    """The reads that give what none of the reference implementations gave, each on the profile of its device."""
    wrong: list[str] = []
    for device in _devices(record):
        wrong = _reads_that_differ(record, device)
        if not wrong:
            break
    return wrong


def _devices(record: Record) -> list[str]:
    """The profiles of the devices that the reference outputs come from: how wide their subgroups are may matter."""
    expects = [op["expect"] for op in record["ops"] if op["op"] == "read" and op["expect"]]
    names = [name for expect in expects for refs in expect.get("refs", ()) for name in refs["ref"]]
    return list(dict.fromkeys(_DEVICES[name] for name in names)) or [_DEVICE]


def _reads_that_differ(record: Record, device: str) -> list[str]:
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
                _dispatch(record, op, buffers, device)
            case "read":
                got = bytes(buffers[op["buf"]][op["off"] : op["off"] + op["size"]])
                if not _as_expected(op, got):
                    wrong.append(f"operation {number} reads {_shown(op, got)}")
            case other:
                raise ValueError(f"unknown operation {other!r}")
    return wrong


def _unpack(text: str) -> bytes:
    """Base64, of deflated bytes if `z:` precedes it."""
    return zlib.decompress(base64.b64decode(text[2:])) if text.startswith("z:") else base64.b64decode(text)


def _write(buffer: bytearray, offset: int, data: bytes | bytearray) -> None:
    buffer[offset : offset + len(data)] = data


def _dispatch(record: Record, op: Record, buffers: list[bytearray], device: str) -> None:
    grid = op["wg"]
    if op.get("indirect"):
        buffer, offset = op["indirect"]
        grid = struct.unpack_from("<3I", buffers[buffer], offset)
    places: dict[Any, tuple[bytearray, int, int]] = {
        (e["g"], e["b"]): (buffers[e["buf"]], e["off"], e["size"]) for e in op["bind"]
    }
    run = bankshot.simulate(
        record["shaders"][op["shader"]],
        grid=grid,
        bindings={key: bytes(buffer[start : start + size]) for key, (buffer, start, size) in places.items()},
        entry=op["entry"],
        overrides=op.get("constants") or {},
        device=device,
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


def compared_bytes(op: Record) -> int:
    """Count the bytes of a read that are compared with something."""
    expect = op["expect"]
    if expect is None:
        return 0
    if expect["kind"] == "equal":
        return len(_unpack(expect["data"]))
    return sum(4 * (end - start) for start, end in expect.get("words", [[0, (op["size"] + 3) // 4]]))


def _shown(op: Record, got: bytes) -> str:
    """The first words that differ from the nearest thing that was wanted."""
    expect = op["expect"]
    want = _unpack(expect["data"] if expect["kind"] == "equal" else expect["refs"][0]["data"])
    pairs = [(a, got[a : a + 4].hex(), want[a : a + 4].hex()) for a in range(0, min(len(got), len(want)), 4)]
    differing = [f"{g} for {w} at {a}" for a, g, w in pairs if g != w]
    return f"{len(differing)} words that differ: {', '.join(differing[:8])}"
