"""Choose a kernel and a grid for a shape: the first rule of a table that fits and that WebGPU can dispatch.

    [[rule]]
    kernel = "gemv_subgroup_multicol"              # a name in some manifest, whose dispatch gives the grid
    because = "one token, and a wide layer"
    traits = { weights = "f16", subgroups = true } # of the problem, beside its sizes; all must be equal
    sizes = { M = 1, N = { above = 8192 }, K = { multiple_of = 4 } }

The rules are data (`shaders/selection.toml`); this module knows no kernel by name.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ...sim.fast_dataclass import frozen
from ...sim.models import Exceeded, check_dispatch
from ..errors import UsageError
from .dimension_arithmetic import evaluate
from .manifest import Kernel
from .strict_toml import Table

Trait = str | bool

# What a rule can ask of a size; a bare number asks for that size.
CONDITIONS: dict[str, Callable[[int, int], bool]] = {
    "is": operator.eq,
    "above": operator.gt,
    "at_most": operator.le,
    "multiple_of": lambda size, unit: size % unit == 0,
}


@frozen
class Rule:
    """`sizes` are conditions per dim: (name in `CONDITIONS`, number)."""

    kernel: str
    because: str
    traits: Mapping[str, Trait]
    sizes: Mapping[str, tuple[tuple[str, int], ...]]

    def fits(self, dims: Mapping[str, int], traits: Mapping[str, Trait]) -> bool:
        """Whether the rule applies. A size or a trait that it asks about and that is not given does not fit."""
        return all(traits.get(name) == value for name, value in self.traits.items()) and all(
            name in dims and CONDITIONS[condition](dims[name], number)
            for name, conditions in self.sizes.items()
            for condition, number in conditions
        )


@frozen
class Choice:
    """`passed_over`: rules that fit, but whose grid WebGPU does not allow, with what it goes beyond."""

    kernel: Kernel
    grid: tuple[int, ...]
    because: str
    passed_over: tuple[tuple[Rule, Exceeded], ...] = ()


def load(path: Path) -> tuple[Rule, ...]:
    """Read a table of rules. Raises `UsageError` with file, line and remedy."""
    top = Table.load(path)
    rules = tuple(_rule(table) for table in top.tables("rule"))
    top.done(("rule",))
    return rules


def _rule(table: Table) -> Rule:
    sizes = table.table("sizes")
    rule = Rule(
        kernel=table.take("kernel", str),
        because=table.take("because", str),
        traits=table.take("traits", dict, default={}),
        sizes={dim: _conditions(sizes, dim) for dim in list(sizes.data)},
    )
    table.done(("kernel", "because", "traits", "sizes"))
    return rule


def _conditions(sizes: Table, dim: str) -> tuple[tuple[str, int], ...]:
    value = sizes.take(dim, int, dict)
    if isinstance(value, int):
        return (("is", value),)
    table = Table(sizes.path, sizes.text, value, sizes.header)
    conditions = tuple((name, table.take(name, int)) for name in CONDITIONS if name in value)
    table.done(CONDITIONS)
    return conditions


def choose(
    rules: Iterable[Rule], kernels: Iterable[Kernel], dims: Mapping[str, int], traits: Mapping[str, Trait]
) -> Choice:
    """Choose the first rule that fits and can be dispatched. Raises `UsageError` where there is none."""
    named = {kernel.name: kernel for kernel in kernels}
    passed_over: list[tuple[Rule, Exceeded]] = []
    for rule in rules:
        if not rule.fits(dims, traits):
            continue
        if rule.kernel not in named:
            raise UsageError(f"a rule chooses {rule.kernel}, which is in no manifest")
        kernel = named[rule.kernel]
        grid = grid_of(kernel, dims)
        if not (beyond := too_many_workgroups(grid)):
            return Choice(kernel, grid, rule.because, tuple(passed_over))
        passed_over.append((rule, beyond[0]))
    raise UsageError(f"no kernel is chosen for {_words(dims, traits)}{_refused(passed_over)}")


def grid_of(kernel: Kernel, dims: Mapping[str, int]) -> tuple[int, ...]:
    """Workgroups in x, y and z, as the kernel's manifest dispatches these sizes."""
    return (*(evaluate(expression, dims) for expression in kernel.dispatch), 1, 1)[:3]


def too_many_workgroups(grid: tuple[int, ...]) -> list[Exceeded]:
    """The dimensions of a grid that exceed WebGPU's 65,535."""
    return check_dispatch(grid, (1,))


def _words(dims: Mapping[str, int], traits: Mapping[str, Trait]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in {**dims, **traits}.items())


def _refused(passed_over: list[tuple[Rule, Exceeded]]) -> str:
    return "".join(f"; {rule.kernel} would need {exceeded}" for rule, exceeded in passed_over)
