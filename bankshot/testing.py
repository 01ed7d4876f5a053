"""The types that a test gets from the pytest fixture `bankshot`, for annotations."""

from bankshot.oracle.pytest_plugin.fixture import Bankshot, MeasuredRun

__all__ = ["Bankshot", "MeasuredRun"]
