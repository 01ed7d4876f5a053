"""Formats of audit reports, one module each. Every module in this folder is a format: its class `Format` implements
`AuditFormat`. `bankshot audit` takes its option --format, and an option for each file, from this list.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from ..protocol import OUTPUTS, AuditFormat, ReportOptions


@cache
def formats() -> tuple[type[AuditFormat], ...]:
    """All formats, by name."""
    modules = (import_module(f".{each.name}", __name__) for each in pkgutil.iter_modules(__path__))
    return tuple(sorted((module.Format for module in modules), key=lambda each: each.name))


def printed() -> list[type[AuditFormat]]:
    """The formats that --format chooses from."""
    return [each for each in formats() if each.output != "file"]


def written() -> list[type[AuditFormat]]:
    """The formats that write a file, which an option of that name names."""
    return [each for each in formats() if each.output == "file"]


def enabled(options: ReportOptions) -> list[type[AuditFormat]]:
    """The formats that the options and the environment ask for, in the order in which they finish."""
    chosen = [each for each in formats() if each.enabled(options)]
    return sorted(chosen, key=lambda each: OUTPUTS.index(each.output))
