"""A kernel's manifest: which WGSL, on which data, in which shapes, and the expected results.

    [kernel]            source, entry, dims (default sizes), dispatch (workgroups in x, y, z), and optionally name,
                        reference (a name in `bankshot.oracle.references`, or `file.py:function`), overrides, defines,
                        include_dirs, preprocess (a command to run first, see `external_preprocessor`)
    [bind.NAME]         dtype and shape with `init` (a generator) or `file`; or dtype and `values`; or `struct`, values
                        by member, laid out as the WGSL declares them; or `sampler`, the fields of a `bankshot.Sampler`;
                        dtype f32 also suits a storage buffer of integers that hold the bits of floats;
                        optionally `var`, the WGSL variable where it is not called NAME, `seed`, `of`: the binding whose
                        random numbers it shares (packed weights and their scales are bindings of one matrix), and
                        `levels`, how many mip levels of a texture `init` makes
    [[sweep]]           sizes to run with; a list means each of its values; `cost = "heavy"` keeps it out of quick runs;
                        `golden`, where these sizes differ from [expect]
    [expect]            per output a rule, `Y = { rule = "ulp", max = 2 }`; per counter a number, `barriers = "2 * K"`;
                        `allow`, the codes of accepted findings; `free`, the outputs whose bits WGSL leaves open, for
                        example those of exp(): a GPU's are compared with the reference, not with ours;
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

import copy
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np

from ...sim.bindings.binding import Bits, is_array
from ...sim.fast_dataclass import frozen
from ..comparison.bits import Array
from ..comparison.rules import RULES, Rule
from ..errors import UsageError
from . import inputs
from .dimension_arithmetic import FUNCTIONS, evaluate, names_in
from .reflection import binding_dtype, level_shapes
from .strict_toml import Table

if TYPE_CHECKING:
    from ...sim.bindings.binding import Value

Expression = str | int
Member = Expression | float | list[Expression | float]  # the value of a struct's member
Override = bool | int | float

COSTS = ("quick", "heavy")
GOLDEN = (False, True, "outputs")
KERNEL_KEYS = (
    "source", "entry", "name", "reference", "dims", "dispatch", "overrides", "defines", "include_dirs", "preprocess",
    "budget",
)  # fmt: skip
BIND_KEYS = ("var", "dtype", "shape", "init", "file", "values", "struct", "sampler", "seed", "of", "levels")
SOURCES = ("init", "file", "values", "struct", "sampler")  # of a binding's contents


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

    def make(self, dims: Mapping[str, int], kernel: Kernel) -> Any:
        """Make an array; a list of arrays for a texture with several levels; the fields of a sampler."""
        if self.struct is not None:
            return self._make_struct(dims, binding_dtype(kernel, self.var))
        if self.sampler is not None:
            return self.sampler
        assert self.dtype is not None
        if self.values is not None:
            dtype = np.dtype(inputs.DTYPES[self.dtype])
            return inputs.numbers(self.name, [_number(v, dims) for v in self.values], dtype)
        shape = tuple(evaluate(s, dims) for s in self.shape or ())
        if self.init is not None and self.levels > 1:
            shapes = level_shapes(kernel, self.var, shape, self.levels)
            return [inputs.generate(self.init, self.of or self.name, s, self.dtype, self.seed) for s in shapes]
        if self.init is not None:
            return inputs.generate(self.init, self.of or self.name, shape, self.dtype, self.seed)
        assert self.file is not None
        wanted = np.dtype(inputs.DTYPES[self.dtype])
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
    golden: bool | str = False  # one of `GOLDEN`

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.dims.items())


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
    rules: dict[str, Rule] = field(default_factory=dict[str, Rule])  # output -> rule against the reference
    gpu_rules: dict[str, Rule] = field(default_factory=dict[str, Rule])  # output -> rule against a GPU, if not `exact`
    counters: dict[str, Expression] = field(default_factory=dict[str, Expression])
    allow: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()

    def shape(self, given: Mapping[str, int]) -> Shape:
        """Replace some of the default sizes. Raises `UsageError` on a dim that the manifest lacks."""
        for name in given:
            if name not in self.dims:
                raise UsageError(
                    f"{self.path}: no dimension is named {name}; there are {', '.join(self.dims) or 'none'}"
                )
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
        variables = {binding.name: binding.var for binding in self.kernel.bindings}
        floats = {binding.name for binding in self.kernel.bindings if binding.dtype == "f32"}
        return {
            # The shader may keep their bits as integers; `fit` raises where it does not.
            variables.get(name, name): array.view(Bits) if name in floats and is_array(array) else array
            for name, array in self.arrays.items()
        }

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


def load(path: Path, name: str | None = None) -> Kernel:
    """Load the kernel called `name` from a manifest; left out, the only one, or the one called as the file."""
    kernels = load_all(path)
    wanted = [kernel for kernel in kernels if kernel.name == (name or path.stem)]
    if name is None and len(kernels) == 1:
        return kernels[0]
    if not wanted:
        names = ", ".join(kernel.name for kernel in kernels)
        raise UsageError(f"{path}: no kernel is named {name or path.stem}; there are {names}")
    return wanted[0]


def load_all(path: Path) -> tuple[Kernel, ...]:
    """Read and check a manifest: one kernel, or one per variant. Raises `UsageError`: file, line, what to change."""
    top = Table.load(path)
    variants = top.tables("variant")
    if not variants:
        return (_kernel(top),)
    kernels: dict[str, Kernel] = {}
    for number, variant in enumerate(variants, 1):
        data = _laid_over(top.data, variant.data)
        name = data.get("kernel", {}).get("name", f"number {number}")
        try:
            kernel = _kernel(Table(path, top.text, data))
        except UsageError as error:
            raise UsageError(f"{error} (in variant {name})") from None
        if kernel.name in kernels:
            variant.fail(f"two variants are named {kernel.name}; give each its own `kernel.name`")
        kernels[kernel.name] = kernel
    return tuple(kernels.values())


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Lay `above` over a copy of `below`: tables are merged key by key, anything else is replaced."""
    joined = copy.deepcopy(below)
    for key, value in copy.deepcopy(above).items():
        both = isinstance(value, dict) and isinstance(joined.get(key), dict)
        joined[key] = _laid_over(joined[key], above[key]) if both else value
    return joined


def _kernel(top: Table) -> Kernel:
    path = top.path
    table = top.table("kernel", required=True)
    dims = {name: _dim(table, name, value) for name, value in table.take("dims", dict, default={}).items()}
    bindings = _bindings(top.table("bind"), dims)
    expect = top.table("expect")
    shapes = _shapes(top.tables("sweep"), dims, _golden(expect, False))
    on_gpu = expect.table("gpu")
    gpu_rules = {b.name: _rule(on_gpu, b.name) for b in bindings if b.name in on_gpu.data}
    on_gpu.done([b.name for b in bindings])
    rules = {b.name: _rule(expect, b.name) for b in bindings if b.name in expect.data}
    allow = frozenset(expect.take("allow", list, of=(str,), default=[]))
    free = _outputs(expect, "free", bindings)
    for name, value in expect.data.items():
        if isinstance(value, dict):
            known = ", ".join(b.name for b in bindings) or "none"
            expect.fail(f"`{name}` is no binding of this manifest; there are {known}", name)
    counters = {name: expect.take(name, int, str) for name in list(expect.data)}
    for name, expression in counters.items():
        _check_names(expect, [expression], dims, name)
    overrides = table.take("overrides", dict, of=(int, float, bool, str), default={})
    _check_names(table, overrides.values(), dims, "overrides")
    budget = table.take("budget", int, default=None)
    folders = table.take("include_dirs", list, of=(str,), default=[])
    kernel = Kernel(
        path=path,
        name=table.take("name", str, default=path.stem),
        source=_source(table),
        entry=table.take("entry", str, default=None),
        dims=dims,
        dispatch=_dispatch(table, dims),
        bindings=bindings,
        shapes=shapes,
        reference=table.take("reference", str, default=None),
        overrides=overrides,
        defines=table.take("defines", dict, of=(str, int, float, bool), default={}),
        include_dirs=tuple(_folder(table, path.parent / d) for d in folders),
        preprocess=table.take("preprocess", str, default=None),
        budget=None if budget is None else _whole(table, "budget", "budget", budget),
        rules=rules,
        gpu_rules=gpu_rules,
        counters=counters,
        allow=allow,
        free=free,
    )
    if free and kernel.reference is None:
        expect.fail("outputs that are `free` need a reference to be compared with", "free")
    table.done(KERNEL_KEYS)
    top.done(("kernel", "bind", "sweep", "expect", "variant"))
    return kernel


def _source(table: Table) -> Path:
    source = table.path.parent / table.take("source", str)
    if not source.is_file():
        table.fail(f"source {source} does not exist", "source")
    return source


def _dispatch(table: Table, dims: Mapping[str, int]) -> tuple[Expression, ...]:
    dispatch = tuple(table.take("dispatch", list, of=(int, str)))
    if not 1 <= len(dispatch) <= 3:
        table.fail(f"`dispatch` must be one to three numbers or expressions, not {len(dispatch)}", "dispatch")
    _check_names(table, dispatch, dims, "dispatch")
    return dispatch


def _outputs(expect: Table, key: str, bindings: tuple[Binding, ...]) -> frozenset[str]:
    """Take a list of names of bindings."""
    names = frozenset(expect.take(key, list, of=(str,), default=[]))
    for name in sorted(names - {binding.name for binding in bindings}):
        expect.fail(f"`{key}` names {name}, which is no binding", key)
    return names


def _folder(table: Table, folder: Path) -> Path:
    if not folder.is_dir():
        table.fail(f"`include_dirs`: there is no folder {folder}", "include_dirs")
    return folder


def _dim(table: Table, name: str, value: object) -> int:
    if not name.isidentifier() or name in FUNCTIONS:
        table.fail(f"`{name}` cannot be the name of a dimension", "dims")
    return _whole(table, "dims", name, value, least=0)


def _whole(table: Table, key: str, name: str, value: object, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        table.fail(f"`{name}` must be a {'positive' if least else 'non-negative'} integer, not {value!r}", key)
    return value


def _check_names(table: Table, expressions: Iterable[object], dims: Mapping[str, int], key: str) -> None:
    for expression in expressions:
        try:
            unknown = names_in(expression) - dims.keys() if isinstance(expression, str) else set[str]()
        except UsageError as error:
            table.fail(str(error), key)
        if unknown:
            names, there = ", ".join(sorted(unknown)), ", ".join(dims) or "none"
            uses = "" if names == expression else f" uses {names}, which"
            table.fail(f"`{expression}`{uses} is no dimension; [kernel] dims has {there}", key)


def _bindings(table: Table, dims: Mapping[str, int]) -> tuple[Binding, ...]:
    bindings = {name: _binding(name, table.table(name), dims) for name in list(table.data)}
    for name, binding in bindings.items():
        if binding.of is not None and binding.of not in bindings:
            table.fail(f"`of` of {name} names {binding.of}, which is no binding", name)
    return tuple(bindings.values())


def _binding(name: str, table: Table, dims: Mapping[str, int]) -> Binding:
    if sum(source in table.data for source in SOURCES) != 1:
        table.fail(f"a binding is made by exactly one of {', '.join(SOURCES)}")
    struct: dict[str, Member] | None = table.take("struct", dict, of=(int, float, str, list), default=None)
    values: list[Expression | float] | None = table.take("values", list, of=(int, float, str), default=None)
    sampler, levels = table.take("sampler", dict, default=None), table.take("levels", int, default=1)
    init, file = table.take("init", str, default=None), table.take("file", str, default=None)
    dtype = None if struct is not None or sampler is not None else table.take("dtype", str)
    if dtype is not None and dtype not in inputs.DTYPES:
        table.fail(f"`dtype` must be one of {', '.join(inputs.DTYPES)}, not {dtype!r}", "dtype")
    shape: list[Expression] | None = None
    if init is not None or file is not None:
        shape = table.take("shape", list, of=(int, str))
    if init is not None and init not in inputs.KINDS:
        table.fail(f"`init` must be one of {', '.join(inputs.KINDS)}, not {init!r}", "init")
    if init is not None and dtype is not None and dtype not in inputs.dtypes_of(init):
        table.fail(f"`{init}` makes {' or '.join(inputs.dtypes_of(init))}, not {dtype}", "dtype")
    if levels != 1 and init is None:
        table.fail("only `init` makes `levels`", "levels")
    _check_names(table, shape or (), dims, "shape")
    _check_names(table, values or (), dims, "values")
    members: list[object] = []
    for value in (struct or {}).values():
        members += value if isinstance(value, list) else [value]
    for each in members:
        if isinstance(each, bool) or not isinstance(each, int | float | str):
            table.fail(f"`struct` holds {each!r} in a list, which is no number and no expression", "struct")
    _check_names(table, members, dims, "struct")
    binding = Binding(
        name=name,
        var=table.take("var", str, default=name),
        dtype=dtype,
        shape=None if shape is None else tuple(shape),
        init=init,
        file=None if file is None else table.path.parent / file,
        values=None if values is None else tuple(values),
        struct=struct,
        sampler=sampler,
        levels=_whole(table, "levels", "levels", levels),
        seed=table.take("seed", int, default=0),
        of=table.take("of", str, default=None),
    )
    if binding.seed < 0:
        table.fail(f"`seed` must be 0 or more, not {binding.seed}")
    table.done(BIND_KEYS)
    return binding


def _golden(table: Table, default: bool | str) -> bool | str:
    golden = table.take("golden", bool, str, default=default)
    if golden not in GOLDEN:
        table.fail(f"`golden` must be true, false or 'outputs', not {golden!r}", "golden")
    return golden


def _shapes(tables: list[Table], dims: Mapping[str, int], golden: bool | str) -> tuple[Shape, ...]:
    """Every combination of each sweep's sizes; without a sweep, the default sizes."""
    shapes: list[Shape] = []
    for table in tables:
        cost = table.take("cost", str, default="quick")
        if cost not in COSTS:
            table.fail(f"`cost` must be {' or '.join(COSTS)}, not {cost!r}", "cost")
        kept = _golden(table, golden)
        given: dict[str, int | list[object]] = {
            name: table.take(name, int, list) for name in dims if name in table.data
        }
        table.done((*dims, "cost", "golden"))
        lists: list[list[object]] = [value if isinstance(value, list) else [value] for value in given.values()]
        for name, values in zip(given, lists, strict=True):
            if not values:
                table.fail(f"`{name}` is an empty list, so that there is nothing to run")
        for values in itertools.product(*lists):
            sizes = {name: _whole(table, name, name, v, least=0) for name, v in zip(given, values, strict=True)}
            shapes.append(Shape({**dims, **sizes}, cost, kept))
    return tuple(shapes) or (Shape(dict(dims), golden=golden),)


def _rule(expect: Table, output: str) -> Rule:
    if isinstance(expect.data[output], str):  # for short, where a rule has no limits
        expect.data[output] = {"rule": expect.data[output]}
    table = expect.table(output)
    name = table.take("rule", str)
    if name not in RULES:
        table.fail(f"`{output}`: rule must be one of {', '.join(RULES)}, not {name!r}", output)
    parameters = [parameter.name for parameter in RULES[name].parameters]
    limits = {key: table.take(key, int, float) for key in list(table.data) if key in parameters}
    table.done(("rule", *parameters))
    try:
        RULES[name].check(limits)
    except UsageError as error:
        expect.fail(f"`{output}`: {error}", output)
    return Rule(name, limits)
