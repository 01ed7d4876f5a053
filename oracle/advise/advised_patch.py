"""The change of the files that makes a layout or a rewrite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...sim.cures.patches import Patch, patch_of
from ...sim.fast_dataclass import frozen

if TYPE_CHECKING:
    from ...sim.wgsl.text_edits import Replacement
    from ..manifests.manifest import Case
    from .array_layouts import Change, Layouts


@frozen
class _Better:
    """A change for the better, as a proposal for the files."""

    words: str
    replacements: tuple[Replacement, ...]


def patch_of_change(case: Case, layouts: Layouts, change: Change, reasons: list[str]) -> Patch:
    """Return the change of the files. Values of overrides become their defaults, unless the case gives them; `reasons`
    then says which to set."""
    overrides = dict(change.overrides)
    for name in case.overrides.keys() & overrides.keys():
        reasons.append(f"set {name} = {overrides.pop(name)} where {case.kernel.name} gets its overrides")
    whole = change + layouts.defaults(overrides)
    return patch_of(layouts.module.source, [_Better("the change", whole.replacements())])
