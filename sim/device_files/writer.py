"""A `Device` as a device file that reads back equal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from ..models import Cost, Device, MeasuredCosts
from ..wgsl.diagnostics import WgslError
from .figures import FIGURES, NONE
from .find import find_shipped
from .reader import profile_of
from .toml_text import parse


def write_profile(path: str | Path, device: Device, costs: MeasuredCosts | None) -> None:
    """Write a profile with these costs.

    Raises ValueError, and writes nothing, for figures that no file can give: `read_profile` would reject them.
    """
    made = device.with_(costs=costs)
    text = "".join(f"{line}\n" for line in _lines(made, costs))
    try:
        same = profile_of(parse(text, str(path)), find_shipped) == made
    except WgslError as error:
        raise ValueError(f"no file can hold device {device.name}: {error.diagnostics[0].message}") from None
    if not same:
        raise ValueError(f"no file can hold device {device.name}: it would not read back equal")
    Path(path).write_text(text, encoding="utf-8", newline="\n")


def _lines(device: Device, costs: MeasuredCosts | None) -> Iterator[str]:
    yield f"name = {_value(device.name)}"
    if costs is not None and costs.calibrated != bool(costs.costs):
        yield f"calibrated = {_value(costs.calibrated)}"
    for name in FIGURES:
        yield f"{name} = {_value(cast('object', getattr(device, name)))}"
    yield from _table("webgpu_limits", device.webgpu_limits)
    named = (*FIGURES, "webgpu_limits")
    yield from _table("sources", {name: {device.sources[name].mark: device.sources[name].where} for name in named})
    if costs is not None:
        about = {name: cast("str", getattr(costs, name)) for name in ("adapter", "driver", "date", "command")}
        yield from _table("measured", {name: each for name, each in about.items() if each})
        yield from _table("costs", {name: _cost(each) for name, each in costs.costs.items()})


def _table(name: str, rows: Mapping[str, object]) -> Iterator[str]:
    yield ""
    yield f"[{name}]"
    for key, value in rows.items():
        yield f"{_key(key)} = {_value(value)}"


def _cost(cost: Cost) -> dict[str, object]:
    rows = {name: cast("object", getattr(cost, name)) for name in ("value", "spread", "source", "command")}
    return {name: value for name, value in rows.items() if value is not None and (name, value) != ("command", "")}


def _value(value: object) -> str:
    """Write a value as TOML. None is a text, because TOML has no null."""
    match value:
        case None:
            return _value(NONE)
        case str():
            return _text(value)
        case bool():
            return "true" if value else "false"
        case tuple():
            return f"[{', '.join(map(_value, cast('tuple[object, ...]', value)))}]"
        case Mapping():
            pairs = cast("Mapping[object, object]", value).items()
            inside = ", ".join(f"{_key(str(key))} = {_value(each)}" for key, each in pairs)
            return f"{{ {inside} }}" if inside else "{}"
        case float():
            return repr(float(value))
        case _:
            return str(value)


def _key(text: str) -> str:
    return text if text.isascii() and text.replace("_", "a").replace("-", "a").isalnum() else _text(text)


def _text(text: str) -> str:
    """Write a basic string. JSON's escapes are TOML's, which also escapes DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
