"""Invocations: they run their local steps at once, and stop where others can see what they do.

A thread (`Thread`) is the state of an invocation: `pc`; `live`, the registers that it may still read; `own`, words that
no other invocation accesses and that it changed; `queue`, accesses that wait (weak memory only); `phase`, how many
barriers it has passed, counted up to `MOST_PHASES` and only where the search leaves out states. Threads are tuples, so
that states compare fast. What a thread will do next (`Event`) depends on nothing else, and is computed once.

With weak memory a register may hold a value that is not decided yet: `Pending`, or an `Expression` of such values.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from time import monotonic
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from ..ir.bottom_up import bottom_up
from ..ir.register_bits import from_bits, to_bits
from ..scalar import OPS
from ..wgsl.diagnostics import fail
from .code import Code, Step
from .words import Words

MOST_LOCAL_STEPS = 1 << 20  # between two steps that others can see
MOST_PHASES = 63
_LOOKS_AT_CLOCK = 1 << 12  # local steps


class OutOfTime(Exception):
    """The search has reached its limit of time."""


class Pending(NamedTuple):
    """The result of an access that waits: the access by its step, and which of its results."""

    pc: int
    which: int


class Expression:
    """A scalar operation on values of which some are not decided. `expression` makes it: equal ones are one object, so
    that those which share operands compare as fast as others."""

    __slots__ = ("__weakref__", "args", "op")

    def __init__(self, op: str, args: tuple[Any, ...]) -> None:
        self.op, self.args = op, args


Bits = int | Pending | Expression | tuple["Bits", ...]  # a register; a tuple is a table


class Thread(NamedTuple):
    pc: int
    live: tuple[Bits, ...]
    own: tuple[tuple[int, Bits], ...]
    queue: tuple[Event, ...] = ()
    phase: int = 0


class Event(NamedTuple):
    """What a thread does next. `kind`: access, barrier, collective, end, spin (it repeats local steps without end) or
    stall (it needs a value that is not decided, its argument). `op`: see `Step`. `word`: of an access. `barriers`: how
    many barriers its thread has passed, while it waits, that order its word."""

    kind: str
    pc: int
    op: str = ""
    word: int = -1
    args: tuple[Bits, ...] = ()
    half: int = -1
    barriers: int = 0

    @property
    def stores(self) -> bool:
        return self.op != "load"

    @property
    def decided(self) -> bool:
        """Whether its arguments are known."""
        return all(isinstance(each, int) for each in self.args)


class Accesses:
    """Which invocations have accessed each word so far, as bits, and from that which words they share.

    A word is shared if several invocations access it and at least one stores. `storing`: the steps that store to shared
    words. `at`: the shared words that a step of a unit has accessed, by phase. `grown`: one of these has become more
    since the flag was reset, so states that were found before may be wrong.
    """

    def __init__(self) -> None:
        self.shared: set[int] = set()
        self.storing: set[int] = set()
        self.at: dict[tuple[int, int], dict[int, set[int]]] = {}
        self.grown = False
        self._by: dict[int, int] = {}
        self._stored: set[int] = set()

    def note(self, event: Event, unit: int, phase: int) -> bool:
        """Note an access. Returns whether its word is shared."""
        word = event.word
        by = self._by[word] = self._by.get(word, 0) | 1 << unit
        if event.stores:
            self._stored.add(word)
        shared = word in self._stored and by & (by - 1) != 0
        if shared:
            known = self.at.setdefault((unit, event.pc), {}).setdefault(phase, set())
            if word not in known:
                known.add(word)
                self.shared.add(word)
                self.storing |= {event.pc} if event.stores else set()
                self.grown = True
        return shared


class _Loads(Accesses):
    """What one invocation loads from words that it does not share; `shared` are those that it does."""

    def __init__(self, shared: set[int]) -> None:
        super().__init__()
        self.shared = shared
        self.places: dict[int, int] = {}

    def note(self, event: Event, unit: int, phase: int) -> bool:
        if event.op != "store":
            self.places.setdefault(event.word, event.pc)
        return event.word in self.shared


class Invocation:
    """One invocation: `unit` is its number in the grid, workgroup by workgroup. `deadline`: when it raises
    `OutOfTime`."""

    deadline = float("inf")

    def __init__(self, unit: int, workgroup: int, inputs: dict[str, int], code: Code, words: Words) -> None:
        self.unit, self.workgroup = unit, workgroup
        self._code, self._words = code, words
        self._registers: list[Any] = [0] * code.registers
        for register, bits in code.constants.items():
            self._registers[register] = bits
        for register, name in code.inputs.items():
            self._registers[register] = inputs[name]
        for register, length in code.lengths.items():
            self._registers[register] = words.lengths[length]
        for register, rows in code.tables.items():
            self._registers[register] = (0,) * rows
        self._known: dict[Any, tuple[Thread, Event]] = {}

    def begin(self, accesses: Accesses) -> Thread:
        """Return the thread at its first event. Forgets what depended on an earlier set of shared words."""
        self._accesses = accesses
        self._known.clear()
        return self._run(Thread(0, (), ()), self._registers.copy())

    def event(self, thread: Thread) -> Event:
        """Return what a thread does next."""
        return self._known[thread][1]

    def resume(
        self, thread: Thread, results: tuple[Bits, ...], queue: tuple[Event, ...] | None = None, barriers: int = 0
    ) -> Thread:
        """Return the thread after its event, which has these results; `queue` replaces the accesses that wait.

        `barriers`: how many its phase counts for the event.
        """
        key = (thread, results, queue)
        found = self._known.get(key)
        if found is None:
            registers = self._restored(thread)
            for register, value in zip(self._code.steps[thread.pc].results, results, strict=False):
                registers[register] = value
            waiting = thread.queue if queue is None else queue
            phase = min(thread.phase + barriers, MOST_PHASES)
            after = self._run(Thread(thread.pc + 1, (), thread.own, waiting, phase), registers)
            found = self._known[key] = self._known[after]
        return found[0]

    def decide(self, thread: Thread, queue: tuple[Event, ...], pc: int, results: tuple[int, ...]) -> Thread:
        """Return the thread after an access that waited, at step `pc`, has these results; `queue` still waits."""
        key = (thread, queue, pc, results)
        found = self._known.get(key)
        if found is None:
            decided: dict[Any, Any] = {Pending(pc, which): bits for which, bits in enumerate(results)}
            registers = self._restored(thread)
            for register in self._code.live[thread.pc]:
                registers[register] = substitute(registers[register], decided)
            own = {word: substitute(bits, decided) for word, bits in thread.own}
            waiting = tuple(e._replace(args=tuple(substitute(a, decided) for a in e.args)) for e in queue)
            before = Thread(thread.pc, (), tuple(own.items()), waiting, thread.phase)
            found = self._known[key] = self._known[self._run(before, registers)]
        return found[0]

    def spins_on(self, thread: Thread) -> dict[int, int]:
        """Return the words that a thread loads while it spins, each with the step that loads it."""
        other = copy(self)
        other._accesses = loads = _Loads(self._accesses.shared)
        other._run(thread, self._restored(thread))
        return loads.places

    def _restored(self, thread: Thread) -> list[Any]:
        registers = self._registers.copy()
        for register, value in zip(self._code.live[thread.pc], thread.live, strict=True):
            registers[register] = value
        return registers

    # ---- local steps ----

    def _run(self, thread: Thread, registers: list[Any]) -> Thread:
        """Run local steps of a thread with these registers to the next event. Returns the thread there."""
        steps, visited = self._code.steps, set[Any]()
        pc, own = thread.pc, dict(thread.own)
        for count in range(MOST_LOCAL_STEPS):
            step = steps[pc]
            event = None if step.kind == "jump" else self._step(step, pc, registers, own, thread.phase)
            if event is not None:
                return self._stop(event, registers, own, thread)
            if count % _LOOKS_AT_CLOCK == _LOOKS_AT_CLOCK - 1 and monotonic() > self.deadline:
                raise OutOfTime
            after = step.target if step.kind == "jump" or (step.kind == "branch" and not self._holds) else pc + 1
            if after <= pc:
                here = (after, tuple(map(registers.__getitem__, self._code.live[after])), tuple(own.items()))
                if here in visited:
                    return self._stop(Event("spin", after), registers, own, thread)
                visited.add(here)
            pc = after
        message = f"an invocation takes {MOST_LOCAL_STEPS:,} steps without an access that others can see"
        raise fail("limit", message, self._code.span_near(pc), hint="use a smaller input")

    def _stop(self, event: Event, registers: list[Any], own: dict[int, Bits], before: Thread) -> Thread:
        live = tuple(map(registers.__getitem__, self._code.live[event.pc]))
        initial = self._words.initial
        changed = tuple(sorted((word, bits) for word, bits in own.items() if bits != initial[word]))
        thread = Thread(event.pc, live, changed, before.queue, before.phase)
        self._known[thread] = (thread, event)
        return thread

    def _step(self, step: Step, pc: int, registers: list[Any], own: dict[int, Bits], phase: int) -> Event | None:
        """Take one local step. Returns an event instead where the step is not local."""
        args = tuple(map(registers.__getitem__, step.args))
        match step.kind:
            case "op":
                registers[step.results[0]] = compute(step.op, args)
            case "copy":
                registers[step.results[0]] = args[0]
            case "branch":
                if not isinstance(args[0], int):
                    return Event("stall", pc, args=args[:1])
                self._holds = args[0] != 0
            case "fill":
                registers[step.results[0]] = args * step.rows
            case "pick" | "put":
                if not isinstance(args[0], int):
                    return Event("stall", pc, args=args[:1])
                _select(step, registers, args)
            case "access":
                return self._access(step, pc, registers, own, args, phase)
            case "collective" if any(not isinstance(each, int) for each in args):
                return Event("stall", pc, args=args)
            case _:
                return Event(step.kind, pc, step.op, args=args)
        return None

    def _access(
        self, step: Step, pc: int, registers: list[Any], own: dict[int, Bits], args: tuple[Bits, ...], phase: int
    ) -> Event | None:
        """Access a word that no other invocation accesses. Returns an event where others may access it."""
        address = registers[step.address] if step.address >= 0 else 0
        if not isinstance(address, int):
            return Event("stall", pc, args=(address,))
        place = self._words.place(step.access, step.unit, address, self.workgroup)
        results: tuple[Bits, ...]
        if not place.happens:
            results = (0,) * len(step.results)
        elif self._words.fixed[step.access]:
            results = (halved(self._words.initial[place.word], place.half),)
        else:
            event = Event("access", pc, step.op, place.word, args, place.half)
            if self._accesses.note(event, self.unit, phase):
                return event
            old = own.get(place.word, self._words.initial[place.word])
            if step.op not in ("load", "store"):
                known = (old, *args)
                if any(not isinstance(each, int) for each in known):
                    return Event("stall", pc, args=known)
            own[place.word], results = apply(event, old)
        for register, value in zip(step.results, results, strict=False):
            registers[register] = value
        return None


def _select(step: Step, registers: list[Any], args: tuple[Bits, ...]) -> None:
    """Take a pick or put; its index is decided."""
    index = args[0]
    assert isinstance(index, int)
    at = min(index, (step.rows or len(step.block)) - 1)
    if step.rows:
        table = registers[step.block[0]]
        if step.kind == "pick":
            registers[step.results[0]] = table[at]
        else:
            registers[step.block[0]] = (*table[:at], args[1], *table[at + 1 :])
    elif step.kind == "pick":
        registers[step.results[0]] = registers[step.block[at]]
    else:
        registers[step.block[at]] = args[1]


# ---- values ------------------------------------------------------------------------------------------

_RESULTS: dict[tuple[str, tuple[int, ...]], int] = {}
_EXPRESSIONS = WeakValueDictionary[tuple[str, tuple[Any, ...]], Expression]()


def compute(op: str, args: tuple[Any, ...]) -> Any:
    """Return the bits of a scalar operation's result, or an expression where an operand is not decided."""
    known = _RESULTS.get((op, args))
    if known is not None:
        return known
    if any(not isinstance(each, int) or isinstance(each, bool) for each in args):
        return expression(op, args)
    row = OPS[op]
    with np.errstate(all="ignore"):
        value = row.fn(*(from_bits(kind, bits) for kind, bits in zip(row.args, args, strict=True)))
    if len(_RESULTS) > 1 << 18:
        _RESULTS.clear()
    bits = _RESULTS[op, args] = to_bits(row.result, value)
    return bits


def expression(op: str, args: tuple[Any, ...]) -> Expression:
    """Return the expression of an operation on these values."""
    found = _EXPRESSIONS.get((op, args))
    if found is None:
        found = _EXPRESSIONS[op, args] = Expression(op, args)
    return found


def substitute(value: Any, known: dict[Any, Any]) -> Any:
    """Return a value with what is decided in place of what was pending. `known`: what is decided; results are added."""
    return bottom_up(value, known, _parts, _substituted)


def _parts(value: Any) -> list[Any]:
    """Return the parts of an expression or a table that are not decided."""
    match value:
        case int() | Pending():
            return []
        case Expression(args=args):
            return [each for each in args if not isinstance(each, int)]
        case _:
            return [each for each in value if not isinstance(each, int)]


def _substituted(value: Any, parts: Sequence[Any]) -> Any:
    """Return a value with these parts in place of those that were not decided."""
    left = iter(parts)
    match value:
        case int() | Pending():
            return value
        case Expression(op=op, args=args):
            return compute(op, tuple(each if isinstance(each, int) else next(left) for each in args))
        case _:
            return tuple(each if isinstance(each, int) else next(left) for each in value)


def depends(value: Any, pc: int) -> bool:
    """Whether a value depends on the access at step `pc`, which waits."""
    return bottom_up(value, {}, _parts, lambda each, parts: any(parts) or (isinstance(each, Pending) and each.pc == pc))


def halved(bits: Any, half: int) -> Any:
    """Return one half of a word, or the word where `half` is -1."""
    return bits if half < 0 else compute("and_u32", (compute("shr_u32", (bits, 16 * half)), 0xFFFF))


def apply(event: Event, old: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return what a word holds after an access, and the results of the access."""
    op: str = event.op
    args: tuple[Any, ...] = event.args
    if event.half >= 0:
        if op == "load":
            return old, (halved(old, event.half),)
        shift = 16 * event.half
        other = compute("and_u32", (old, 0xFFFF0000 >> shift))
        return compute("or_u32", (other, compute("shl_u32", (compute("and_u32", (args[0], 0xFFFF)), shift)))), ()
    match op:
        case "load":
            return old, (old,)
        case "store":
            return args[0], (old,)
        case "exchange":
            return args[0], (old,)
        case "compare":
            same = old == args[0]
            return (args[1] if same else old), (old, int(same))
        case _:
            return compute(op, (old, args[0])), (old,)
