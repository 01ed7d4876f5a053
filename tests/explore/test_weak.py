"""Weak memory: litmus tests with every outcome that WGSL's memory model allows, worked out by hand and by axioms.

An outcome is a row of digits: the registers, then the final values of the words.
"""

from __future__ import annotations

import random
from itertools import product

import pytest

from tests.explore.axiomatic import allowed
from tests.explore.litmus import outcomes

FREE = ("across", "within", "workgroup")  # without barriers, workgroups make no difference
TOGETHER = ("within", "workgroup")


def _all(*choices: str) -> str:
    """Return every combination of one digit of each choice."""
    return " ".join(map("".join, product(*choices)))


MP, SB, LB = "x=1; y=1 | r=y; s=x", "x=1; r=y | y=1; s=x", "r=y; x=1 | s=x; y=1"
TESTS = [
    ("MP", MP, FREE, "0011 0111 1011 1111"),
    ("SB", SB, FREE, "0011 0111 1011 1111"),
    ("LB", LB, FREE, "0011 0111 1011 1111"),
    ("S", "x=2; y=1 | r=y; x=1", FREE, "011 021 111 121"),
    ("R", "x=1; y=1 | y=2; r=x", FREE, "011 012 111 112"),
    ("2+2W", "x=1; y=2 | y=1; x=2", FREE, "11 12 21 22"),
    ("CoRR", "x=1 | r=x; s=x", FREE, "001 011 111"),
    ("CoWW", "x=1; x=2 | r=x", FREE, "02 12 22"),
    ("CoWR", "x=1; r=x | x=2", FREE, "11 12 22"),
    ("CoRW1", "r=x; x=1", FREE, "01"),
    ("CoRW2", "r=x; x=1 | x=2", FREE, "01 02 21"),
    ("IRIW", "x=1 | y=1 | p=x; q=y | r=y; s=x", FREE, _all("01", "01", "01", "01", "1", "1")),
    ("WRC", "x=1 | r=x; y=1 | s=y; t=x", FREE, _all("01", "01", "01", "1", "1")),
    ("ISA2", "x=1; y=1 | r=y; z=1 | s=z; t=x", FREE, _all("01", "01", "01", "1", "1", "1")),
    # a load may wait for a later store of its thread, but not if that depends on it
    ("LB+data", "r=y; x=r | s=x; y=s", FREE, "0000"),
    ("LB+data+po", "r=y; x=r | s=x; y=1", FREE, "0001 1011 1111"),
    ("LB, one word between", "r=y; x=r; z=1 | s=z; y=s", FREE, "00001 01011 11111"),
    ("LB+rmw", "r=y+0; x=1 | s=x<-2; y=1", FREE, "0011 0121 1011 1121"),
    # read-modify-write operations
    ("two additions", "r=x+1 | s=x+1", FREE, "012 102"),
    ("addition and store", "r=x+1 | x=5", FREE, "05 56"),
    ("two exchanges", "r=x<-1 | s=x<-2", FREE, "012 201"),
    ("lock", "r=x?0:1 | s=x?0:2", FREE, "011 202"),
    ("MP+rmw", "x=1; r=y<-1 | s=y+0; t=x", FREE, "00011 00111 01011 01111"),
    # a barrier of the workgroup orders the words of its memory
    ("MP+B", "x=1; B; y=1 | r=y; B; s=x", TOGETHER, "0111"),
    ("MP+late B", "x=1; B; y=1 | B; r=y; s=x", TOGETHER, "0111 1111"),
    ("SB+B", "x=1; B; r=y | y=1; B; s=x", TOGETHER, "1111"),
    ("LB+B", "r=y; B; x=1 | s=x; B; y=1", TOGETHER, "0011"),
    ("S+B", "x=2; B; y=1 | r=y; B; x=1", TOGETHER, "011"),
    ("R+B", "x=1; B; y=1 | y=2; B; r=x", TOGETHER, "111"),
    ("2+2W+B", "x=1; B; y=2 | y=1; B; x=2", TOGETHER, "22"),
    ("CoRR+B", "x=1; B | r=x; B | B; s=x", TOGETHER, "011 111"),
    ("CoWW+B", "x=1; B | B; x=2", TOGETHER, "2"),
    ("CoWR+B", "x=1; B | B; r=x", TOGETHER, "11"),
    ("CoRW+B", "r=x; B | B; x=1", TOGETHER, "01"),
    # a barrier that orders the other memory orders nothing here
    ("MP+C", "x=1; C; y=1 | r=y; C; s=x", TOGETHER, "0011 0111 1011 1111"),
    ("SB+C", "x=1; C; r=y | y=1; C; s=x", TOGETHER, "0011 0111 1011 1111"),
    ("CoRR+C", "x=1; C | r=x; C | C; s=x", TOGETHER, "001 011 101 111"),
    # and none orders workgroups
    ("MP+B apart", "x=1; B; y=1 | r=y; B; s=x", ("across",), "0011 0111 1011 1111"),
    ("SB+B apart", "x=1; B; r=y | y=1; B; s=x", ("across",), "0011 0111 1011 1111"),
    ("LB+B apart", "r=y; B; x=1 | s=x; B; y=1", ("across",), "0011 0111 1011 1111"),
    ("S+B apart", "x=2; B; y=1 | r=y; B; x=1", ("across",), "011 021 111 121"),
    ("R+B apart", "x=1; B; y=1 | y=2; B; r=x", ("across",), "011 012 111 112"),
    ("2+2W+B apart", "x=1; B; y=2 | y=1; B; x=2", ("across",), "11 12 21 22"),
    ("WRC+B, two and one", "x=1; B | B; y=1 | r=y; s=x", ("across:2",), "0011 0111 1011 1111"),
    ("CoRR+B, two and one", "r=x; B | B; s=x | x=1", ("across:2",), "001 011 111"),
    ("IRIW+B apart", "x=1 | y=1 | p=x; B; q=y | r=y; B; s=x", ("across",), _all("01", "01", "01", "01", "1", "1")),
]
CASES = [(name, text, place, expected) for name, text, places, expected in TESTS for place in places]


@pytest.mark.parametrize(("name", "text", "place", "expected"), CASES, ids=[f"{c[0]}, {c[2]}" for c in CASES])
def test_every_allowed_outcome_and_no_other(name, text, place, expected):
    wanted = {tuple(map(int, row)) for row in expected.split()}
    assert allowed(text, place) == wanted, "the axioms"
    assert outcomes(text, place, "weak") == wanted


@pytest.mark.parametrize(
    ("text", "place"),
    [
        # a load waits for what is stored after a barrier that does not order it, and a barrier follows that does
        ("y=1; a=x+2; b=x+3; C | C; c=x; y=c; d=y+13 | e=y; f=x; x=23; C", "workgroup"),
        # a store that waits past a barrier comes before what waits for it, past another
        ("B; a=x; b=y?0:2 | c=x+11; y=c; B | d=x; y=d; B", "workgroup"),
    ],
)
def test_what_waits_past_a_barrier_sees_what_it_may(text, place):
    assert outcomes(text, place, "weak") == allowed(text, place)


def test_a_store_that_waits_past_a_barrier_may_come_before_one_that_has_waited_as_long():
    """`x=1` waits for `a`, which reads what follows the barrier, and `x=r` for 7, which follows a load of `x=1`.
    Still 7 may come before 1."""
    text = "a=x; x=1; B; w=4 | t=y?1:7; r=y; x=r; B | b=w; x=b; s=x; y=s"
    outcome = (4, 1, 7, 4, 1, 4, 1, 7)  # a, t, r, b, s, w, x, y
    assert outcome in allowed(text, "across:2")
    assert outcome in outcomes(text, "across:2", "weak")


def test_no_load_sees_a_value_that_depends_on_a_later_store_to_its_word():
    """A limit of the search (docs/explore.md): it keeps the order of `a=x` and `x=1`, which the axioms let depend on
    each other."""
    text = "a=x; x=1 | s=x; y=s | r=y; x=r"
    assert allowed(text, "across") - outcomes(text, "across", "weak") == {(1, 1, 1, 1, 1)}  # a, s, r, x, y
    assert outcomes(text, "across", "weak") < allowed(text, "across")


# ---- random programs -----------------------------------------------------------------------------------

PROGRAMS = 200
_KINDS = (
    "{w}={n}",
    "{w}={n}",
    "{r}={w}",
    "{r}={w}",
    "{r}={w}",
    "{r}={w}+{n}",
    "{r}={w}<-{n}",
    "{r}={w}?0:{n}",
    "{w}={q}",
)


_COUNTS = ("{w}+={n}", "{w}+={n}", "{w}+={n}", "{w}+={n}", "{r}={w}", "{r}={w}", "{w}={n}", "{r}={w}+{n}", "{w}={q}")


def _random_test(seed: int, kinds: tuple[str, ...] = _KINDS) -> tuple[str, str]:
    rng = random.Random(seed)
    place = rng.choice(("across", "within", "workgroup", "across:2"))
    count, barriers = rng.choice((2, 2, 3)), rng.randrange(3)
    names, threads = iter("abcdefghij"), list[str]()
    for _ in range(count):
        parts, known = list[str](), list[str]()
        for k in range(rng.choice((2, 2, 3)) if count == 2 else 2):
            kind = rng.choice(kinds[: 9 if known else 8])
            if "{r}" in kind:
                known.append(next(names))
            last = known[-1] if known else ""
            taken = known[rng.randrange(len(known))] if known else ""
            parts.append(kind.format(w=rng.choice("xy"), n=10 * len(threads) + k + 1, r=last, q=taken))
        for _ in range(min(barriers, 1)):
            parts.insert(rng.randrange(len(parts) + 1), "B" if barriers == 1 else "BC"[seed % 2])
        threads.append("; ".join(parts))
    return " | ".join(threads), place


@pytest.mark.parametrize("first", range(0, PROGRAMS, 50))
def test_random_programs_have_the_outcomes_that_the_axioms_allow(first):
    for seed in range(first, first + 50):
        text, place = _random_test(seed)
        assert outcomes(text, place, "weak") == allowed(text, place), f"{text}  ({place}, seed {seed})"


@pytest.mark.parametrize("seed", range(40))
def test_weak_memory_shows_every_sequentially_consistent_outcome(seed):
    text, place = _random_test(1000 + seed)
    assert outcomes(text, place, "sc") <= outcomes(text, place, "weak"), text


@pytest.mark.parametrize("memory", ["sc", "weak"])
def test_states_that_make_no_difference_can_be_left_out(memory):
    for seed in range(2000, 2020):
        text, place = _random_test(seed)
        assert outcomes(text, place, memory, reduce=True) == outcomes(text, place, memory), f"{text}  ({place})"


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_additions_whose_results_nothing_uses_go_in_one_order_and_lose_no_outcome(first):
    for seed in range(first, first + 20):
        text, place = _random_test(seed, _COUNTS)
        assert outcomes(text, place, "weak", reduce=True) == allowed(text, place), f"{text}  ({place}, seed {seed})"
        assert outcomes(text, place, "sc", reduce=True) == outcomes(text, place, "sc"), f"{text}  ({place})"
