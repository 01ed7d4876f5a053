"""Options that several commands share, and the values that their texts stand for.

Decorators come with the function that reads what they add: `request_options` with `request_of`, `workgroup_options`
with `workgroups_of`. Modules that need NumPy are imported by those functions, so that `--help` does not wait for it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from .. import errors
from ..errors import UsageError, printable

if TYPE_CHECKING:
    from ..manifests.cases import Request

V = TypeVar("V")
Command = TypeVar("Command", bound=Callable[..., None])
Decorator = Callable[[Command], Command]


class InputPath(click.Path):
    """The path of an input, without control characters, which would garble reports."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if (shown := printable(str(value))) != str(value):
            self.fail(f"{shown}: the name of a file must not hold control characters; rename it", param, ctx)
        return super().convert(value, param, ctx)


INPUT = InputPath(path_type=Path)
PATHS = click.argument("paths", nargs=-1, required=True, type=INPUT, metavar="PATH...")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
ADAPTER = click.option("--adapter", metavar="NAME", help="Part of the wgpu adapter's name: llvmpipe, nvidia, ...")
ADAPTERS = click.option(
    "--adapter", metavar="NAME,...", help="Parts of adapter names, or adapter types: llvmpipe,swiftshader; cpu; or all."
)

BUDGET = click.option(
    "--budget", type=click.IntRange(1), metavar="N",
    help="Loop iterations after which a run is stopped; by default as many as take about a second.",
)  # fmt: skip


def _keep_limit(context: click.Context, option: click.Parameter, seconds: float | None) -> None:
    """Set the limit for this process and those that it starts."""
    if seconds is not None:
        os.environ[errors.LIMIT] = str(seconds)


LIMIT = click.option(
    "--limit",
    type=click.FloatRange(0, 1e6, min_open=True),
    metavar="SECONDS",
    expose_value=False,
    callback=_keep_limit,
    help=f"End a driver, or a reference in a Python file, that takes longer for one answer; by default "
    f"{errors.SECONDS:g}, or BANKSHOT_LIMIT.",
)


class PreprocessingOptions(TypedDict):
    """What `preprocessing_options` adds."""

    defines: tuple[str, ...]
    include_dirs: tuple[Path, ...]
    preprocess: str | None


class RequestOptions(PreprocessingOptions):
    """What `request_options` adds."""

    kernel: str | None
    sets: tuple[str, ...]
    binds: tuple[str, ...]
    grid: str | None
    entry: str | None
    overrides: tuple[str, ...]
    budget: int | None


def _all(options: Sequence[Decorator[Command]], command: Command) -> Command:
    """Apply decorators so that `--help` lists the options in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def device_option(words: str) -> Decorator[Command]:
    return click.option("--device", default="nvidia", show_default=True, metavar="NAME|FILE", help=words)


# ---- workgroups ----


def workgroup_options(command: Command) -> Command:
    """Add --sample and --check-classes."""
    return _all(
        (
            click.option(
                "--sample", type=click.IntRange(1), metavar="N", help="Simulate only N workgroups, evenly spaced."
            ),
            click.option(
                "--check-classes",
                is_flag=True,
                help="Also simulate all workgroups, and check the counters of those that represent others.",
            ),
        ),
        command,
    )


def workgroups_of(sample: int | None, check_classes: bool) -> str | int:
    """The argument `workgroups` of `bankshot.simulate`."""
    if sample is not None and check_classes:
        raise UsageError("--check-classes simulates all workgroups and --sample only some: pass one of them")
    return sample or ("check" if check_classes else "classes")


# ---- shaders ----


def preprocessing_options(command: Command) -> Command:
    """Add -D, -I and --preprocess, named as the parameters of `bankshot.check`."""
    return _all(
        (
            click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro; 1 if no value."),
            click.option("-I", "include_dirs", multiple=True, type=click.Path(path_type=Path), metavar="DIR",
                         help="Search DIR for #include."),
            click.option("--preprocess", metavar="CMD", help="Pipe shaders through a command first, such as "
                         "'cpp -w {includes} {defines}'."),
        ),
        command,
    )  # fmt: skip


def defines_of(texts: Iterable[str]) -> dict[str, str]:
    """The macros of `-D TILE=8 -D PAD`, as C compilers read them."""
    split = (text.partition("=") for text in texts)
    return {name: value if equals else "1" for name, equals, value in split}


# ---- requests ----


def request_options(command: Command) -> Command:
    """Add what makes a `Request`: --kernel, --set, --bind, --grid, --entry, --override, --budget, and
    preprocessing; and --limit, because a request may run references."""
    options = (
        click.option("--kernel", metavar="NAME", help="One kernel of a manifest that has several."),
        click.option("--set", "sets", multiple=True, metavar="DIM=N", help="A size in the manifest's dims."),
        click.option("--bind", "binds", multiple=True, metavar="NAME=DATA", help="Contents of a binding: FILE.npy, "
                     "u32:1,2,3 or normal:f32:512,768."),
        click.option("--grid", metavar="X,Y,Z", help="Workgroups to dispatch."),
        click.option("--entry", metavar="NAME", help="Entry point, if the shader has several."),
        click.option("--override", "overrides", multiple=True, metavar="NAME=VALUE", help="A pipeline override."),
        BUDGET,
        LIMIT,
    )  # fmt: skip
    return _all(options, preprocessing_options(command))


def request_of(options: RequestOptions, *, quick: bool = False, sweep: bool = True, code: bool = True) -> Request:
    """The request that the options describe. Keyword arguments are those of `Request`. Raises `UsageError`."""
    from ..manifests import inputs
    from ..manifests.cases import Request

    if options["preprocess"] and not code:
        raise UsageError("--preprocess runs a command, and --no-code runs none: pass one of them")
    grid = options["grid"]
    sizes = [(name, inputs.parse_int("--set", value)) for name, value in pairs("--set", options["sets"])]
    overrides = [(name, _override(value)) for name, value in pairs("--override", options["overrides"])]
    return Request(
        kernel=options["kernel"],
        dims=once("--set", sizes),
        arrays=once("--bind", [inputs.parse_bind(bind) for bind in options["binds"]]),
        grid=None if grid is None else inputs.parse_grid(grid),
        entry=options["entry"],
        overrides=once("--override", overrides),
        defines=defines_of(options["defines"]),
        include_dirs=options["include_dirs"],
        preprocess=options["preprocess"],
        budget=options["budget"],
        quick=quick,
        sweep=sweep,
        code=code,
    )


def pairs(option: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """Each `NAME=VALUE` as (name, value). Raises `UsageError` that names the option."""
    return [_pair(option, text) for text in texts]


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UsageError(f"{option} {text}: write NAME=VALUE")
    return name, value


def once(option: str, named: Sequence[tuple[str, V]]) -> dict[str, V]:
    """Values by name. Raises `UsageError` where a name occurs twice."""
    for name, count in Counter(name for name, _ in named).items():
        if count > 1:
            raise UsageError(f"{option}: {name} is given {count} times")
    return dict(named)


def _override(text: str) -> bool | int | float:
    if text in ("true", "false"):
        return text == "true"
    for parse in (_any_base, float):
        with suppress(ValueError):
            return parse(text)
    raise UsageError(f"--override: `{text}` is neither a number nor true or false")


def _any_base(text: str) -> int:
    return int(text, 0)
