"""`python -m tools.notebooks`: run the notebooks and store their outputs in them.

It needs matplotlib and no Jupyter. Each figure is stored as PNG, and as text: its words and a digest of what is drawn,
by which a test recognizes outputs that are out of date. `make notebooks` turns them into HTML.
"""

from __future__ import annotations

import ast
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import click

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def books() -> list[Path]:
    """Every notebook, in order."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def cells(book: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The cells of one kind."""
    return [cell for cell in book["cells"] if cell["cell_type"] == kind]


def run(book: dict[str, Any], name: str) -> tuple[dict[str, Any], list[Any]]:
    """Run the code cells in order: the names that they leave, and the value of each cell's last line, None without."""
    names: dict[str, Any] = {}
    shown = []
    for cell in cells(book, "code"):
        tree = ast.parse("".join(cell["source"]))
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, name, "exec"), names)
        shown.append(
            eval(compile(ast.Expression(last.value), name, "eval"), names) if isinstance(last, ast.Expr) else None
        )
    return names, shown


def outputs(value: Any, count: int) -> list[dict[str, Any]]:
    """The outputs of a cell that shows a figure, or nothing."""
    if value is None:
        return []
    data = {"image/png": b64encode(value._repr_png_()).decode(), "text/plain": repr(value).splitlines(keepends=True)}
    return [{"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}]


def store(path: Path) -> None:
    """Run a notebook and write its outputs into it."""
    book = json.loads(path.read_text(encoding="utf-8"))
    _, shown = run(book, str(path))
    for count, (cell, value) in enumerate(zip(cells(book, "code"), shown, strict=True), 1):
        cell["execution_count"], cell["outputs"] = count, outputs(value, count)
    path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def main(paths: tuple[Path, ...]) -> None:
    """Run notebooks, by default all, and store their outputs."""
    for path in paths or books():
        store(path)
        click.echo(path.name)


if __name__ == "__main__":
    main(prog_name="python -m tools.notebooks")
