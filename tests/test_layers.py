"""Who may import whom, and how long a file may be: see `tools.import_graph`."""

import subprocess
import sys
from pathlib import Path

import pytest

import bankshot
from tools import draw_rooms
from tools.import_graph import FILES, ROOMS, TYPES_ONLY, circles, graph, imports, module_of, room_of

ROOT = Path(__file__).parent.parent
LONGEST = 700  # lines of a file


def test_files_import_only_the_rooms_that_their_room_may():
    wrong = {}
    for path in FILES:
        room = room_of(module_of(path))
        if others := {room_of(target) for target in imports(path)} - {None, room, *ROOMS[room]}:
            wrong[module_of(path)] = others
    assert wrong == {}


def test_reports_import_what_runs_kernels_for_types_only():
    checked = [path for path in FILES if room_of(module_of(path)) in TYPES_ONLY]
    assert checked
    for path in checked:
        barred = tuple(f"{each}." for each in TYPES_ONLY[room_of(module_of(path))])
        run = {target for target in imports(path, for_types=False) if f"{target}.".startswith(barred)}
        assert not run, f"{module_of(path)} imports {sorted(run)}"
        assert "sim.simulate(" not in path.read_text(encoding="utf-8"), module_of(path)


def test_rooms_are_listed_bottom_up():
    order = list(ROOMS)
    for room, below in ROOMS.items():
        assert all(order.index(each) < order.index(room) for each in below), room


def test_every_room_is_listed_and_none_that_is_gone():
    assert {room_of(module_of(path)) for path in FILES} == set(ROOMS)


def test_no_circle_crosses_rooms_and_few_files_are_in_one():
    for circle in circles(graph()):
        assert len({room_of(module) for module in circle}) == 1, circle
        assert len(circle) <= 3, circle


def test_only_one_file_knows_wgpu():
    know = [module_of(path) for path in FILES if any(target.split(".")[0] == "wgpu" for target in imports(path))]
    assert know == ["oracle.wgpu_worker.wgpu_library"]


def test_a_file_can_be_read_at_one_sitting():
    lines = {module_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {module: count for module, count in lines.items() if count > LONGEST} == {}


@pytest.fixture(scope="module")
def _compiled():
    """The machine, on disk: the process that compiles it does need Numba."""
    bankshot.simulate("@compute @workgroup_size(1) fn main() {}", grid=1)


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import bankshot", "numba wgpu bankshot.oracle"),
        (
            "import bankshot; bankshot.check('@compute @workgroup_size(1) fn main() {}').pipeline()",
            "numba wgpu bankshot.oracle",
        ),
        ("import bankshot; bankshot.simulate", "numba wgpu bankshot.oracle"),
        (
            "from bankshot.oracle.cli import main; from bankshot.oracle.wgpu_client import adapters; adapters()",
            "wgpu",
        ),
        (
            "import bankshot.oracle.wgpu_worker.serve; bankshot.oracle.wgpu_worker.wgpu_library.library()",
            "numpy numba click",
        ),
        (
            "import bankshot; bankshot.simulate('@compute @workgroup_size(1) fn main() {}', grid=1)",
            "numba wgpu bankshot.oracle",
        ),
    ],
)
@pytest.mark.usefixtures("_compiled")
def test_what_an_import_brings(statement, absent):
    code = f"import sys; {statement}; print([m for m in {absent.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_the_drawing_of_the_rooms_is_current():
    assert draw_rooms.PAGE.read_text(encoding="utf-8") == draw_rooms.draw(), "run `python -m tools.draw_rooms`"


def test_every_arrow_of_the_drawing_points_down():
    rooms = draw_rooms.rooms()
    floor = draw_rooms.floors(rooms)
    assert all(floor[below] < floor[room] for room in rooms for below in rooms[room])
