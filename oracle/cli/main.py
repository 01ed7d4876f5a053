"""The group of commands, each imported when it runs, and the messages and exit codes of their errors.

Exit codes: 0 clean, 1 failed or unchecked, 2 wrong use (an invalid shader, data that does not fit, a missing file),
70 an internal error, 130 an interrupt. An audit continues after a case fails and exits with the largest of its codes.
Reports go to stdout, everything else to stderr.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from ...sim.dump import debug_level
from ...sim.wgsl.diagnostics import WgslError
from ..errors import UsageError, on_github
from ..exit_codes import INTERRUPTED, Failure

# Each is a module here that defines a `click.Command` of the same name. The texts are those of `bankshot --help`, which
# imports none of the modules.
COMMANDS = {
    "adapters": "List wgpu's adapters, and the device profile of each.",
    "advise": "Try other row pitches and swizzles of workgroup arrays.",
    "audit": "Run kernels in the shapes of their manifests, and judge them.",
    "calibrate": "Measure what a device charges, for predicted times.",
    "check": "Check shaders as a WebGPU implementation would.",
    "corpus": "Try every shader in a folder on generated data.",
    "diff": "Compare the simulator with wgpu, bit for bit.",
    "explore": "Run small kernels in every order that WGSL allows.",
    "fix": "Find changes that end races, and show them as a diff.",
    "golden": "Review goldens that a change of a kernel has moved.",
    "init": "Write a manifest for a shader, by trial runs.",
    "references": "List the references that come with Bankshot.",
    "run": "Simulate kernels; show outputs, totals and findings.",
    "sweep": "Write a table of counters for many shapes and devices.",
    "time": "Time kernels on an adapter, by its clock.",
}


class Guarded(click.Group):
    """A group that turns every exception into a message and an exit code.

    BANKSHOT_DEBUG=1..5 shows the traceback of internal errors, and stages of each simulated kernel (see `sim.dump`).
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (UsageError, WgslError) as error:
            _annotate(error)
            _exit(ctx, error)
        except MemoryError as error:
            _exit(ctx, error)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except (click.exceptions.Exit, click.Abort, click.ClickException, BrokenPipeError):
            raise
        except Exception as error:
            if debug_level():
                raise
            _exit(ctx, error)


def _exit(ctx: click.Context, error: Exception) -> NoReturn:
    failure = Failure.of(error)
    click.echo(failure.text, err=True)
    ctx.exit(failure.code)


def _annotate(error: UsageError | WgslError) -> None:
    """Add an annotation beside the source where GitHub runs the command."""
    from ..reports.formats.github import workflow_commands
    from ..reports.remarks import entry_of_error
    from ..reports.terminal import print_command

    if on_github():
        for line in workflow_commands([entry_of_error("", error)]):
            print_command(line, sys.stderr)


class Commands(Guarded):
    """A group that imports a command when it is first used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *super().list_commands(ctx)})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        return getattr(import_module(f".{cmd_name}", __package__), cmd_name)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="bankshot")
def main() -> None:
    """Run WGSL compute kernels on the CPU, count what they would cost on a GPU, and compare with real GPU runs.

    PATHs are manifests (.toml), folders of manifests, or .wgsl files. For a shader without a manifest, pass its data
    with --bind and --grid.
    """
