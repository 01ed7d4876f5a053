"""The integer expressions of `#if` and `#elif`: C's operators and precedence, on integers of 128 bits.

The caller has expanded macros and replaced `defined X`. A name that is no macro is 0, as in C, where it is tested for
truth: `#elif INPLACE`, `A || !B`. Used as a number it is an error rather than a silent 0, except in an operand that is
not evaluated: `defined(N) && N > 4` is valid.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from ..diagnostics import WgslError, fail
from ..source import Span
from ..syntax.lexer import WORD

_TOKEN = re.compile(rf"\s*(\d\w*|{WORD}|<<|>>|<=|>=|==|!=|&&|\|\||\S)")
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})[iu]?")
_MOST_NESTING = 32
_MOST_SHIFT = 63
_MOST_BITS = 128

# Loosest first.
_PRECEDENCE = ["||", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %"]
_LEVEL = {symbol: level for level, symbols in enumerate(_PRECEDENCE) for symbol in symbols.split()}


def _quotient(left: int, right: int) -> int:
    """Divide, rounding toward zero as in C."""
    magnitude = abs(left) // abs(right)
    return magnitude if (left < 0) == (right < 0) else -magnitude


_BINARY: dict[str, Callable[[int, int], int]] = {
    "||": lambda left, right: int(bool(left or right)),
    "&&": lambda left, right: int(bool(left and right)),
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "&": lambda left, right: left & right,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<<": lambda left, right: left << right,
    ">>": lambda left, right: left >> right,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda left, right: left - right * _quotient(left, right),
}
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": lambda value: int(not value),
}


class _Unset(int):
    """The value of a name that is no macro: 0."""

    name = ""


def evaluate(text: str, span: Span) -> int:
    """Evaluate a condition whose macros are expanded. Raises `WgslError` (`bad-condition`) at `span`."""
    condition = _Condition(text, span)
    value = condition.binary(0, live=True)
    if condition.token:
        raise condition.wrong(f"'{condition.token}' cannot stand here")
    return value


class _Condition:
    def __init__(self, text: str, span: Span) -> None:
        self.span = span
        self.tokens: list[str] = _TOKEN.findall(text)[::-1]  # in reverse: the next one is last
        self.depth = 0

    @property
    def token(self) -> str:
        """The current token, empty at the end."""
        return self.tokens[-1] if self.tokens else ""

    def wrong(self, message: str) -> WgslError:
        return fail("bad-condition", message, self.span)

    def binary(self, least: int, live: bool) -> int:
        """Parse operators of level `least` and tighter; where not `live`, only the syntax is checked."""
        left = self.unary(live)
        while _LEVEL.get(self.token, -1) >= least:
            symbol = self.tokens.pop()
            settled = (symbol == "&&" and not left) or (symbol == "||" and bool(left))
            right = self.binary(_LEVEL[symbol] + 1, live and not settled)
            if live:
                left = self.apply(symbol, left, right)
        return left

    def apply(self, symbol: str, left: int, right: int) -> int:
        if symbol not in ("&&", "||"):
            left, right = self.number(left), self.number(right)
        if symbol in ("/", "%") and right == 0:
            raise self.wrong("division by zero")
        if symbol in ("<<", ">>") and not 0 <= right <= _MOST_SHIFT:
            raise self.wrong(f"shift by {right}, not 0 to {_MOST_SHIFT}")
        value = int(_BINARY[symbol](left, right))
        if value.bit_length() > _MOST_BITS:
            raise self.wrong(f"the result of '{symbol}' has more than {_MOST_BITS} bits")
        return value

    def number(self, value: int) -> int:
        if isinstance(value, _Unset):
            raise self.wrong(f"'{value.name}' is not defined")
        return value

    def unary(self, live: bool) -> int:
        token = self.token
        if not token:
            raise self.wrong("the condition ends too early")
        self.tokens.pop()
        self.depth += 1
        if self.depth > _MOST_NESTING:
            raise self.wrong(f"nested deeper than {_MOST_NESTING} levels")
        value = self.operand(token, live)
        self.depth -= 1
        return value

    def operand(self, token: str, live: bool) -> int:
        if token in _UNARY:
            value = self.unary(live)
            return _UNARY[token](value if token == "!" else self.number(value))
        if token == "(":
            value = self.binary(0, live)
            if self.token != ")":
                raise self.wrong("expected ')'")
            self.tokens.pop()
            return value
        if token in ("true", "false"):
            return int(token == "true")
        if number := _NUMBER.fullmatch(token):
            digits = number.group(1)
            return int(digits, 16 if digits[:2] in ("0x", "0X") else 10)
        if token.isidentifier():
            unset = _Unset()
            unset.name = token
            return unset if live else 0
        raise self.wrong(f"'{token}' is no integer, name or operator")
