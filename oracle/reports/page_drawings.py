"""The drawings of cases on the HTML page. A page has a drawing once for all cases of a kernel that share it."""

from __future__ import annotations

from markupsafe import Markup

from ...sim.fast_dataclass import frozen

Figures = tuple[tuple[str, tuple[Markup, ...]], ...]  # by heading


@frozen
class Drawing:
    """A drawing of a case. `anchor`: that of the drawing; `first`: the title of the first case that has it. `figure` is
    empty in later cases."""

    anchor: str
    first: str
    figure: Markup = Markup()


def drawings_of(
    figures: Figures, case: str, title: str, known: dict[Markup, Drawing]
) -> list[tuple[str, list[Drawing]]]:
    """The drawings of the case with this anchor and title, by heading. `known`: those of earlier cases, to which this
    adds."""
    groups: list[tuple[str, list[Drawing]]] = []
    for heading, contents in figures:
        drawn: list[Drawing] = []
        for figure in contents:
            if figure in known:
                drawn.append(known[figure])
            else:
                anchor = f"{case}-d{len(known) + 1}"
                known[figure] = Drawing(anchor, title)
                drawn.append(Drawing(anchor, title, figure))
        groups.append((heading, drawn))
    return groups
