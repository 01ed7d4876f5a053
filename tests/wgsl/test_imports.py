"""The folders of `sim/wgsl`: which may import which, with the imports that are for types only."""

from __future__ import annotations

from tools.import_graph import FILES, MODULES, ROOT, circles, imports, module_of

ROOM = "sim.wgsl"
# Bottom up. "" are the files right in `sim/wgsl`, which each folder may import.
ORDER = ("", "builtins", "syntax", "preprocess", "analysis", "check")
GRAPH = {
    module_of(path): {target for target in imports(path) if target in MODULES and target.startswith(f"{ROOM}.")}
    for path in FILES
    if module_of(path).startswith(f"{ROOM}.")
}


def folder_of(module: str) -> str:
    parts = module.split(".")
    return parts[2] if parts[2] in ORDER else ""


def test_every_folder_has_its_place_in_the_order() -> None:
    folders = {path.parent.name for path in FILES if path.parents[1] == ROOT / "sim" / "wgsl"}
    assert folders == {*ORDER} - {""}


def test_folders_import_only_those_below() -> None:
    for module, targets in GRAPH.items():
        for target in targets if folder_of(module) else ():
            assert ORDER.index(folder_of(target)) <= ORDER.index(folder_of(module)), f"{module} imports {target}"


def test_circles_lie_within_one_folder_and_have_few_files() -> None:
    for circle in circles(GRAPH):
        assert len({folder_of(module) for module in circle}) == 1, circle
        assert len(circle) <= 3, circle
