"""The text of `bankshot corpus`: trials, totals by folder, and what verdicts mean."""

import io
import json
import re
from pathlib import Path

from rich.console import Console

from bankshot.oracle.corpus.corpus_survey import Collection
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.corpus.trial import VERDICTS, Trial
from bankshot.oracle.reports.corpus_report import corpus_json, show_corpus
from bankshot.oracle.reports.terminal import console


def collection(name, modules, *trials):
    shaders = tuple(Shader(Path(f"{number}.wgsl"), 1, "") for number in range(modules))
    return Collection(Path(name), shaders, [Trial("k.wgsl", 3, *trial) for trial in trials])


FOUND = [
    collection(
        "some/first", 1_234,
        ("main", "equal"), ("main", "equal"), ("other", "differs", "y: 1 of 4", "any bits"),
        ("main", "explained", "a race", "any bits", "the simulator, in another order"),
        (None, "refused", "no type f64"), (None, "crash", "KeyError"), (None, "no-compute"),
    ),
    collection("second", 2, ("main", "too-slow"), ("main", "wgpu-died"), ("main", "not-started")),
]  # fmt: skip
BAD = """\
differs     k.wgsl other
            y: 1 of 4
refused     k.wgsl
            no type f64
crash       k.wgsl
            KeyError
"""
TOTALS = """\
 folder  modules  refused  entries  equal  explained  neither  differs  failed
 first     1,234        1        4      2          1                 1       1
 second        2                 3                          2                1
 in all    1,236        1        7      2          1        2        1       2
"""
ONE = """\
 folder  modules  entries  neither  failed
 second        2        3        2       1
"""


def shown(found, everything=False):
    stream = io.StringIO()
    out = console(stream)
    out.width = 200
    show_corpus(out, found, everything=everything)
    lines = stream.getvalue().splitlines()
    (head,) = (line for line in lines if line.startswith(" folder"))
    assert not head.endswith("  ")
    return [line.rstrip() for line in lines if line.strip() and "\u2500" not in line]


def test_trials_that_are_not_good_come_before_the_totals():
    lines = shown(FOUND)
    words = [line for line in lines if line.startswith("  ")][3:]
    assert lines == [*BAD.splitlines(), "too-slow    k.wgsl main", *TOTALS.splitlines(), *words]
    assert words == [
        f"  {name}: {VERDICTS[name].words}" for name in sorted({t.verdict for c in FOUND for t in c.trials})
    ]


def test_one_folder_has_no_sum():
    lines = shown(FOUND[1:])
    assert lines[:3] == ["too-slow    k.wgsl main", *ONE.splitlines()]
    assert shown([collection("/", 3)])[-1].split() == ["/", "3"]
    assert shown([collection("a", 3)]) == [" folder  modules  entries", " a             3"]


def test_everything():
    lines = shown(FOUND, everything=True)
    good = ["equal       k.wgsl main", "equal       k.wgsl main"]
    explained = ["explained   k.wgsl main", "            a race"]
    explained.append("            shown by a rerun of the simulator, in another order")
    first = [*good, *BAD.splitlines()[:2], *explained, *BAD.splitlines()[2:], "no-compute  k.wgsl"]
    second = ["too-slow    k.wgsl main", "wgpu-died   k.wgsl main", "not-started k.wgsl main"]
    assert lines[: len(first) + 3] == first + second


def test_json():
    whole = json.loads(corpus_json(FOUND, False))
    folders = whole.pop("folders")
    assert whole == {"tool": "bankshot", "schema": 1, "verb": "corpus", "ok": False}
    trials = [each.pop("trials") for each in folders]
    assert folders[1] == {
        "folder": "second", "modules": 2, "verdicts": {"too-slow": 1, "wgpu-died": 1, "not-started": 1},
    }  # fmt: skip
    assert [len(each) for each in trials] == [7, 3]
    assert trials[0][2] == {
        "shader": "k.wgsl", "lines": 3, "entry": "other", "verdict": "differs", "why": "y: 1 of 4",
        "recipe": "any bits", "rerun": "", "seconds": {},
    }  # fmt: skip


def test_every_verdict_is_counted_under_one_heading():
    """A trial of each verdict: each is 1 in its column, those of "neither" and "failed" are 2."""
    every = collection("a", 1, *((None if verdict.about == "module" else "main", name)
                                 for name, verdict in VERDICTS.items()))  # fmt: skip
    headings, cells = shown([every])[-2 - len(VERDICTS) : -len(VERDICTS)]
    names = re.split(r"  +", headings.strip())
    assert dict(zip(names, cells.split(), strict=True)) == {
        "folder": "a", "modules": "1", "not WGSL": "1", "refused": "1", "entries": "13", "equal": "1", "within": "1",
        "explained": "1", "unchecked": "1", "only here": "1", "endless": "1", "neither": "2", "no data": "1",
        "differs": "1", "unsupported": "1", "failed": "2",
    }  # fmt: skip


def test_colours():
    out = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=200)
    show_corpus(out, FOUND[1:], everything=True)
    coloured = out.file.getvalue()
    assert "\x1b[1;31mtoo-slow" in coloured
    assert "\x1b[32mwgpu-died" in coloured
