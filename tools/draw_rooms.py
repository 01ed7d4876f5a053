"""`python -m tools.draw_rooms`: draw which room imports which, as docs/rooms.svg.

A room stands below every room that imports it, so all arrows point down. An arrow that others imply is left out: where
`run` imports `launch` and `launch` imports `ir`, none goes from `run` to `ir`.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from .import_graph import FILES, ROOT, graph, module_of, room_of

PAGE = ROOT / "docs" / "rooms.svg"
WIDTH, ROW, HEIGHT, GAP, CHARACTER, PADDING = 1120, 78, 30, 16, 7.6, 20  # pixels
_STYLE = """
  text { font: 13px ui-monospace, monospace; text-anchor: middle; fill: #1f2328 }
  rect { fill: #eef2f7; stroke: #8c959f; rx: 5px }
  rect.oracle { fill: #fdf3e3 }
  rect.bankshot { fill: #e8f5e9 }
  path { fill: none; stroke: #8c959f; marker-end: url(#arrow) }
  marker path { fill: #8c959f; stroke: none; marker-end: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    rect { fill: #1c2530; stroke: #57606a }
    rect.oracle { fill: #33291a }
    rect.bankshot { fill: #1b2c1e }
    path { stroke: #6e7781 }
    marker path { fill: #6e7781 }
  }
"""


def rooms() -> dict[str, set[str]]:
    """Room -> the rooms that its files import when they run."""
    found: dict[str, set[str]] = {str(room_of(module_of(path))): set() for path in FILES}
    for module, targets in graph().items():
        room = str(room_of(module))
        found[room] |= {str(room_of(target)) for target in targets} - {room}
    return found


def floors(graph: dict[str, set[str]]) -> dict[str, int]:
    """Room -> its floor: 0 for those that import no other, else one above the highest that it imports.

    Raises RecursionError where rooms import each other in a circle.
    """
    found: dict[str, int] = {}

    def floor(room: str) -> int:
        if room not in found:
            found[room] = 1 + max((floor(below) for below in graph[room]), default=-1)
        return found[room]

    for room in graph:
        floor(room)
    return found


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without arrows that longer ways imply."""

    def reach(room: str) -> set[str]:
        return {each for below in graph[room] for each in (below, *reach(below))}

    return {room: below - {each for other in below for each in reach(other)} for room, below in graph.items()}


def draw() -> str:
    """The picture, as SVG text. The same imports give the same text."""
    whole = rooms()
    floor = floors(whole)
    top = max(floor.values())
    places: dict[str, tuple[float, float]] = {}
    for level in range(top, -1, -1):
        row = _ordered([room for room in floor if floor[room] == level], whole, places)
        widths = [_width(room) for room in row]
        x = (WIDTH - sum(widths) - GAP * (len(row) - 1)) / 2
        for room, width in zip(row, widths, strict=True):
            places[room] = x + width / 2, 20 + (top - level) * ROW + HEIGHT / 2
            x += width + GAP
    arrows = [_arrow(places[a], places[b]) for a, below in sorted(reduced(whole).items()) for b in sorted(below)]
    boxes = [_box(room, *places[room]) for room in sorted(places)]
    height = 40 + top * ROW + HEIGHT
    marker = '<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            "<title>Which room imports which</title>",
            f"<style>{_STYLE}</style>",
            f'<defs>{marker}<path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
            *arrows,
            *boxes,
            "</svg>\n",
        ]
    )


def _ordered(row: list[str], graph: dict[str, set[str]], places: dict[str, tuple[float, float]]) -> list[str]:
    """A floor from left to right: each room near the middle of those above that import it."""

    def middle(room: str) -> tuple[float, str]:
        above = [places[other][0] for other in places if room in graph[other]]
        return sum(above) / len(above) if above else WIDTH / 2, room

    return sorted(row, key=middle)


def _width(room: str) -> float:
    return len(room) * CHARACTER + PADDING


def _box(room: str, x: float, y: float) -> str:
    width = _width(room)
    shape = f'x="{x - width / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{width:.1f}" height="{HEIGHT}"'
    return f'<rect class="{room.split(".")[0]}" {shape}/><text x="{x:.1f}" y="{y:.1f}" dy=".35em">{escape(room)}</text>'


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = start, end
    y1, y2 = y1 + HEIGHT / 2, y2 - HEIGHT / 2
    bend = (y2 - y1) / 2
    return f'<path d="M{x1:.1f} {y1:.1f} C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}"/>'


def main(page: Path = PAGE) -> None:
    """Write the page."""
    page.write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
