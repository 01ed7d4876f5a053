"""How many elements the runtime-sized arrays of a shader have, as arithmetic on the dims.

The simulator runs the shader on arrays that are larger than needed, and records how far it accesses each. Repeated with
other sizes, one at a time, this tells which product of sizes the arrays hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil, prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import types as t
from ...sim.wgsl.typed import Pipeline, Variable
from . import invented_inputs
from .invented_inputs import Recipe
from .size_uses import SizeUses, numbers_of

if TYPE_CHECKING:
    from ...sim.run.result import Run

ELEMENTS = 1 << 16  # of an array whose size is unknown
BUDGET = 1 << 16  # loop iterations of a workgroup
FRACTION = 0.5  # invented floats in uniforms
_QUOTIENTS = (2, 3, 4, 8, 16, 32, 64, 128, 256)
_MOST_FACTORS = 4

Dims = Mapping[str, int]


@frozen
class Contents:
    """How to fill integers in storage: by `init` of a manifest."""

    init: str
    whole: int  # invented integers are below it


CONTENTS = (Contents("uniform", 1 << 32), Contents("arange", 1 << 32), Contents("zeros", 1))


@frozen
class Measured:
    """A run of a shader with these sizes: the elements of each runtime-sized array that it accesses, and whether it
    stays in bounds, ends, divides by no zero, and changes something."""

    dims: Dims
    elements: dict[Variable, int]
    inside: bool
    ends: bool
    divides: bool
    changes: bool

    @property
    def faults(self) -> int:
        """How far the run is from one that a host would make."""
        return 8 * (not self.ends) + 4 * (not self.inside) + 2 * (not self.divides) + (not self.changes)


def array_of(type_: t.Type) -> tuple[t.Array, int] | None:
    """The runtime-sized array of a binding's type, and the byte where it begins; None where there is none."""
    if t.has_fixed_footprint(type_):
        return None
    if isinstance(type_, t.Struct):
        last = type_.members[-1]
        assert isinstance(last.type, t.Array)
        return last.type, last.offset
    assert isinstance(type_, t.Array)
    return type_, 0


def measure(
    pipeline: Pipeline, uses: SizeUses, grid: tuple[int, ...], dims: Dims, contents: Contents, how: Mapping[str, Any]
) -> Measured:
    """Run a shader on arrays that are larger than needed. `how`: more arguments of `bankshot.simulate`."""
    from ... import sim

    given = {v.name: _value(pipeline, v, uses, dims, contents) for v in pipeline.globals if _bindable(v)}
    run = sim.simulate(
        pipeline.module, grid=grid, bindings=given, entry=pipeline.entry.name, probes=("bounds", "nan"), replay=False,
        budget=BUDGET, **how,
    )  # fmt: skip
    codes = {finding.code for finding in (*run.findings, *run.silenced)}
    ends = "endless-loop" not in codes
    reach = run.reach if ends else {}
    elements: dict[Variable, int] = {}
    for variable, type_ in pipeline.store_types.items():
        array = None if isinstance(type_, t.Texture | t.Sampler) else array_of(type_)
        if array is not None and variable not in uses.lengths:
            stride = t.stride_of(array[0])
            elements[variable] = max(0, ceil((reach.get(variable.name, 0) - array[1]) / stride))
    inside, divides = ("out-of-bounds" not in codes, "division-by-zero" not in codes)
    return Measured(dims, elements, inside, ends, divides, ends and _changed(run, given))


def _bindable(variable: Variable) -> bool:
    return variable.binding is not None or variable.space == "immediate"


def _changed(run: Run, given: Mapping[str, Any]) -> bool:
    return any(not np.array_equal(after, given[str(key)]) for key, after in run.outputs.items())


def _value(pipeline: Pipeline, variable: Variable, uses: SizeUses, dims: Dims, contents: Contents) -> Any:
    type_ = pipeline.store_types[variable]
    tail = ELEMENTS
    if variable in uses.lengths:
        tail = dims[uses.names[variable, ("length",)]]
    recipe = Recipe("", (1,), contents.whole, tail)
    if isinstance(type_, t.Texture):
        return invented_inputs.texels(variable.name, type_, recipe)
    if isinstance(type_, t.Sampler):
        return {"compare": "less"} if type_.comparison else {}
    numbers = {key[1]: scalar for key, scalar in numbers_of(pipeline) if key[0] is variable}
    if numbers:
        values = [_number(uses, (variable, path), scalar, dims) for path, scalar in numbers.items()]
        return _packed(type_, values)
    codes = invented_inputs.layout(type_, recipe)
    made = invented_inputs.contents(variable.name, codes, recipe, variable.space or "")
    if contents.init == "arange":
        words = codes[::2] == invented_inputs.WHOLE
        made.view(np.uint32)[words] = np.arange(np.count_nonzero(words))
    return made


def _number(uses: SizeUses, key: Any, scalar: t.Scalar, dims: Dims) -> float:
    if t.is_float(scalar):
        return FRACTION
    return dims[uses.names[key]] if key in uses.names else 0


def _packed(type_: t.Type, values: Iterable[float]) -> NDArray[np.uint8]:
    """The bytes of a type of fixed size with these scalars."""
    data = np.zeros(t.round_up(4, t.size_of(type_)), np.uint8)
    for (scalar, offset), value in zip(_places(type_, 0), values, strict=True):
        dtype = {"f32": np.float32, "f16": np.float16, "i32": np.int32}.get(str(scalar), np.uint32)
        word = np.array([value]).astype(dtype).view(np.uint8)
        data[offset : offset + len(word)] = word
    return data


def _places(type_: t.Type, offset: int) -> Iterator[tuple[t.Scalar, int]]:
    """The scalars of `index_forms.leaves` with their byte offsets."""
    match type_:
        case t.Scalar():
            yield type_, offset
        case t.Atomic(elem=elem):
            yield elem, offset
        case t.Struct(members=members):
            for member in members:
                yield from _places(member.type, offset + member.offset)
        case t.Vec(size=count, elem=elem) | t.Array(count=int(count), elem=elem):
            for number in range(count):
                yield from _places(elem, offset + number * t.stride_of(type_))
        case _:
            return


# ---- products of sizes ----


@frozen
class Extent:
    """The elements of an array: the product of `factors`, each arithmetic on the dims. `beyond`: how many more the
    kernel accesses; None where that varies. `exact`: it accesses just these."""

    factors: tuple[str, ...]
    exact: bool
    beyond: int | None = 0


def extent(
    runs: Sequence[Measured], variable: Variable, steps: Mapping[str, int], strides: Mapping[str, int]
) -> Extent:
    """Find the product of sizes that an array holds in every run. `steps`: how many elements of a dim a workgroup
    covers; `strides`: how many terms of the array's indices each dim multiplies, which orders the factors."""
    counts = [run.elements[variable] for run in runs]
    if not any(counts):
        return Extent(("1",), True)
    if len({*counts}) == 1:
        return Extent((str(counts[0]),), counts[0] < ELEMENTS)
    products = [*_products(runs, steps)]
    for names, totals in products:
        ratios = {Fraction(count, total) for count, total in zip(counts, totals, strict=True)}
        if len(ratios) == 1 and (ratio := ratios.pop()).denominator == 1:
            factors = (*sorted(names, key=lambda text: _stride(text, strides)),)
            return Extent(factors if ratio == 1 else (*factors, str(ratio)), True)
    for (names, totals), quotient in itertools.product(products, _QUOTIENTS):
        if [ceil(Fraction(total, quotient)) for total in totals] == counts:
            return Extent((f"ceil({' * '.join(names)} / {quotient})",), True)
    return _nearest(runs, variable, products, strides)


def _nearest(
    runs: Sequence[Measured],
    variable: Variable,
    products: Sequence[tuple[tuple[str, ...], list[int]]],
    strides: Mapping[str, int],
) -> Extent:
    """The product that accesses exceed by the same few elements in each run, else the smallest that holds all, else
    that of the sizes on which accesses depend."""
    counts = [run.elements[variable] for run in runs]
    for names, totals in products:
        beyond = {count - total for count, total in zip(counts, totals, strict=True)}
        if len(beyond) == 1 and 0 < (more := beyond.pop()) <= min(16, min(totals) // 2):
            return Extent((*sorted(names, key=lambda text: _stride(text, strides)),), False, more)
    holding = [
        (sum(totals), names) for names, totals in products if all(a >= b for a, b in zip(totals, counts, strict=True))
    ]
    if holding:
        return Extent((*sorted(min(holding)[1], key=lambda text: _stride(text, strides)),), False)
    first = runs[0]
    start = first.elements[variable]
    others = [run.dims for run in runs if run.elements[variable] != start]
    changed = [name for name, size in first.dims.items() if any(dims[name] != size for dims in others)]
    return Extent((*sorted(changed, key=lambda text: _stride(text, strides)),) or (str(max(counts)),), False, None)


def _stride(factor: str, strides: Mapping[str, int]) -> int:
    """The number of terms of the dim in a factor, which has at most one."""
    return next((count for name, count in strides.items() if name in factor.replace("(", " ").split()), 0)


def _products(runs: Sequence[Measured], steps: Mapping[str, int]) -> Iterator[tuple[tuple[str, ...], list[int]]]:
    """Products of dims, then those with dims in whole workgroups, the fewest factors first."""
    names = list(runs[0].dims)
    for rounded in (False, True):
        for many in range(1, min(len(names), _MOST_FACTORS) + 1):
            for chosen in itertools.combinations(names, many):
                options = [_factors(name, steps.get(name, 1), rounded) for name in chosen]
                for factors in itertools.product(*options):
                    if rounded and all(text == name for (text, _), name in zip(factors, chosen, strict=True)):
                        continue
                    rounding = dict(zip(chosen, (rule for _, rule in factors), strict=True))
                    yield tuple(text for text, _ in factors), [_total(run.dims, rounding) for run in runs]


def _total(dims: Dims, rounding: Mapping[str, tuple[int, int]]) -> int:
    return prod(-(-dims[name] // divisor) * factor for name, (divisor, factor) in rounding.items())


def _factors(name: str, step: int, rounded: bool) -> list[tuple[str, tuple[int, int]]]:
    """A dim; if `rounded`, also its workgroups, and the elements of those. Each as text, divisor and factor."""
    plain = [(name, (1, 1))]
    if not rounded or step == 1:
        return plain
    return [*plain, (f"ceil({name} / {step})", (step, 1)), (f"ceil({name} / {step}) * {step}", (step, step))]
