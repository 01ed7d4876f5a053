"""The search for cures, with a trial that says what each changed text races on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import bankshot
from bankshot.sim.cures.search import Cures, find_cures
from bankshot.sim.findings.finding import Finding
from bankshot.sim.ir.sites import SourceSite
from bankshot.sim.wgsl.diagnostics import Note
from bankshot.sim.wgsl.source import Span
from bankshot.sim.wgsl.typed import Module

HEAD = """var<workgroup> t: array<u32, 64>;
var<workgroup> n: u32;
@group(0) @binding(0) var<storage, read_write> y: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
"""
AT = HEAD.count("\n")
BARRIER = "workgroupBarrier();"
Pair = tuple[str, str]  # the texts of two accesses that race, the first one first
Other = tuple[str, str]  # a code, and the text of its place
Judge = Callable[[str], tuple[list[Pair], list[Other]]]  # from a body to what it has


def after(line: int) -> str:
    return f"a workgroupBarrier() after line {AT + line}"


def between(text: str, one: str, two: str) -> bool:
    """Whether a barrier is between two pieces of a text."""
    return BARRIER in text[text.index(one) : text.index(two)]


def _body(module: Module) -> str:
    return module.source.text.partition("i: u32) {\n")[2].removesuffix("\n}\n")


class Searched:
    """A search. `bodies`: what was run, without the first lines."""

    def __init__(self, body: str, judge: Judge, last: Judge | None = None, silenced: tuple[Other, ...] = (),
                 space: str = "workgroup") -> None:  # fmt: skip
        self.bodies: list[str] = []
        self.lasts: list[str] = []
        self.judges = {False: judge, True: last or judge}
        module = bankshot.check(f"{HEAD}{body}\n}}\n", uniformity="off")
        self.races, self.others = self._found(module, judge)
        pieces = {piece for pair in judge(body)[0] for piece in pair}
        sites = [SourceSite("store", self._span(module, each), space, each[0], 4) for each in pieces]
        sites += [SourceSite("barrier", site.span) for site in sites]  # as a workgroupUniformLoad has
        findings, pipeline = [*self.races, *self.others], module.pipeline()
        hidden = [self._finding(module, *each) for each in silenced]
        self.result: Cures = find_cures(pipeline, sites, findings, hidden, self._trial)

    def _trial(self, module: Module, /, *, last: bool) -> list[Finding]:
        (self.lasts if last else self.bodies).append(_body(module))
        races, others = self._found(module, self.judges[last])
        return [*races, *others]

    def _found(self, module: Module, judge: Judge) -> tuple[list[Finding], list[Finding]]:
        races, others = judge(_body(module))
        notes = [(Note("the first access", self._span(module, one)), self._span(module, two)) for one, two in races]
        return (
            [Finding("race", "error", "two", span, 1, (0, 0, 0), (0, 1), 0, (note,)) for note, span in notes],
            [self._finding(module, code, piece) for code, piece in others],
        )

    def _finding(self, module: Module, code: str, piece: str) -> Finding:
        return Finding(code, "warning", code, self._span(module, piece), 1, (0, 0, 0), (0,))

    def _span(self, module: Module, piece: str) -> Span:
        start = module.source.text.index(piece, module.source.text.index(_body(module)))
        return Span(module.source, start, start + len(piece))

    @property
    def words(self) -> list[str]:
        return [cure.words for cure in self.result.cures]


TWO = "t[i] = 1u;\ny[0] = t[2];"
THREE = "t[1] = i;\ny[0] = t[2];\nt[3] = i;"


def racing(*pairs: Pair) -> Judge:
    """Say that pairs race which no barrier separates."""
    return lambda text: ([pair for pair in pairs if not between(text, *pair)], [])


def test_a_barrier_is_tried_once_and_then_in_the_last_run() -> None:
    done = Searched(TWO, racing(("t[i]", "t[2]")))
    assert done.words == [after(1)]
    assert done.result.cures[0].sentence == f"{after(1)} removes this race"
    assert done.result.cures[0].races == tuple(done.races)
    assert (done.result.left, done.result.gone, done.result.gave_up) == ((), (), "")
    assert done.bodies == done.lasts == [f"t[i] = 1u;\n{BARRIER}\ny[0] = t[2];"]


def test_only_races_are_left() -> None:
    assert Searched(TWO, lambda text: ([], [("nan", "t[2]")])).result.left == ()


def test_one_cure_for_several_races() -> None:
    done = Searched(THREE, racing(("t[1]", "t[2]"), ("t[1]", "t[3]")))
    assert done.words == [after(1)]
    assert done.result.cures[0].sentence == f"{after(1)} removes all 2 races"
    assert len(done.bodies) == 1  # what separates both comes first, and the others end no more


def test_a_cure_for_each_race() -> None:
    done = Searched(THREE, racing(("t[1]", "t[2]"), ("t[2]", "t[3]")))
    assert done.words == [after(1), after(2)]
    assert len(done.bodies) == 2  # each ends one race, so that no other is tried for it
    assert [cure.races for cure in done.result.cures] == [(done.races[0],), (done.races[1],)]
    assert done.lasts == [f"t[1] = i;\n{BARRIER}\ny[0] = t[2];\n{BARRIER}\nt[3] = i;"]


def test_the_change_that_ends_the_most_races_is_kept() -> None:
    """Two places separate both pairs in the text, but the one that is tried first ends one race only."""

    def judge(text: str) -> tuple[list[Pair], list[Other]]:
        first = [] if between(text, "t[1]", "t[4]") else [("t[1]", "t[4]")]
        return first if between(text, "t[3]", "}") else [*first, ("t[3]", "t[4]")], []

    done = Searched("t[1] = i;\nif 1u < 2u {\ny[0] = t[3];\n}\nt[4] = i;", judge)
    assert done.words == [after(3)]
    assert done.result.cures[0].races == tuple(done.races)


def test_a_change_that_brings_another_finding_is_no_cure() -> None:
    def judge(text: str) -> tuple[list[Pair], list[Other]]:
        return ([], [("uninit", "t[2]")]) if BARRIER in text else ([("t[i]", "t[2]")], [])

    done = Searched(TWO, judge)
    assert done.result == Cures(left=tuple(done.races))
    assert (len(done.bodies), done.lasts) == (1, [])
    assert Searched(TWO, judge, silenced=(("uninit", "t[2]"),)).words == [after(1)]  # it was there before
    assert Searched(TWO, judge, silenced=(("uninit", "t[i]"),)).words == []  # in another line
    assert Searched(TWO, judge, silenced=(("nan", "t[2]"),)).words == []


def test_a_finding_that_moves_with_its_line_is_the_same() -> None:
    def judge(text: str) -> tuple[list[Pair], list[Other]]:
        return racing(("t[i]", "t[2]"))(text)[0], [("uninit", "t[2]"), ("uninit", "t[i]")]

    done = Searched(TWO, judge)
    assert (done.words, done.result.gone) == ([after(1)], ())


@pytest.mark.parametrize(
    ("code", "goes"),
    [
        ("uninit", True),
        ("atomic-order", True),
        ("not-finite", True),
        ("division-by-zero", True),
        ("out-of-bounds", True),
        ("overflow", False),
        ("endless-loop", False),
    ],
)
def test_what_a_race_may_cause_is_gone_with_it(code: str, goes: bool) -> None:
    def judge(text: str) -> tuple[list[Pair], list[Other]]:
        return ([], []) if BARRIER in text else ([("t[i]", "t[2]")], [(code, "t[2]")])

    done = Searched(TWO, judge)
    assert done.words == [after(1)]
    assert done.result.gone == (tuple(done.others) if goes else ())


def test_a_race_that_the_last_run_shows_again_is_not_cured() -> None:
    done = Searched(TWO, racing(("t[i]", "t[2]")), last=lambda text: ([("t[i]", "t[2]")], []))
    assert done.result == Cures(left=tuple(done.races))
    assert len(done.lasts) == 1


def test_a_change_that_brings_another_race_is_no_cure() -> None:
    def judge(text: str) -> tuple[list[Pair], list[Other]]:
        return [("t[2]", "t[3]")] if BARRIER in text else [("t[1]", "t[2]"), ("t[1]", "t[3]")], []

    done = Searched(THREE, judge)
    assert done.result == Cures(left=tuple(done.races))


def test_a_change_that_ends_what_the_one_before_has_brought_is_part_of_its_cure() -> None:
    lost = [("t[1]", "t[2]"), ("t[1]", "t[3]")]

    def judge(text: str) -> tuple[list[Pair], list[Other]]:
        brought = [] if between(text, "{", "t[2]") else [("t[2]", "t[3]")]
        return [*(brought if between(text, "t[1]", "if") else lost), ("t[1]", "t[5]")], []

    done = Searched("t[1] = i;\nif 1u < 2u {\ny[0] = t[2] + t[5];\n}\ny[1] = t[3];", judge)
    (cure,) = done.result.cures
    both = f"{after(1)} and a workgroupBarrier() at the start of the block in line {AT + 2}"
    assert (cure.words, cure.sentence) == (both, f"{both} remove all 2 races")
    assert (cure.races, len(cure.replacements)) == (tuple(done.races[:2]), 2)
    assert done.result.left == (done.races[2],)


def test_the_search_gives_up_after_so_many_runs() -> None:
    loads = "\n".join(f"y[{k}] = t[{k}];" for k in range(10, 40))
    pairs = [("t[i]", f"t[{k}]") for k in range(10, 40)]
    pairs += [(f"t[{k}]", "t[1]") for k in range(10, 40)]
    done = Searched(f"t[i] = 1u;\n{loads}\nt[1] = 2u;", lambda text: (pairs, []))
    assert len(done.bodies) == 24
    assert done.result == Cures(left=tuple(done.races), gave_up="Bankshot tried 24 changes of the text")


def test_a_text_that_is_invalid_is_not_run() -> None:
    body = "if i < 9u {\nt[i] = 1u;\ny[0] = t[2];\n}"
    done = Searched(body, racing(("t[i]", "t[2]")))
    assert (done.words, done.bodies) == ([], [])
    # where there is such a barrier already, one more is no new error
    body = f"if i < 8u {{\n{BARRIER}\n}}\n{body}"
    assert Searched(body, racing(("t[i]", "t[2]"))).words == [after(5)]


def adding(text: str) -> tuple[list[Pair], list[Other]]:
    pairs = [] if between(text, "t[i]", "t[2]") else [("t[i]", "t[2]")]
    return pairs if "atomicAdd" in text else [*pairs, ("n += 1u", "n += 1u")], []


def test_an_atomic_where_no_barrier_helps() -> None:
    done = Searched(f"n += 1u;\n{TWO}", adding)
    assert done.words == [after(2), f"atomicAdd in line {AT + 1} with n of atomic<u32>"]
    assert done.lasts == [f"atomicAdd(&n, 1u);\nt[i] = 1u;\n{BARRIER}\ny[0] = t[2];"]


def test_an_atomic_that_does_not_last_is_left_out() -> None:
    def last(text: str) -> tuple[list[Pair], list[Other]]:
        return ([("t[i]", "t[2]")], []) if "atomicAdd" in text else adding(text)

    done = Searched(f"n += 1u;\n{TWO}", adding, last)
    assert done.words == [after(2)]
    assert done.result.left == (done.races[1],)
    assert len(done.lasts) == 2


def test_nothing_is_left_to_try_without_the_atomic() -> None:
    done = Searched("n += 1u;", lambda text: ([] if "atomicAdd" in text else [("n += 1u", "n += 1u")], []),
                    last=lambda text: ([("n", "n")], []))  # fmt: skip
    assert done.result == Cures(left=tuple(done.races))


def test_a_race_that_has_no_site_is_left() -> None:
    text = f"{HEAD}{TWO}\n}}\n"
    module = bankshot.check(text)
    start = text.index("t[i]")
    span = Span(module.source, start, start + 4)
    here = Finding("race", "error", "two", span, 1, (0, 0, 0), (0, 1), 0, (Note("first", span),))
    without = Finding("race", "error", "two", span, 1, (0, 0, 0), (0, 1), 0, (Note("no place"),))
    nowhere = Finding("race", "error", "two", None, 1, (0, 0, 0), (0, 1), 0, (Note("first", span),))
    for finding, kind in ((here, "barrier"), (without, "store"), (nowhere, "store")):
        site = SourceSite(kind, span, "workgroup", "t", 4)
        found = find_cures(module.pipeline(), [site], [finding], [], lambda module, /, *, last: [])
        assert found == Cures(left=(finding,))
