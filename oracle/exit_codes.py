"""Exit codes of the command line, and the message and code of each error."""

from __future__ import annotations

from ..sim.fast_dataclass import frozen
from ..sim.wgsl.diagnostics import Crash, WgslError
from .errors import UsageError, printable

CLEAN, FOUND, WRONG_USE, INTERNAL, INTERRUPTED = 0, 1, 2, 70, 130


@frozen
class Failure:
    """The message of an error, and its exit code."""

    text: str
    code: int

    @property
    def reason(self) -> str:
        """The text without `error: `, for a place that is labelled as an error."""
        return self.text.removeprefix("error: ")

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """The failure that an exception stands for; one that is not the user's is an internal error."""
        if isinstance(error, WgslError):
            return cls(str(error), WRONG_USE)
        if isinstance(error, UsageError):
            return cls(f"error: {error}", WRONG_USE)
        if isinstance(error, MemoryError):
            return cls(f"error: out of memory ({str(error) or 'none is left'})", WRONG_USE)
        if isinstance(error, OSError) and error.strerror and not isinstance(error, ConnectionError):
            named = f"{printable(str(error.filename))}: " if error.filename is not None else ""
            return cls(f"error: {named}{error.strerror[0].lower()}{error.strerror[1:]}", WRONG_USE)
        from ..sim.models.costs import MissingCost  # imports NumPy

        if isinstance(error, MissingCost):
            return cls(f"error: {error}", WRONG_USE)
        message = str(error) if isinstance(error, Crash) else f"internal error: {type(error).__name__}: {error}"
        return cls(f"{message}\nthis is a bug in bankshot; BANKSHOT_DEBUG=1 shows the traceback", INTERNAL)
