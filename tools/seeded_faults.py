"""Seeds faults in the source that the machine is compiled from, and asks whether `bankshot diff --counters` sees them.

`python -m tools.seeded_faults [NAME…]` copies the tree, changes one place in the copy, compiles the machine there, and
compares the kernels of `tests/judge/seeded_faults.py` with wgpu. Each fault takes as long as a first run, so the tests
have only the faults that need no compilation.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.judge.seeded_faults import BINDINGS, COUNTED

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Fault:
    """`right` becomes `wrong` in `file`, where it occurs once. `shows`: the counter or output that differs."""

    name: str
    file: str
    right: str
    wrong: str
    shows: str
    kernel: str = COUNTED


FAULTS = (
    Fault(
        *("lanes on one word conflict", "sim/models/rules.py"),
        "        if address != previous:\n            column =",
        "        if True:\n            column =",
        "shared_wavefronts",
    ),
    Fault(
        *("close addresses never conflict", "sim/models/rules.py"),
        "1 if highest - lowest < columns else",
        "1 if highest - lowest < 8 * columns else",
        "shared_wavefronts",
    ),
    Fault(
        *("a sector that two lanes share counts twice", "sim/models/rules.py"),
        "sector_start = max(start & -sector, sector_end)",
        "sector_start = start & -sector",
        "global_sectors",
    ),
    Fault(
        *("bytes that two lanes share count twice", "sim/models/rules.py"),
        "distinct += start + width - max(start, end)",
        "distinct += width",
        "global_ideal_sectors",
    ),
    Fault(
        *("atomics on one word are served together", "sim/models/rules.py"),
        "            scratch[column] += 1\n                busiest",
        "            scratch[column] = 1\n                busiest",
        "shared_wavefronts",
    ),
    Fault(
        *("the busiest word of all sectors counts", "sim/models/rules.py"),
        "            passed += in_sector\n",
        "            passed = in_sector\n",
        "global_sectors",
    ),
    Fault(
        *("a subgroup without active lanes executes", "sim/machine/probes.py"),
        "            if active > 0:\n                tally[at.EXECUTIONS] += 1",
        "            if active >= 0:\n                tally[at.EXECUTIONS] += 1",
        "executions",
    ),
    Fault(
        *("subgroups count as workgroups", "sim/machine/probes.py"),
        "tally[at.LAUNCHED] += size * (present > 0)",
        "tally[at.LAUNCHED] += present",
        "idle_skipped",
    ),
)


def caught(fault: Fault) -> tuple[bool, str]:
    """Return whether the command fails and names what the fault changes, and what it reports."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        for part in ("bankshot", "sim", "oracle", "pyproject.toml"):
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            tree.mkdir(exist_ok=True)
            copy(ROOT / part, tree / part)
        path = tree / fault.file
        text = path.read_text(encoding="utf-8")
        if text.count(fault.right) != 1:
            return False, f"{fault.file} has {text.count(fault.right)} places to change"
        path.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")
        kernel = Path(folder) / "kernel.wgsl"
        kernel.write_text(fault.kernel, encoding="utf-8")
        command = [sys.executable, "-m", "bankshot", "diff", str(kernel), "--counters", "--json"]
        command += [f"--bind={each}" for each in BINDINGS[fault.kernel]]
        command += ["--grid=2", "--device=nvidia"] if fault.kernel == COUNTED else ["--grid=1"]
        environment = {**os.environ, "BANKSHOT_CACHE": str(Path(folder) / "cache"), "PYTHONPATH": str(tree)}
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if not done.stdout:
        return False, done.stderr[-300:]
    entry = json.loads(done.stdout)["cases"][0]
    shown = {check["output"] for check in entry["outputs"] if not check["ok"]}
    shown |= {each["counter"] for each in (entry["counters"] or {}).get("differences", [])}
    return done.returncode == 1 and fault.shows in shown, ", ".join(sorted(shown))


def main() -> int:
    """Print a line for each fault; return 1 if any is missed."""
    wanted = [each for each in FAULTS if not sys.argv[1:] or each.name in sys.argv[1:]]
    missed = 0
    for fault in wanted:
        found, shown = caught(fault)
        missed += not found
        print(f"{'caught' if found else 'MISSED':8} {fault.name}: {shown or 'nothing differs'}", flush=True)
    print(f"{len(wanted) - missed} of {len(wanted)} faults caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
