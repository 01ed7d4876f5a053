"""The tool that runs published litmus tests, on tests of our own in their notations."""

from __future__ import annotations

import pytest

from tests.explore.exchange_programs import LOCK, Exchange
from tools.litmus import progress_tests, vulkan_tests
from tools.litmus.__main__ import main
from tools.litmus.condition import holds

MESSAGE = """VULKAN message
"passed by two words"
{ x=0; y=0; P1:r0=0; P1:r1=0; }
P0@sg 0,wg 0, qf 0      | P1@sg 0,wg WG, qf 0      ;
st.atom.dv.sc0 x, 1     | ld.atom.dv.sc0 r0, y     ;
BARRIER                 | BARRIER                  ;
st.atom.dv.sc0 y, 1     | ld.atom.dv.sc0 r1, x     ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
TURNS = """VULKAN spin
{ Mem0=0; P0:r0=0; P1:r1=0; }
P0@sg 0,wg 0, qf 0          | P1@sg 0,wg 0, qf 0          ;
LC00:                       | LC10:                       ;
rmw.atom.wg.sc0 r0, Mem0, 1 | rmw.atom.wg.sc0 r1, Mem0, 1 ;
bne r0, 1, LC01             | bne r1, 1, LC11             ;
goto LC00                   | goto LC12                   ;
LC01:                       | LC12:                       ;
st.atom.wg.sc0 Mem0, 0      | goto LC10                   ;
                            | LC11:                       ;
                            | st.atom.wg.sc0 Mem0, 0      ;
exists 0==0
"""


def message(workgroup: int = 1, barrier: str = "") -> str:
    lines = MESSAGE.replace("WG", str(workgroup)).splitlines()
    return "\n".join(line.replace("BARRIER", barrier) for line in lines if barrier or "BARRIER" not in line)


@pytest.fixture
def folder(tmp_path):
    """A folder as Dartagnan has it, with tests and the verdicts that follow from the models."""
    files = {
        "apart.litmus,1": message(),
        "behind a barrier.litmus,1": message(0, "cbar.wg 0"),
        "ordered.litmus,0": message(0, "cbar.acq_rel.wg.semsc0 0"),
        "acquired.litmus,1": message().replace("ld.atom", "ld.atom.acq"),
    }
    resources = tmp_path / "dartagnan/src/test/resources"
    resources.mkdir(parents=True)
    (tmp_path / "litmus/VULKAN/CADP").mkdir(parents=True)
    rows = [f"litmus/VULKAN/{name.replace(' ', '_')}" for name in files]
    for row, text in zip(rows, files.values(), strict=True):
        (tmp_path / row.partition(",")[0]).write_text(text)
    (resources / "VULKAN-expected.csv").write_text("\n".join(rows))
    (tmp_path / "litmus/VULKAN/CADP/lock.litmus").write_text(TURNS)
    for model, ends in (("Fair", 1), ("HSA", 0), ("OBE", 1), ("HSA_OBE", 1), ("LOBE", 1)):
        (resources / f"VULKAN-Liveness-{model}-expected.csv").write_text(f"; litmus/VULKAN/CADP/lock.litmus,{ends}")
    return tmp_path


def test_a_memory_test_becomes_a_kernel_with_the_verdict_of_the_model(folder):
    results = {each.name: each for each in vulkan_tests.tests(folder, ())}
    assert {name: each.agrees for name, each in results.items()} == {
        "apart.litmus": True,
        "behind_a_barrier.litmus": True,
        "ordered.litmus": True,
        "acquired.litmus": None,
    }
    assert results["acquired.litmus"].why == "WGSL has no atomics that acquire or release"


def test_a_progress_test_is_a_program_of_exchanges():
    assert progress_tests.parse(TURNS) == (LOCK, LOCK)
    assert progress_tests.parse(TURNS.replace("goto LC12", "goto LC11"))[1][0] == Exchange(0, 1, 1, target=1)


def test_the_table_counts_tests_and_a_wrong_verdict_fails(folder, capsys):
    assert main([str(folder)]) == 0
    said = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in said.splitlines() if line.startswith("| ")]
    assert ["memory model", "3", "3"] in rows
    assert [row for row in rows if any("progress" in cell for cell in row)] == [
        [f"progress, {model}", "1", "1"] for model in ("fair", "hsa", "obe", "hsa+obe", "lobe")
    ]
    (folder / "dartagnan/src/test/resources/VULKAN-Liveness-HSA-expected.csv").write_text(
        "litmus/VULKAN/CADP/lock.litmus,1"
    )
    assert main([str(folder), "lock"]) == 1
    assert "DIFFERS litmus/VULKAN/CADP/lock.litmus  progress, hsa" in capsys.readouterr().out


def test_another_folder_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "no checkout of webgpu-litmus or Dat3M" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("exists (P0:r0 == 1 /\\ x == 2)", True),
        ("exists (P0:r0 = 1 /\\ x = 3)", False),
        ("~exists (P0:r0 == 1 /\\ x == 2)", False),
        ("forall (P0:r0 == 1 \\/ x == 7)", True),
        ("forall (x == 7)", False),
        ("exists (x != 7 /\\ ~(P0:r0 == 0) /\\ unknown == 0)", True),
    ],
)
def test_conditions(condition, expected):
    assert holds(condition, [{"P0:r0": 1, "x": 2}, {"P0:r0": 0, "x": 7}]) == expected
