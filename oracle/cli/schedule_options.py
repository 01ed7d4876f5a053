"""The options `--schedules`, `--seed`, `--seconds` and `--thorough`, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict, cast

import click

from ..errors import UsageError
from .options import Command, RequestOptions

if TYPE_CHECKING:
    from ..judge.schedule_options import ScheduleOptions

# The options of a request that a command repeats to run the same case, beside the grid.
_REPEATED = {
    "entry": "--entry",
    "binds": "--bind",
    "overrides": "--override",
    "budget": "--budget",
    "defines": "-D",
    "include_dirs": "-I",
    "preprocess": "--preprocess",
}


class ScheduleValues(TypedDict):
    """What `schedule_options` adds."""

    schedules: int | None
    seed: int | None
    seconds: float | None


def schedule_options(command: Command) -> Command:
    """Add --schedules, --seed, --seconds and --thorough."""
    for option in (
        click.option("--thorough", is_flag=True, help="Make all reruns that verdicts and cures may need, however long "
                     "they take."),
        click.option("--seconds", type=click.FloatRange(0, min_open=True), metavar="SECONDS",
                     help="With --schedules: begin no other schedule after so long."),
        click.option("--seed", type=click.IntRange(0), metavar="S", help="With --schedules: draw them from S; 0 if "
                     "not given."),
        click.option("--schedules", type=click.IntRange(2, 1 << 20), metavar="N", help="Compare the outputs of N "
                     "orders of invocations, bit by bit."),
    ):  # fmt: skip
        command = option(command)
    return command


def schedules_of(values: ScheduleValues, request: RequestOptions) -> ScheduleOptions | None:
    """The schedules to compare; None where none were asked for. Raises `UsageError`."""
    from ..judge.schedule_options import ScheduleOptions

    if values["schedules"] is None:
        for name, value in (("--seed", values["seed"]), ("--seconds", values["seconds"])):
            if value is not None:
                raise UsageError(f"{name} belongs to --schedules N, which is not given")
        return None
    typed = cast("Mapping[str, object]", request)
    given: list[str] = []
    for name, option in _REPEATED.items():
        value = typed[name]
        several = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        given += [word for each in several if each is not None for word in (option, str(each))]
    is_grid = request["grid"] is not None
    return ScheduleOptions(values["schedules"], values["seed"] or 0, values["seconds"], tuple(given), is_grid)
