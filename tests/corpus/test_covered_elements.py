"""Which elements bounds and ways cover, from masks that are known by hand."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import bankshot
from bankshot.oracle.corpus import corpus_survey, cover, evidence
from bankshot.oracle.corpus.cover import Way, count, explained_by, without
from bankshot.oracle.corpus.difference import Difference, _difference
from bankshot.oracle.errors import Died, TookTooLong
from bankshot.oracle.guesses.invented_inputs import SINGLE, STEP, WHOLE

INF = np.inf


def mask(*bits):
    return np.array(bits, bool)


@dataclass(frozen=True)
class Buffer:
    """A variable."""

    name: str


def entry(errors, bounds, exact=False):
    """An entry point whose outputs are off by `errors`, with derived `bounds`."""
    found = {name: np.array(each, np.float64) for name, each in errors.items()}
    asked = []

    class Bounds(dict):
        def __getitem__(self, name):
            asked.append(name)
            return np.array(bounds[name], np.float64)

    types = {Buffer(name): "a buffer" for name in errors}
    made = SimpleNamespace(
        exact=exact, pipeline=SimpleNamespace(store_types=types), asked=asked,
        errors=lambda recipe, ours, theirs: found,
        differing=lambda recipe, ours, theirs: {name: each > 0 for name, each in found.items()},
    )  # fmt: skip
    return made, SimpleNamespace(recipe=None, outputs=None, result=SimpleNamespace(bounds=Bounds()))


def shown(masks):
    return {name: each.tolist() for name, each in masks.items()}


def test_errors_within_finite_bounds_are_covered():
    made, ours = entry({"y": [0, 1, 2, 3, INF, INF], "z": [0, 0]}, {"y": [0, 1, 1.5, INF, 5, INF], "z": [1, 1]})
    assert shown(cover.within_bounds(made, ours, None)) == {"y": [True, True, False, False, False, False]}
    assert made.asked == ["y"]  # z is equal


def test_exact_arithmetic_has_no_bounds():
    assert cover.within_bounds(*entry({"y": [1]}, {"y": [5]}, exact=True), None) == {}


def test_elements_without_a_bound_are_those_that_differ():
    made, ours = entry({"y": [0, 1, 2, 0], "z": [0]}, {"y": [INF, INF, 1, 1], "z": [INF]})
    assert shown(cover.without_bounds(made, ours, None)) == {"y": [False, True, False, False]}
    assert made.asked == ["y"]


@pytest.mark.parametrize(
    ("format_", "dtype", "bound"),
    [("rgba32uint", np.uint32, 0.0), ("r32sint", np.int32, 0.0), ("bgra8unorm", np.uint8, INF)],
)
def test_textures_whose_stores_are_not_followed(format_, dtype, bound):
    channel = "u32" if "uint" in format_ else "i32" if "sint" in format_ else "f32"
    text = f"""@group(0) @binding(0) var image: texture_storage_2d<{format_}, write>;
        @compute @workgroup_size(1) fn main() {{ textureStore(image, vec2u(), vec4<{channel}>()); }}"""
    pipeline = bankshot.check(text).pipeline()
    (variable,) = pipeline.store_types
    ours = SimpleNamespace(outputs={"image": np.zeros((2, 3, 4), dtype)}, given={})
    made = SimpleNamespace(pipeline=pipeline, simulate=lambda *_, **__: pytest.fail("it ran"))
    assert cover._texel_bounds(made, ours, variable).tolist() == [bound] * 24


# ---- ways ----------------------------------------------------------------------------------------------


def way(words, *masks, more=""):
    return Way(words, "a rerun", lambda entry, ours, theirs: iter([{"y": mask(*each)} for each in masks]),
               lambda entry, ours: more)  # fmt: skip


ALL, FIRST, LAST, NONE = (1, 1, 1), (1, 0, 0), (0, 1, 1), (0, 0, 0)
EXPLAINED = {
    "one way": ([way("order decides {}", ALL)], "order decides the elements that differ"),
    "in two reruns": ([way("order decides {}", FIRST, LAST)], "order decides the elements that differ"),
    "two ways": (
        [way("order decides {}", FIRST, more=" (line 3)"), way("rounding decides {}", LAST)],
        "order decides 1 of the elements that differ (line 3); rounding decides 2 of the elements that differ",
    ),
    "the second": ([way("order decides {}", NONE), way("rounding decides {}", ALL)],
                   "rounding decides the elements that differ"),
    "both cover one": (
        [way("order decides {}", FIRST), way("rounding decides {}", ALL)],
        "order decides 1 of the elements that differ; rounding decides 2 of the elements that differ",
    ),
    "not all": ([way("order decides {}", FIRST), way("rounding decides {}", (0, 1, 0))], None),
    "none": ([way("order decides {}")], None),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPLAINED)
def test_ways_explain_what_they_cover_together(monkeypatch, name):
    ways, expected = EXPLAINED[name]
    monkeypatch.setattr(cover, "within_bounds", lambda *_: {})
    made, ours = entry({"y": [1, 1, 1]}, {})
    assert explained_by(*ways)(made, ours, None) == expected


def test_reruns_end_with_the_one_that_covers_all(monkeypatch):
    ran = []

    def masks(entry, ours, theirs):
        for number in range(3):
            ran.append(number)
            yield {"y": mask(number == 0, number == 1)}

    monkeypatch.setattr(cover, "within_bounds", lambda *_: {})
    made, ours = entry({"y": [1, 1]}, {})
    look = explained_by(Way("order decides {}", "", masks), way("never {}", ALL))
    assert look(made, ours, None) == "order decides the elements that differ"
    assert ran == [0, 1]


def test_masks_without_others():
    one, other = {"y": mask(1, 1, 0), "z": mask(1, 0)}, {"y": mask(0, 1, 1), "w": mask(1)}
    assert shown(without(one, other)) == {"y": [True, False, False], "z": [True, False]}
    assert (count(one), count({})) == (3, 0)


def test_the_order_of_invocations_covers_what_it_changes():
    """Runs that do not end show nothing."""
    ran = []

    def simulate(given, schedule):
        ran.append(schedule)
        loops = [SimpleNamespace(code="endless-loop")] if schedule == "mirrored" else []
        return SimpleNamespace(findings=loops, silenced=[], outputs={"y": np.uint32([len(ran)])})

    made = SimpleNamespace(simulate=simulate, differing=lambda recipe, ours, theirs: theirs["y"].tolist())
    ours = SimpleNamespace(given={}, recipe=None, outputs=None)
    assert len([*cover._orders(made, ours, None)]) == len(cover._ORDERS) - 1
    assert ran == [*cover._ORDERS]


@pytest.mark.parametrize(
    ("expression", "rough"),
    [
        ("sin(x)", True),
        ("tanh(x)", True),
        ("sqrt(x)", False),
        ("x * 2.0", False),
        ("floor(x)", False),
        ("exp(x)", False),
    ],
)
def test_functions_that_may_be_far_off(expression, rough):
    text = f"""@group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(1) fn main() {{ let x = y[1]; y[0] = {expression}; }}"""
    from bankshot.sim.wgsl import typed

    (call,) = (each for each in typed.every_expression(bankshot.check(text).pipeline().entry)
               if isinstance(each, typed.BuiltinCall))  # fmt: skip
    assert cover._is_rough(call) == rough


# ---- differences ---------------------------------------------------------------------------------------


def described(code, ours, theirs, dtype=np.float32):
    a, b = (np.array(each, dtype) for each in (ours, theirs))
    differ = (a != b) & ~((a != a) & (b != b))
    return _difference("y", code, 4 * np.arange(a.size), a, b, differ)


DIFFERENCES = {
    "the first": (SINGLE, [1, 2, 3], [1, 4, 8], 2, 4, 2, 4, 5 / 8),
    "a larger error before": (SINGLE, [0, 9], [8, 8], 2, 0, 0, 8, 1.0),
    "relative to the largest": (SINGLE, [1, 100], [2, 100], 1, 0, 1, 2, 0.01),
    "by steps": (STEP, [10, 20], [12, 20], 1, 0, 10, 12, 2.0),
    "relative to nothing": (SINGLE, [1, 0], [0, 0], 1, 0, 1, 0, 1.0),
    "an infinity": (SINGLE, [1, 2], [1, INF], 1, 4, 2, INF, INF),
    "a NaN": (SINGLE, [np.nan, 2], [1, 4], 2, 0, np.nan, 1, INF),
    "a negative": (SINGLE, [1, 0], [-4, 0], 1, 0, 1, -4, 1.25),
    "integers": (WHOLE, [1, 7], [1, 9], 1, 4, 7, 9, 2 / 9),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_by_hand(name):
    code, ours, theirs, differ, offset, a, b, relative = DIFFERENCES[name]
    made = described(code, ours, theirs, np.uint32 if name == "integers" else np.float32)
    assert isinstance(made, Difference)
    values = (
        [*vars(made).values()] if hasattr(made, "__dict__") else [getattr(made, f) for f in made.__dataclass_fields__]
    )
    assert values[:5] == ["y", code, differ, len(ours), offset]
    np.testing.assert_equal(values[5:7], [a, b])
    assert values[7] == pytest.approx(relative)


def test_wgpu_runs_several_times_more():
    """Only the last rerun differs from the first run."""
    runs = iter([0, *[0] * (cover.GPU_RERUNS - 1), 1])
    pipeline = bankshot.check("@compute @workgroup_size(1) fn main() {}").pipeline()
    made = SimpleNamespace(
        text="", pipeline=pipeline, on_wgpu=lambda given, text: {"y": next(runs)},
        differing=lambda recipe, ours, theirs: {"y": ours != theirs},
    )  # fmt: skip
    masks = [*cover._varying(made, SimpleNamespace(given={}, recipe=None), None)]
    assert masks == [{"y": False}] * (cover.GPU_RERUNS - 1) + [{"y": True}]


@pytest.mark.parametrize(
    ("stage", "error", "verdict", "why"),
    [
        ("simulate", TookTooLong("late"), "too-slow", "took longer than 9 s; --limit SECONDS gives it longer"),
        ("wgpu", TookTooLong("late"), "wgpu-died",
         "took longer than 9 s; --limit SECONDS gives it longer, as some drivers compile for minutes"),
        ("simulate", Died("gone", "a\nlast"), "crash", "the process died: last"),
        ("wgpu", Died("gone", "last"), "wgpu-died", "the driver crashed: last; --adapter NAME chooses another"),
        ("build", ValueError("ours"), "crash", "the process died: ValueError: ours"),
    ],
)  # fmt: skip
def test_the_verdict_on_an_entry_point_that_was_lost(stage, error, verdict, why):
    shader = SimpleNamespace(name="a.wgsl", text="one\ntwo\nthree")
    made = corpus_survey._lost(SimpleNamespace(at=("main", stage), shader=shader), error, 9.0)
    assert (made.shader, made.lines, made.entry, made.verdict, made.why) == (
        "a.wgsl",
        3,
        "main",
        verdict,
        f"{stage}: {why}",
    )


def test_the_order_of_invocations_is_looked_at_before_other_texts():
    """Of a race, reruns of another text would agree by chance."""
    order = "the simulator, in other orders of invocations"
    for table in (evidence.EVIDENCE[1:], evidence._EXACT):
        assert table[0].rerun == order
        assert [each.rerun for each in table].count(order) == 1
    causes = [each for each in evidence.EVIDENCE if each.verdict == "explained" and not each.bounds]
    assert {each.rerun for each in causes[:-1]} < {each.rerun for each in evidence._EXACT}  # the last is several ways
    alone = [each.rerun for each in evidence.EVIDENCE]
    assert all(alone.count(way.rerun) == 1 for way in cover.WAYS)
    assert (alone[0], evidence.EVIDENCE[0].bounds) == ("the simulator, with error bounds", True)
    assert len(alone) == 12
