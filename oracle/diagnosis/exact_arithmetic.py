"""A WGSL text that computes the same on every implementation: exact arithmetic replaces inexact functions.

Where WGSL allows an error, two implementations may differ, and a bound on the difference may hide a fault. In this text
each such function or operator, `exp(x)` for example, is a sum of its arguments with factors, and each float result
passes through its bits (see `kept_floats`). So all else, such as indices, loops, sums and stores, is compared bit for
bit, while the tests of the simulator's functions compare those with float64.
"""

from __future__ import annotations

from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.builtins.accuracy import CORRECT
from ...sim.wgsl.builtins.row import Builtin
from ...sim.wgsl.text_edits import Edits
from .kept_floats import declarations, keep_compound, keep_floats, keeper

# Functions that are exact step by step, and that implementations compute in other steps.
_RECOMPOSED = frozenset(("mix", "smoothstep", "normalize", "%", "faceForward", "reflect", "refract"))
_OPERATORS = ("/", "%")
_FACTORS = ("0.75", "0.25", "0.125")  # of the first argument, of the second, …


def with_exact_arithmetic(pipeline: typed.Pipeline) -> tuple[str, list[str]] | None:
    """Return the text for a checked module, and the names of the functions that it replaces.

    The text has the binding `kept_floats.ZERO`, too. None where there is no such text: no floats, matrices, compound
    assignments with an inexact operator.
    """
    text, edits = pipeline.module.source.text, Edits()
    used, functions, names = dict[str, t.Type](), list[str](), set[str]()
    keep_floats(pipeline, edits, used, lambda call: not _is_inexact(call))
    for function in typed.reached(pipeline.entry):
        assert function.body is not None
        if any(isinstance(s, typed.CompoundAssign) and _is_loose(s.builtin) for s in typed.statements(function.body)):
            return None
        keep_compound(function.body, text, edits, used)
        for call in typed.every_expression(function):
            if not isinstance(call, typed.BuiltinCall):
                continue
            if isinstance(call.type, t.Mat) or any(isinstance(arg.type, t.Mat) for arg in call.args):
                return None
            if _is_inexact(call):
                name = f"bankshot_exact_{len(functions)}_"
                replaced = _replaced(call, name, text, edits)
                if replaced is None:
                    return None
                text = replaced
                name = name if call.builtin.name in _OPERATORS else name + call.builtin.name
                functions.append(_function(name, call, used))
                names.add(call.builtin.name)
    if not used:
        return None
    for vector in [type_ for type_ in used.values() if isinstance(type_, t.Vec)]:
        used[str(keeper(vector.elem))] = vector.elem
    return "\n".join([edits.apply(text), declarations(pipeline, used), *functions]) + "\n", sorted(names)


def _is_loose(row: Builtin) -> bool:
    """Whether implementations may differ in a function; the terms of `dot` are spelled out (see `kept_floats`)."""
    return row.name != "dot" and (row.accuracy not in (None, CORRECT) or row.name in _RECOMPOSED)


def _is_inexact(call: typed.BuiltinCall) -> bool:
    return keeper(call.type) is not None and _is_loose(call.builtin)


def _replaced(call: typed.BuiltinCall, name: str, text: str, edits: Edits) -> str | None:
    """Return the text in which a function is called, named `name` and what the text says; an operator becomes a comma.
    None where a comment may hide the operator."""
    if call.builtin.name not in _OPERATORS:
        edits.around(call.span, name, "")
        return text
    left, right = (arg.span for arg in call.args)
    between = text[left.end : right.start]
    if between.count(call.builtin.name) != 1:
        return None
    edits.around(call.span, f"{name}(", ")")
    return text[: left.end] + between.replace(call.builtin.name, ",") + text[right.start :]


def _function(name: str, call: typed.BuiltinCall, used: dict[str, t.Type]) -> str:
    keep = str(keeper(call.type))
    used[keep] = call.type
    types = [arg.type for arg in call.args]
    parameters = ", ".join(f"a{n}: {each}" for n, each in enumerate(types))
    total, *rest = [f"{keep}({_factor(n)} * {_as(call.type, each, f'a{n}')})" for n, each in enumerate(types)]
    for term in rest:
        total = f"{keep}({total} - {term})"
    return f"fn {name}({parameters}) -> {call.type} {{ return {total}; }}"


def _factor(number: int) -> str:
    return _FACTORS[min(number, len(_FACTORS) - 1)]


def _as(type_: t.Type, argument: t.Type, name: str) -> str:
    """Return an argument as a value of another type: the first component of a longer vector."""
    if isinstance(argument, t.Vec) and not isinstance(type_, t.Vec):
        return f"{type_}({name}.x)"
    return f"{type_}({name})"
