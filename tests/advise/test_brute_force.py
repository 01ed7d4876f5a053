"""The result of `bankshot advise` is the best of the space that it searches: brute force finds none that is better.

The pitch is changed in the text, and `tools.layouts` moves the elements of recorded accesses by every swizzle, one at a
time. The search is restricted to a few pitches, so that all can be run here.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import numpy as np
import pytest

import bankshot
from bankshot.oracle.advise import layout_search
from bankshot.oracle.advise.layout_search import Options, advise
from bankshot.oracle.manifests.cases import Request, plans
from tests.advise.kernels import KERNELS, text_of
from tests.advise.test_advise import command
from tools.layouts.brute_force import array_of, swizzle_costs

GRID = (2, 1, 1)
MORE = 3  # pitches beyond the kernel's own
EVERYWHERE = 16_384
FOLDER = TemporaryDirectory()


@cache
def case_of(text):
    file = Path(mkdtemp(dir=FOLDER.name)) / "kernel.wgsl"
    file.write_text(text)
    (plan,) = plans([file], Request(grid=GRID))
    return plan.case(plan.shapes[0])


@cache
def run(text):
    case = case_of(text)
    return bankshot.simulate(text, grid=case.grid, bindings=case.bindings, probes=("banks", "races", "bounds"))


@cache
def advised(name):
    pitch = KERNELS[name][3]
    values = (0, 0) if pitch is None else (pitch, pitch + MORE)
    return advise(case_of(text_of(name)), Options(values=values, by="wavefronts"))


# ---- brute force -----------------------------------------------------------------------------------------


@cache
def costs_of_swizzles(text, array):
    """The wavefronts of an array in all workgroups, as written and by each swizzle."""
    return swizzle_costs(array_of(case_of(text), run(text), array))


def wavefronts(ran, array):
    return sum(site.shared_wavefronts for site in ran.sites if site.name == array)


def least(name, array):
    """The fewest wavefronts of an array: of each pitch, and of each swizzle with each pitch. Nothing takes fewer than a
    layout without conflicts."""
    pitch, written = KERNELS[name][3], run(text_of(name))
    least = min(costs_of_swizzles(text_of(name), array).values())
    ideal = sum(site.shared_ideal_wavefronts for site in written.sites if site.name == array)
    limit = max(EVERYWHERE, written.counters["workgroup_memory_bytes"])
    for value in range(pitch, pitch + MORE + 1) if pitch else ():
        ran = run(text_of(name, value))
        keeps = (ran.outputs["y"].view(np.uint32) == written.outputs["y"].view(np.uint32)).all()
        fits = ran.counters["workgroup_memory_bytes"] <= limit
        if keeps and fits and not ran.findings:
            least = min(least, wavefronts(ran, array))
            if least > ideal:
                least = min(least, min(costs_of_swizzles(text_of(name, value), array).values()))
    return least


ARRAYS = {"attention scores": ["queries", "keys"], "attention values": ["weights", "values"],
          "private histograms": ["bins"], "atomic histogram": ["bins"]}  # fmt: skip
SEARCHED = [(name, array) for name in KERNELS for array in ARRAYS.get(name, ["tile"])]


@pytest.mark.parametrize(("name", "array"), SEARCHED)
def test_no_layout_of_the_space_is_better(name, array):
    found = [each for each in advised(name).advice if each.array == array]
    written = wavefronts(run(text_of(name)), array)
    assert min([written, *(each.best.wavefronts for each in found)]) == least(name, array)
    assert all(each.exact for each in found)


@pytest.mark.parametrize("name", KERNELS)
def test_the_recorded_accesses_cost_what_the_run_counts(name):
    """Else brute force would compare with accesses that are not those of the kernel."""
    array = ARRAYS.get(name, ["tile"])[0]
    assert costs_of_swizzles(text_of(name), array)[()] == wavefronts(run(text_of(name)), array)


def test_a_search_that_saw_one_workgroup_is_said_to_be_a_heuristic(monkeypatch):
    """The second workgroup gathers by other data, and its accesses are not recorded."""
    monkeypatch.setattr(layout_search, "_ROWS_OF_ALL", 64)
    case = case_of(text_of("gather"))
    (advice,) = advise(case, Options(values=(0, 0), by="wavefronts")).advice
    assert (advice.exact, advice.best.excess > 0) == (False, True)
    told = command("advise", case.kernel.source, "--grid", "2", "--pads", "0..0", "--by", "wavefronts")
    assert "a heuristic: swizzles were chosen by the accesses of the first workgroup" in told.output
    whole = command(
        "advise", case_of(text_of("transpose")).kernel.source, "--grid", "2", "--pads", "32..33", "--by", "wavefronts"
    )
    assert "no layout that was searched takes fewer wavefronts" in whole.output


def test_a_swizzle_of_another_pitch_may_be_the_best():
    """Neither a pitch alone nor a swizzle of the text, whose rows are as narrow as they can be, takes as few."""
    for name in ("rows of twelve", "rows of nine"):
        (advice,) = advised(name).advice
        plain = [trial for trial in advice.trials if trial.refused is None and trial is not advice.best]
        assert advice.best.swizzle is not None
        assert advice.best.pitch > advice.written.pitch
        assert all(trial.wavefronts > advice.best.wavefronts for trial in plain)


def test_a_search_that_leaves_out_pitches_is_said_to_be_a_heuristic(monkeypatch):
    monkeypatch.setattr(layout_search, "_MOST_WORK", 1)
    (advice,) = advise(case_of(text_of("rows of nine")), Options(values=(9, 12), by="wavefronts")).advice
    assert (advice.best.pitch, advice.exact) == (9, False)


def test_a_layout_without_excess_is_the_best_whatever_was_recorded(monkeypatch):
    monkeypatch.setattr(layout_search, "_ROWS_OF_ALL", 64)
    (advice,) = advise(case_of(text_of("transpose")), Options(values=(32, 33), by="wavefronts")).advice
    assert (advice.complete, advice.best.excess, advice.exact) == (False, 0, True)
