"""What `advise` and `explore` print, from layouts and outcomes that are known by hand."""

from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from bankshot.oracle.advise.advice import Advice, AdviceReport, Trial
from bankshot.oracle.reports import advise_report, explore_report
from bankshot.sim.cures.patches import Patch
from bankshot.sim.wgsl.source import Source, Span

SHAPE = type("Shape", (), {"__str__": lambda self: "N=4", "dims": {"N": 4}})()
KERNEL = SimpleNamespace(name="k", source=Path("k.wgsl"), entry="main")
CASE = SimpleNamespace(kernel=KERNEL, shape=SHAPE, grid=(2, 1, 1), overrides={})


def console():
    return Console(file=StringIO(), width=200)


def lines(out):
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


# ---- advise --------------------------------------------------------------------------------------------


class Swizzle(SimpleNamespace):
    def text(self, name):
        return f"{name} ^ 1"


def site(line, kind="load"):
    return SimpleNamespace(kind=kind, line=line, span=SimpleNamespace(place=SimpleNamespace(file="k.wgsl")))


def trial(pitch, wavefronts, excess=0, size=400, refused=None, swizzle=None, sites=(1,)):
    return Trial(pitch, swizzle, words=size // 4, bytes=size, wavefronts=wavefronts, excess=excess, sites=sites,
                 same_sectors=True, same_outputs=refused is None, refused=refused)  # fmt: skip


WRITTEN, WIDER, NARROW = trial(32, 1_000, 968), trial(33, 40, 8, 440), trial(31, 40, 8, 380)
SWIZZLED = trial(32, 32, 0, 400, swizzle=Swizzle())


def advice(*trials, sites=None, pitch="PITCH"):
    return Advice("tile", pitch, tuple(sites or [site(7)]), trials)


VERDICTS = {
    "as written": (
        advice(WIDER, WRITTEN, trial(34, 1, refused="too long")),
        "PITCH = 33, as written, is the best of 2 layouts that keep the outputs",
    ),
    "another pitch": (
        advice(WRITTEN, WIDER),
        "PITCH = 32 is best changed to 33: 1,000 wavefronts become 40, +40 bytes",
    ),
    "a narrower pitch": (
        advice(WRITTEN, NARROW),
        "PITCH = 32 is best changed to 31: 1,000 wavefronts become 40, -20 bytes",
    ),
    "a swizzle": (
        advice(WRITTEN, WIDER, SWIZZLED),
        "PITCH = 32 is best swizzled as index ^ 1: 1,000 wavefronts become 32, the same memory",
    ),
    "both": (
        advice(WRITTEN, trial(33, 5, size=440, swizzle=Swizzle())),
        "PITCH = 32 is best changed to 33 and swizzled as index ^ 1: 1,000 wavefronts become 5, +40 bytes",
    ),
    "no pitch": (
        advice(trial(0, 9), trial(0, 3, swizzle=Swizzle()), pitch=""),
        "its layout is best swizzled as index ^ 1: 9 wavefronts become 3, the same memory",
    ),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_the_verdict_on_an_array(name):
    made, words = VERDICTS[name]
    assert advise_report._verdict(made) == words


def test_names_of_layouts():
    made = (trial(32, 1), trial(33, 1, swizzle=Swizzle()), trial(0, 1), trial(0, 1, swizzle=Swizzle()))
    assert [advise_report._name(each) for each in made] == ["32", "33 swizzled", "as written", "swizzled"]


def test_marks_of_layouts():
    made = advice(WRITTEN, WIDER, SWIZZLED, trial(34, 900))
    assert [advise_report._mark(made, each) for each in made.trials] == [
        ("<- as written", "bold"), ("<- best without a swizzle", "bold"), ("<- best", "bold green"), ("", ""),
    ]  # fmt: skip
    plain = advice(WRITTEN, WIDER)
    assert [advise_report._mark(plain, each)[0] for each in plain.trials] == ["<- as written", "<- best"]
    same = advice(WIDER, WRITTEN)
    assert [advise_report._mark(same, each) for each in same.trials] == [
        ("<- as written, best", "bold green"),
        ("", ""),
    ]


GROUPS = {
    # the kinds of accesses, what each costs in each layout; the columns
    "one": (["load"], [[1], [2]], [[0]]),
    "equal neighbours": (["load", "load"], [[1, 1], [2, 2]], [[0, 1]]),
    "different in one layout": (["load", "load"], [[1, 1], [2, 3]], [[0], [1]]),
    "another kind": (["load", "store"], [[1, 1]], [[0], [1]]),
    "equal, but not neighbours": (["load", "load", "load"], [[1, 2, 1]], [[0], [1], [2]]),
    "as many as columns": (["load"] * 5, [[1, 2, 3, 4, 5]], [[0], [1], [2], [3], [4]]),
    "one too many": (["load"] * 6, [[1, 2, 3, 4, 5, 6]], [[0], [1], [2], [3], [4], [5]]),
    "two too many": (["load"] * 8, [[1, 2, 3, 4, 5, 6, 6, 7]], [[0], [1], [2], [3], [4], [5, 6, 7]]),
}


@pytest.mark.parametrize("name", GROUPS)
def test_columns_of_accesses(name):
    kinds, costs, columns = GROUPS[name]
    trials = [trial(32 + number, 1, sites=tuple(each)) for number, each in enumerate(costs)]
    refused = trial(99, 1, refused="why", sites=tuple(range(100, 100 + len(kinds))))
    made = advice(*trials, refused, sites=[site(number, kind) for number, kind in enumerate(kinds)])
    assert advise_report._groups(made) == columns


def test_headings_of_columns():
    heading = advise_report._heading
    assert [heading([site(7)]), heading([site(9), site(7), site(8)]), heading([site(7), site(7, "store")])] == [
        "7 load", "7-9 load", "7 others",
    ]  # fmt: skip


def test_the_table_of_layouts():
    out = console()
    sites = [site(7), site(9, "store")]
    made = advice(trial(34, 5, sites=(2, 3_000)), trial(32, 9, 4, 1_024_000, sites=(1, 2), swizzle=Swizzle()),
                  trial(32, 9, 4, sites=(1, 2)), trial(33, 1, refused="why"), sites=sites)  # fmt: skip
    out.print(advise_report._table(made, advise_report._shown(made, show_all=False)))
    shown = [line.split() for line in lines(out) if line.strip() and "─" not in line]
    assert shown == [
        ["pitch", "bytes", "wavefronts", "excess", "7", "load", "9", "store"],
        ["32", "400", "9", "4", "1", "2"],
        ["32", "swizzled", "1,024,000", "9", "4", "1", "2"],
        ["34", "400", "5", "0", "2", "3000", "<-", "as", "written,", "best"],
    ]


def test_a_narrow_console_gets_fewer_columns_of_accesses_and_no_cut_cells():
    sites = [site(line, "store" if line > 4 else "load") for line in (1, 2, 3, 4, 5, 6)]
    made = advice(trial(32, 21, sites=(1, 2, 3, 4, 5, 6)), trial(33, 26, sites=(2, 3, 4, 5, 6, 6)), sites=sites)
    found = {}
    for width in (200, 90, 20):
        out = Console(file=StringIO(), width=width)
        table = advise_report._fitting_table(out, made, list(made.trials))
        found[width] = [column.header for column in table.columns[4:-1]]
        out.print(table)
        assert width == 20 or ("…" not in out.file.getvalue() and max(map(len, lines(out))) <= width)
    assert found[200] == ["1 load", "2 load", "3 load", "4 load", "5 store", "6 store"]
    assert found[20] == ["1-6 others"]
    assert 1 < len(found[90]) < 6


def test_the_best_five_layouts_and_the_text_as_written_are_shown():
    """Of pitches 32 to 60, the wavefronts fall from 1,000 by one each: the last five are the best."""
    made = advice(*(trial(32 + number, 1_000 - number) for number in range(29)), trial(90, 1, refused="why"))
    shown = [each.pitch for each in advise_report._shown(made, show_all=False)]
    assert shown == [32, 56, 57, 58, 59, 60]
    assert [each.pitch for each in advise_report._shown(made, show_all=True)] == list(range(32, 61))


def test_of_timed_layouts_the_fastest_five_are_shown():
    """Of pitches 32 to 39, the predicted times fall, and the wavefronts grow."""
    made = advice(*(replace(trial(32 + number, 10 + number), us=40.0 - number) for number in range(8)))
    assert [each.pitch for each in advise_report._shown(made, show_all=False)] == [32, 35, 36, 37, 38, 39]


def test_rejected_layouts_are_listed_by_reason():
    made = advice(
        WRITTEN, *(trial(pitch, 1, refused="too long") for pitch in (40, 41, 42, 43)), trial(50, 1, refused="b")
    )
    out = console()
    advise_report._refused(out, made)
    assert lines(out) == ["  rejected: 40, 41, 42, 43: too long", "  rejected: 50: b"]
    out = console()
    advise_report._refused(out, advice(WRITTEN, *(trial(pitch, 1, refused="a") for pitch in range(40, 45))))
    assert lines(out) == ["  rejected: 40 … 44 (5): a"]


PLACES = [SimpleNamespace(resource=resource, entry=lambda resource=resource: {"of": resource})
          for resource in (advise_report.CONFLICTS, "sectors")]  # fmt: skip


@pytest.fixture
def shown(monkeypatch):
    """The lines of a report, and its entry; the costs shown are listed."""
    costs = []
    monkeypatch.setattr(advise_report, "cost_places", lambda run: PLACES)
    monkeypatch.setattr(advise_report, "show_cost", lambda out, places: costs.append([p.resource for p in places]))
    monkeypatch.setattr(advise_report, "unified", lambda patch: "--- a\n+++ b\n" if patch.files else "")

    def show(*advices, reasons=(), **given):
        made = AdviceReport(CASE, None, "nvidia", advices, reasons, **given)
        out = console()
        advise_report.show_advised(out, made)
        costs.append("end")
        return lines(out), costs, advise_report.advised_entry(made)

    return show


def test_a_report_without_layouts(shown):
    text, costs, entry = shown()
    assert text[:3] == ["k  N=4", "  k.wgsl, entry main, grid 2 x 1 x 1, charged as nvidia", "  no layout to try"]
    assert costs == [[advise_report.CONFLICTS, "sectors"], "end"]
    assert (entry["ok"], entry["arrays"], entry["diff"], entry["together"]) == (True, [], "", None)
    assert "  note: too few" in shown(reasons=("too few",))[0]
    assert "  no layout to try" not in shown(reasons=("too few",))[0]


def test_a_report_with_a_better_layout(shown):
    """Conflicts that a layout ends are no cost that is left."""
    patch = Patch({"k.wgsl": ()}, ("an override", "a macro"))
    text, costs, entry = shown(advice(WRITTEN, WIDER), patch=patch, together=trial(33, 1_040, 8, 1_440))
    assert "  tile: PITCH = 32 is best changed to 33: 1,000 wavefronts become 40, +40 bytes" in text
    assert "  together: 1,040 wavefronts, 8 of them excess, 1,440 bytes" in text
    assert text.index("  not in the diff: a macro") == text.index("  not in the diff: an override") + 1
    assert text[-4:] == ["", "--- a", "+++ b", ""]
    assert costs == [["sectors"], "end"]
    assert (entry["ok"], entry["diff"], entry["written"], entry["unmapped"]) == (
        False,
        "--- a\n+++ b\n",
        [],
        ["an override", "a macro"],
    )
    assert entry["cost"] == [{"of": "sectors"}]
    assert entry["together"]["pitch"] == 33
    (array,) = entry["arrays"]
    assert (array["array"], array["pitch"], array["sites"]) == (
        "tile",
        "PITCH",
        [{"file": "k.wgsl", "line": 7, "kind": "load"}],
    )
    assert (array["written"]["pitch"], array["best"]["pitch"], len(array["trials"])) == (32, 33, 2)
    assert array["best"] == {
        "pitch": 33, "swizzle": None, "words": 110, "workgroup_memory_bytes": 440, "shared_wavefronts": 40, "excess": 8,
        "by_site": [1], "same_sectors": True, "same_outputs": True, "refused": None,
        "predicted_us": None,
    }  # fmt: skip
    assert advise_report._trial(SWIZZLED, AdviceReport(CASE, None, "nvidia", (), ()))["swizzle"] == "index ^ 1"


def test_a_report_of_files_that_were_changed(shown):
    patch = Patch({"k.wgsl": ()})
    text, _, entry = shown(advice(WRITTEN, WIDER), patch=patch, written=("k.wgsl", "b.wgsl"),
                           together=trial(0, 1, refused="outputs differ"))  # fmt: skip
    assert "  changed: k.wgsl, b.wgsl" in text
    assert "--- a" not in text
    assert "  together: outputs differ" in text
    assert (entry["diff"], entry["written"]) == ("", ["k.wgsl", "b.wgsl"])


def test_a_patch_alone(shown):
    left_out = ["not in the diff: an override", "not in the diff: a macro"]
    for written, expected in (((), [*left_out, "--- a", "+++ b"]), (("k.wgsl",), [*left_out, "changed: k.wgsl"])):
        out = console()
        patch = Patch({"k.wgsl": ()}, ("an override", "a macro"))
        advise_report.show_patch(out, AdviceReport(CASE, None, "nvidia", (), (), patch=patch, written=written))
        assert lines(out) == expected


# ---- explore -------------------------------------------------------------------------------------------

SPAN = Span(Source("a\nb = c;\n", "k.wgsl"), 2, 7)


class Move(SimpleNamespace):
    def __str__(self):
        return f"lane {self.lane} {self.does}"


def move(lane, does="stores", span=SPAN):
    return Move(workgroup=0, lane=lane, span=span, does=does)


def outcome(weak=False, witness=(), **outputs):
    return SimpleNamespace(weak=weak, witness=witness, outputs=outputs)


def exploration(*outcomes, **given):
    facts = {"memory": "weak", "complete": True, "states": 1_234, "seconds": 0.5, "progress": (), "barriers": (),
             "findings": (), "deadlocks": ()} | given  # fmt: skip
    return SimpleNamespace(outcomes=outcomes, **facts)


def explored(*outcomes, **given):
    made = SimpleNamespace(
        case=CASE, device="nvidia", ok=True, outcome="unchecked", exploration=exploration(*outcomes, **given)
    )
    out = console()
    explore_report.show_explored(out, made)
    return lines(out), explore_report.explored_entry(made)


def words(*values):
    return np.array(values, np.uint32)


VALUES = {
    "one outcome": ([{"y": words(1, 2)}], ["y[0] = 1, y[1] = 2"]),
    "no outcome": ([], []),
    "what differs": ([{"y": words(1, 2), "z": words(3)}, {"y": words(1, 5), "z": words(3)}], ["y[1] = 2", "y[1] = 5"]),
    "of several outputs": (
        [{"y": words(1), "z": words(3)}, {"y": words(2), "z": words(4)}], ["y[0] = 1, z[0] = 3", "y[0] = 2, z[0] = 4"]
    ),
    "by the third": (
        [{"y": words(1, 1)}, {"y": words(1, 1)}, {"y": words(1, 2)}], ["y[1] = 1", "y[1] = 1", "y[1] = 2"]
    ),
    "nothing differs": ([{"y": words(1)}, {"y": words(1)}], ["y[0] = 1", "y[0] = 1"]),
    "eight": ([{"y": words(*range(8))}], [", ".join(f"y[{n}] = {n}" for n in range(8))]),
    "nine": ([{"y": words(*range(9))}], [", ".join(f"y[{n}] = {n}" for n in range(8)) + ", …"]),
    "eight of nine differ": (
        [{"y": words(*range(9))}, {"y": words(0, *range(11, 19))}],
        [", ".join(f"y[{n}] = {n}" for n in range(1, 9)), ", ".join(f"y[{n}] = {n + 10}" for n in range(1, 9))],
    ),
    "nine differ": (
        [{"y": words(*range(9))}, {"y": words(*range(10, 19))}],
        [", ".join(f"y[{n}] = {n + more}" for n in range(8)) + ", …" for more in (0, 10)],
    ),
    "floats": ([{"y": np.float32([0.1])}], ["y[0] = 0.100000001"]),
    "NaNs": (
        [{"y": np.float32([np.nan, 1, np.nan])}, {"y": np.float32([np.nan, 2, 3])}],
        ["y[1] = 1, y[2] = nan", "y[1] = 2, y[2] = 3"],
    ),
    "bytes": ([{"y": b"\x01\x02"}, {"y": b"\x01\x03"}], ["y[1] = 2", "y[1] = 3"]),
    "rows": ([{"y": np.uint32([[1, 2], [3, 4]])}], ["y[0] = 1, y[1] = 2, y[2] = 3, y[3] = 4"]),
    "structs": ([{"y": np.array([(1, 2)], [("a", "u1"), ("b", "u1")])}], ["y[0] = 1, y[1] = 2"]),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_what_distinguishes_outcomes(name):
    outputs, expected = VALUES[name]
    assert explore_report._values(exploration(*(outcome(**each) for each in outputs))) == expected


def test_outputs_bound_by_group_and_number_have_such_names():
    assert explore_report._flat({(1, 2): words(7)}) == {"(1, 2)[0]": 7}


EXTENTS = {
    "all": (3, {"states": 1_234}, "3 outcomes; all 1,234 states were seen"),
    "one": (1, {"states": 1}, "1 outcome; all 1 states were seen"),
    "no time": (0, {"complete": False, "states": 0},
                "0 outcomes; the time ended before the first state: raise --seconds, or use a smaller input"),
    "some": (2, {"complete": False, "states": 1_000},
             "2 outcomes in the first 1,000 states; there are more: raise --states or --seconds"),
}  # fmt: skip


@pytest.mark.parametrize("name", EXTENTS)
def test_how_much_was_explored(name):
    count, given, text = EXTENTS[name]
    assert explore_report._extent(exploration(*[outcome()] * count, **given)) == text


def test_outcomes_have_their_witnesses_where_there_are_several():
    first, second = outcome(witness=[move(0), move(1, "loads")], y=words(1)), outcome(True, [move(2)], y=words(2))
    text, entry = explored(first, second)
    assert text == [
        "k  N=4", "  k.wgsl, entry main, grid 2 x 1 x 1, explored with weak memory as nvidia",
        "  2 outcomes; all 1,234 states were seen", "", "  1  y[0] = 1", "       lane 0 stores", "       lane 1 loads",
        "", "  2  y[0] = 2   (only with weak memory)", "       lane 2 stores", "",
    ]  # fmt: skip
    assert [each["weak"] for each in entry["outcomes"]] == [False, True]
    assert entry["outcomes"][1]["witness"] == [
        {"workgroup": 0, "lane": 2, "file": "k.wgsl", "line": 2, "does": "stores"}
    ]
    assert (entry["states"], entry["complete"], entry["seconds"], entry["compared"]) == (1_234, True, 0.5, [])
    assert explored(first)[0][4:] == ["  1  y[0] = 1", ""]


@pytest.mark.parametrize(("many", "more"), [(16, []), (17, ["", "  1 more outcomes; --json has all"])])
def test_at_most_sixteen_outcomes_are_shown(many, more):
    text, entry = explored(*(outcome(y=words(n)) for n in range(many)))
    assert text[-1 - len(more) :] == [*more, ""]
    assert f"  16  y[0] = {15}" in text
    assert "  17  y[0] = 16" not in text
    assert len(entry["outcomes"]) == many


@pytest.mark.parametrize(
    ("many", "more"), [(24, []), (25, ["       1 more steps"]), (1_100, ["       1,076 more steps"])]
)
def test_at_most_twenty_four_steps_are_shown(many, more):
    out = console()
    explore_report._show_moves(out, [move(n) for n in range(many)])
    assert lines(out) == [*(f"       lane {n} stores" for n in range(24)), *more]


def test_progress_barriers_and_findings_follow():
    def decided(memory, sentence):
        return SimpleNamespace(model="hsa", within="fair", ends=False, never=["lane 1"], sentence=sentence,
                               memory=memory, way=[move(0, span=None)], cycle=[move(1)])  # fmt: skip

    barrier = SimpleNamespace(sentence="line 3 matters", span=SimpleNamespace(line=3), matters=True, outcomes=2)
    text, entry = explored(
        outcome(y=words(1)), progress=[decided("weak", "it may not end"), decided("sequential", "it ends")],
        barriers=[barrier], deadlocks=[[move(4)]],
    )  # fmt: skip
    assert text[5:] == [
        "", "  it may not end", "  it ends   (with sequentially consistent memory)", "", "  line 3 matters", "",
    ]  # fmt: skip
    assert entry["barriers"] == [{"line": 3, "matters": True, "outcomes": 2}]
    assert [each["lane"] for moves in entry["deadlocks"] for each in moves] == [4]
    (weak, _) = entry["progress"]
    assert weak["way"] == [{"workgroup": 0, "lane": 0, "file": None, "line": None, "does": "stores"}]
    assert (weak["model"], weak["within"], weak["ends"], weak["never"], weak["memory"]) == (
        "hsa", "fair", False, ["lane 1"], "weak",
    )  # fmt: skip
    assert weak["cycle"][0]["lane"] == 1
