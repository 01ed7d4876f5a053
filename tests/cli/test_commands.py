"""The list of commands, and those who read it."""

import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from bankshot.oracle import cli
from bankshot.oracle.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]


def test_help_lists_every_command_and_imports_none():
    """Nor NumPy or rich, which take most of the time of a command that does nothing."""
    code = """if True:
        import sys
        from bankshot.oracle.cli.main import main
        main(["--help"], standalone_mode=False)
        print(*sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    *shown, modules = done.stdout.splitlines()
    names = [line.split()[0] for line in shown[shown.index("Commands:") + 1 :]]
    assert names == sorted(COMMANDS)
    assert not {"numpy", "rich", "numba", "wgpu"} & set(modules.split())


def test_every_command_of_the_folder_is_listed():
    modules = {each.name: import_module(f"{cli.__name__}.{each.name}") for each in pkgutil.iter_modules(cli.__path__)}
    found = {name for name, module in modules.items() if isinstance(getattr(module, name, None), click.Command)}
    assert found - {"main"} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_shows_every_command(name):
    assert re.search(rf"^    bankshot {name}\b", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_help_and_json(name):
    command = getattr(import_module(f"{cli.__name__}.{name}"), name)
    for each in command.commands.values() if isinstance(command, click.Group) else [command]:
        assert each.help
        assert any("--json" in parameter.opts for parameter in each.params)
