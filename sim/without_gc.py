"""`without_gc`: a context, or decorator, in which Python does not search for garbage in cycles.

The trees of a module are long-lived, and their number grows with the text: the collector would examine all of them
again and again, which takes three quarters of the time of a large module, and finds nothing. Of a large one, it would
still examine them twice right afterwards, so they are moved to its oldest generation.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

LARGE = 250_000  # new objects: of some thousand statements
MOST = 8_000_000  # objects, of about 100 bytes, that are moved between two full collections

_moved = 0


@contextmanager
def without_gc() -> Generator[None]:
    """Switch the collector off. Only the outermost context switches it on again, if it was on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            _move_large()
            gc.enable()


def _move_large() -> None:
    """Move many new objects to the oldest generation, which only full collections examine.

    Those count as new only what younger generations have handed on. So garbage among the moved objects must have a
    limit of its own.
    """
    global _moved
    young = gc.get_count()[0]
    if young < LARGE or gc.get_freeze_count():
        return
    _moved += young
    if _moved > MOST:
        gc.collect()
        _moved = 0
    else:
        gc.freeze()  # out of every generation at once,
        gc.unfreeze()  # and back into the oldest
