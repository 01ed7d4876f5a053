"""Each stage of a kernel as text, for people: `bankshot run --dump STAGE`, and BANKSHOT_DEBUG=1..5 in any run.

syntax: the preprocessed source, printed from its syntax tree. typed: the checked module. ir: the lowered program that
codegen receives. program: the instructions. machine: the compiled machine, and the arrays of the launch. All but
`machine`, which names files and their sizes, are the same in every run. Nothing is computed unless it is printed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from .fast_dataclass import frozen

if TYPE_CHECKING:
    from .codegen.program import Program
    from .ir.lowered import Lowered
    from .launch.launch import Launch
    from .wgsl.typed import Pipeline

VARIABLE = "BANKSHOT_DEBUG"  # a number: print the stages up to it


@frozen
class Stages:
    """A dispatch before it runs. What a stage needs is computed when it is asked for."""

    pipeline: Pipeline
    lowered: Callable[[], Lowered]
    launch: Callable[[], Launch]


def to_text(stage: str, stages: Stages) -> str:
    """Return one of `STAGES` as text that ends with a line break. Raises KeyError for any other name."""
    return STAGES[stage](stages)


def debug_level() -> int:
    """The number of stages that BANKSHOT_DEBUG asks for; 0 where it is unset or not a number."""
    level = os.environ.get(VARIABLE, "")
    return int(level) if level.isdecimal() else 0


def print_stages(stages: Stages) -> None:
    """Print the stages up to `debug_level()` to stderr, each as soon as it is known."""
    for name in list(STAGES)[: debug_level()]:
        print(heading(name, stages.pipeline), to_text(name, stages), sep="\n", file=sys.stderr, flush=True)


def heading(stage: str, pipeline: Pipeline) -> str:
    """The line above a stage where several are printed."""
    return f"---- {stage}: {pipeline.entry.name} of {pipeline.module.source.name} ----"


# ---- the stages --------------------------------------------------------------------------------------


def _syntax(stages: Stages) -> str:
    from .wgsl.syntax.parser import parse
    from .wgsl.syntax.printer import to_wgsl

    return to_wgsl(parse(stages.pipeline.module.source))


def _typed(stages: Stages) -> str:
    from .wgsl.typed_printer import to_text

    return to_text(stages.pipeline.module)


def _ir(stages: Stages) -> str:
    from .ir.dump import to_text

    return to_text(stages.lowered())


def _program(stages: Stages) -> str:
    from .codegen.program_text import to_text

    return to_text(stages.launch().program)


def _machine(stages: Stages) -> str:
    lines = [*_compiled(), "", *_arrays(stages.launch())]
    return "\n".join(lines) + "\n"


def _compiled() -> Iterator[str]:
    """The machine in memory: its compile path, its cache folder, and the object file of each unit."""
    from .machine.compile.loader import machine

    loaded = machine()
    yield f"compiled by the {loaded.path} path, in {loaded.files[0].parent}"
    for file in loaded.files:
        yield f"unit {file.name.rsplit('.', 2)[0]}: {file.stat().st_size} bytes"


def _arrays(launch: Launch) -> Iterator[str]:
    """The tables and arrays that the machine runs on, and how large they are."""
    program: Program = launch.program
    yield f"launch: {launch.count} workgroups on {launch.device.name}, {program.workgroups_per_batch} per batch"
    total = 0
    for argument, value in zip(_ARRAYS, launch.machine_arrays(), strict=True):
        for name, array in _named(argument, value):
            total += array.nbytes
            yield f"array {name}: {array.dtype.name} {'x'.join(map(str, array.shape))}, {array.nbytes} bytes"
    yield f"in all {total} bytes, and {launch.storage.nbytes} bytes of device memory"


def _named(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of nested records, with their paths."""
    if not isinstance(value, tuple):
        yield name, value
        return
    record = cast(tuple[Any, ...], value)
    fields: Iterable[Any] = getattr(record, "_fields", range(len(record)))
    for field, each in zip(fields, record, strict=True):
        yield from _named(f"{name}.{field}", each)


# The arguments of `machine.core.run`, in their order.
_ARRAYS = (
    *("code", "configs", "registers", "workgroup_memory", "device_memory", "accesses", "events"),
    *("address_patterns", "places", "turns", "order", "probes", "watch", "queue", "snapshot", "kept_addresses"),
)

STAGES: dict[str, Callable[[Stages], str]] = {
    "syntax": _syntax,
    "typed": _typed,
    "ir": _ir,
    "program": _program,
    "machine": _machine,
}
