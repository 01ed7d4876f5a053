"""A dict as a cache of bounded size: `remember` keeps the entries that were used last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .mechanisms import is_on

K = TypeVar("K")
V = TypeVar("V")


def remember(cache: dict[K, V], key: K, make: Callable[[], V], most: int) -> V:
    """Return the value of `key`, calling `make` where the cache has none, and drop all but the `most` used last.

    Thread-safe without a lock, since each step is one operation of a dict: two threads that ask at once may both call
    `make`.
    """
    if not is_on("kept results"):
        return make()
    found = cache.pop(key, None)
    cache[key] = found = make() if found is None else found
    if len(cache) > most:
        for oldest in list(cache)[:-most]:
            cache.pop(oldest, None)
    return found
