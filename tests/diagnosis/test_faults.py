"""Faults seeded into the kernels of shaders/: every one is caught, by what was to catch it, and its class is named."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bankshot.oracle.audit import Audit, Options, audit
from bankshot.oracle.manifests.cases import Request, plans

SHADERS = Path(__file__).parents[2] / "shaders"
MANIFESTS = {plan.kernel.name: plan.kernel.path.relative_to(SHADERS) for plan in plans([SHADERS], Request())}
FAULTS = tomllib.loads((Path(__file__).parent / "faults.toml").read_text(encoding="utf-8"))["fault"]


def run(folder: Path, fault: dict, update: bool) -> Audit:
    (plan,) = plans(
        [folder / MANIFESTS[fault["kernel"]]], Request(kernel=fault["kernel"], dims=fault.get("shape", {}), sweep=False)
    )
    case = plan.kernel.case(replace(plan.shapes[0], golden="outputs"))
    return audit(case, Options(device=fault.get("device", "nvidia"), gpu=False, update=update))


def caught(result: Audit) -> str | None:
    """The first check that fails."""
    if not all(check.ok for check in result.outputs):
        return "reference"
    if not all(check.ok for check in result.findings):
        return "findings"
    return None if result.golden is None or result.golden.ok else "golden"


@pytest.fixture(scope="module")
def clean_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict], Path]:
    """Shaders with a golden of the kernel without the fault: one folder for all faults of a kernel in a shape."""
    folders = dict[str, Path]()

    def made(fault: dict) -> Path:
        key = repr((fault["kernel"], fault.get("shape"), fault.get("device")))
        if key not in folders:
            folders[key] = shutil.copytree(SHADERS, tmp_path_factory.mktemp("clean") / "shaders")
            clean = run(folders[key], fault, update=True)
            assert (clean.ok, clean.likely) == (True, ())
        return folders[key]

    return made


@pytest.mark.parametrize("fault", FAULTS, ids=[fault["name"] for fault in FAULTS])
def test_an_injected_fault_is_caught_and_named(fault: dict, clean_folder: Callable[[dict], Path]) -> None:
    folder = clean_folder(fault)
    file = folder / fault["file"]
    text = file.read_text(encoding="utf-8")
    assert text.count(fault["old"]) == 1
    file.write_text(text.replace(fault["old"], fault["new"]), encoding="utf-8")
    try:
        result = run(folder, fault, update=False)
    finally:
        file.write_text(text, encoding="utf-8")
    assert caught(result) == fault["catcher"]
    assert result.likely[0] == fault.get("named", fault["class"])


def test_nearly_all_are_named() -> None:
    assert len(FAULTS) >= 20
    assert sum("named" not in fault for fault in FAULTS) >= 0.8 * len(FAULTS)
    assert all("because" in fault for fault in FAULTS if "named" in fault)
