"""Excess of accesses and idle lanes, elements that differ, maps and reviews, each from facts known by hand."""

from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from bankshot.oracle.comparison.compare import Difference
from bankshot.oracle.comparison.mismatch_map import Patch
from bankshot.oracle.goldens.golden_store import CHANGED, MISSING, OTHER_DEVICE, UNCHANGED, Verdict
from bankshot.oracle.reports import audit_page, check_text, cost_places, golden_review, page_maps
from bankshot.oracle.reports.cost_places import CostPlace, CostTotals
from bankshot.oracle.reports.golden_review import Decision
from bankshot.sim.wgsl.source import Source, Span

TEXT = "\n".join(f"  line {number};" for number in range(1, 21))
SOURCE = Source(TEXT, "a/k.wgsl")
IDLE = ("idle_guard", "idle_overhang", "idle_divergence")


def span(line):
    start = sum(len(each) + 1 for each in TEXT.splitlines()[: line - 1]) + 2
    return Span(SOURCE, start, start + 4)


def site(line, kind="load", name="x", space="storage", **counts):
    zeros = dict.fromkeys((*cost_places._SUMMED, *IDLE), 0)
    return SimpleNamespace(span=span(line), line=line, kind=kind, name=name, space=space, **(zeros | counts))


def run(*sites, size=32, **counters):
    every = {name: sum(getattr(each, name) for each in sites) for name in (*cost_places._SUMMED, *IDLE)}
    every |= {"active_lanes": 0}
    device = SimpleNamespace(subgroup_size=size)
    return SimpleNamespace(sites=sites, counters=every | counters, device=device, predicts_time=False)


def shared(line, requests, wavefronts, ideal, **given):
    return site(line, space="workgroup", name="tile", executions=requests, shared_requests=requests,
                shared_wavefronts=wavefronts, shared_ideal_wavefronts=ideal, **given)  # fmt: skip


def loads(line, requests, sectors, ideal, **given):
    return site(line, executions=requests, global_requests=requests, global_sectors=sectors,
                global_ideal_sectors=ideal, **given)  # fmt: skip


# ---- places ------------------------------------------------------------------------------------------


def test_a_conflict_by_hand():
    """4 requests take 20 wavefronts, where 6 would do: 14 of 24 passes are excess."""
    (place,) = cost_places.cost_places(run(shared(3, 4, 20, 6)))
    assert place == CostPlace(
        "a/k.wgsl", 3, "line 3;", "load of tile", "excess wavefronts", 14, 1.0, 14 / 24,
        "5 wavefronts per request, where 1.5 would do",
        "pad or reorder tile against bank conflicts; `bankshot advise` tries layouts",
    )  # fmt: skip
    assert (place.at, place.part, place.reason) == ("k.wgsl:3", "100% of the excess wavefronts", place.why)


@pytest.mark.parametrize(
    ("sectors", "ideal", "help_"),
    [
        (30, 20, "start the rows of x at multiples of 32 bytes"),  # at most one sector more for each of 10 requests
        (31, 20, "let adjacent lanes access adjacent elements of x"),
        # where one sector would do, two may be those of two elements that are far apart
        (14, 4, "let adjacent lanes access adjacent elements of x, in rows that start at multiples of 32 bytes"),
        (29, 19, "let adjacent lanes access adjacent elements of x, in rows that start at multiples of 32 bytes"),
        (15, 4, "let adjacent lanes access adjacent elements of x"),
    ],
)
def test_scattered_accesses_by_hand(sectors, ideal, help_):
    (place,) = cost_places.cost_places(run(loads(3, 10, sectors, ideal)))
    assert (place.excess, place.help) == (sectors - ideal, help_)
    assert place.why == f"{sectors / 10:.3g} sectors per request, where {ideal / 10:.3g} would do"


def test_atomics_that_wait_by_hand():
    """8 requests of lanes that take turns: 20 in all."""
    (place,) = cost_places.cost_places(run(site(3, "atomic", "n", executions=8, atomic_turns=20)))
    assert (place.what, place.resource, place.excess, place.weight) == (
        "atomic of n", "serialized atomic turns", 12, 12 / 8,
    )  # fmt: skip
    assert place.why == "2.5 turns per request, as lanes wait for each other on one word"


def test_sites_of_one_access_are_one_place_and_others_are_not():
    """Both halves of line 3 are one load. Stores, other variables and places without memory are not."""
    found = cost_places.cost_places(run(
        loads(3, 1, 5, 1), loads(3, 1, 3, 1), loads(3, 1, 9, 1, kind="store"), loads(3, 1, 2, 1, name="y"),
        site(3, space=None, global_sectors=9),
    ))  # fmt: skip
    assert {(place.what, place.excess) for place in found} == {("load of x", 6), ("store of x", 8), ("load of y", 1)}
    assert sum(place.share for place in found) == pytest.approx(1)


def test_accesses_that_are_ideal_or_better_are_no_places():
    assert cost_places.cost_places(run(loads(3, 4, 4, 4), shared(4, 4, 4, 6))) == ()
    assert cost_places._excess(cost_places._RESOURCES[0], {"shared_wavefronts": 0, "shared_ideal_wavefronts": -4}) == 0


def test_lines_of_one_cause_are_one_place_at_the_worst():
    found = cost_places.cost_places(run(loads(5, 1, 4, 1), loads(3, 2, 8, 2), loads(9, 1, 6, 3)))
    both, other = found
    assert (both.line, both.lines, both.excess, both.reason) == (
        3, 2, 9, "4 sectors per request, where 1 would do (and on 1 more line)",
    )  # fmt: skip
    assert (other.line, other.lines, other.excess) == (9, 1, 3)
    assert both.share == pytest.approx(9 / 12)
    assert both.weight == pytest.approx(9 / 22)
    (tied,) = cost_places.cost_places(run(loads(5, 1, 4, 1), loads(3, 1, 4, 1), loads(8, 1, 4, 1)))
    assert (tied.line, tied.lines, tied.reason[-22:]) == (3, 3, " (and on 2 more lines)")


def test_idle_lanes_by_hand():
    """Of 2 issues of 32 lanes on line 4, 48 are idle at a guard; line 5 has 16 of 32. 8 of 32 diverge on line 6."""
    sites = (site(4, space=None, executions=2, idle_guard=48), site(5, space=None, executions=1, idle_guard=16),
             site(6, space=None, executions=1, idle_divergence=8))  # fmt: skip
    guard, diverged = cost_places.cost_places(run(*sites))
    assert (guard.line, guard.code, guard.resource, guard.excess, guard.lines) == (4, "line 4;", "idle lanes", 64, 2)
    assert (guard.share, guard.weight) == (pytest.approx(64 / 72), pytest.approx(64 / 32 / 4))
    assert guard.why.startswith("75% of the lanes are idle, ")
    assert guard.help == "fit the grid to the data, so that fewer invocations end at the guard"
    assert (diverged.line, diverged.excess, diverged.share) == (6, 8, pytest.approx(8 / 72))
    assert diverged.help.startswith("give the lanes of a subgroup the same branch")
    (overhang,) = cost_places.cost_places(run(site(4, space=None, executions=1, idle_overhang=8), size=16))
    assert overhang.help == "make the workgroup size a multiple of 16, the size of a subgroup"
    assert overhang.why.startswith("50% of the lanes are idle, ")


def test_places_that_weigh_little_are_left_out():
    """1 excess sector of 100 passes counts, of 101 not."""
    assert len(cost_places.cost_places(run(loads(3, 49, 51, 50)))) == 1
    assert cost_places.cost_places(run(loads(3, 50, 51, 50))) == ()


def test_places_are_sorted_by_weight_then_by_line():
    sites = [loads(line, 1, 4 + (line == 7), 1, name=f"x{line}") for line in (9, 3, 7, 5)]
    assert [place.line for place in cost_places.cost_places(run(*sites))][:4] == [7, 3, 5, 9]


def test_shares_of_lines_by_hand():
    """Line 3 adds 6 sectors and 2 wavefronts; line 4 idles for as long as 64 lanes of 32 do."""
    sites = (loads(3, 1, 8, 2), shared(3, 1, 3, 1), site(4, executions=4, idle_guard=32, idle_divergence=32), site(5))
    assert cost_places.line_shares(run(*sites)) == {("a/k.wgsl", 3): 0.8, ("a/k.wgsl", 4): 0.2}
    assert cost_places.line_shares(run(site(4, executions=1_000, idle_guard=64))) == {}


def test_all_passes_are_issues_wavefronts_and_sectors():
    assert cost_places.passes_of({"executions": 5, "shared_wavefronts": 7, "global_sectors": 11, "flops": 99}) == 23
    assert cost_places.passes_of({"executions": 0, "shared_wavefronts": 0, "global_sectors": 0}) == 1


def test_totals_by_hand():
    made = CostTotals.of(run(loads(3, 4, 12, 4), shared(4, 2, 10, 2), site(5, idle_guard=32), active_lanes=160))
    assert (made.active_lanes, made.issued_lanes, made.excess_wavefronts) == (160, 192, 8)
    assert (made.sectors, made.ideal_sectors, made.passes) == (12, 4, 28)
    assert made.excess == pytest.approx(8 + 8 + 1)
    assert (made.worst.line, made.worst_excess, made.weight) == (3, pytest.approx(8), pytest.approx(17 / 28))
    empty = CostTotals.of(run())
    assert (empty.worst, empty.worst_excess, empty.excess, empty.weight) == (None, 0, 0, 0)
    both = CostTotals.together([empty, made, made])
    assert (both.active_lanes, both.issued_lanes, both.sectors, both.passes) == (320, 384, 24, 57)
    assert (both.worst, both.worst_excess) == (made.worst, made.worst_excess)


# ---- elements that differ ------------------------------------------------------------------------------


def difference(*index, owner=None, ulp=3, actual=1.5, bound=None, used=None):
    return Difference(index, actual, actual + 1, "0x1", "0x2", ulp, owner, bound, used)


def table(*worst):
    out = Console(file=StringIO(), width=200)
    out.print(check_text._differences(worst))
    return [line.split() for line in out.file.getvalue().splitlines()]


def test_the_table_of_elements():
    head = ["index", "ours", "theirs", "our", "bits", "their", "bits"]
    assert table(difference(3)) == [[*head, "ULP"], ["[3]", "1.5", "2.5", "0x1", "0x2", "3"]]
    assert table(difference(1, 2, ulp=1_234, actual=7)) == [
        [*head, "apart"], ["[1,", "2]", "7", "8", "0x1", "0x2", "1,234"],
    ]  # fmt: skip
    assert table(difference(3, ulp=None), difference(4, owner="lane 4")) == [
        [*head, "ULP", "written", "by"], ["[3]", "1.5", "2.5", "0x1", "0x2", "NaN"],
        ["[4]", "1.5", "2.5", "0x1", "0x2", "3", "lane", "4"],
    ]  # fmt: skip
    assert table(difference(3, bound=0.00012345, used=8123.4, owner="a"))[1][-3:] == ["0.000123", "8.12e+03", "a"]
    assert table(difference(3, bound=0.5, used=2.0))[0][-3:] == ["ULP", "bound", "used"]


def test_a_table_of_elements_is_as_wide_as_it_needs_to_be():
    out = Console(file=StringIO(), width=40)
    check_text.show_differences(out, [difference(1234567, 1234567, owner="workgroup (1, 2, 3), lane 31, line 99")])
    assert "workgroup (1, 2, 3), lane 31, line 99" in out.file.getvalue()
    assert out.width == 40


# ---- maps ----------------------------------------------------------------------------------------------


def touch(turn, bank, lane):
    return SimpleNamespace(turn=turn, bank=bank, lane=lane)


def test_the_cells_of_each_wavefront():
    """Cells are 13 pixels wide; a digit is 6 wide, and stands 4 above the end of its cell."""
    access = SimpleNamespace(touches=[touch(1, 2, 3), touch(0, 0, 0), touch(0, 1, 0), touch(0, 0, 0), touch(11, 0, 1)])
    first, second, last = page_maps.bank_cells(access)
    assert (first.colour, second.colour, last.colour) == (0, 1, 8)
    assert first.path == "M0 0h12v12h-12zM13 0h12v12h-12z"
    assert first.numbers == (("11", "3 16", "9 9"),)
    assert second.path == "M26 39h12v12h-12z"
    assert second.numbers == (("2", "29", "48"),)
    assert last.numbers == (("12", "0", "22"),)
    wide = page_maps._cells(9, [(0, 0), (2, 1)])
    assert (wide.colour, wide.numbers) == (8, (("10", "0", "9"), ("10", "26", "22")))


@pytest.mark.parametrize(
    ("heat", "worst", "words"),
    [(3, 12.3456, "the worst 12.3 ULP"), (0, np.inf, "the worst NaN or infinite")],
)
def test_the_words_of_a_patch(heat, worst, words):
    facts = {"rows": (4, 36), "columns": (0, 64), "count": 1_500, "heat": heat, "worst": worst}
    patch = SimpleNamespace(**facts)
    assert {*facts} <= {*Patch.__dataclass_fields__} | {"heat"}
    assert page_maps.patch_words(patch, "ULP") == f"rows 4 to 35, columns 0 to 63: 1,500 of 2,048 differ, {words}"


# ---- the page ------------------------------------------------------------------------------------------


def test_numbers_of_the_page():
    assert [audit_page._number(value) for value in (1_234, 1_234.0, 0.123456789, 1e9)] == [
        "1,234", "1,234", "0.123457", "1,000,000,000",
    ]  # fmt: skip
    assert [audit_page._amount(*each) for each in ((0.1234, "%"), (1.5, "ratio"), (2_000, "FLOP"), (3,))] == [
        "12.3%", "1.5", "2,000 FLOP", "3",
    ]  # fmt: skip


def test_counters_in_use_are_those_that_any_place_has():
    rows = (site(1, executions=1), site(2, global_sectors=3))
    assert audit_page._in_use(iter(rows), ["global_sectors", "executions", "atomic_turns"]) == [
        "global_sectors", "executions",
    ]  # fmt: skip


def test_the_code_of_a_place_is_its_line_in_three_parts():
    listing = SimpleNamespace(of=lambda span: "the anchor")
    made = audit_page._place("race", Span(SOURCE, span(3).start + 5, span(3).start + 6), listing)
    assert (made.label, made.at, made.anchor, made.code) == ("race", "a/k.wgsl:3:8", "the anchor", ("line ", "3", ";"))
    empty = audit_page._place("race", Span(SOURCE, span(3).start, span(3).start), listing)
    assert empty.code == ("", "l", "ine 3;")
    several = audit_page._place("race", Span(SOURCE, span(3).start + 5, span(5).start), listing)
    assert several.code == ("line ", "3;", "")
    assert audit_page._place("race", None, listing).code == audit_page.Place("race", "", None).code


# ---- reviews -------------------------------------------------------------------------------------------

CASE = SimpleNamespace(kernel=SimpleNamespace(name="scale"), shape="N=4")


def reviewed(state, monkeypatch, remarks=(), shape="N=4"):
    verdict = None if state is None else Verdict(Path("golden/k.json"), state, advice="do this")
    monkeypatch.setattr(golden_review, "entry_of", lambda audit: SimpleNamespace(remarks=remarks))
    monkeypatch.setattr(
        golden_review, "replace", lambda audit, **changed: SimpleNamespace(differs=bool(remarks), **changed)
    )
    case = SimpleNamespace(kernel=CASE.kernel, shape=shape)
    return golden_review.to_review(SimpleNamespace(case=case, golden=verdict))


def test_goldens_that_are_reviewed(monkeypatch):
    assert reviewed(None, monkeypatch) is None
    assert reviewed(UNCHANGED, monkeypatch) is None
    for state in (CHANGED, MISSING):
        made = reviewed(state, monkeypatch)
        assert (made.title, made.offered, made.decision, made.accepted) == ("scale N=4", True, Decision.SKIPPED, False)
        assert made.headline == f"scale N=4  {Path('golden/k.json')}"
    other = reviewed(OTHER_DEVICE, monkeypatch, shape="")
    assert (other.title, other.offered, other.decision) == ("scale", False, Decision.NOT_OFFERED)
    assert other.why_not == "golden k.json: not compared: do this"


def test_a_golden_is_not_offered_where_another_check_fails(monkeypatch):
    remarks = [SimpleNamespace(rank=rank, message=f"{rank}\nmore") for rank in (3, 1, 2)]
    made = reviewed(CHANGED, monkeypatch, remarks)
    assert (made.offered, made.why_not, made.decision) == (False, "another check fails: 1", Decision.NOT_OFFERED)


@pytest.mark.parametrize("decision", Decision)
def test_only_an_accepted_golden_is_written(decision):
    written = []
    new = SimpleNamespace(write=written.append)
    made = golden_review.ReviewedGolden("k", SimpleNamespace(path="golden/k.json", new=new))
    made.decide(decision)
    assert (made.decision, written) == (decision, ["golden/k.json"] if decision is Decision.ACCEPTED else [])
    nothing = golden_review.ReviewedGolden("k", SimpleNamespace(path="golden/k.json", new=None))
    nothing.decide(decision)
    assert nothing.accepted == (decision is Decision.ACCEPTED)


def shown_change(monkeypatch, **given):
    monkeypatch.setattr(
        golden_review, "show_golden", lambda out, verdict, most: out.print(f"[{verdict.advice}] {most}")
    )
    out = Console(file=StringIO(), width=200, markup=False)
    verdict = Verdict(Path("k.json"), **{"state": CHANGED, "advice": "do this"} | given)
    golden_review.show_change(out, golden_review.ReviewedGolden("k", verdict), 2, 5)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


def test_a_new_golden_is_shown_with_its_totals(monkeypatch):
    counters = {"flops": 1_234, "barriers": 2, "executions": 9}
    new = SimpleNamespace(counters=counters, outputs={"y": "", "z": ""})
    assert shown_change(monkeypatch, state=MISSING, new=new) == [
        "[2/5] k  k.json", "[] 5", "           barriers 2, flops 1,234; outputs: y, z",
    ]  # fmt: skip
    bare = SimpleNamespace(counters=counters, outputs={})
    assert shown_change(monkeypatch, state=MISSING, new=bare)[-1].endswith("; outputs: none")


@pytest.mark.parametrize(
    ("before", "after", "comparison", "hint"),
    [("a", "b", None, True), ("a", "b", "elements", False), ("", "b", None, False), ("a", "", None, False)],
)
def test_a_digest_alone_has_a_hint(monkeypatch, before, after, comparison, hint):
    change = SimpleNamespace(before=before, after=after, comparison=comparison)
    shown = shown_change(monkeypatch, outputs=(change,))
    words = '           with [expect] golden = "outputs", a golden shows which elements differ'
    assert shown[2:] == ([words] if hint else [])


def test_the_entries_of_a_review():
    verdict = SimpleNamespace(path=Path("k.json"), state=CHANGED, sentences=("a", "b"))
    left = [golden_review.UnusedGolden(Path("x.json"), "old", removed) for removed in (False, True)]
    made = golden_review.review_entries([golden_review.ReviewedGolden("k", verdict, "why", Decision.REJECTED)], left)
    assert made == [
        {"title": "k", "golden": "k.json", "state": "changed", "changes": ["a", "b"], "decision": "rejected",
         "why_not": "why"},
        {"title": "old", "golden": "x.json", "state": "unused", "decision": ""},
        {"title": "old", "golden": "x.json", "state": "unused", "decision": "removed"},
    ]  # fmt: skip
