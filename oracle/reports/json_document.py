"""The JSON document of a command. Its `schema` number changes when a name in it does."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

Entry = dict[str, Any]  # one case, in values that `document` can write

SCHEMA = 1


def document(
    verb: str, entries: Sequence[Entry], ok: bool, error: str | None = None, summary: str | None = None
) -> str:
    """The whole report of one command. `error`: what ended it before its last case, or why cases could not be run.
    `summary`: its last line, as people read it."""
    whole: Entry = {"tool": "bankshot", "schema": SCHEMA, "verb": verb, "ok": ok, "cases": list(entries)}
    if summary is not None:
        whole["summary"] = summary
    if error is not None:
        whole["error"] = error
    return json.dumps(_plain(whole), indent=2)


def _plain(value: object) -> object:
    """Replace NaN and infinity, which JSON lacks, by strings, and NumPy's scalars and arrays by Python's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    if hasattr(value, "item"):
        number: Any = value
        return _plain(number.item() if getattr(number, "ndim", 0) == 0 else number.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
