"""The bank map of an access on the HTML page, as the notebooks draw it: lanes down, banks across, and in each cell the
wavefront that serves it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ...sim.fast_dataclass import frozen

if TYPE_CHECKING:
    from ..comparison.mismatch_map import Patch
    from ..gpu_counters.bank_conflicts import Access

STEP = 13  # pixels of a cell
COLOURS = 8  # of wavefronts; later ones share one more


@frozen
class Cells:
    """The cells that one wavefront serves, as SVG: the path of their squares, and numbers as (text, x, y), where x and
    y list a position for each character. `colour`: from 0 to `COLOURS`."""

    colour: int
    path: str
    numbers: tuple[tuple[str, str, str], ...]


def bank_cells(access: Access) -> list[Cells]:
    """The cells of each wavefront of an access."""
    served: dict[int, dict[tuple[int, int], None]] = defaultdict(dict)
    for touch in access.touches:
        served[touch.turn][touch.bank, touch.lane] = None
    return [_cells(turn, list(at)) for turn, at in sorted(served.items())]


def _cells(turn: int, at: list[tuple[int, int]]) -> Cells:
    side = STEP - 1
    path = "".join(f"M{bank * STEP} {lane * STEP}h{side}v{side}h-{side}z" for bank, lane in at)
    word = str(turn + 1)
    # Browsers place each character of a text by its list of positions, so that cells with one digit share a text.
    shift = STEP // 2 - 3 * len(word)
    places = [(str(bank * STEP + shift), str(lane * STEP + STEP - 4)) for bank, lane in at]
    if len(word) == 1:
        xs, ys = zip(*places, strict=True)
        numbers = ((word * len(at), " ".join(xs), " ".join(ys)),)
    else:
        numbers = tuple((word, x, y) for x, y in places)
    return Cells(min(turn, COLOURS), path, numbers)


def patch_words(patch: Patch, measure: str) -> str:
    """The tooltip of a patch of a heat map."""
    (top, bottom), (left, right) = patch.rows, patch.columns
    where = f"rows {top} to {bottom - 1}, columns {left} to {right - 1}"
    worst = f"{patch.worst:.3g} {measure}" if patch.heat else "NaN or infinite"
    return f"{where}: {patch.count:,} of {(bottom - top) * (right - left):,} differ, the worst {worst}"
