"""The language of signatures in the builtin table.

    (T, T) -> T; T: anynum | vecN<anynum>
    <T>(vecN<S>) -> vecN<T>; T: float; S: scalar
    (ptr<S, atomic<T>, read_write>, T) -> T; S: storage | workgroup; T: int
    (texture_2d<f32>, sampler, vec2<f32>, const vec2<i32>) -> vec4<f32>

- `<…>` before the parameters: explicit template parameters. Without `->`, the builtin returns nothing.
- After `;`: the type variables and what they range over. A set (`anynum`, see `SETS`) inside a parameter is an
  anonymous variable: `(vec2<f32>, int)` takes i32 or u32.
- `N C R K` in `vecN`, `matCxR` range over 2, 3, 4; one letter is one number throughout a signature.
- `const` before a parameter: the argument must be a const-expression.
- `vecN`, `matCxR`, `array<E>` (runtime-sized), `atomic`, `ptr`, textures are spelled as in WGSL. `frexp<T>`, `modf<T>`
  and `exchange<T>` are the result structs; `texel<F>` is the channel type of a texel format.
- Variables over an open set (see `OPEN`) are bound to the type in the argument.

A signature without such variables is a finite list of candidates: the overloads of the spec's parameterization.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property, partial
from itertools import product
from typing import Any

from ...fast_dataclass import frozen
from .. import types as t
from ..diagnostics import Crash
from ..enumerants import ACCESS_MODES, ADDRESS_SPACES, TEXEL_FORMATS

SCALARS: Mapping[str, t.Scalar] = {kind: scalar for scalar, kind in t.KIND.items()}

SETS: Mapping[str, tuple[t.Scalar, ...]] = {
    name: tuple(SCALARS[kind] for kind in kinds.split())
    for name, kinds in {
        "scalar": "bool ai af i32 u32 f32 f16",
        "concrete": "bool i32 u32 f32 f16",
        "anynum": "ai af i32 u32 f32 f16",
        "num": "i32 u32 f32 f16",
        "signed": "ai af i32 f32 f16",
        "anyint": "ai i32 u32",
        "int": "i32 u32",
        "anyfloat": "af f32 f16",
        "float": "f32 f16",
        "word": "i32 u32 f32",
    }.items()
}

OPEN: Mapping[str, Callable[[Any], bool]] = {
    "format": lambda x: x in TEXEL_FORMATS,
    "constructible": lambda x: not isinstance(x, str) and t.is_constructible(x) and t.is_concrete(x),
    "element": lambda x: not isinstance(x, str),
}

_ATOMS = frozenset((*ACCESS_MODES, *ADDRESS_SPACES))
_NUMBERS = "NCRK"
_VEC = re.compile(r"vec([234NCRK])$")
_MAT = re.compile(r"mat([234NCRK])x([234NCRK])$")
_TOKEN = re.compile(r"->|[\w]+|[<>(),;:|]")

Env = dict[str, Any]  # variable -> Type, enumerant (str) or number


@frozen
class Term:
    """A type as written in a signature: a name and its template arguments."""

    name: str
    args: tuple[Term, ...] = ()


@frozen
class Candidate:
    """One overload, with every variable bound. `result` is None where it returns nothing."""

    templates: tuple[t.Type, ...]
    params: tuple[t.Type, ...]
    result: t.Type | None


_IN_MESSAGES = {
    "ai": "abstract-int",
    "af": "abstract-float",
    "anynum": "number",
    "num": "number",
    "signed": "signed number",
    "anyint": "integer",
    "int": "integer",
    "anyfloat": "float",
    "word": "i32 | u32 | f32",
    "concrete": "scalar",
}


@frozen
class Signature:
    """A parsed signature; `const_params` are the parameters that take only const-expressions."""

    text: str
    templates: tuple[Term, ...]
    params: tuple[Term, ...]
    const_params: tuple[int, ...]
    result: Term | None
    domains: tuple[tuple[str, tuple[Term, ...]], ...]

    def __str__(self) -> str:
        """Spell out the table's short names, for messages."""
        return re.sub(r"\w+", lambda word: _IN_MESSAGES.get(word[0], word[0]), self.text)

    @cached_property
    def open_variables(self) -> Mapping[str, Callable[[Any], bool]]:
        """The variables over open sets, each with the test of membership."""
        return {name: OPEN[alts[0].name] for name, alts in self.domains if alts[0].name in OPEN}

    @cached_property
    def closed(self) -> tuple[Env, ...]:
        """Every way to bind the variables that are not open."""
        written = (*self.templates, *self.params, *((self.result,) if self.result else ()))
        numbers = sorted({n for term in written for n in _number_variables(term)})
        envs: list[Env] = [dict(zip(numbers, sizes, strict=True)) for sizes in product((2, 3, 4), repeat=len(numbers))]
        for name, alternatives in self.domains:
            if name not in self.open_variables:
                envs = [{**env, name: value} for env in envs for alt in alternatives for value in expand(alt, env)]
        return tuple(envs)

    @cached_property
    def _candidates(self) -> tuple[Candidate, ...]:
        return tuple(self._fix(env) for env in self.closed)

    def candidates(self, args: tuple[t.Type, ...]) -> Iterator[Candidate]:
        """Iterate over overloads that may take `args` (one for each parameter); types are not yet compared."""
        if not self.open_variables:
            yield from self._candidates
            return
        for env in self.closed:
            bound = dict(env)
            _collect(self.params[0], args[0], bound, self.open_variables)  # which has all of them
            if bound.keys() >= self.open_variables.keys():
                yield self._fix(bound)

    def _fix(self, env: Env) -> Candidate:
        def one(term: Term) -> Any:
            return next(expand(term, env))

        result = one(self.result) if self.result else None
        return Candidate(tuple(map(one, self.templates)), tuple(map(one, self.params)), result)


# ---- from terms to types -------------------------------------------------------------------------------


def expand(term: Term, env: Env) -> Iterator[Any]:
    """Iterate over the types (or enumerants) that `term` denotes under `env`."""
    if term.name in env:
        yield env[term.name]
    elif term.name in SETS:
        yield from SETS[term.name]
    else:
        for args in product(*(tuple(expand(arg, env)) for arg in term.args)):
            yield from _build(term.name, args, env)


def _build(name: str, args: tuple[Any, ...], env: Env) -> Iterator[Any]:
    if name in _ATOMS:
        yield name
    elif name in SCALARS:
        yield SCALARS[name]
    elif match := _VEC.match(name):
        yield from (t.Vec(n, *args) for n in _sizes(match[1], env))
    elif match := _MAT.match(name):
        yield from (t.Mat(c, r, *args) for c in _sizes(match[1], env) for r in _sizes(match[2], env))
    elif name.startswith("texture_storage"):
        yield t.Texture(name, format=args[0], access=args[1])
    elif name.startswith("texture"):
        yield t.Texture(name, *args)
    elif name in _MAKERS:
        yield _MAKERS[name](*args)
    else:
        raise Crash(f"the builtin table speaks of an unknown type '{name}'")


def _sizes(letter: str, env: Env) -> tuple[int, ...]:
    if letter.isdigit():
        return (int(letter),)
    return (env[letter],) if letter in env else (2, 3, 4)


def _collect(term: Term, type_: Any, env: Env, open_variables: Mapping[str, Callable[[Any], bool]]) -> None:
    """Bind open variables of `term` to the corresponding parts of `type_`."""
    if term.name in open_variables:
        if open_variables[term.name](type_):
            env.setdefault(term.name, type_)
        return
    name, parts = _parts(type_)
    if name == term.name:
        for inner, part in zip(term.args, parts, strict=False):
            _collect(inner, part, env, open_variables)


def _parts(type_: Any) -> tuple[str, tuple[Any, ...]]:
    match type_:
        case t.Pointer():
            return "ptr", (type_.space, type_.store, type_.access)
        case t.Array(count=None):
            return "array", (type_.elem,)
        case t.Texture(format=str()):
            return type_.kind, (type_.format, type_.access)
        case _:
            return "", ()


# ---- result structs ------------------------------------------------------------------------------------


@cache
def result_struct(family: str, of: t.Type) -> t.Struct:
    """Return the struct that `frexp`, `modf` or `atomicCompareExchangeWeak` (`exchange`) returns for an argument type.

    It is the same object for the same arguments, since structs are equal by identity.
    """
    scalar = "abstract" if t.element_of(of) == t.ABSTRACT_FLOAT else str(t.element_of(of))
    suffix = f"vec{of.size}_{scalar}" if isinstance(of, t.Vec) else scalar
    exponent = t.with_element(of, t.ABSTRACT_INT if scalar == "abstract" else t.I32)
    name, members = {
        "frexp": (f"__frexp_result_{suffix}", {"fract": of, "exp": exponent}),
        "modf": (f"__modf_result_{suffix}", {"fract": of, "whole": of}),
        "exchange": (f"__atomic_compare_exchange_result<{of}>", {"old_value": of, "exchanged": t.BOOL}),
    }[family]
    struct = t.layout(name, ((member, type_, {}, None) for member, type_ in members.items()))
    _FAMILIES[struct] = family, of
    return struct


_FAMILIES: dict[t.Struct, tuple[str, t.Type]] = {}


def family_of(struct: t.Struct) -> tuple[str, t.Type] | None:
    """Return the arguments of `result_struct` that made `struct`, or None for a struct of the module."""
    return _FAMILIES.get(struct)


def _pointer(space: str, store: t.Type, access: str = "read_write") -> t.Pointer:
    return t.Pointer(space, store, access)


def _array(elem: t.Type) -> t.Array:
    return t.Array(elem, None)


_MAKERS: Mapping[str, Callable[..., Any]] = {
    "ptr": _pointer,
    "atomic": t.Atomic,
    "array": _array,
    "sampler": lambda: t.Sampler(),
    "sampler_comparison": lambda: t.Sampler(comparison=True),
    "texel": TEXEL_FORMATS.__getitem__,
    **{family: partial(result_struct, family) for family in ("frexp", "modf", "exchange")},
}


# ---- parsing -------------------------------------------------------------------------------------------


def _number_variables(term: Term) -> set[str]:
    match = _VEC.match(term.name) or _MAT.match(term.name)
    letters: tuple[str, ...] = match.groups() if match else ()
    here = {letter for letter in letters if letter in _NUMBERS}
    return here.union(*(_number_variables(arg) for arg in term.args))


@cache
def parse(text: str) -> Signature:
    """Parse one signature. Raises `Crash` for a mistake in the table."""
    return _Parser(text).signature()


class _Parser:
    """signature: ['<' terms '>'] '(' params ')' ['->' term] {';' NAME ':' term {'|' term}}"""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [*_TOKEN.findall(text), ""]
        self.at = 0
        self.anonymous: list[tuple[str, tuple[Term, ...]]] = []

    def signature(self) -> Signature:
        templates = self.terms("<", ">") if self.tokens[0] == "<" else ()
        consts: list[int] = []
        params = self.terms("(", ")", consts)
        result = self.term() if self.take("->") else None
        domains: list[tuple[str, tuple[Term, ...]]] = []
        while self.take(";"):
            name = self.next()
            self.expect(":")
            alternatives = [self.term(named_sets=False)]
            while self.take("|"):
                alternatives.append(self.term(named_sets=False))
            domains.append((name, tuple(alternatives)))
        self.expect("")
        return Signature(self.text, templates, params, tuple(consts), result, (*domains, *self.anonymous))

    def terms(self, opening: str, closing: str, consts: list[int] | None = None) -> tuple[Term, ...]:
        self.expect(opening)
        terms: list[Term] = []
        while not self.take(closing):
            if terms:
                self.expect(",")
            if consts is not None and self.take("const"):
                consts.append(len(terms))
            terms.append(self.term())
        return tuple(terms)

    def term(self, named_sets: bool = True) -> Term:
        name = self.next()
        if named_sets and name in SETS:
            fresh = f"_{len(self.anonymous)}"
            self.anonymous.append((fresh, (Term(name),)))
            return Term(fresh)
        args: list[Term] = []
        if self.take("<"):
            args.append(self.term(named_sets))
            while self.take(","):
                args.append(self.term(named_sets))
            self.expect(">")
        return Term(name, tuple(args))

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def take(self, token: str) -> bool:
        if self.tokens[self.at] != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        if self.tokens[self.at] != token:
            raise Crash(f"bad signature in the builtin table: expected '{token}' at token {self.at} of '{self.text}'")
        self.at += 1
