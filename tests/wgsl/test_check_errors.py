"""What the checker says of wrong modules: those in `tests/files/errors/check`, each with its message beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sim.wgsl.check import check
from sim.wgsl.diagnostics import WgslError
from sim.wgsl.source import Source

FOLDER = Path(__file__).parents[1] / "files" / "errors" / "check"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.wgsl")), ids=lambda path: path.stem)
def test_error_message(path: Path, golden: Callable[[str, Path], None]) -> None:
    with pytest.raises(WgslError) as error:
        check(Source(path.read_text(encoding="utf-8"), path.name))
    golden(f"{error.value}\n", path.with_suffix(".err"))
