"""The maps, sim/README.md and oracle/README.md, list every room, a place to start at that exists, and the rules."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from tools.import_graph import MODULES, ROOMS

ROOT = Path(__file__).parents[2]
TOPS = ("sim", "oracle")
DOCS = sorted((ROOT / "docs").glob("*.md"))
ROW = re.compile(r"^\| `(\w+)` \| .+? \| `([\w.]+)` \| ([\w. ]*)\|$", re.MULTILINE)
LANGUAGE = {
    f"sim.{each}" for each in ("fast_dataclass", "mechanisms", "bounded_cache", "without_gc", "scalar", "wgsl", "ir")
}
GROUPS = {
    "language": LANGUAGE,
    "program": LANGUAGE
    | {f"sim.{each}" for each in ("machine", "lowering", "analysis", "instrument", "utilization", "codegen")},
    "sim": {room for room in ROOMS if room.split(".")[0] == "sim"},
}


def page(top):
    return (ROOT / top / "README.md").read_text(encoding="utf-8")


def allowed(top, names):
    """The rooms that a cell of the last column names."""
    found = set()
    for name in names.split():
        found |= GROUPS.get(name) or {name if "." in name else f"{top}.{name}"}
    return found


@pytest.mark.parametrize("top", TOPS)
def test_a_map_lists_every_room_and_its_imports(top):
    listed = {f"{top}.{room}": allowed(top, names) for room, _, names in ROW.findall(page(top))}
    assert listed == {room: set(below) for room, below in ROOMS.items() if room.startswith(f"{top}.")}


@pytest.mark.parametrize("top", TOPS)
def test_rooms_are_listed_bottom_up(top):
    order = [f"{top}.{room}" for room, *_ in ROW.findall(page(top))]
    for room in order:
        assert all(order.index(below) < order.index(room) for below in ROOMS[room] if below in order), room


@pytest.mark.parametrize(
    ("top", "room", "start"), [(top, room, start) for top in TOPS for room, start, _ in ROW.findall(page(top))]
)
def test_there_is_something_at_the_start(top, room, start):
    *modules, name = start.split(".")
    path = ".".join([top, room, *modules])
    assert path in MODULES
    assert hasattr(import_module(f"bankshot.{path}"), name)


PAGES = ["README.md", "CONTRIBUTING.md", *(f"{top}/README.md" for top in TOPS), *(f"docs/{p.name}" for p in DOCS)]


@pytest.mark.parametrize("name", PAGES)
def test_relative_links_lead_somewhere(name):
    file = ROOT / name
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", file.read_text(encoding="utf-8"))]
    local = [link for link in links if link and "://" not in link]
    assert [link for link in local if not (file.parent / link).exists()] == []
