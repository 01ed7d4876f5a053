"""What goes wrong by the user's hand: the command line prints it and leaves with exit code 2, without a traceback."""

from __future__ import annotations

import pickle


class UsageError(Exception):
    """Wrong use: a file that is not there, a manifest that makes no sense, data that does not fit. One sentence."""


class NoAdapter(UsageError):
    """There is nothing on this machine that wgpu can run a shader on; the message says what to install."""


class GpuError(UsageError):
    """wgpu refused the shader or the dispatch; the message is naga's or wgpu's own."""


class TooLarge(GpuError):
    """A binding is larger than the adapter can bind."""


class Lacking(GpuError):
    """The adapter has not what a shader enables."""


class DriverDied(GpuError):
    """The process that runs wgpu is no more: a driver has taken it along."""


class Died(UsageError):
    """The process that did a task has died. `last_words`: what it wrote to stderr, where that was kept."""

    def __init__(self, message: str, last_words: str = "") -> None:
        super().__init__(message)
        self.last_words = last_words


class TookTooLong(UsageError):
    """A task reported nothing for longer than its limit, and its process was ended."""


def portable(error: Exception, instead: type[Exception]) -> Exception:
    """The error, or its words in another one where it does not get from one process to another."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return instead(f"{type(error).__name__}: {error}")
    return error
