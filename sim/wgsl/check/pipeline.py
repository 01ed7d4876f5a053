"""Pipeline creation: one entry point, a value for every override, and the checks that need those.

Spec: WGSL, "`override` Declarations" and "`override` Expressions"; WebGPU, "Limits" (`LIMITS` has the defaults, which
every implementation supports).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping

from .. import typed
from .. import types as t
from ..diagnostics import Diagnostic, Note, WgslError, did_you_mean, fail, limits_are_errors
from .fold import Substitution

# WebGPU's limits, with the values that need no request.
LIMITS: Mapping[str, int] = {
    "maxComputeInvocationsPerWorkgroup": 256,
    "maxComputeWorkgroupSizeX": 256,
    "maxComputeWorkgroupSizeY": 256,
    "maxComputeWorkgroupSizeZ": 64,
    "maxComputeWorkgroupStorageSize": 16384,
}

# The sizes of workgroups that nearly all GPUs grant on request.
GRANTED: Mapping[str, int] = {
    "maxComputeInvocationsPerWorkgroup": 1024,
    "maxComputeWorkgroupSizeX": 1024,
    "maxComputeWorkgroupSizeY": 1024,
}

# No device has more workgroup memory: an H100 has 228 KiB. Bankshot allocates none beyond it.
MOST_WORKGROUP_BYTES = 1 << 20

WORKGROUP_ALIGNMENT = 16  # WebGPU: each workgroup variable counts rounded up to 16 bytes


@limits_are_errors("made a pipeline")
def create_pipeline(
    module: typed.Module,
    entry: str | None = None,
    overrides: Mapping[str | int, typed.OverrideValue] | None = None,
    limits: Mapping[str, int] | None = None,
) -> typed.Pipeline:
    """Create the pipeline of a compute entry point. Raises `WgslError`.

    `entry` is optional where the module has one compute entry point. `overrides` are bools or numbers, by name or by
    @id (an int or its digits). `limits` replaces some of `LIMITS`: a workgroup that is too large is an error, too much
    workgroup memory a warning.
    """
    function = _entry(module, entry)
    values = _override_values(function, _given(module, overrides or {}))
    fixed = Substitution(values)
    allowed = _allowed(limits or {})
    size = _workgroup_size(function, fixed, allowed)
    store_types = {variable: fixed.type(variable.type) for variable in function.globals}
    if values:  # else the checker has evaluated all of them
        _check_expressions(function, fixed)
    workgroup_bytes = _workgroup_bytes(store_types)
    if workgroup_bytes > MOST_WORKGROUP_BYTES:
        raise WgslError(_too_much_storage("error", function, store_types, workgroup_bytes))
    return typed.Pipeline(
        module,
        function,
        values,
        size,
        list(function.globals),
        store_types,
        workgroup_bytes,
        fixed.type,
        fixed.expr,
        _subgroup_size(function, fixed, size),
        list(_storage_warning(function, workgroup_bytes, allowed["maxComputeWorkgroupStorageSize"])),
    )


def _allowed(limits: Mapping[str, int]) -> Mapping[str, int]:
    for name in limits:
        if name not in LIMITS:
            raise fail("unknown-limit", f"'{name}' is not a limit", None, hint=did_you_mean(name, LIMITS))
    return {**LIMITS, **limits}


# ---- the entry point -----------------------------------------------------------------------------------


def _entry(module: typed.Module, name: str | None) -> typed.Function:
    compute = module.compute_entry_points
    listed = ", ".join(f"'{f.name}'" for f in compute) or "none"
    notes = [Note(f"'{f.name}' is declared here", f.span) for f in compute]
    if name is None:
        if len(compute) == 1:
            return compute[0]
        if compute:
            raise fail("ambiguous-entry-point", f"name one of the compute entry points {listed}", None, *notes)
        raise fail(
            "no-entry-point", "the module has no compute entry point", None, hint="mark a function with @compute"
        )
    function = module.functions.get(name)
    if function is None:
        hint = did_you_mean(name, [f.name for f in compute]) or f"compute entry points: {listed}"
        raise fail("no-entry-point", f"the module has no entry point '{name}'", None, hint=hint)
    if function.stage != "compute":
        kind = f"a {function.stage} entry point" if function.stage else "no entry point"
        message = f"'{name}' is {kind}, and only compute entry points can be run"
        raise fail("no-entry-point", message, function.span, hint=f"compute entry points: {listed}")
    return function


# ---- overrides -----------------------------------------------------------------------------------------


def _given(
    module: typed.Module, overrides: Mapping[str | int, typed.OverrideValue]
) -> dict[typed.Override, typed.Value]:
    """Return the given values by override, each in the type of its override."""
    by_key = {override.name: override for override in module.overrides}
    by_key |= {str(override.id): override for override in module.overrides if override.id is not None}
    found: dict[typed.Override, typed.Value] = {}
    for key, value in overrides.items():
        override = by_key.get(str(key))
        if override is None:
            hint = (
                did_you_mean(str(key), by_key) or f"overrides: {', '.join(o.name for o in module.overrides) or 'none'}"
            )
            raise fail("unknown-override", f"the module has no override '{key}'", None, hint=hint)
        if override in found:
            raise fail("duplicate-override", f"override '{override.name}' is given twice", override.span)
        found[override] = _as_type(value, override)
    return found


def _as_type(given: typed.OverrideValue, override: typed.Override) -> typed.Value:
    """Convert a given value to the type of its override. Only rounding to f32 and f16 changes it silently."""
    name, type_ = override.name, override.type
    value: object = getattr(given, "item", lambda: given)()  # of a NumPy scalar; callers may pass anything
    if not isinstance(value, (bool, int, float)):
        shown = type(value).__name__
        raise fail("override-value", f"override '{name}' is {type_}, but a {shown} is given", override.span)
    if type_ == t.BOOL:
        return bool(value)
    if type_ in (t.I32, t.U32):
        low, high = (-(2**31), 2**31 - 1) if type_ == t.I32 else (0, 2**32 - 1)
        if not math.isfinite(value) or int(value) != value or not low <= value <= high:
            raise fail("override-value", f"override '{name}' is {type_}, which cannot hold {value}", override.span)
        return int(value)
    try:
        layout = "<f" if type_ == t.F32 else "<e"
        rounded = struct.unpack(layout, struct.pack(layout, float(value)))[0]
    except OverflowError:
        rounded = math.inf
    if not math.isfinite(rounded):
        raise fail("override-value", f"override '{name}' is {type_}, which cannot hold {value}", override.span)
    return rounded


def _override_values(
    function: typed.Function, given: dict[typed.Override, typed.Value]
) -> dict[typed.Override, typed.Value]:
    """Return the value of every override that the entry point uses."""
    values: dict[typed.Override, typed.Value] = dict(given)

    def fix(override: typed.Override) -> None:
        if override in values:
            return
        if override.init is None:
            hint = f"give a value for '{override.name}'"
            raise fail("missing-override", f"override '{override.name}' has no value", override.span, hint=hint)
        for part in typed.expressions(override.init):
            if isinstance(part, typed.OverrideRef):
                fix(part.override)
        made = Substitution(values).expr(override.init)
        assert isinstance(made, typed.Const)
        values[override] = made.value

    for override in function.overrides:
        fix(override)
    return values


# ---- checks that need the values -----------------------------------------------------------------------


def _workgroup_size(function: typed.Function, fixed: Substitution, limits: Mapping[str, int]) -> tuple[int, int, int]:
    assert function.workgroup_size is not None
    made = [fixed.expr(size) for size in function.workgroup_size]
    x, y, z = (size.value for size in made if isinstance(size, typed.Const))
    for axis, value, expr in zip("XYZ", (x, y, z), made, strict=True):
        limit = limits[f"maxComputeWorkgroupSize{axis}"]
        if value < 1:
            raise fail("workgroup-size", f"the workgroup size must be at least 1, not {value}", expr.span)
        if value > limit:
            message = f"the workgroup size along {axis.lower()} is {value}, more than the limit of {limit}"
            raise fail("workgroup-size", message, expr.span)
    limit = limits["maxComputeInvocationsPerWorkgroup"]
    if x * y * z > limit:
        message = f"a workgroup of {x} * {y} * {z} = {x * y * z} invocations exceeds the limit of {limit}"
        raise fail("workgroup-size", message, made[0].span)
    return x, y, z


def _subgroup_size(function: typed.Function, fixed: Substitution, size: tuple[int, int, int]) -> int | None:
    if function.subgroup_size is None:
        return None
    made = fixed.expr(function.subgroup_size)
    assert isinstance(made, typed.Const)
    value = made.value
    if value < 1 or value & (value - 1):
        raise fail("subgroup-size", f"the subgroup size must be a power of two, not {value}", made.span)
    if size[0] % value:
        message = f"the workgroup size along x, {size[0]}, is not a multiple of the subgroup size {value}"
        raise fail("subgroup-size", message, made.span)
    return value


def _check_expressions(entry: typed.Function, fixed: Substitution) -> None:
    """Evaluate every override-expression of the shader, for errors such as an index out of bounds."""
    for variable in entry.globals:
        if variable.init is not None:
            fixed.expr(variable.init)
    for function in typed.reached(entry):
        assert function.body is not None
        for stmt in typed.statements(function.body):
            fixed.check(stmt)


_StoreTypes = Mapping[typed.Variable, t.Type]


def _workgroup_bytes(store_types: _StoreTypes) -> int:
    return sum(
        t.round_up(WORKGROUP_ALIGNMENT, t.size_of(type_))
        for variable, type_ in store_types.items()
        if variable.space == "workgroup"
    )


def impossible_workgroups(module: typed.Module) -> Iterator[Diagnostic]:
    """Iterate over warnings of entry points whose workgroup memory no device has, whatever the overrides are."""
    for function in module.entry_points:
        fixed = {v: v.type for v in function.globals if t.has_creation_fixed_footprint(v.type)}
        used = _workgroup_bytes(fixed)
        if used > MOST_WORKGROUP_BYTES:
            yield _too_much_storage("warning", function, fixed, used)


def _too_much_storage(severity: str, function: typed.Function, store_types: _StoreTypes, used: int) -> Diagnostic:
    largest = max((v for v in store_types if v.space == "workgroup"), key=lambda v: t.size_of(store_types[v]))
    message = f"'{function.name}' uses {used} bytes of workgroup memory, and no device has {MOST_WORKGROUP_BYTES}"
    size = Note(f"'{largest.name}' takes {t.size_of(store_types[largest])} bytes", largest.span)
    return Diagnostic(severity, "workgroup-storage", message, function.span, (size,))


def _storage_warning(function: typed.Function, used: int, limit: int) -> Iterator[Diagnostic]:
    if used > limit:
        message = f"'{function.name}' uses {used} bytes of workgroup memory, more than the limit of {limit}"
        yield Diagnostic("warning", "workgroup-storage", message, function.span)
