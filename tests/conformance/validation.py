"""Holds the checker against a `valid` record: is what must be accepted accepted, and what must be rejected rejected?"""

from __future__ import annotations

from bankshot.sim.wgsl.check.check_module import LANGUAGE_FEATURES, check
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source

from .data import Record


def failures(record: Record) -> list[str]:
    """What is wrong. Raises WgslError if nothing else is wrong: it should have been accepted."""
    if record["kind"] == "warning":
        return (
            []
            if _warns(record) == record["expect"]
            else ["the module has " + ("no warning" if record["expect"] else "one")]
        )
    try:
        _warns(record)
    except WgslError:
        if record["expect"]:
            raise
        return []
    return [] if record["expect"] else ["accepted"]


def _warns(record: Record) -> bool:
    """Create the module, or the pipeline; whether there were warnings. Raises WgslError."""
    absent = {name for name, supported in (record.get("langq") or {}).items() if not supported}
    module = check(Source(record["wgsl"]), features=LANGUAGE_FEATURES - absent)
    if record["kind"] == "pipeline":
        module.pipeline(overrides=record.get("constants") or {})
    return bool(module.warnings)
