"""An implementation of WGSL's floating point that uses the whole error that the spec allows, to test error bounds.

`Legal` computes on float64 arrays that hold values of one kind. Each operation takes its exact result and moves it as
far as its row in "Floating Point Accuracy" allows, in a direction and by a share that a seed decides: rounded up or
down, products left unrounded on their way into a sum, subnormal results flushed to zero. The figures are those of the
spec, written down here a second time.
"""

from __future__ import annotations

import random

import numpy as np

FORMATS = {"f32": (23, 2.0**-126, np.finfo(np.float32).max), "f16": (10, 2.0**-14, 65504.0)}
SHARES = ("none", "up", "down", "any", "far")


class Legal:
    """`share` is how errors are chosen: none, all up, all down, or for each element any, or one of the extremes.
    `reorders`: sums and products are computed in an order of their own."""

    def __init__(self, kind: str, share: str, seed: int, reorders: bool = False) -> None:
        self.kind, self.share, self.reorders = kind, share, reorders
        self.mantissa, self.least, self.largest = FORMATS[kind]
        self.random = np.random.default_rng(seed)
        self.fuses = random.Random(seed)

    # -- errors --

    def ulp(self, x):
        """The distance between neighbours around |x|."""
        with np.errstate(all="ignore"):
            exponent = np.floor(np.log2(np.maximum(np.abs(x), self.least)))
        return 2.0 ** (np.minimum(exponent, 127) - self.mantissa)

    def _part(self, shape):
        """From -1 to 1."""
        if self.share == "none":
            return np.zeros(shape)
        if self.share in ("up", "down"):
            return np.full(shape, 1.0 if self.share == "up" else -1.0)
        return self.random.uniform(-1, 1, shape) if self.share == "any" else self.random.choice([-1.0, 1.0], shape)

    def rounded(self, x, part=None):
        """To the format: up where `part` is above 0, down where it is below, to the nearest where it is 0."""
        part = self._part(np.shape(x)) if part is None else part
        unit = self.ulp(x)
        whole = np.select([part > 0, part < 0], [np.ceil(x / unit), np.floor(x / unit)], np.rint(x / unit))
        with np.errstate(all="ignore"):
            result = np.where(np.isfinite(x), whole * unit, x)
        flushed = (np.abs(result) < self.least) & (self.random.random(np.shape(x)) < 0.5)
        result = np.where(flushed, 0.0, result)
        return np.where(np.abs(result) > self.largest, np.nan, result)

    def off(self, x, ulps=0.0, absolute=0.0):
        """Wrong by so much, and a number of the format, between the true result and the largest error."""
        part = self._part(np.shape(x))
        wrong = x + part * np.maximum(ulps * self.ulp(x), absolute)
        return self.rounded(wrong, -np.sign(part))

    # -- operations --

    def add(self, x, y):
        return self.rounded(x + y)

    def sub(self, x, y):
        return self.rounded(x - y)

    def mul(self, x, y):
        return self.rounded(x * y)

    def fma(self, x, y, z):
        product = x * y if self.fuses.random() < 0.5 else self.mul(x, y)
        return self.rounded(product + z)

    def div(self, x, y):
        limit = 126 if self.kind == "f32" else 14
        promised = (np.abs(y) >= 2.0**-limit) & (np.abs(y) <= 2.0**limit)
        return np.where(promised, self.off(x / y, 2.5), np.nan)

    def neg(self, x):
        return -x

    def abs(self, x):
        return np.abs(x)

    def min(self, x, y):
        return np.minimum(x, y)

    def max(self, x, y):
        return np.maximum(x, y)

    def clamp01(self, x):
        return np.clip(x, 0.0, 1.0)

    def floor(self, x):
        return np.floor(x)

    def ceil(self, x):
        return np.ceil(x)

    def trunc(self, x):
        return np.trunc(x)

    def round(self, x):
        return np.rint(x)

    def sign(self, x):
        return np.sign(x)

    def select(self, x, y, z):
        """x < y ? z : x"""
        return np.where(x < y, z, x)

    def step(self, x, y):
        return np.where(x <= y, 1.0, 0.0)

    def fract(self, x):
        return self.sub(x, np.floor(x))

    def rem(self, x, y):
        return self.sub(x, self.mul(y, np.trunc(self.div(x, y))))

    def inverseSqrt(self, x):
        return np.where(x > 0, self.off(1 / np.sqrt(x), 2.0), np.nan)

    def sqrt(self, x):
        """The root of 0 is 0, although 1 / inverseSqrt(0) has no bound."""
        return np.where(x == 0, 0.0, self.div(np.ones_like(x), self.inverseSqrt(x)))

    def exp(self, x):
        return self.off(np.exp(x), (3 if self.kind == "f32" else 1) + 2 * np.abs(x))

    def exp2(self, x):
        return self.off(np.exp2(x), (3 if self.kind == "f32" else 1) + 2 * np.abs(x))

    def _logarithm(self, x, result):
        absolute = 2.0**-21 if self.kind == "f32" else 2.0**-7
        near = (x >= 0.5) & (x <= 2.0)
        return np.where(x > 0, np.where(near, self.off(result, absolute=absolute), self.off(result, 3.0)), np.nan)

    def log(self, x):
        return self._logarithm(x, np.log(x))

    def log2(self, x):
        return self._logarithm(x, np.log2(x))

    def pow(self, x, y):
        return self.exp2(self.mul(y, self.log2(x)))

    def _wave(self, x, function):
        """Beyond pi, where the spec says nothing, of an argument that is off by four roundings of its reduction."""
        absolute = 2.0**-11 if self.kind == "f32" else 2.0**-7
        with np.errstate(invalid="ignore"):
            reduced = np.where(np.abs(x) <= np.pi, x, x + self._part(np.shape(x)) * 2 * self.ulp(x))
            return self.off(function(reduced), absolute=absolute)

    def sin(self, x):
        return self._wave(x, np.sin)

    def cos(self, x):
        return self._wave(x, np.cos)

    def tan(self, x):
        return self.div(self.sin(x), self.cos(x))

    def atan(self, x):
        return self.off(np.arctan(x), 4096 if self.kind == "f32" else 5)

    def sinh(self, x):
        return self.mul(self.sub(self.exp(x), self.exp(-x)), np.full_like(x, 0.5))

    def cosh(self, x):
        return self.mul(self.add(self.exp(x), self.exp(-x)), np.full_like(x, 0.5))

    def tanh(self, x):
        absolute = self.off(np.tanh(x), absolute=1e-5)
        return absolute if self.fuses.random() < 0.5 else self.div(self.sinh(x), self.cosh(x))

    def asinh(self, x):
        return self.log(self.add(x, self.sqrt(self.add(self.mul(x, x), np.ones_like(x)))))

    def degrees(self, x):
        return self.mul(x, self.rounded(np.full_like(x, 57.295779513082322865), np.zeros_like(x)))


# How each operation is written in WGSL: {0}, {1}, … are its operands.
WRITTEN = {
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} / {1})",
    "rem": "({0} % {1})",
    "neg": "(-{0})",
    "fma": "fma({0}, {1}, {2})",
    "select": "select({0}, {2}, {0} < {1})",
    "clamp01": "clamp({0}, 0.0, 1.0)",
    **{name: f"{name}({{0}}, {{1}})" for name in ("min", "max", "pow", "step")},
    **{
        name: f"{name}({{0}})"
        for name in (
            *("abs", "floor", "ceil", "trunc", "round", "sign", "fract", "inverseSqrt", "sqrt", "exp", "exp2"),
            *("log", "log2", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "degrees"),
        )
    },
}

Tree = tuple


def random_tree(choice: random.Random, depth: int) -> Tree:
    """An expression of `a` and `b`."""
    if depth == 0 or choice.random() < 0.1:
        return (choice.choice("ab"),)
    plain = ("add", "sub", "mul", "fma")
    name = choice.choice(plain) if choice.random() < 0.5 else choice.choice(sorted(WRITTEN))
    operands = 1 + max(i for i in range(3) if f"{{{i}}}" in WRITTEN[name])
    return (name, *(random_tree(choice, depth - 1) for _ in range(operands)))


def written(tree: Tree) -> str:
    return WRITTEN[tree[0]].format(*map(written, tree[1:])) if len(tree) > 1 else tree[0]


def computed(tree: Tree, arithmetic: Legal, **variables):
    """The value of an expression, operation by operation."""
    if len(tree) == 1:
        return variables[tree[0]]
    with np.errstate(all="ignore"):
        if arithmetic.reorders and tree[0] in ("add", "sub", "fma"):
            return _sum(tree, arithmetic, variables)
        if arithmetic.reorders and tree[0] in ("mul", "div"):
            return _product(tree, arithmetic, variables)
        return getattr(arithmetic, tree[0])(*(computed(part, arithmetic, **variables) for part in tree[1:]))


def _sum(tree: Tree, arithmetic: Legal, variables):
    terms = [(sign, computed(term, arithmetic, **variables)) for sign, term in _terms(tree, 1)]
    arithmetic.fuses.shuffle(terms)
    total = terms[0][0] * terms[0][1]
    for sign, term in terms[1:]:
        total = arithmetic.add(total, sign * term)
    return total


def _terms(tree: Tree, sign: int):
    match tree:
        case ("add", left, right):
            return [*_terms(left, sign), *_terms(right, sign)]
        case ("sub", left, right):
            return [*_terms(left, sign), *_terms(right, -sign)]
        case ("fma", x, y, z):
            return [(sign, ("mul", x, y)), *_terms(z, sign)]
        case _:
            return [(sign, tree)]


def _product(tree: Tree, arithmetic: Legal, variables):
    """A factor first, then the others and the divisors as they come."""
    factors = [(below, computed(factor, arithmetic, **variables)) for below, factor in _factors(tree, False)]
    arithmetic.fuses.shuffle(factors)
    first = next(i for i, (below, _) in enumerate(factors) if not below)
    total = factors.pop(first)[1]
    for below, factor in factors:
        total = arithmetic.div(total, factor) if below else arithmetic.mul(total, factor)
    return total


def _factors(tree: Tree, below: bool):
    match tree:
        case ("mul", left, right):
            return [*_factors(left, below), *_factors(right, below)]
        case ("div", left, right):  # x / (y / z) is a quotient of quotients, and stays one
            return [*_factors(left, below), (not below, right)]
        case _:
            return [(below, tree)]
