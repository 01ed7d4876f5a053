"""Audits as a library: run a case of a manifest in every way there is, and judge it."""

from .judge.audit import Audit, Options, audit

__all__ = ["Audit", "Options", "audit"]
