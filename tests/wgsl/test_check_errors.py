"""What the checker says of wrong modules: those in `tests/files/errors/check`, each with its message beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bankshot.sim.wgsl.check.check_module import check
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source

FOLDER = Path(__file__).parents[1] / "files" / "errors" / "check"
SHADERS = Path(__file__).parents[2] / "shaders"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.wgsl")), ids=lambda path: path.stem)
def test_error_message(path: Path, golden: Callable[[str, Path], None]) -> None:
    with pytest.raises(WgslError) as error:
        check(Source(path.read_text(encoding="utf-8"), path.name))
    golden(f"{error.value}\n", path.with_suffix(".err"))


PLAIN = [path for path in sorted(SHADERS.glob("**/*.wgsl")) if "#" not in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", PLAIN, ids=lambda path: path.stem)
@pytest.mark.parametrize("wrong", ["nowhere + ", "1u + 1i + "])
def test_one_mistake_is_one_error(path: Path, wrong: str) -> None:
    """Uses of an invalid declaration are not reported again."""
    text = path.read_text(encoding="utf-8")
    declarations = [found.end() for found in re.finditer(r"\b(?:let|var|const) \w+(?: *: *[^=;{}()]+)? = ", text)]
    for at in declarations[::3]:
        with pytest.raises(WgslError) as error:
            check(Source(text[:at] + wrong + text[at:]))
        assert len(error.value.diagnostics) == 1, str(error.value)
