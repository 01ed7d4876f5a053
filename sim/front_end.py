"""`check`: from text to a typed module; `portability`: where other implementations reject or change that module."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from .models.limits import DEFAULT_LIMITS
from .wgsl.diagnostics import Diagnostic, fail, limits_are_errors
from .wgsl.regular_files import require_regular
from .wgsl.source import Source
from .wgsl.typed import Module
from .without_gc import without_gc


@without_gc()
def check(
    wgsl: str | Path,
    *,
    name: str | None = None,
    defines: Mapping[str, str | int | float | bool] | None = None,
    include_dirs: Sequence[str | Path] = (),
    preprocess: str | None = None,
    uniformity: str = "error",
) -> Module:
    """Check a module, given as text or as the path of a file. `name` is what messages call it.

    `defines` and `include_dirs` configure the preprocessor. `preprocess` is a command that filters the text first, see
    `sim/wgsl/preprocess/external_preprocessor.py`. `uniformity` is the severity of a barrier that some invocations may
    miss: "error", "warning", "info" or "off". `simulate` runs a module that passed with less than "error", and reports
    what really happens. Raises `WgslError`.
    """
    from .wgsl.check.check_module import check as check_source

    source = read(wgsl, name=name, defines=defines, include_dirs=include_dirs, preprocess=preprocess)
    return check_source(source, uniformity=uniformity)


@limits_are_errors("preprocessed")
def read(
    wgsl: str | Path,
    *,
    name: str | None = None,
    defines: Mapping[str, str | int | float | bool] | None = None,
    include_dirs: Sequence[str | Path] = (),
    preprocess: str | None = None,
) -> Source:
    """Preprocess a module: plain WGSL, and the original file and line of each of its lines. Raises `WgslError`."""
    from .wgsl.preprocess.preprocessor import preprocess as preprocessed

    text, called, folder = wgsl, name or "shader.wgsl", None
    if isinstance(wgsl, Path):
        text, called, folder = _read(wgsl), name or str(wgsl), wgsl.parent
    if not isinstance(text, str):
        message = f"a shader is text, or the pathlib.Path of a file, and this is of type {type(text).__name__}"
        raise fail("not-text", message, None)
    if text.endswith(".wgsl") and not re.search(r"\s", text):
        raise fail("not-text", f"'{text}' is no shader", None, hint=f"of a file, give pathlib.Path({text!r})")
    folders = [Path(d) for d in include_dirs]
    if preprocess is not None:
        from .wgsl.preprocess.external_preprocessor import filtered

        text, called = filtered(
            text, called, preprocess, defines=defines or {}, include_dirs=folders, folder=folder or Path()
        )
    return preprocessed(text, called, defines=defines, include_dirs=folders, base_dir=folder)


@limits_are_errors("searched for what other implementations reject")
def portability(module: Module) -> list[Diagnostic]:
    """List the portability notes of a checked module, in the order of the text.

    Their severity is "warning" for valid WGSL that wgpu rejects or runs differently, and "info" for features and limits
    that the host must request. `sim/wgsl/analysis/portability.py` has the table.
    """
    from .wgsl.analysis.portability import notes

    return notes(module, DEFAULT_LIMITS)


def _read(path: Path) -> str:
    try:
        return require_regular(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise fail("not-text", f"{path} is not UTF-8 text (byte {error.start})", None) from None
    except FileNotFoundError:
        raise fail("unreadable", f"{path}: there is no such file", None) from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise fail("unreadable", f"cannot read {path}: {getattr(error, 'strerror', None) or error}", None) from None
