"""Each fault that is seeded in the simulator is caught by `bankshot diff` or `bankshot diff --counters`."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle import wgpu_client
from bankshot.oracle.cli.main import main
from tests.judge import counter_faults, value_faults
from tests.judge.seeded_faults import BINDINGS, COUNTED, VALUES

FAULTS = [*counter_faults.FAULTS, *value_faults.FAULTS]


@pytest.fixture(scope="module")
def remembered():
    return {}


@pytest.fixture(autouse=True)
def same_run_once(remembered, monkeypatch):
    """What wgpu runs does not depend on a fault in the simulator, nor on where the text is: do it once."""
    run = wgpu_client.run

    def once(text, entry, grid, bindings, **how):
        data = [(name, np.asarray(value).tobytes()) for name, value in sorted(bindings.items())]
        asked = repr((re.sub(r"// .*", "", text), entry, grid, data, sorted(how.items())))
        key = re.sub(r"Source\(.*? characters\)", "", asked)
        if key not in remembered:
            remembered[key] = run(text, entry, grid, bindings, **how)
        done = remembered[key]
        return replace(done, outputs=dict(done.outputs))

    monkeypatch.setattr(wgpu_client, "run", once)


def diff(folder, text, name, *options):
    """Run the command on a kernel that no cache knows, as `name` is part of its text."""
    path = folder / "kernel.wgsl"
    path.write_text(f"{text}// {name}\n")
    bindings = [f"--bind={each}" for each in BINDINGS[text]]
    grid = "2" if text == COUNTED else "1"
    out = CliRunner().invoke(main, ["diff", str(path), *bindings, f"--grid={grid}", "--json", *options])
    entry = json.loads(out.stdout)["cases"][0]
    wrong = {check["output"] for check in entry["outputs"] if check["outcome"] == "failed"}
    counters = {each["counter"] for each in (entry["counters"] or {}).get("differences", [])}
    return out.exit_code, wrong, counters


def test_without_a_fault_nothing_differs(adapter, tmp_path):
    assert diff(tmp_path, COUNTED, "", "--counters", "--device=nvidia") == (0, set(), set())
    assert diff(tmp_path, VALUES, "", "--counters") == (0, set(), set())


@pytest.mark.parametrize("fault", counter_faults.FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault_in_what_is_counted_is_caught(adapter, tmp_path, monkeypatch, fault):
    fault.seed(monkeypatch)
    code, _, shown = diff(tmp_path, COUNTED, fault.name, "--counters", "--device=nvidia")
    assert code == 1
    assert fault.shows in shown


@pytest.mark.parametrize("fault", value_faults.FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault_in_what_is_computed_is_caught(adapter, tmp_path, monkeypatch, fault):
    fault.seed(monkeypatch)
    code, shown, _ = diff(tmp_path, VALUES, fault.name)
    assert code == 1
    assert fault.shows in shown


def test_no_fault_is_left_behind(adapter, tmp_path):
    assert diff(tmp_path, COUNTED, "again", "--counters", "--device=nvidia") == (0, set(), set())
    assert diff(tmp_path, VALUES, "again", "--counters") == (0, set(), set())


def test_there_are_many_faults_of_every_sort():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 60
    assert len(counter_faults.FAULTS) >= 30
