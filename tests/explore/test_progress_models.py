"""Progress models: verdicts by hand, and against a search that applies the definitions to one lasso after another."""

from __future__ import annotations

import itertools
import random

import pytest

from bankshot.sim.explore.progress import MODELS, Graph, Stuck, find_stuck
from tests.explore.exchange_programs import BY_HAND, Exchange, Program, States, states


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", BY_HAND)
def test_verdict_by_hand(name, model):
    program, ends = BY_HAND[name]
    graph = states(program)
    stuck = find_stuck(graph, model)
    assert (stuck is None) == (model in ends.split())
    if stuck is not None:
        assert_allowed(graph, model, stuck)


def programs() -> list[Program]:
    """All pairs of one instruction, and a sample of the pairs and triples of two or three."""
    words, stored, tested = (0, 1), (None, 0, 1), (None, 0, 1)
    one = [Exchange(0, *rest) for rest in itertools.product(stored, tested)]
    some = [Exchange(*rest) for rest in itertools.product(words, stored, tested, (0, 1, 2))]
    pairs = [((a,), (b,)) for a in one for b in one]
    draw = random.Random(19)
    for units, length in ((2, 2), (2, 3), (3, 2)):
        pairs += [tuple(tuple(draw.choices(some, k=length)) for _ in range(units)) for _ in range(150)]
    return pairs


@pytest.mark.parametrize("model", MODELS)
def test_verdicts_are_those_of_the_definitions(model):
    found = 0
    for program in programs():
        graph = states(program)
        stuck = find_stuck(graph, model)
        assert (stuck is not None) == lasso_exists(graph, model), program
        if stuck is not None:
            assert_allowed(graph, model, stuck)
            found += 1
    assert 0 < found < len(programs())


def test_a_run_that_a_model_allows_is_allowed_by_each_weaker_one():
    weaker = [("fair", "lobe"), ("lobe", "hsa+obe"), ("hsa+obe", "hsa"), ("hsa+obe", "obe")]
    weaker += [("hsa", "none"), ("obe", "none")]
    apart = set[tuple[str, str]]()
    for program in (*programs(), *(program for program, _ in BY_HAND.values())):
        ends = {model: find_stuck(states(program), model) is None for model in MODELS}
        assert all(ends[strong] or not ends[weak] for strong, weak in weaker)
        apart |= {pair for pair in weaker if ends[pair[0]] != ends[pair[1]]}
    assert apart == set(weaker)


# ---- workgroups of several invocations ------------------------------------------------------------------


def graph_of(edges: list[list[tuple[int, int]]], ended: dict[int, set[int]], units: int) -> States:
    finished = [frozenset(ended.get(state, ())) for state in range(len(edges))]
    return States(edges, finished, [frozenset()] * len(edges), units)


# Invocation 0 spins until invocation 1 has stepped.
SPIN = graph_of([[(0, 0), (1, 1)], [(0, 2)], []], {1: {1}, 2: {0, 1}}, 2)


@pytest.mark.parametrize(("model", "within", "size", "ends"), [
    ("none", "fair", 1, False),  # two workgroups, of which the first may spin alone
    ("none", "fair", 2, True),  # one workgroup: some workgroup steps, so this one does, and both invocations
    ("fair", "none", 2, False),
    ("fair", "hsa", 2, False),
    ("fair", "obe", 2, False),
    ("obe", "fair", 2, True),
    ("fair", "fair", 1, True),
])  # fmt: skip
def test_invocations_of_a_workgroup_have_their_own_model(model, within, size, ends):
    assert (find_stuck(SPIN, model, within=within, size=size) is None) == ends


def test_a_guaranteed_workgroup_need_not_schedule_one_particular_invocation():
    # Invocation 0 (workgroup 0) spins until 2 (workgroup 1) has stepped; 3 (workgroup 1) spins until 0 has ended.
    edges = [[(0, 0), (2, 1), (3, 0)], [(0, 2), (3, 1)], [(3, 3)], []]
    graph = graph_of(edges, {0: {1}, 1: {1, 2}, 2: {0, 1, 2}, 3: {0, 1, 2, 3}}, 4)
    stuck = find_stuck(graph, "fair", within="none", size=2)
    assert stuck is not None
    assert {unit for _, unit, _ in stuck.cycle} == {0, 3}
    assert find_stuck(graph, "fair", within="fair", size=2) is None


def test_who_cannot_step_for_a_while_is_owed_nothing():
    # Invocation 1 is blocked in every second state of a cycle of invocation 0.
    graph = graph_of([[(0, 1), (1, 2)], [(0, 0)], [(0, 3)], []], {2: {1}, 3: {0, 1}}, 2)
    stuck = find_stuck(graph, "fair")
    assert stuck is not None
    assert stuck.cycle == ((0, 0, 1), (1, 0, 0))


# ---- deadlocks and what is missing ------------------------------------------------------------------


def test_a_deadlock_is_a_run_that_never_ends_under_every_model():
    graph = States([[(1, 1)], []], [frozenset(), frozenset({1})], [frozenset(), frozenset({0})], 2)
    for model in MODELS:
        assert find_stuck(graph, model) == Stuck(((0, 1, 1),), 1, ())


def test_a_state_that_was_not_expanded_is_no_deadlock():
    graph = States([[(1, 1)], []], [frozenset(), frozenset({1})], [frozenset(), frozenset()], 2)
    assert find_stuck(graph, "none") is None


def test_the_way_to_the_cycle_is_a_shortest_one():
    graph = graph_of([[(0, 1), (1, 3)], [(0, 2)], [(0, 2)], [(1, 3)]], {}, 2)
    stuck = find_stuck(graph, "none")
    assert stuck == Stuck(((0, 1, 3),), 3, ((3, 1, 3),))


def test_no_run_takes_a_barred_step_forever():
    # From state 0 unit 0 may repeat its step, or leave to state 1, where it may too.
    graph = graph_of([[(0, 0), (0, 1)], [(0, 1)]], {}, 1)
    stays = {(0, 0, 0), (1, 0, 1)}
    assert find_stuck(graph, "fair", barred=lambda steps: steps & stays) is None
    stuck = find_stuck(graph, "fair", barred=lambda steps: steps & {(0, 0, 0)})
    assert stuck == Stuck(((0, 0, 1),), 1, ((1, 0, 1),))


def test_without_barred_steps_a_component_falls_apart():
    # 0 -> 1 -> 2 -> 0, and 1 -> 1; the step from 2 to 0 is barred.
    graph = graph_of([[(0, 1)], [(0, 2), (0, 1)], [(0, 0)]], {}, 1)
    stuck = find_stuck(graph, "fair", barred=lambda steps: steps & {(2, 0, 0)})
    assert stuck == Stuck(((0, 0, 1),), 1, ((1, 0, 1),))


def test_a_long_chain_of_states_is_no_recursion():
    length = 20_000
    graph = graph_of([[(0, at + 1)] for at in range(length)] + [[(0, length)]], {}, 1)
    stuck = find_stuck(graph, "fair")
    assert stuck is not None
    assert len(stuck.way) == length


# ---- the definitions, applied to one run -----------------------------------------------------------


def owed(graph: Graph, model: str, state: int, started: frozenset[int]) -> set[int]:
    """The units that a model owes a step in a state, each unit being a workgroup."""
    able = {unit for unit, _ in graph.edges[state]}
    lowest = {unit for unit in able if not any(other < unit for other in able)}
    match model:
        case "fair":
            return able
        case "hsa":
            return lowest
        case "obe":
            return able & started
        case "hsa+obe":
            return lowest | able & started
        case "lobe":
            return {unit for unit in able if any(other >= unit for other in started)}
        case _:
            return set()


def assert_allowed(graph: Graph, model: str, stuck: Stuck) -> None:
    """Follow the run: it closes, and owes nothing forever to a unit that never steps in it."""
    state, started = 0, frozenset[int]()
    for before, unit, after in stuck.way:
        assert before == state
        assert (unit, after) in graph.edges[state]
        state, started = after, started | {unit}
    assert state == stuck.state
    steps, debts = {unit for _, unit, _ in stuck.cycle}, list[set[int]]()
    for before, unit, after in stuck.cycle:
        assert before == state
        assert (unit, after) in graph.edges[state]
        debts.append(owed(graph, model, state, started | steps))
        state = after
    assert state == stuck.state
    assert stuck.cycle
    assert set.intersection(*debts) <= steps


def lasso_exists(graph: Graph, model: str) -> bool:
    """Whether a run returns to some state, having stepped each unit or passed a state that owes it nothing."""
    reached = [(0, frozenset[int]())]
    for state, started in reached:
        for unit, after in graph.edges[state]:
            if (after, started | {unit}) not in reached:
                reached.append((after, started | {unit}))
    return any(returns(graph, model, *each) for each in reached)


def returns(graph: Graph, model: str, home: int, started: frozenset[int]) -> bool:
    walks = [(home, frozenset[int]())]
    for state, done in walks:
        settled = done | (frozenset(range(graph.units)) - owed(graph, model, state, started))
        for unit, after in graph.edges[state]:
            if unit not in started:
                continue
            if after == home and settled | {unit} == frozenset(range(graph.units)):
                return True
            if (after, settled | {unit}) not in walks:
                walks.append((after, settled | {unit}))
    return False
