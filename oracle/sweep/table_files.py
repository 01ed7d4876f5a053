"""Write rows as a table for other programs: CSV, or Parquet if pyarrow is installed."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...sim.disk_cache import replacing
from ..errors import UsageError, check_writable, writing
from .columns import Row, columns


def _csv(path: Path, rows: Sequence[Row]) -> None:
    """Write CSV. Missing values are empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(columns(rows)))
        writer.writeheader()
        writer.writerows(rows)


def _parquet(path: Path, rows: Sequence[Row]) -> None:
    """Write Parquet. Missing values are null."""
    import pyarrow as untyped  # pyright: ignore[reportMissingTypeStubs]
    from pyarrow import parquet as untyped_parquet  # pyright: ignore[reportMissingTypeStubs]

    pyarrow: Any = untyped
    parquet: Any = untyped_parquet
    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    schema = pyarrow.schema([(name, types[type_]) for name, type_ in columns(rows).items()])
    parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), path)


WRITERS: dict[str, Callable[[Path, Sequence[Row]], None]] = {".csv": _csv, ".parquet": _parquet}


def check(path: Path) -> None:
    """Raise `UsageError` if `write` could not write this file; called before a long run."""
    if path.suffix not in WRITERS:
        raise UsageError(f"{path}: the name of a table must end in {' or '.join(WRITERS)}")
    check_writable(path, path)
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise UsageError(f"{path}: Parquet needs pyarrow (pip install 'bankshot[sweep]'); .csv needs nothing")


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write a table. If this fails, an existing file stays unchanged. Raises `UsageError`."""
    with writing(path), replacing(path) as fresh:
        WRITERS[path.suffix](fresh, rows)
