"""The types of the pytest fixture `bankshot`, for annotations in tests."""

from bankshot.oracle.pytest_plugin.fixture import Bankshot, MeasuredRun

__all__ = ["Bankshot", "MeasuredRun"]
