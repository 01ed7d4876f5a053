"""What the search concludes from a thread's queue and from the steps that may still come, one rule at a time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.sim.explore import ahead, visibility, waiting
from bankshot.sim.explore.ahead import Ahead
from bankshot.sim.explore.code import Code, Step
from bankshot.sim.explore.invocations import Event, Thread

ONE, OTHER, THIRD = range(3)


def thread(*queue: Event, pc: int = 0) -> Thread:
    return Thread(pc, (), (), queue)


def access(word: int, op: str = "load", *, pc: int = 0, barriers: int = 0) -> Event:
    return Event("access", pc, op, word, barriers=barriers)


# ---- accesses that wait ----


@pytest.mark.parametrize(
    ("event", "before", "beside", "waits"),
    [
        (access(5), [], [], False),
        (access(5), [access(5)], [], True),  # accesses to one word keep the order of the program
        (access(5), [access(6)], [], False),
        (access(5), [access(6), access(5)], [], True),
        (access(5), [], [access(5, barriers=1)], True),  # a barrier orders the other one before it
        (access(5, barriers=1), [], [access(5, barriers=1)], False),
        (access(5, barriers=1), [], [access(5, barriers=2)], True),
        (access(5), [], [access(5)], False),
        (access(5), [], [access(6, barriers=1)], False),
    ],
)
def test_what_an_access_waits_for(event: Event, before: list[Event], beside: list[Event], waits: bool) -> None:
    threads = [thread(), thread(*beside), thread()]
    assert waiting.waits_for(event, ONE, before, threads, range(2)) == waits
    # Its own queue and that of another workgroup order nothing.
    assert not waiting.waits_for(event, OTHER, [], threads, range(2))
    assert not waiting.waits_for(event, ONE, [], threads, range(1))


@pytest.mark.parametrize(
    ("waits", "event", "excludes"),
    [
        (access(5, pc=1), access(6, pc=1), True),  # a step waits once at a time
        (access(5, pc=1), access(6, pc=2), False),
        (access(5, pc=1), access(5, pc=2), False),
        (access(5, pc=1, barriers=1), access(5, pc=2), True),  # on the other side of a barrier
        (access(5, pc=1, barriers=1), access(6, pc=2), False),
    ],
)
def test_what_cannot_wait_beside_another(waits: Event, event: Event, excludes: bool) -> None:
    assert waiting._excludes(waits, event) == excludes


@pytest.mark.parametrize(
    ("queue", "op", "gains", "must", "waits"),
    [
        (0, "load", True, False, True),
        (0, "load", False, False, False),  # it sees no more later
        (0, "load", False, True, True),
        (0, "store", True, False, False),  # later stores would say the same
        (0, "store", False, True, True),
        (0, "add_u32", True, False, True),
        (waiting.MOST_WAITING - 1, "load", True, False, True),
        (waiting.MOST_WAITING, "load", True, False, False),
    ],
)
def test_which_access_may_wait(queue: int, op: str, gains: bool, must: bool, waits: bool) -> None:
    full = thread(*(access(100 + n, pc=100 + n) for n in range(queue)))
    event, after = access(5, op, pc=3), object()
    asked: list[Any] = []
    invocation: Any = SimpleNamespace(
        resume=lambda *given: asked.append(given) or after, event=lambda thread: Event("access", 4)
    )
    found = waiting.deferred(invocation, full, event, gains, must)
    assert (found is after) == waits
    assert (found is None) != waits
    if waits:
        (given,) = asked
        assert given[2] == (*full.queue, event)


def test_a_thread_that_needs_the_result_at_once_does_not_go_on() -> None:
    def stalled(pc: int) -> Any:
        return SimpleNamespace(
            resume=lambda thread, results, queue: thread, event=lambda thread: Event("stall", 4, args=(results(pc),))
        )

    def results(pc: int) -> Any:
        return waiting.Pending(pc, 0)

    assert waiting.deferred(stalled(3), thread(), access(5, pc=3), True, False) is None
    assert waiting.deferred(stalled(2), thread(), access(5, pc=3), True, False) is not None  # of another access


@pytest.mark.parametrize(
    ("op", "results", "stores"),
    [
        ("load", (1, 0), False),
        ("store", (), True),
        ("add_u32", (1, 0), True),
        ("compare", (7, 1), True),
        ("compare", (7, 0), False),  # it has failed
        ("store", None, False),  # it waits
    ],
)
def test_which_steps_store(op: str, results: Any, stores: bool) -> None:
    taken: Any = SimpleNamespace(event=access(5, op), results=results)
    assert visibility._stores(taken) == stores


# ---- what may still come ----


WORDS = {1: "workgroup", 2: "storage", 3: "storage"}


def facts(*steps: Step, at: dict[tuple[int, int], dict[int, set[int]]], storing: set[int], live: Any = None) -> Ahead:
    code = Code([*steps, Step("end")], 8, {}, {}, {})
    code.live = live or [()] * (len(steps) + 2)
    accesses: Any = SimpleNamespace(at=at, storing=storing)
    space: Any = SimpleNamespace(space=WORDS.__getitem__)
    return Ahead(code, space, accesses)


LOAD, STORE = Step("access", "load"), Step("access", "store")
ADD, SUB, AND = (Step("access", f"{name}_u32", results=(1,)) for name in ("add", "sub", "and"))
OF_STORAGE, OF_WORKGROUP = Step("barrier", "storage"), Step("barrier", "workgroup")


def alone(first: Step, second: Step, *barriers: Step, word: int = 2, other: int = 2, workgroups: bool = False) -> bool:
    """Whether an invocation at the first step is alone while another is before the second one, past barriers."""
    steps = (first, *barriers, second)
    last = len(steps) - 1
    found = facts(*steps, at={(ONE, 0): {0: {word}}, (OTHER, last): {0: {other}}}, storing={0, last})
    threads = [thread(pc=0), thread(pc=1)]
    return found.is_alone(ONE, access(word, first.op), threads, range(1) if workgroups else range(2))


def test_accesses_of_one_kind_do_not_affect_each_other() -> None:
    assert alone(LOAD, LOAD)
    assert not alone(LOAD, STORE)
    assert not alone(STORE, STORE)
    assert alone(ADD, ADD)
    assert alone(ADD, SUB)
    assert not alone(ADD, AND)
    assert alone(AND, AND)
    assert not alone(ADD, LOAD)
    assert alone(STORE, STORE, other=3)


@pytest.mark.parametrize("name", ["and", "or", "xor", "max", "min"])
@pytest.mark.parametrize("kind", ["u32", "i32"])
def test_updates_that_may_change_places(name: str, kind: str) -> None:
    """Bitwise operations are of u32 for both kinds."""
    update = Step("access", f"{name}_{kind if name in ('max', 'min') else 'u32'}", results=(1,))
    assert alone(update, update)
    assert not alone(update, ADD)
    exchange = Step("access", f"exchange_{kind}", results=(1,))
    assert not alone(exchange, exchange)


def test_units_of_a_workgroup_do_not_get_past_their_next_barrier() -> None:
    assert alone(STORE, LOAD, OF_STORAGE)
    assert not alone(STORE, LOAD, OF_STORAGE, workgroups=True)
    assert alone(STORE, LOAD, OF_WORKGROUP)
    # Additions look past barriers that do not order the word.
    assert alone(ADD, LOAD, OF_STORAGE)
    assert not alone(ADD, LOAD, OF_WORKGROUP)
    assert alone(ADD, LOAD, OF_WORKGROUP, OF_STORAGE)
    assert not alone(ADD, LOAD, OF_STORAGE, workgroups=True)


def test_a_result_that_is_used_tells_an_order() -> None:
    at = {(ONE, 0): {0: {2}}, (OTHER, 1): {0: {2}}}
    threads = [thread(pc=0), thread(pc=1)]
    for live, found in (((), True), ((1,), False), ((3,), True)):
        made = facts(ADD, ADD, at=at, storing={0, 1}, live=[(), live, live, ()])
        assert made.is_alone(ONE, access(2, "add_u32"), threads, range(2)) == found
        assert made.commutes(0) == found
    assert not facts(LOAD, at={}, storing=set()).commutes(0)
    made = facts(ADD, ADD, at=at, storing={0, 1}, live=[(), (1,), (), ()])  # a step's own result, right after it
    assert [made.commutes(pc) for pc in (0, 1)] == [False, True]


def test_an_access_that_waits_affects_its_word() -> None:
    made = facts(STORE, STORE, at={(ONE, 0): {0: {2}}}, storing={0, 1})
    for queue, found in (([], True), ([access(2)], False), ([access(3)], True)):
        assert made.is_alone(ONE, access(2, "store"), [thread(pc=0), thread(*queue, pc=2)], range(2)) == found
    # So do its own, whatever their kind: others may still load the word that one stores to.
    loads = facts(LOAD, LOAD, at={(ONE, 0): {0: {2}}, (OTHER, 1): {0: {3}}}, storing=set())
    for queue, found in (([], True), ([access(3)], False), ([access(1)], True)):
        assert loads.is_alone(ONE, access(2), [thread(*queue, pc=0), thread(pc=1)], range(2)) == found


@pytest.mark.parametrize(
    ("own", "theirs", "barrier", "workgroups", "gains"),
    [
        (STORE, STORE, None, False, True),
        (LOAD, STORE, None, False, False),  # it stores nothing later
        (STORE, LOAD, None, False, False),
        (STORE, ADD, None, False, True),
        (STORE, STORE, OF_STORAGE, False, False),
        (STORE, STORE, OF_WORKGROUP, False, True),
        (STORE, STORE, OF_STORAGE, True, True),  # which does not hold up another workgroup
    ],
)
def test_a_load_gains_by_waiting_if_its_word_may_be_stored_to(
    own: Step, theirs: Step, barrier: Step | None, workgroups: bool, gains: bool
) -> None:
    between = [] if barrier is None else [barrier]
    steps = (LOAD, own, Step("end"), *between, theirs)
    last = len(steps) - 1
    storing = {number for number, step in enumerate(steps) if step.kind == "access" and step.op != "load"}
    made = facts(*steps, at={(ONE, 0): {0: {2}}, (ONE, 1): {0: {3}}, (OTHER, last): {0: {2}}}, storing=storing)
    threads, group = [thread(pc=0), thread(pc=3)], range(1) if workgroups else range(2)
    assert made.may_gain(0, 2, ONE, threads, group) == gains
    waits = [thread(pc=0), thread(access(2, "store"), pc=last + 1)]
    assert made.may_gain(0, 2, ONE, waits, group) == (own is STORE)
    for event in (access(3, "store"), access(2, "load")):
        waits = [thread(pc=0), thread(event, pc=last + 1)]
        assert not made.may_gain(0, 2, ONE, waits, group)


def test_a_load_gains_nothing_by_its_own_stores() -> None:
    own = {(ONE, 0): {0: {2}}, (ONE, 1): {0: {2}}}
    made = facts(LOAD, STORE, LOAD, at={**own, (OTHER, 2): {0: {2}}}, storing={1})
    assert not made.may_gain(0, 2, ONE, [thread(pc=0), thread(pc=2)], range(2))
    assert not made.may_gain(2, 2, OTHER, [thread(pc=0), thread(pc=2)], range(2))  # it stores nothing later
    loop = facts(STORE, LOAD, Step("jump", target=0), at={**own, (OTHER, 1): {0: {2}}}, storing={0})
    assert loop.may_gain(1, 2, OTHER, [thread(pc=0), thread(pc=1)], range(2))


@pytest.mark.parametrize(
    ("barrier", "until", "phases"),
    [
        (None, "all", {*range(5)}),
        (None, "near", {0}),  # other phases are past the next barrier
        (None, "storage", {0}),
        (OF_WORKGROUP, "all", {*range(5)}),
        (OF_WORKGROUP, "near", set()),
        (OF_WORKGROUP, "storage", {*range(5)}),  # a barrier that orders other memory may come before
        (OF_WORKGROUP, "workgroup", set()),
        (OF_STORAGE, "storage", set()),
    ],
)
@pytest.mark.parametrize("now", [0, 1, 2])
def test_accesses_of_later_phases(barrier: Step | None, until: str, phases: set[int], now: int) -> None:
    """Word 2 in one phase of a step, counted from the present one; earlier phases are over."""
    between = [] if barrier is None else [barrier]
    for phase in range(5):
        made = facts(*between, LOAD, at={(ONE, len(between)): {phase: {2}}}, storing=set())
        found = made._of(ONE, Thread(0, (), (), (), now), until)
        assert found == ({2: "load"} if phase - now in phases else {}), (phase, now)


@pytest.mark.parametrize(
    ("barrier", "pc", "together", "found"),
    [
        (None, 0, True, [{1}, {2}]),
        (OF_STORAGE, 0, True, [{1, 2}, {2}]),  # it makes others of the workgroup see storage
        (OF_WORKGROUP, 0, True, [{1}, {1, 2}]),
        (OF_STORAGE, 0, False, [{1}, {2}]),
        (OF_WORKGROUP, 3, True, [set(), set()]),  # past it
    ],
)
def test_words_that_a_unit_may_access_or_make_others_see(
    barrier: Step | None, pc: int, together: bool, found: list[set[int]]
) -> None:
    steps = [LOAD, LOAD, barrier or Step("copy")]
    made = facts(*steps, at={(ONE, 0): {0: {1}}, (OTHER, 1): {0: {2}}}, storing=set())
    groups = [range(2)] if together else [range(1), range(1, 2)]
    threads = [thread(pc=pc), thread(pc=pc)]
    assert made.words(threads, groups) == found
    waits = [thread(access(3), pc=pc), thread(pc=pc)]
    assert made.words(waits, groups)[0] == found[0] | {3}


def test_what_follows_a_step() -> None:
    steps = [Step("jump", target=3), LOAD, Step("branch", target=0), Step("end")]
    code = Code(steps, 1, {}, {}, {})
    assert [ahead._following(code, pc) for pc in range(4)] == [[3], [2], [3, 0], []]
    assert ahead._union([[1], [2], [0, 3], []], [1, 2, 4, 8]) == [15, 15, 15, 8]
    assert ahead._union([[1], []], [1, 2]) == [3, 2]


@pytest.mark.parametrize("seconds", [None, 60.0])
def test_a_search_says_how_long_it_took(seconds: float | None) -> None:
    text = """@group(0) @binding(0) var<storage, read_write> y: atomic<u32>;
        @compute @workgroup_size(2) fn main() { atomicAdd(&y, 1u); }"""
    found = bankshot.explore(text, grid=1, bindings={"y": np.zeros(1, np.uint32)}, seconds=seconds)
    assert found.complete
    assert 0 < found.seconds < 60
