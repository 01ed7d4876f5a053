"""One slip in the text of a kernel: another operator, index, mask, constant or builtin, or a statement left out."""

from __future__ import annotations

import random
import re

_TOKEN = re.compile(
    r"//.*|0[xX][\da-fA-F]+[iu]?|\d[\w.]*(?:[eE]-?\d+)?[fhiu]?|\w+|<<=|>>=|<<|>>|[-+*/%&|^<>=!]=|&&|\|\||[+-]{2}|\S|\s+"
)
_OTHERS = {
    "+": "-*", "-": "+*", "*": "+-", "/": "*+", "%": "/*", "&": "|^", "|": "&^", "^": "|&", "<": ("<=", ">"),
    "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",), "<<": (">>",), ">>": ("<<",),
    "&&": ("||",), "||": ("&&",), "+=": ("-=", "="), "-=": ("+=",), "*=": ("+=",), "/=": ("-=",), "min": ("max",),
    "max": ("min",), "exp": ("exp2", "abs"), "clamp": ("smoothstep",), "x": ("y", "z"), "y": ("x",), "true": ("false",),
}  # fmt: skip
_NUMBER = re.compile(r"(0[xX][\da-fA-F]+|\d+)([iu]?)")
_FLOAT = re.compile(r"(\d+\.\d*|\d*\.\d+|\d+e-?\d+)([fh]?)")
_FIRST_LINE = re.compile(r"\bfn\b")


def slip(text: str, random_: random.Random) -> str:
    """A text with one slip at random, somewhere after the declarations. It may be no WGSL, or the same kernel."""
    kinds = (_token, _token, _token, _statement, _index, _swapped)
    begin = _FIRST_LINE.search(text)
    assert begin is not None
    return text[: begin.start()] + random_.choice(kinds)(text[begin.start() :], random_)


def _token(text: str, random_: random.Random) -> str:
    tokens = _TOKEN.findall(text)
    places = [i for i, token in enumerate(tokens) if token in _OTHERS or token[0].isdigit()]
    place = random_.choice(places)
    tokens[place] = _other(tokens[place], random_)
    return "".join(tokens)


def _other(token: str, random_: random.Random) -> str:
    if token in _OTHERS:
        return random_.choice(_OTHERS[token])
    if number := _NUMBER.fullmatch(token):
        value = int(number[1], 0)
        return f"{random_.choice([value + 1, max(value - 1, 0), value * 2, value ^ 1, value + 16])}{number[2]}"
    if number := _FLOAT.fullmatch(token):
        value = float(number[1])
        return f"{random_.choice([value + 0.25, value * 2, value * 1.1, -value, value * 0.5])!r}{number[2]}"
    return token


def _statement(text: str, random_: random.Random) -> str:
    """Leave out a statement that is a line of its own."""
    lines = text.splitlines(keepends=True)
    places = [i for i, line in enumerate(lines) if line.strip().endswith(";") and not line.strip().startswith("let")]
    if places:
        del lines[random_.choice(places)]
    return "".join(lines)


def _index(text: str, random_: random.Random) -> str:
    """An index off by some elements."""
    places = [match.end() for match in re.finditer(r"\w\[", text)]
    if not places:
        return text
    place = random_.choice(places)
    wrong = random_.choice(["1u + ", "2u * ", "8u ^ ", "3u & "])
    return text[:place] + wrong + text[place:]


def _swapped(text: str, random_: random.Random) -> str:
    """Another name of the same kernel in place of a name."""
    names = re.findall(r"\b(?:let|var) (\w+)|(\w+): u32", text)
    known = sorted({name for pair in names for name in pair if name})
    places = [match for name in known for match in re.finditer(rf"\b{name}\b", text)]
    if len(known) < 2 or not places:
        return text
    match = random_.choice(places)
    return text[: match.start()] + random_.choice(known) + text[match.end() :]
