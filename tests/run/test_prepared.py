"""A prepared dispatch: each of its runs is as if `simulate` had run it first, and costs less."""

from __future__ import annotations

import gc
import inspect
import resource
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bankshot
from bankshot.sim.launch import workgroup_classes
from bankshot.sim.launch.launch import Launch
from bankshot.sim.launch.threads import THREADS
from bankshot.sim.run import dispatch
from bankshot.sim.run.prepared import Prepared
from tests.programs_made import random_programs as rp
from tests.run.test_repeated import SOURCES

SCALED = """
override scale: f32 = 2.0;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(1) @binding(0) var<uniform> first: u32;
@compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3u) {
    y[id.x + first] += scale * x[id.x];
}"""


def test_its_arguments_have_the_defaults_of_simulate():
    takers = (bankshot.simulate, bankshot.prepare, Prepared)
    whole, *others = (inspect.signature(each).parameters for each in takers)
    for parameters in others:
        assert {"replay", "schedules", "probes", "cures"} < parameters.keys()
        assert all(each.default == whole[name].default for name, each in parameters.items())


def told(run: bankshot.Run) -> dict[str, object]:
    """Everything that two equal runs have in common."""
    return {
        "outputs": {key: np.asarray(run.output(key)).tobytes() for key in run.outputs},
        "counters": run.counters,
        "sites": [site.counts() for site in run.sites],
        "findings": [
            f"{each} {each.verdict} {each.count} {[str(note) for note in each.notes]}" for each in run.findings
        ],
        "finished": run.finished,
        "coverage": str(run.coverage),
    }


# ---- the same results --------------------------------------------------------------------------------

_values = st.tuples(st.integers(40, 300), st.integers(0, 1 << 16), st.sampled_from([0.0, 0.5, 1.0]))


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from([*SOURCES]),
    grid=st.integers(1, 6),
    probes=st.sampled_from(["all", "counters", "none"]),
    workgroups=st.sampled_from(["all", "classes", 2]),
    runs=st.lists(_values, min_size=2, max_size=3),
)
def test_each_run_equals_that_of_simulate(name, grid, probes, workgroups, runs):
    """With other data and sizes from run to run, and a module of its own for `simulate`."""
    options = {"grid": grid, "probes": probes, "workgroups": workgroups, "overrides": {"scale": 3.0}}
    prepared = bankshot.prepare(SOURCES[name], **options)
    for size, seed, positive in runs:
        generator = np.random.default_rng(seed)
        x = (generator.normal(size=size) * (generator.random(size) < positive)).astype(np.float32)
        y = np.full(size, seed, np.uint32 if name == "counting" else np.float32)
        expected = bankshot.simulate(SOURCES[name], bindings={"x": x, "y": y}, **options)
        assert told(prepared.run({"x": x, "y": y})) == told(expected)


@pytest.mark.parametrize("seed", range(600, 612))
def test_random_programs_give_what_their_interpreter_does(seed):
    program, size, count = rp.Maker(seed).program(), 24, 18 * 24
    prepared = bankshot.prepare(rp.render(program, size), grid=18, probes="none", bindings={"same": 2}, budget=100_000)
    for step in (7, 5):
        values = np.array([(i * step) % 11 if i % size < 13 else 0 for i in range(count)], np.uint32)
        run = prepared.run({"out": np.zeros(count * rp.LOGGED, np.uint32), "given": values})
        got = run.outputs["out"].reshape(count, rp.LOGGED).tolist()
        assert got == [rp.interpret(program, int(values[i]), 2, i) for i in range(count)]


def test_threads_may_run_it_at_once():
    prepared = bankshot.prepare(SCALED, grid=4)

    def ran(number: int) -> list[float]:
        x = np.full(128, number, np.float32)
        return prepared.run({"x": x, "y": np.zeros(128, np.float32), "first": 0}).outputs["y"].tolist()

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(ran, range(60))) == [[2.0 * number] * 128 for number in range(60)]


def test_threads_may_run_it_at_once_with_other_sizes():
    """So that what is kept for a size is that of another thread again and again."""
    prepared = bankshot.prepare(SIZED, grid=3, probes="none", bindings={"y": np.zeros(4, np.uint32)})

    def ran(number: int) -> list[int]:
        return prepared.run({"x": np.ones(1 + number % 7, np.uint32)}).outputs["y"].tolist()

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(ran, range(300))) == [[1 + n % 7, 3, 0, 0] for n in range(300)]


# ---- what is kept from run to run --------------------------------------------------------------------

SIZED = """
override least: u32 = 0;
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main(@builtin(num_workgroups) grid: vec3u) {
    y[0] = max(arrayLength(&x), least);
    y[1] = grid.x;
}"""


@pytest.mark.parametrize("probes", ["none", "all"])
def test_sizes_may_come_back(probes):
    prepared = bankshot.prepare(SIZED, grid=3, probes=probes)
    for words in (5, 9, 5, 5, 9, 1):
        run = prepared.run({"x": np.ones(words, np.uint32), "y": np.zeros(words + 1, np.uint32)})
        assert run.outputs["y"].tolist() == [words, 3, *[0] * (words - 1)]


def test_grids_and_overrides_of_one_module_are_told_apart():
    module = bankshot.check(SIZED)
    made = [
        (grid, least, bankshot.prepare(module, grid=grid, overrides={"least": least}, probes="none"))
        for grid in (1, 2)
        for least in (0, 50)
    ]
    given = {"x": np.ones(5, np.uint32), "y": np.zeros(2, np.uint32)}
    for _ in range(3):
        for grid, least, prepared in made:
            assert prepared.run(given).outputs["y"].tolist() == [max(5, least), grid]


def test_options_of_one_module_are_told_apart():
    """A budget of loop iterations, and what accesses out of bounds do."""
    module = bankshot.check("""
        @group(0) @binding(0) var<storage, read> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn main() {
            var sum = 0u;
            for (var k = 0u; k < 100u; k++) { sum += x[k + 1u]; }
            y[0] = sum;
        }""")
    given = {"x": np.ones(100, np.uint32), "y": np.zeros(1, np.uint32)}
    made = [bankshot.prepare(module, grid=1, probes="none", budget=n, out_of_bounds="zero") for n in (None, 10)]
    made.append(bankshot.prepare(module, grid=1, probes="none"))
    for _ in range(3):
        whole, stopped, clamped = (prepared.run(given) for prepared in made)
        assert [each.finished for each in (whole, stopped, clamped)] == [1, 0, 1]
        assert [each.code for each in stopped.findings] == ["endless-loop"]
        assert [each.outputs["y"][0] for each in (whole, clamped)] == [99, 100]


def test_tables_are_made_once_for_the_same_options_and_sizes(monkeypatch):
    made = []
    tables = Launch._tables
    monkeypatch.setattr(Launch, "_tables", lambda launch: made.append(1) or tables(launch))
    module, y = bankshot.check(SIZED), np.zeros(4, np.uint32)
    first, again, other = (
        bankshot.prepare(module, grid=3, probes="none", bindings={"y": y}, budget=budget) for budget in (None, None, 99)
    )
    runs = ((first, 5, 1), (first, 5, 1), (again, 5, 1), (again, 6, 2), (first, 6, 2), (other, 6, 3), (first, 5, 4))
    for prepared, words, count in runs:
        prepared.run({"x": np.ones(words, np.uint32)})
        assert len(made) == count


def test_a_run_that_was_stopped_leaves_nothing_to_the_next():
    prepared = bankshot.prepare(SOURCES["racing"], grid=2, probes="none", budget=50)
    for value, finished in ((0.5, 2), (100.0, 0), (0.5, 2)):
        x = np.full(64, value, np.float32)
        run = prepared.run({"x": x, "y": np.zeros(128, np.float32)})
        assert (run.finished, len(run.findings)) == (finished, int(not finished))


# ---- bindings ----------------------------------------------------------------------------------------


def test_numbers_may_change_their_types():
    """Those of the type in the shader are not converted; others are, whatever was given before."""
    prepared = bankshot.prepare(SCALED, grid=1, bindings={"x": np.ones(64, np.float32)})
    y = np.zeros(64, np.float32)
    for first in (np.uint32(1), 2, np.uint32(3), np.int64(4), np.float64(5), np.full((), 6, np.uint32), b"\7\0\0\0"):
        number = first[0] if isinstance(first, bytes) else int(first)
        assert prepared.run({"first": first, "y": y}).outputs["y"].tolist() == [0] * number + [2] * 32 + [0] * (
            32 - number
        )
    with pytest.raises(bankshot.WgslError, match="not a value of u32"):
        prepared.run({"first": np.float64(0.5), "y": y})


def test_a_number_is_no_array_whatever_fitted_before():
    prepared = bankshot.prepare(SIZED, grid=1, bindings={"y": np.zeros(4, np.uint32)})
    assert prepared.run({"x": np.ones(1, np.uint32)}).outputs["y"].tolist() == [1, 1, 0, 0]
    with pytest.raises(bankshot.WgslError, match="needs a NumPy array or bytes"):
        prepared.run({"x": np.uint32(1)})


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, -0.0, 1e-45, 3.4e38])
def test_a_float_of_numpy_keeps_its_bits(value):
    code = """
        @group(0) @binding(0) var<uniform> a: f32;
        @group(0) @binding(1) var<storage, read_write> y: u32;
        @compute @workgroup_size(1) fn main() { y = bitcast<u32>(a); }"""
    number = np.float32(value)
    prepared = bankshot.prepare(code, grid=1, probes="none")
    outputs = [prepared.run({"a": each, "y": 0}).outputs["y"] for each in (number, number, float(number))]
    assert [int(np.asarray(each).item()) for each in outputs] == [int(number.view(np.uint32))] * 3


def test_lasting_bindings_are_copied_and_may_be_replaced():
    x = np.ones(32, np.float32)
    prepared = bankshot.prepare(SCALED, grid=1, bindings={"x": x, (1, 0): 0})
    x[:] = 7
    y = np.zeros(32, np.float32)
    assert prepared.run({"y": y}).outputs["y"].tolist() == [2] * 32
    assert prepared.run({"y": y, (0, 0): x}).outputs["y"].tolist() == [14] * 32
    assert prepared.run({"y": y}).outputs["y"].tolist() == [2] * 32
    assert not y.any()


def test_arrays_may_change_after_a_run():
    """What the run computes later does not depend on them."""
    prepared = bankshot.prepare(SCALED, grid=2, bindings={"first": 0})
    x, y = np.ones(64, np.float32), np.ones(64, np.float32)
    run = prepared.run({"x": x, "y": y})
    x[:] = y[:] = np.nan
    assert run.outputs["y"].tolist() == [3] * 64
    unchanged = bankshot.simulate(SCALED, grid=2, bindings={"x": np.ones(64, "f4"), "y": np.ones(64, "f4"), "first": 0})
    assert run.bounds["y"].tobytes() == unchanged.bounds["y"].tobytes()
    assert run.writer("y", 63).workgroup == (1, 0, 0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": np.ones(32)}, "x is float64, and array<f32> holds float32"),
        ({"x": np.ones(32, np.int32)}, "x is int32, and array<f32> holds float32"),
        ({"x": np.ones(32, ">f4")}, "x is big-endian, and a GPU's memory is little-endian"),
        ({"x": np.ones(0, np.float32)}, "x has 0 bytes, and array<f32> needs at least 4"),
        ({"x": np.ones(3, np.float32).tobytes()[:-2]}, "x has 10 bytes, which is not a multiple of 4"),
        ({"X": np.ones(32, np.float32)}, "the shader has no binding 'X'"),
        ({(0, 0): np.ones(32, np.float32)}, "x is given by name and as (0, 0)"),
        ({"first": 0.5}, "0.5 in first is not a value of u32"),
    ],
)
def test_what_does_not_fit_is_an_error_after_what_fits(changed, message):
    fits = {"x": np.ones(32, np.float32), "y": np.zeros(32, np.float32), "first": 0}
    prepared = bankshot.prepare(SCALED, grid=1)
    prepared.run(fits)
    with pytest.raises(bankshot.WgslError) as raised:
        prepared.run(fits | changed)
    assert raised.value.diagnostics[0].message == message


def test_a_binding_that_is_missing_is_named():
    prepared = bankshot.prepare(SCALED, grid=1, bindings={"x": np.ones(32, np.float32)})
    with pytest.raises(bankshot.WgslError, match="nothing is bound to first"):
        prepared.run({"y": np.zeros(32, np.float32)})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bindings": {"x": np.ones(32)}}, "x is float64"),
        ({"bindings": {"z": 1}}, "the shader has no binding 'z'"),
        ({"grid": 0}, "a grid must be one to three sizes"),
        ({"probes": "al"}, "probes must be one of"),
        ({"device": "none"}, "none"),
        ({"entry": "other"}, "other"),
        ({"budget": -1}, "budget must be a positive integer"),
    ],
)
def test_arguments_are_checked_before_any_run(wrong, message):
    with pytest.raises(bankshot.WgslError, match=message):
        bankshot.prepare(SCALED, **{"grid": 1} | wrong)


def test_its_repr_says_what_runs():
    assert repr(bankshot.prepare(SCALED, grid=(3, 2))) == "<bankshot.Prepared: main, grid 3 x 2 x 1, nvidia>"


# ---- costs -------------------------------------------------------------------------------------------


def launches(prepared, monkeypatch, bindings):
    """Return how many launches a run takes, and the run."""
    count = []
    run = Launch.run
    monkeypatch.setattr(Launch, "run", lambda *given: count.append(1) or run(*given))
    done = prepared.run(bindings)
    monkeypatch.setattr(Launch, "run", run)
    return len(count), done


ORDERED = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {
    if i < 3u { for (var k = i; k < 9u - group.x; k++) { y[k] = group.x * 10u + i; } }
}"""


def test_interleaved_workgroups_that_show_their_order_run_twice_once(monkeypatch):
    monkeypatch.setattr(dispatch.Dispatch, "_interleaved", lambda _, launch: 16 if launch.can_interleave else 0)
    monkeypatch.setenv(THREADS, "1")
    prepared = bankshot.prepare(ORDERED, grid=5, probes="none")
    taken = [launches(prepared, monkeypatch, {"y": np.zeros(320, np.uint32)}) for _ in range(3)]
    assert [count for count, _ in taken] == [2, 1, 1]
    assert [run.outputs["y"][:10].tolist() for _, run in taken] == [[40, 40, 40, 40, 40, 30, 20, 10, 0, 0]] * 3
    elsewhere, _ = launches(prepared, monkeypatch, {"y": np.zeros(324, np.uint32)})
    assert elsewhere == 2  # of another size nothing is known
    again, _ = launches(
        bankshot.prepare(prepared.pipeline.module, grid=5, probes="none"), monkeypatch, {"y": bytes(1280)}
    )
    assert again == 1  # the module remembers


def test_many_runs_take_no_more_memory_than_few():
    prepared = bankshot.prepare(SCALED, grid=8, bindings={"x": np.ones(256, np.float32), "first": 0})
    y = np.zeros(256, np.float32)

    def peak(count: int) -> int:
        for _ in range(count):
            prepared.run({"y": y})
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    few = peak(300)
    assert peak(3_000) - few < 2_048  # KiB: 700 bytes for each run


STRIDED = """
@group(0) @binding(0) var<uniform> stride: u32;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(workgroup_id) group: vec3u) {
    var sum = 0.0;
    for (var k = 0u; k < 4u; k++) { sum += x[(group.x * 32u + k) * stride]; }
    y[id.x] = sum;
}"""


def test_classes_are_analysed_again_only_for_other_numbers(monkeypatch):
    """The stride decides how far the addresses of a workgroup are from those of the next."""
    count = []
    analysed = workgroup_classes.find_equivalence
    monkeypatch.setattr(workgroup_classes, "find_equivalence", lambda *given: count.append(1) or analysed(*given))
    options = {"grid": 8, "probes": "counters", "workgroups": "classes"}
    module, taken = bankshot.check(STRIDED), []
    for stride in (2, 2, 3, 2, 3):
        values = {"stride": stride, "x": np.arange(1024, dtype=np.float32), "y": np.zeros(256, np.float32)}
        expected = bankshot.simulate(STRIDED, bindings=values, **options)
        count.clear()
        run = bankshot.simulate(module, bindings=values, **options)
        taken.append(bool(count))
        assert run.coverage.classes
        assert told(run) == told(expected)
    assert taken == [True, False, True, False, False]


def test_a_grid_that_cannot_be_classed_is_refused_again():
    prepared = bankshot.prepare(SOURCES["racing"], grid=4, workgroups="classes", probes="counters")
    values = {"x": np.ones(64, np.float32), "y": np.zeros(64, np.float32)}
    reasons = [prepared.run(values).coverage.why for _ in range(2)]
    assert reasons[0]
    assert reasons[1] == reasons[0]
