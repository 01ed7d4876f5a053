"""`without_gc`: a context, or decorator, in which Python does not search for garbage in cycles.

The trees of a module are long-lived, and their number grows with the text: the collector would examine all of them
again and again, which takes three quarters of the time of a large module, and finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_gc() -> Generator[None]:
    """Switch the collector off. Only the outermost context switches it on again, if it was on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
