"""Audits as a library: run a case of a manifest and judge it."""

from .judge.audit import audit
from .judge.options import Options
from .judge.verdict import Audit

__all__ = ["Audit", "Options", "audit"]
