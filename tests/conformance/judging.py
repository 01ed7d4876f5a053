"""How one record of the conformance data goes."""

from __future__ import annotations

from dataclasses import dataclass

import bankshot

from . import data, execution, validation

OUTCOMES = ("passed", "listed", "uncompared", "failed", "unsupported", "crashed")
GOOD = ("passed", "listed")
HARMLESS = (*GOOD, "uncompared")
_JUDGES = {"expr": execution.expr_failures, "exec": execution.exec_failures, "valid": validation.failures}


@dataclass(frozen=True)
class Verdict:
    """How one record went: one of `OUTCOMES`, and what there is to say about it.

    *uncompared* records ran without an error, and expect nothing in particular of any output.
    """

    outcome: str
    said: str = ""


def judge(kind: str, record: data.Record) -> Verdict:
    """Run one record. A listed one must fail, so that the list has no stale rows."""
    verdict = _judge(kind, record)
    reason = data.listed().get(record["id"])
    if reason is None:
        return verdict
    if verdict.outcome == "failed":
        return Verdict("listed", reason)
    return Verdict("failed", f"is in listed.toml and {verdict.outcome}: {reason}\n{verdict.said}")


def _judge(kind: str, record: data.Record) -> Verdict:
    try:
        wrong = _JUDGES[kind](record)
    except bankshot.WgslError as error:
        first = error.diagnostics[0]
        return Verdict("unsupported" if first.code == "unsupported" else "failed", first.render())
    except Exception as error:
        return Verdict("crashed", f"{type(error).__name__}: {error}")
    if wrong:
        return Verdict("failed", "\n".join(wrong))
    return Verdict("passed" if _compares(kind, record) else "uncompared")


def _compares(kind: str, record: data.Record) -> bool:
    """Whether some output could have failed the record: it ran, but an expectation may accept everything."""
    match kind:
        case "expr":
            return not all(map(execution.accepts_everything, record["exp"]))
        case "exec":
            return any(op["op"] == "read" and execution.compared_bytes(op) for op in record["ops"])
        case _:
            return True
