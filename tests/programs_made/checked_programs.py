"""Random programs of integers and of floats, checked, with a grid and bindings to run them with."""

from __future__ import annotations

from typing import Any

import numpy as np

import bankshot

from . import random_programs as integers
from .random_floats import Maker, Renderer

Made = tuple[Any, dict[str, Any]]  # a module, and `grid` and `bindings`


def integer_program(seed: int) -> Made:
    size, groups = 8, 2
    data = np.random.default_rng(seed).integers(0, 9, size * groups).astype(np.uint32)
    out = np.zeros(size * groups * integers.LOGGED, np.uint32)
    bindings = {"out": out, "given": data, "same": np.uint32(seed % 4)}
    return bankshot.check(integers.render(integers.Maker(seed).program(), size)), {"grid": groups, "bindings": bindings}


def float_program(seed: int) -> Made:
    x = np.random.default_rng(seed).integers(-20, 20, 64).astype(np.float32) * np.float32(0.1)
    bindings = {"x": x, "y": np.zeros(64 + 256, np.float32), "tenth": np.float32(0.1)}
    return bankshot.check(Renderer(False).source(Maker(seed).program())), {"grid": 2, "bindings": bindings}
