"""How errors are told on the command line, and what they make of the exit code."""

from __future__ import annotations

from ..sim.fast_dataclass import frozen
from ..sim.wgsl.diagnostics import Crash, WgslError
from .errors import UsageError

CLEAN, FOUND, WRONG_USE, INTERNAL, INTERRUPTED = 0, 1, 2, 70, 130  # exit codes


@frozen
class Failure:
    """What a user is told of an error, and the exit code that it makes."""

    text: str
    code: int

    @property
    def reason(self) -> str:
        """The text for a place that says that it is an error."""
        return self.text.removeprefix("error: ")

    @classmethod
    def of(cls, error: Exception) -> Failure:
        match error:
            case WgslError():
                return cls(str(error), WRONG_USE)
            case UsageError():
                return cls(f"error: {error}", WRONG_USE)
            case MemoryError():
                return cls(f"error: there is not enough memory ({str(error) or 'none is left'})", WRONG_USE)
        message = str(error) if isinstance(error, Crash) else f"internal error: {type(error).__name__}: {error}"
        return cls(f"{message}\nthis is a fault of bankshot; BANKSHOT_DEBUG=1 shows where", INTERNAL)
