"""Overload resolution and automatic conversions.

`resolve` is the spec's procedure: every overload that could take the arguments is a candidate, conversion ranks are
compared argument by argument, and one candidate must be preferable to all others.
Spec: WGSL, "Conversion Rank" and "Overload Resolution".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ...fast_dataclass import frozen
from .. import types as t
from ..builtins import CONSTRUCTORS, Builtin, Candidate, Signature
from ..builtins.signature import family_of, result_struct
from ..diagnostics import Note, WgslError, fail, first_words
from ..source import Span


@frozen
class Resolution:
    """The chosen overload: the caller converts each argument to its parameter's type.

    `result` is None where the call has no value. `const_params` are the arguments that must be const-expressions.
    """

    params: tuple[t.Type, ...]
    result: t.Type | None
    const_params: tuple[int, ...] = ()


# ---- automatic conversions -----------------------------------------------------------------------------

_RANKS = {
    (t.ABSTRACT_FLOAT, t.F32): 1,
    (t.ABSTRACT_FLOAT, t.F16): 2,
    (t.ABSTRACT_INT, t.I32): 3,
    (t.ABSTRACT_INT, t.U32): 4,
    (t.ABSTRACT_INT, t.ABSTRACT_FLOAT): 5,
    (t.ABSTRACT_INT, t.F32): 6,
    (t.ABSTRACT_INT, t.F16): 7,
}


def conversion_rank(src: t.Type, dst: t.Type) -> int | None:
    """Return the rank of the automatic conversion from `src` to `dst`: 0 for the same type, None for none."""
    if src is dst or src == dst:
        return 0
    match src, dst:
        case t.Reference(), _:
            return 0 if src.store == dst and src.access != "write" else None
        case t.Scalar(), t.Scalar():
            return _RANKS.get((src, dst))
        case t.Vec(), t.Vec() if src.size == dst.size:
            return conversion_rank(src.elem, dst.elem)
        case t.Mat(), t.Mat() if (src.cols, src.rows) == (dst.cols, dst.rows):
            return conversion_rank(src.elem, dst.elem)
        case t.Array(), t.Array() if src.count == dst.count:
            return conversion_rank(src.elem, dst.elem)
        case t.Struct(), t.Struct():
            one, other = family_of(src), family_of(dst)
            return conversion_rank(one[1], other[1]) if one and other and one[0] == other[0] else None
        case _:
            return None


_CONCRETE = {t.ABSTRACT_INT: t.I32, t.ABSTRACT_FLOAT: t.F32}


def concretize(type_: t.Type) -> t.Type:
    """Return the concrete type that an abstract one defaults to: i32 for abstract-int, f32 for abstract-float."""
    match type_:
        case t.Scalar():
            return _CONCRETE.get(type_, type_)
        case t.Vec() | t.Mat():
            return t.with_element(type_, _scalar(concretize(type_.elem)))
        case t.Array():
            return t.Array(concretize(type_.elem), type_.count)
        case t.Struct() if not t.is_concrete(type_) and (made := family_of(type_)):
            return result_struct(made[0], concretize(made[1]))
        case _:
            return type_


def _scalar(type_: t.Type) -> t.Scalar:
    assert isinstance(type_, t.Scalar)
    return type_


# ---- builtin functions and operators -------------------------------------------------------------------


def resolve(
    builtin: Builtin,
    template_args: Sequence[t.Type],
    arg_types: Sequence[t.Type],
    span: Span | None,
    arg_spans: Sequence[Span] = (),
    *,
    all_const: bool = True,
) -> Resolution:
    """Choose the overload of a builtin, an operator or a named constructor. Raises `WgslError`.

    `all_const`: every argument is a const-expression; otherwise overloads with an abstract parameter do not apply. An
    error that one argument alone causes points at it (`arg_spans`).
    """
    args = tuple(arg_types)
    if chosen := find(builtin, tuple(template_args), args, all_const):
        return chosen
    if found := _search(builtin, tuple(template_args), args, all_const):
        chosen = [Note(f"candidate: {_call(builtin, one.params)} -> {one.result}") for one in found[:4]]
        raise fail("ambiguous-call", f"several overloads fit {_call(builtin, args)} equally", span, *chosen)
    raise _no_match(builtin, tuple(template_args), args, span, arg_spans, all_const)


@lru_cache(maxsize=8192)
def find(
    builtin: Builtin, templates: tuple[t.Type, ...], args: tuple[t.Type, ...], all_const: bool
) -> Resolution | None:
    """Choose the overload like `resolve`; None where no one is preferable, of which `resolve` makes an error."""
    found = _search(builtin, templates, args, all_const)
    return found[0] if len(found) == 1 else None


def _search(
    builtin: Builtin, templates: tuple[t.Type, ...], args: tuple[t.Type, ...], all_const: bool
) -> tuple[Resolution, ...]:
    """Return the preferred candidate alone, or none, or several without a preferred one."""
    viable: dict[tuple[t.Type, ...], tuple[tuple[int, ...], Resolution]] = {}
    for signature, candidate in _of_arity(builtin, len(args), args):
        if candidate.templates != templates or not (all_const or all(map(t.is_concrete, candidate.params))):
            continue
        ranks = tuple(map(conversion_rank, args, candidate.params))
        if None not in ranks:
            known = tuple(rank or 0 for rank in ranks)
            viable[candidate.params] = known, Resolution(candidate.params, candidate.result, signature.const_params)
    for ranks, resolution in viable.values():
        if all(other is ranks or _preferred(ranks, other) for other, _ in viable.values()):
            return (resolution,)
    return tuple(resolution for _, resolution in viable.values())


def _preferred(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def _of_arity(builtin: Builtin, count: int, args: tuple[t.Type, ...]) -> list[tuple[Signature, Candidate]]:
    fitting = [s for s in builtin.overloads if len(s.params) == count]
    return [(signature, candidate) for signature in fitting for candidate in signature.candidates(args)]


# ---- value constructors --------------------------------------------------------------------------------


def resolve_constructor(
    target: t.Type | str,
    arg_types: Sequence[t.Type],
    span: Span | None,
    arg_spans: Sequence[Span] = (),
    *,
    all_const: bool = True,
) -> Resolution:
    """Resolve `target(args)`. `target` is a type, or the name of a generator (`vec3`, `mat2x2`, `array`) to infer.

    `params` are the types that the arguments convert to automatically. Where the only parameter has the shape of the
    result and another element type, the call is an explicit conversion. Raises `WgslError`.
    """
    args = tuple(arg_types)
    if target == "array":
        return _infer_array(args, span, all_const)
    if isinstance(target, str):
        return resolve(CONSTRUCTORS[target], (), args, span, arg_spans, all_const=all_const)
    if not t.is_constructible(target):
        raise fail("not-constructible", f"values of type {target} cannot be constructed", span)
    match target:
        case t.Scalar():
            return resolve(CONSTRUCTORS[target.name], (), args, span, arg_spans, all_const=all_const)
        case t.Vec():
            row = CONSTRUCTORS[f"vec{target.size}"]
        case t.Mat():
            row = CONSTRUCTORS[f"mat{target.cols}x{target.rows}"]
        case _:
            return _composite(target, args, span, arg_spans)
    return resolve(row, (target.elem,), args, span, arg_spans, all_const=all_const)


def _composite(target: t.Type, args: tuple[t.Type, ...], span: Span | None, arg_spans: Sequence[Span]) -> Resolution:
    """Resolve the constructor of an array or struct: no arguments, or one for each element or member."""
    if not args:
        return Resolution((), target)
    parts = t.children(target)
    if len(args) != len(parts):
        what = "element" if isinstance(target, t.Array) else "member"
        given = "1 value is given" if len(args) == 1 else f"{len(args)} values are given"
        message = f"{target} has {_count(len(parts), what)}, but {given}"
        hint = _members_hint(target) if isinstance(target, t.Struct) else f"give {len(parts)} values, or none for zeros"
        raise fail("wrong-argument-count", message, span, hint=hint)
    for i, (arg, part) in enumerate(zip(args, parts, strict=True)):
        if conversion_rank(arg, part) is None:
            place = arg_spans[i] if i < len(arg_spans) else span
            name = f"member '{target.members[i].name}'" if isinstance(target, t.Struct) else f"element {i}"
            converts = _same_shape(arg, part) or (
                isinstance(part, t.Vec) and conversion_rank(arg, part.elem) is not None
            )
            hint = f"convert it: {part}({first_words(place.text)})" if place and converts else None
            raise fail("type-mismatch", f"{name} of {target} is {part}, but the value is {arg}", place, hint=hint)
    return Resolution(parts, target)


def _infer_array(args: tuple[t.Type, ...], span: Span | None, all_const: bool) -> Resolution:
    if not args:
        raise fail("wrong-argument-count", "an array without a type needs at least one element", span)
    common = common_type(args)
    if common is None:
        kinds = ", ".join(dict.fromkeys(map(str, args)))
        raise fail("type-mismatch", f"the elements of the array have no common type ({kinds})", span)
    elem = common if all_const else concretize(common)
    if not t.is_constructible(elem):
        raise fail("not-constructible", f"an array value cannot have elements of type {elem}", span)
    return Resolution((elem,) * len(args), t.Array(elem, len(args)))


def common_type(types: Sequence[t.Type]) -> t.Type | None:
    """Return the one of `types` that all of them convert to, or None."""
    distinct = tuple(dict.fromkeys(types))
    return next((one for one in distinct if all(conversion_rank(other, one) is not None for other in distinct)), None)


# ---- errors --------------------------------------------------------------------------------------------

_SHOWN = 6  # candidates listed in a message


def _no_match(
    builtin: Builtin,
    templates: tuple[t.Type, ...],
    args: tuple[t.Type, ...],
    span: Span | None,
    arg_spans: Sequence[Span],
    all_const: bool,
) -> WgslError:
    name = builtin.name
    signatures = [s for s in builtin.overloads if bool(s.templates) == bool(templates)]
    if not signatures:
        takes = "needs a template argument" if not templates else "takes no template arguments"
        hint = f"for example {name}<u32>" if name == "bitcast" else None
        return fail("template-arguments", f"'{name}' {takes}", span, hint=hint)
    arities = sorted({len(s.params) for s in signatures})
    if len(args) not in arities:
        hint = _count_hint(name, args, arg_spans)
        message = f"'{name}' takes {_numbers(arities)}, not {len(args)}"
        return fail("wrong-argument-count", message, span, *([] if hint else _candidates(name, signatures)), hint=hint)
    kind = args[0].kind if args and isinstance(args[0], t.Texture) else ""
    of_texture = [s for s in signatures if s.params and s.params[0].name == kind]
    arities = sorted({len(s.params) for s in of_texture})
    if of_texture and len(args) not in arities:
        message = f"'{name}' takes {_numbers(arities)} for a {args[0]}, not {len(args)}"
        return fail("wrong-argument-count", message, span, *_candidates(name, of_texture))
    fitting = [s for s in of_texture or signatures if len(s.params) == len(args)]
    hint = _special(builtin, args, arg_spans)
    converted = None if hint else _conversion(builtin, templates, args, arg_spans, all_const)
    hint = converted[1] if converted else hint
    notes = [] if hint else _candidates(name, fitting)
    culprit = _culprit(builtin, templates, args)
    if culprit is None and converted and not builtin.is_operator:
        culprit = converted[0]
    place = arg_spans[culprit] if culprit is not None and culprit < len(arg_spans) else span
    if builtin.is_operator:
        message = f"operator '{name.removeprefix('unary ')}' does not take {' and '.join(map(str, args))}"
    else:
        wanted = f"'{name}<{', '.join(map(str, templates))}>'" if templates else f"'{name}'"
        message = f"no overload of {wanted} takes ({', '.join(map(str, args))})"
    return fail("no-matching-overload", message, place, *notes, hint=hint)


def _candidates(name: str, signatures: Sequence[Signature]) -> list[Note]:
    notes = [Note(f"candidate: {name}{signature}") for signature in signatures[:_SHOWN]]
    return notes + ([Note(f"and {len(signatures) - _SHOWN} more")] if len(signatures) > _SHOWN else [])


def _same_shape(one: t.Type, other: t.Type) -> bool:
    """Whether a conversion makes one type of the other."""
    numeric = isinstance(one, (t.Scalar, t.Vec)) and isinstance(other, (t.Scalar, t.Vec))
    return numeric and t.with_element(one, t.element_of(other)) == other


def operand(text: str) -> str:
    """Return an expression in parentheses, unless it can be an operand as it is."""
    return text if re.fullmatch(r"[\w.]+(?:[\[(][^()\[\]]*[\])])?", text) else f"({text})"


def _special(builtin: Builtin, args: tuple[t.Type, ...], spans: Sequence[Span]) -> str | None:
    """Return a hint for arguments that no conversion makes right."""
    name, first = builtin.name, args[0] if args else None
    if name in _VECTORS:
        return _components_hint(name, args)
    if builtin.is_operator and any(isinstance(arg, (t.Struct, t.Array)) for arg in args):
        parts = "members" if any(isinstance(arg, t.Struct) for arg in args) else "elements"
        return f"operators take numbers, vectors and matrices: apply it to their {parts}"
    if name == "*" and isinstance(first, t.Mat) and isinstance(args[-1], t.Vec):
        return f"a {first} is multiplied by a vector of {first.cols} components"
    if name.startswith("atomic") and isinstance(first, t.Pointer) and not isinstance(first.store, t.Atomic):
        return "declare it as an atomic: atomic<u32> or atomic<i32>"
    if (
        name == "arrayLength"
        and isinstance(first, t.Pointer)
        and isinstance(first.store, t.Array)
        and first.store.count
    ):
        return f"the length of {first.store} is fixed"
    if name == "select" and len(args) == len(spans) == 3 and args[2] != t.BOOL:
        if first == t.BOOL:
            return "the condition comes last: select(if_false, if_true, condition)"
        return f"compare it: {operand(first_words(spans[2].text))} != 0" if isinstance(args[2], t.Scalar) else None
    numbers = t.Scalar | t.Vec | t.Mat
    pointer = next((i for i, a in enumerate(args) if isinstance(a, t.Pointer) and isinstance(a.store, numbers)), None)
    if builtin.is_operator and pointer is not None and pointer < len(spans):
        return f"write *{operand(first_words(spans[pointer].text))} for the value that it points to"
    if builtin.is_operator and t.BOOL in args and len(spans) == len(args) == 2:
        return f"write select(0, 1, {first_words(spans[args.index(t.BOOL)].text)}) for a number"
    return None


_VECTORS = {f"vec{size}": size for size in (2, 3, 4)}
_OF_TWO = ("min", "max")
_MOST_MEMBERS = 8  # in a hint


def _components_hint(name: str, args: tuple[t.Type, ...]) -> str | None:
    """Return a hint for a vector of too few or too many components."""
    given = sum(map(t.components, args)) if all(isinstance(arg, (t.Scalar, t.Vec)) for arg in args) else 0
    wrong = given not in (0, _VECTORS[name])
    return f"it needs {_VECTORS[name]} components, and {given} are given" if wrong and given > 1 else None


def _count_hint(name: str, args: tuple[t.Type, ...], spans: Sequence[Span]) -> str | None:
    """Return a hint for a wrong number of arguments."""
    if name in _VECTORS:
        return _components_hint(name, args)
    if name == "atan" and len(args) == 2:
        return "atan2 takes two"
    if name in _OF_TWO and len(spans) == 3:
        first, second, third = (first_words(span.text) for span in spans)
        return f"nest the calls: {name}({name}({first}, {second}), {third})"
    return None


def _members_hint(target: t.Struct) -> str | None:
    """Return a hint that lists the members of a struct, if there are few."""
    if len(target.members) > _MOST_MEMBERS:
        return None
    return f"its members are {', '.join(f'{member.name}: {member.type}' for member in target.members)}"


def _conversion(
    builtin: Builtin, templates: tuple[t.Type, ...], args: tuple[t.Type, ...], spans: Sequence[Span], all_const: bool
) -> tuple[int | None, str] | None:
    """Return an argument, None for several, and a hint, where a call fits once that is of other numbers."""
    if templates and builtin.name == "bitcast":
        return None
    texts = [first_words(span.text) for span in spans]
    if builtin.name in _UNARY_HINTS and isinstance(args[0], (t.Scalar, t.Vec)) and texts:
        elements, hint = _UNARY_HINTS[builtin.name]
        return (0, hint.format(operand(texts[0]))) if t.element_of(args[0]) in elements else None
    for i, type_ in _conversions(args[: len(texts)]):
        if len(_search(builtin, templates, (*args[:i], type_, *args[i + 1 :]), all_const)) == 1:
            one = "one of them" if builtin.is_operator and len(args) > 1 else "it"
            return i, f"convert {one}: {type_}({texts[i]})"
    if t.BOOL not in args and len(texts) == len(args):
        for elem in (t.F32, t.I32, t.U32):
            made = tuple(t.with_element(arg, elem) if isinstance(arg, (t.Scalar, t.Vec)) else arg for arg in args)
            if len(_search(builtin, templates, made, all_const)) == 1:
                wrong = [i for i in range(len(args)) if conversion_rank(args[i], made[i]) is None]
                return None, f"convert them: {', '.join(f'{made[i]}({texts[i]})' for i in wrong)}"
    return None


_UNARY_HINTS = {
    "!": ((t.I32, t.U32, t.F32, t.F16), "compare it: {} == 0"),
    "unary -": ((t.U32,), "convert it to a signed number first: -i32({})"),
}


def _conversions(args: Sequence[t.Type]) -> Iterator[tuple[int, t.Type]]:
    """Iterate over an argument and a type to convert it to, the most likely first."""
    numbers = [(i, arg) for i, arg in enumerate(args) if isinstance(arg, (t.Scalar, t.Vec, t.Mat))]
    present = {_scalar(concretize(t.element_of(arg))) for _, arg in numbers}
    for elem in sorted((t.F32, t.F16, t.U32, t.I32), key=lambda elem: (elem not in present, elem in t.INTEGERS)):
        for i, arg in reversed(numbers):
            if t.element_of(arg) not in (elem, t.BOOL):
                yield i, t.with_element(arg, elem)
    for i, arg in numbers:
        if isinstance(arg, t.Scalar):
            yield from ((i, t.Vec(size, _scalar(concretize(arg)))) for size in (2, 3, 4))


def _culprit(builtin: Builtin, templates: tuple[t.Type, ...], args: tuple[t.Type, ...]) -> int | None:
    """Return the only argument that no candidate accepts, or None where there are none or several."""
    candidates = [c for _, c in _of_arity(builtin, len(args), args) if c.templates == templates]
    bad = [i for i, arg in enumerate(args) if all(conversion_rank(arg, c.params[i]) is None for c in candidates)]
    return bad[0] if len(bad) == 1 and not builtin.is_operator else None


def _call(builtin: Builtin, args: tuple[t.Type, ...]) -> str:
    return f"{builtin.name}({', '.join(map(str, args))})"


def _numbers(counts: list[int]) -> str:
    """Format counts of arguments: `[1, 2]` -> "1 or 2 arguments"."""
    if len(counts) > 3:
        return f"{counts[0]} to {counts[-1]} arguments"
    listed = " or ".join(filter(None, (", ".join(map(str, counts[:-1])), str(counts[-1]))))
    return f"{listed} argument" if counts == [1] else f"{listed} arguments"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
