"""What the checker says of wrong modules: each `tests/files/errors/*.wgsl` has its message in the `.err` beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sim.wgsl.check import check
from sim.wgsl.diagnostics import WgslError
from sim.wgsl.source import Source

FOLDER = Path(__file__).parents[1] / "files" / "errors"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.wgsl")), ids=lambda path: path.stem)
def test_error_message(path: Path, golden: Callable[[Path, str], None]) -> None:
    with pytest.raises(WgslError) as error:
        check(Source(path.read_text(), path.name))
    golden(path.with_suffix(".err"), f"{error.value}\n")
