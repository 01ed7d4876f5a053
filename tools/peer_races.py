"""Runs wgsl_reflect's race detector beside Bankshot on the twins of `tests/files/public_twins`.

`python -m tools.peer_races FOLDER` takes the folder of the package wgsl_reflect, as npm installs it, and needs Node.js.
It prints how many races each finds, on how many right texts it reports one, and the time. A text that takes the other
tool longer than 20 s or 2 GiB counts as one that it cannot run.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from tests.findings.test_public_twins import LEAST, MARK, TWINS, findings, render, sizes

RACES = {"race", "component-race"}
SECONDS = 20.0  # for one text


def case(twin: dict[str, Any], text: str) -> dict[str, Any]:
    """Return what the other tool takes; bindings as the tests have them, where it has them."""
    size, groups = sizes(twin)
    count = max(LEAST, math.prod(size) * math.prod(groups))
    buffers = {"0": [0] * count, "1": [0] * count, "2": [*range(count)], "3": [0] * count, "4": [0] * 64}
    return {"text": text, "entry": "main", "groups": [*groups, 1, 1][:3], "buffers": buffers}


def ours(twin: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the lines of the races that Bankshot finds."""
    began = time.perf_counter()
    found = findings(text, twin)
    seconds = time.perf_counter() - began
    lines = {span.line for each in found if each.code in RACES for _, span in each.spans}
    return {"races": len(lines), "lines": sorted(lines), "errors": [], "seconds": seconds}


def theirs(package: str, twin: dict[str, Any], text: str) -> dict[str, Any]:
    """Return what wgsl_reflect finds, in a process of its own: it may need much memory."""
    program = Path(__file__).with_name("peer_races.mjs")
    command = ["node", "--max-old-space-size=2048", str(program), package]
    asked = json.dumps([case(twin, text)])
    try:
        answer = subprocess.run(command, input=asked, text=True, capture_output=True, check=True, timeout=SECONDS)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        return {"races": 0, "lines": [], "errors": [str(error)], "seconds": SECONDS}
    return json.loads(answer.stdout)[0]


def main(package: str) -> None:
    """Print the table."""
    texts = {name: (render(twin, 1), render(twin, 2)) for name, twin in TWINS.items()}
    others = {name: tuple(theirs(package, TWINS[name], text) for text in both) for name, both in texts.items()}
    mine = {name: tuple(ours(TWINS[name], text) for text in both) for name, both in texts.items()}
    print("| tool | races found | of them, no line wrong | false alarms | texts with errors | seconds, median | most |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for tool, results in (("wgsl_reflect", others), ("Bankshot", mine)):
        print(row(tool, results, {name: wrong for name, (_, wrong) in texts.items()}))


def row(tool: str, results: dict[str, Any], wrong: dict[str, str]) -> str:
    """Return a row of the table. `wrong`: the wrong text of each twin, with its marks."""
    marks = {
        name: {n for n, line in enumerate(text.splitlines(), 1) for mark in MARK.findall(line) if mark in RACES}
        for name, text in wrong.items()
    }
    racy = [name for name, lines in marks.items() if lines]
    found = [name for name in racy if results[name][1]["races"]]
    exact = sum(set(results[name][1]["lines"]) <= marks[name] for name in found)
    alarms = sum(right["races"] > 0 for right, _ in results.values())
    failed = sum(bool(each["errors"]) for both in results.values() for each in both)
    times = [each["seconds"] for both in results.values() for each in both]
    return (
        f"| {tool} | {len(found)} of {len(racy)} | {exact} | {alarms} of {len(results)} | {failed} of {len(times)} | "
        f"{median(times):.3f} | {max(times):.2f} |"
    )


if __name__ == "__main__":
    main(sys.argv[1])
