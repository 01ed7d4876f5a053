"""Read manifests: `load` and `load_all` turn a TOML file into `Kernel`s, or say where it is wrong."""

from __future__ import annotations

import copy
import difflib
import itertools
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..comparison.rules import RULES, Rule
from ..errors import UsageError
from . import inputs
from .dimension_arithmetic import FUNCTIONS, names_in
from .manifest import LARGEST, PREDICTED_US_MAX, Binding, Expression, Kernel, Member, MostMicroseconds, Shape
from .strict_toml import Table, shown

COSTS = ("quick", "heavy")
MOST_SCHEDULES = 1 << 20
GOLDEN = (False, True, "outputs")
KERNEL_KEYS = (
    "source", "entry", "name", "reference", "dims", "dispatch", "overrides", "defines", "include_dirs", "preprocess",
    "budget", "schedules", "seed",
)  # fmt: skip
BIND_KEYS = ("var", "dtype", "shape", "init", "file", "values", "struct", "sampler", "seed", "of", "levels", "packed")
SOURCES = ("init", "file", "values", "struct", "sampler")  # of a binding's contents


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
    allow = _findings(expect)
    free = _outputs(expect, "free", bindings)
    unchecked = _reasons(expect, bindings)
    most_time = _most_time(expect, dims)
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
    schedules, seed = table.take("schedules", int, default=None), table.take("seed", int, default=0)
    if seed and schedules is None:
        table.fail("`seed` belongs to `schedules`, which is not given", "seed")
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
        schedules=None if schedules is None else _whole(table, "schedules", "schedules", schedules, 2, MOST_SCHEDULES),
        seed=_whole(table, "seed", "seed", seed, 0),
        rules=rules,
        gpu_rules=gpu_rules,
        counters=counters,
        predicted_us_max=most_time,
        allow=allow,
        free=free,
        unchecked=unchecked,
        questions=tuple(top.take("questions", list, of=(str,), default=[])),
    )
    if free and kernel.reference is None:
        expect.fail("outputs that are `free` need a reference to be compared with", "free")
    table.done(KERNEL_KEYS)
    top.done(("questions", "kernel", "bind", "sweep", "expect", "variant"))
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


def _findings(expect: Table) -> frozenset[str]:
    """Take `allow`, a list of codes of findings."""
    codes: list[str] = expect.take("allow", list, of=(str,), default=[])
    if codes:
        from ...sim.findings.table import KINDS

        for code in codes:
            if code not in KINDS:
                close = difflib.get_close_matches(code, KINDS, n=1)
                hint = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(KINDS)}"
                expect.fail(f"`allow` names {shown(code)}, which is no finding; {hint}", "allow")
    return frozenset(codes)


def _reasons(expect: Table, bindings: tuple[Binding, ...]) -> dict[str, str]:
    """Take `unchecked`, a table of reasons by output."""
    table = expect.table("unchecked")
    reasons = {b.name: table.take(b.name, str).strip() for b in bindings if b.name in table.data}
    for name, reason in reasons.items():
        if not reason:
            table.fail(f"`unchecked` needs the reason why nothing checks {name}", name)
    table.done([b.name for b in bindings])
    return reasons


def _most_time(expect: Table, dims: Mapping[str, int]) -> MostMicroseconds | None:
    """Take `predicted_us_max`: a positive number of microseconds, or arithmetic on the dims."""
    key = PREDICTED_US_MAX
    at = expect.place(key)
    value: Expression | float | None = expect.take(key, int, float, str, default=None)
    if value is None:
        return None
    if isinstance(value, str):
        _check_names(expect, [value], dims, key)
    elif not (math.isfinite(value) and 0 < value <= LARGEST):
        expect.fail(f"`{key}` must be a positive number of microseconds, not {shown(value)}", key)
    return MostMicroseconds(value, at)


def _folder(table: Table, folder: Path) -> Path:
    if not folder.is_dir():
        table.fail(f"`include_dirs`: there is no folder {folder}", "include_dirs")
    return folder


def _dim(table: Table, name: str, value: object) -> int:
    if not name.isidentifier() or name in FUNCTIONS:
        table.fail(f"`{name}` cannot be the name of a dimension", "dims")
    return _whole(table, "dims", name, value, least=0)


def _whole(table: Table, key: str, name: str, value: object, least: int = 1, most: int = LARGEST) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        kind = {0: "a non-negative integer", 1: "a positive integer"}.get(least, f"an integer of at least {least}")
        table.fail(f"`{name}` must be {kind}, not {shown(value)}", key)
    if value > most:
        table.fail(f"`{name}` is {shown(value)}, and the largest integer is {most:,}", key)
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
    if dtype is not None and dtype not in inputs.NUMBERS:
        table.fail(f"`dtype` must be one of {', '.join(inputs.NUMBERS)}, not {shown(dtype)}", "dtype")
    packed = table.take("packed", bool, default=False)
    if packed and dtype not in inputs.PACKED_BITS:
        table.fail(f"`packed` takes a `dtype` of {', '.join(inputs.PACKED_BITS)}", "packed")
    if dtype in inputs.ONLY_PACKED and not packed:
        table.fail(f"{dtype} takes `packed = true`: WGSL has no such numbers", "dtype")
    shape: list[Expression] | None = None
    if init is not None or file is not None:
        shape = table.take("shape", list, of=(int, str))
    if init is not None and init not in inputs.KINDS:
        table.fail(f"`init` must be one of {', '.join(inputs.KINDS)}, not {shown(init)}", "init")
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
            table.fail(f"`struct` holds {shown(each)} in a list, which is no number and no expression", "struct")
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
        packed=packed,
    )
    if binding.seed < 0:
        table.fail(f"`seed` must be 0 or more, not {binding.seed}")
    table.done(BIND_KEYS)
    return binding


def _golden(table: Table, default: bool | str) -> bool | str:
    golden = table.take("golden", bool, str, default=default)
    if golden not in GOLDEN:
        table.fail(f"`golden` must be true, false or 'outputs', not {shown(golden)}", "golden")
    return golden


def _shapes(tables: list[Table], dims: Mapping[str, int], golden: bool | str) -> tuple[Shape, ...]:
    """Every combination of each sweep's sizes; without a sweep, the default sizes."""
    shapes: list[Shape] = []
    for table in tables:
        cost = table.take("cost", str, default="quick")
        if cost not in COSTS:
            table.fail(f"`cost` must be {' or '.join(COSTS)}, not {shown(cost)}", "cost")
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
        table.fail(f"`{output}`: rule must be one of {', '.join(RULES)}, not {shown(name)}", output)
    parameters = [parameter.name for parameter in RULES[name].parameters]
    limits = {key: table.take(key, int, float) for key in list(table.data) if key in parameters}
    table.done(("rule", *parameters))
    try:
        RULES[name].check(limits)
    except UsageError as error:
        expect.fail(f"`{output}`: {error}", output)
    return Rule(name, limits)
