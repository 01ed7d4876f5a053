"""A kernel's manifest: which WGSL, on which data, in which shapes, and the expected results.

    questions           what its author has yet to answer; an audit repeats them
    [kernel]            source, entry, dims (default sizes), dispatch (workgroups in x, y, z), and optionally name,
                        reference (a name in `bankshot.oracle.references`, or `file.py:function`), overrides, defines,
                        include_dirs, preprocess (a command to run first, see `external_preprocessor`), budget, and
                        schedules, how many orders of invocations must leave the same outputs, drawn from seed
    [bind.NAME]         dtype and shape with `init` (a generator) or `file`; or dtype and `values`; or `struct`, values
                        by member, laid out as the WGSL declares them; or `sampler`, the fields of a `bankshot.Sampler`;
                        dtype f32 also suits a storage buffer of integers that hold the bits of floats, and `packed`
                        packs small numbers into u32 words;
                        optionally `var`, the WGSL variable where it is not called NAME, `seed`, `of`: the binding whose
                        random numbers it shares (packed weights and their scales are bindings of one matrix), and
                        `levels`, how many mip levels of a texture `init` makes
    [[sweep]]           sizes to run with; a list means each of its values; `cost = "heavy"` keeps it out of quick runs;
                        `golden`, where these sizes differ from [expect]
    [expect]            per output a rule, `Y = { rule = "ulp", max = 2 }`; per counter a number, `barriers = "2 * K"`;
                        `predicted_us_max`, the most microseconds that the dispatch may take by the model of time;
                        `allow`, the codes of accepted findings; `free`, the outputs whose bits WGSL leaves open, for
                        example those of exp(): a GPU's are compared with the reference, not with ours;
                        in `unchecked`, per output the reason why nothing needs to check it;
                        in `gpu`, per output the rule for ours and a GPU's, where that is not `exact` (filtered
                        samples never agree exactly). Rules are those of `comparison.rules`; `{ rule = "derived" }`
                        compares an output within the error bounds that the simulator derives, and is the default where
                        the reference derives none; `golden = true`: counters and digests of outputs must not change
                        (`goldens.golden_store`; `free` outputs have no digest); "outputs" stores the outputs, too
    [[variant]]         one kernel of a family. It has the same tables, whose keys override those of the file:
                        `kernel.name = "scale_f16"`, `bind.X.dtype = "f16"`

Sizes, dispatch, values and counters are arithmetic on the dims (`bankshot.oracle.manifests.dimension_arithmetic`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np

from ...sim.bindings.binding import Bits, is_array
from ...sim.fast_dataclass import frozen
from ...sim.wgsl.diagnostics import first_words
from ..comparison.bits import Array
from ..comparison.rules import Rule
from ..errors import UsageError
from . import inputs
from .dimension_arithmetic import evaluate
from .reflection import binding_dtype, level_shapes, words_of_element

if TYPE_CHECKING:
    from ...sim.bindings.binding import Value

LARGEST = (1 << 53) - 1  # of sizes, and of other integers
Expression = str | int
Member = Expression | float | list[Expression | float]  # the value of a struct's member
Override = bool | int | float


class Launch(TypedDict):
    """The keyword arguments of `bankshot.simulate` that a case determines."""

    entry: str | None
    grid: tuple[int, ...]
    bindings: dict[str, Value]
    overrides: dict[str, Override]
    budget: NotRequired[int]


@frozen
class Binding:
    """The recipe for the contents of one binding. Exactly one of `SOURCES` is set; `struct` and `sampler` have no
    dtype."""

    name: str  # what the reference calls it
    var: str  # what the WGSL calls it
    dtype: str | None
    shape: tuple[Expression, ...] | None = None
    init: str | None = None
    file: Path | None = None
    values: tuple[Expression | float, ...] | None = None
    struct: dict[str, Member] | None = None
    sampler: dict[str, Any] | None = None
    seed: int = 0
    of: str | None = None
    levels: int = 1
    packed: bool = False  # into u32 words, for the shader; references get the numbers

    def make(self, dims: Mapping[str, int], kernel: Kernel) -> Any:
        """Make an array; a list of arrays for a texture with several levels; the fields of a sampler."""
        if self.struct is not None:
            return self._make_struct(dims, binding_dtype(kernel, self.var))
        if self.sampler is not None:
            return self.sampler
        assert self.dtype is not None
        if self.values is not None:
            dtype = np.dtype(inputs.NUMBERS[self.dtype])
            return inputs.numbers(self.name, [_number(v, dims) for v in self.values], dtype)
        shape = tuple(evaluate(s, dims) for s in self.shape or ())
        if self.init is not None and self.levels > 1:
            shapes = level_shapes(kernel, self.var, shape, self.levels)
            return [inputs.generate(self.init, self.of or self.name, s, self.dtype, self.seed) for s in shapes]
        if self.init is not None:
            return inputs.generate(self.init, self.of or self.name, shape, self.dtype, self.seed)
        assert self.file is not None
        wanted = np.dtype(inputs.NUMBERS[self.dtype])
        array = inputs.as_numbers(inputs.load(self.file), wanted)
        if array.size != int(np.prod(shape)) or array.dtype != wanted:
            raise UsageError(
                f"{self.file}: holds {array.dtype}{list(array.shape)}, binding {self.name} is {self.dtype}{list(shape)}"
            )
        return array.reshape(shape)

    def numbers(self, dims: Mapping[str, int]) -> int:
        """Count the numbers of its shape, before they are packed."""
        return prod(evaluate(size, dims) for size in self.shape or ())

    def _make_struct(self, dims: Mapping[str, int], dtype: np.dtype[Any]) -> Array:
        """Make one element of `dtype`; members without a value are zero."""
        array = np.zeros(1, dtype)
        for member, value in (self.struct or {}).items():
            if member not in (dtype.names or ()):
                known = ", ".join(dtype.names or ()) or "none"
                raise UsageError(f"binding {self.var} has no member {member}; it has {known}")
            numbers = [_number(each, dims) for each in (value if isinstance(value, list) else [value])]
            if array[member].dtype.names:
                raise UsageError(f"{self.var}.{member} is a struct itself; give all of {self.var} as u32 `values`")
            made = inputs.numbers(f"{self.var}.{member}", numbers, array[member].dtype)
            if len(made) not in (1, array[member].size):
                raise UsageError(f"{self.var}.{member} is given {len(made)} numbers, and holds {array[member].size}")
            array[member] = made[0] if len(made) == 1 else made.reshape(array[member].shape)
        return array


def _number(value: Expression | float, dims: Mapping[str, int]) -> int | float:
    return value if isinstance(value, float) else evaluate(value, dims)


@frozen
class Shape:
    """One assignment of sizes to the dims."""

    dims: dict[str, int]
    cost: str = "quick"
    golden: bool | str = False  # one of `manifest_loader.GOLDEN`

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.dims.items())


PREDICTED_US_MAX = "predicted_us_max"


@frozen
class MostMicroseconds:
    """The most that a predicted time may be. `at`: the manifest and the line that say so."""

    us: Expression | float
    at: str


@frozen
class Kernel:
    """A kernel as its manifest describes it."""

    path: Path
    name: str
    source: Path
    entry: str | None
    dims: dict[str, int]
    dispatch: tuple[Expression, ...]
    bindings: tuple[Binding, ...]
    shapes: tuple[Shape, ...]
    reference: str | None = None
    overrides: dict[str, Override | str] = field(default_factory=dict[str, Override | str])  # by name or id
    defines: dict[str, str | int | float] = field(default_factory=dict[str, str | int | float])
    include_dirs: tuple[Path, ...] = ()
    preprocess: str | None = None
    budget: int | None = None  # loop iterations, as `bankshot.simulate` takes it
    schedules: int | None = None  # how many orders of invocations audits and runs compare, drawn from `seed`
    seed: int = 0
    rules: dict[str, Rule] = field(default_factory=dict[str, Rule])  # output -> rule against the reference
    gpu_rules: dict[str, Rule] = field(default_factory=dict[str, Rule])  # output -> rule against a GPU, if not `exact`
    counters: dict[str, Expression] = field(default_factory=dict[str, Expression])
    predicted_us_max: MostMicroseconds | None = None
    allow: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()
    unchecked: dict[str, str] = field(default_factory=dict[str, str])  # output -> why nothing needs to check it
    questions: tuple[str, ...] = ()  # what the author of the manifest has yet to answer

    def shape(self, given: Mapping[str, int]) -> Shape:
        """Replace some of the default sizes. Raises `UsageError` on a dim that the manifest lacks."""
        for name in given:
            if name not in self.dims:
                raise UsageError(
                    f"{self.path}: no dimension is named {name}; there are {', '.join(self.dims) or 'none'}"
                )
            if given[name] > LARGEST:
                raise UsageError(f"{self.path}: {name}={first_words(str(given[name]))} is over {LARGEST:,}")
        return Shape({**self.dims, **given})

    def case(self, shape: Shape) -> Case:
        """Make everything that one run needs, arrays included. Raises `UsageError`."""
        try:
            grid = tuple(evaluate(e, shape.dims) for e in self.dispatch)
            if min(grid) < 1:
                sizes = " x ".join(map(str, grid))
                raise UsageError(f"the dispatch is {sizes} workgroups, and each size must be at least 1")
            arrays = {binding.name: binding.make(shape.dims, self) for binding in self.bindings}
            case = Case(self, shape, (*grid, 1, 1)[:3], arrays)
            _ = case.overrides
        except UsageError as error:
            raise UsageError(f"{self.path}: at {shape}: {error}") from None
        except OverflowError as error:
            raise UsageError(f"{self.path}: at {shape}: a number is too large: {error}") from None
        return case


@frozen
class Case:
    """A kernel at one shape. `arrays` (see `Binding.make`) have the manifest's names, `bindings` the shader's."""

    kernel: Kernel
    shape: Shape
    grid: tuple[int, ...]
    arrays: dict[str, Any]

    @property
    def bindings(self) -> dict[str, Value]:
        """The arrays by WGSL variable."""
        known = {binding.name: binding for binding in self.kernel.bindings}
        bound: dict[str, Value] = {}
        for name, array in self.arrays.items():
            binding = known.get(name)
            if binding is not None and binding.packed and binding.dtype is not None:
                array = inputs.pack(name, array, binding.dtype, words_of_element(self.kernel, binding.var))
            elif binding is not None and binding.dtype == "f32" and is_array(array):
                array = array.view(Bits)  # the shader may keep their bits as integers; `fit` raises where it does not
            bound[binding.var if binding else name] = array
        return bound

    @property
    def overrides(self) -> dict[str, Override]:
        """Values of `override` declarations, by name or id."""
        dims, given = self.shape.dims, self.kernel.overrides
        return {name: evaluate(value, dims) if isinstance(value, str) else value for name, value in given.items()}

    @property
    def unset(self) -> list[str]:
        """The struct members without a value in the manifest, which are 0: `params.offset`."""
        structs = [binding for binding in self.kernel.bindings if binding.struct is not None]
        return [
            f"{binding.var}.{member}"
            for binding in structs
            for member in self.arrays[binding.name].dtype.names or ()
            if member not in (binding.struct or {})
        ]

    @property
    def launch(self) -> Launch:
        """The arguments of `bankshot.simulate` for this case, beside the shader."""
        kernel = self.kernel
        launch: Launch = {
            "entry": kernel.entry,
            "grid": self.grid,
            "bindings": self.bindings,
            "overrides": self.overrides,
        }
        if kernel.budget is not None:
            launch["budget"] = kernel.budget
        return launch

    def with_arrays(self, arrays: Mapping[str, Any]) -> Case:
        """Return a copy with some arrays replaced, by the manifest's names."""
        return replace(self, arrays={**self.arrays, **arrays})

    def name_of(self, var: str) -> str:
        """The manifest's name for the WGSL variable `var`."""
        return next((b.name for b in self.kernel.bindings if b.var == var), var)
