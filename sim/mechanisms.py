"""The mechanisms that make runs faster and change no result. Tests turn each off with `without`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

# Name -> what it does.
MECHANISMS = {
    "blocks": "one shadow record for 64 or 16 words under regular accesses",
    "kept shadow": "shadow memory that runs use one after the other",
    "kept workspaces": "memory of the machine that runs use one after the other",
    "kept results": "what is derived from modules and pipelines: programs, influences, candidates for cures",
    "ready memory": "device memory that is made while bindings are read",
    "spare memory": "device memory that runs use one after the other",
    "history": "what earlier runs showed about the faster ways to run",
    "interleaved": "the same lane of several workgroups side by side, where few lanes are active",
    "side by side": "small workgroups in one row of registers",
    "threads": "several threads",
    "proofs": "no rerun in an order that is proven to give the same outputs",
}
_off: set[str] = set()


def is_on(name: str) -> bool:
    """Whether a mechanism is on."""
    return name not in _off


def all_off() -> frozenset[str]:
    """Return the mechanisms that are off."""
    return frozenset(_off)


@contextmanager
def without(*names: str) -> Generator[None]:
    """Turn mechanisms off, in all threads."""
    before = set(_off)
    _off.update(names)
    try:
        yield
    finally:
        _off.clear()
        _off.update(before)
