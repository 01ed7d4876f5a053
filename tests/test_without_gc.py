"""Large modules: work that grows with the text and no faster, and a garbage collector that is left as it was."""

from __future__ import annotations

import cProfile
import gc
import pstats
import weakref
from collections.abc import Callable, Generator

import numpy as np
import pytest

import bankshot
from bankshot.sim import without_gc as without_gc_module
from bankshot.sim.run.prepared import dispatch_of
from bankshot.sim.without_gc import without_gc

HEAD = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n"
KINDS = {
    "assignments": "s = s * k + {0}.0;",
    "branches": "if s > {0}.0 {{ k += 1.0; }}",
    "returns": "if s > {0}.0 {{ return; }} k += 1.0;",
    "loops": "for (var i = 0u; i < 4u; i++) {{ s += k * {0}.0; }}",
    "stores": "y[g.x + {0}u] = s; s = y[g.x + {0}u];",
    "blocks": "{{ let v = s + {0}.0; s = v * v; }}",
}


def text(kind: str, count: int) -> str:
    """A function of `count` statements of a kind."""
    body = "\n".join(KINDS[kind].format(i) for i in range(count))
    head = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3u) {"
    return f"{HEAD}{head}\nvar s = y[g.x]; var k = 1.5;\n{body}\ny[g.x] = s + k;\n}}"


def calls(work: Callable[[], object]) -> int:
    """Return how many calls of functions it makes, which unlike its time does not vary."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


def built(kind: str, count: int, probes: str) -> None:
    module = bankshot.check(text(kind, count))
    dispatch = dispatch_of(module, grid=1, bindings={"y": np.zeros(64, np.float32)})
    dispatch.program(frozenset(bankshot.PROBES if probes == "all" else ()))


@pytest.mark.parametrize("probes", ["none", "all"])
@pytest.mark.parametrize("kind", KINDS)
def test_work_grows_no_faster_than_the_text(kind, probes):
    """A part that grew with the square would be four times as large, and outweigh the rest in a large text."""
    built(kind, 10, probes)  # loads modules, and fills caches
    small, large = (calls(lambda count=count: built(kind, count, probes)) for count in (80, 160))
    assert large < 2.2 * small


def test_the_collector_is_left_as_it_was():
    assert gc.isenabled()
    with pytest.raises(bankshot.WgslError):
        bankshot.check("fn main( {")
    assert gc.isenabled()
    with without_gc():
        assert not gc.isenabled()
        bankshot.check(HEAD)
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """No frozen objects, and limits that a test can reach."""
    monkeypatch.setattr(without_gc_module, "LARGE", 1000)
    monkeypatch.setattr(without_gc_module, "MOST", 20_000)
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("collector")
def test_many_new_objects_are_moved_to_the_oldest_generation():
    with without_gc():
        made = [[number] for number in range(2000)]
    assert any(each is made for each in gc.get_objects(generation=2))
    assert gc.get_freeze_count() == 0
    with without_gc():
        few = [[number] for number in range(100)]
    assert not any(each is few for each in gc.get_objects(generation=2))


@pytest.mark.usefixtures("collector")
def test_garbage_among_moved_objects_has_a_limit():
    made = [_cycles(1500) for _ in range(20)]
    assert sum(each() is not None for each in made) < 14


@pytest.mark.usefixtures("collector")
def test_objects_that_the_caller_froze_stay_frozen():
    gc.freeze()
    frozen = gc.get_freeze_count()
    made = _cycles(1500)
    assert gc.get_freeze_count() > frozen / 2
    gc.unfreeze()
    gc.collect()
    assert made() is None


class _Node:
    def __init__(self) -> None:
        self.itself = self


@without_gc()
def _cycles(count: int) -> weakref.ref[_Node]:
    """Make so many objects that only the collector frees."""
    made = [_Node() for _ in range(count)]
    return weakref.ref(made[0])
