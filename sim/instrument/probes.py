"""The probes of accesses to memory, one row each.

A probe is an instruction of the machine, of the same name, that codegen puts before an access. Its row says which
accesses have it; `codegen.probe_code` encodes it, and `machine.probes` and `machine.shadow` carry it out. A program
without probes runs without their cost.

The other probes are items of the ir: `Count` (lanes), `Inspect` (nan), `Note` (traces) and `Margin`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import Enum, auto

from ..fast_dataclass import frozen
from ..ir import ir
from ..ir.access import Access
from ..wgsl.typed import Variable

_NOT_UPDATES = frozenset(
    ("load", "store", "exchange", "compare")
)  # atomic operations that do not commute with their like
_SHARED = ("workgroup", "storage", "texture")  # memory that several invocations can access


class DestField(Enum):
    """What the field DEST of a probe's instruction holds."""

    PATTERN = auto()  # 1 if the machine has learnt the pattern of the addresses
    HALVES = auto()  # 1 if some access of the program writes units of 2 bytes
    WRITES = auto()  # 1 if the access writes
    VALUE = auto()  # the register of the unit that is stored
    OPERAND = auto()  # the register of the last operand of an atomic operation


@frozen
class Facts:
    """What decides which probes a program has: their `names` as requested, and the variables that it writes."""

    names: frozenset[str]
    written: frozenset[Variable]


@frozen
class Probe:
    """A probe of each access of the kinds `events` for which `applies` holds.

    `dest`: what the field DEST of its instruction holds. `per_unit`: one for each unit of an access. `merges`: one for
    several accesses that a device merges. `watches_races`: its table is that of race probes. `has_row`: it has a row in
    a table. `counts`: for which operations among them."""

    name: str
    events: tuple[type[ir.Memory], ...]
    applies: Callable[[Facts, Access], bool]
    dest: DestField = DestField.PATTERN
    per_unit: bool = False
    merges: bool = False
    watches_races: bool = False
    has_row: bool = True
    counts: Callable[[Facts, ir.Memory], bool] = lambda facts, item: True


# ---- which accesses ----------------------------------------------------------------------------------


def _is_indexed(facts: Facts, access: Access) -> bool:
    return access.stride > 0


def _is_workgroup(facts: Facts, access: Access) -> bool:
    return access.space == "workgroup"


def _is_storage(facts: Facts, access: Access) -> bool:
    return access.space == "storage"


def _writes_storage(facts: Facts, access: Access) -> bool:
    return access.space == "storage" and access.writes


def _loads_what_is_stored(facts: Facts, access: Access) -> bool:
    return access.space == "storage" and access.variable in facts.written


def _may_race(facts: Facts, access: Access) -> bool:
    """Whether others can access the memory, and something is written to it; or it may be read before it is written."""
    names, own = facts.names, access.space == "workgroup"
    requested = bool(names & {"races", "order"}) or ("across" in names and not own)
    shared = access.memory in _SHARED and access.variable in facts.written
    return (shared and requested) or (own and "uninit" in names)


def _may_race_unordered(facts: Facts, access: Access) -> bool:
    """Whether an access may race, and order is not requested (see `watch_order`)."""
    return "order" not in facts.names and _may_race(facts, access)


def _is_ordered(facts: Facts, access: Access) -> bool:
    return "order" in facts.names and _may_race(facts, access)


def _is_unordered(facts: Facts, access: Access) -> bool:
    return bool(facts.names & {"atomics", "commuting"}) and access.variable in facts.written


def _counts_for_order(facts: Facts, item: ir.Memory) -> bool:
    return "plain" not in facts.names or not isinstance(item, ir.Atomic)


def _counts_as_load(facts: Facts, item: ir.Memory) -> bool:
    """Whether shadow memory keeps an atomic operation as a load. With `commuting`, updates are kept so, of which it has
    two for each word, and everything else as a store, so that an update hides no earlier one."""
    assert isinstance(item, ir.Atomic)
    return item.op not in _NOT_UPDATES if "commuting" in facts.names else item.op == "load"


def _counts_as_store(facts: Facts, item: ir.Memory) -> bool:
    return not _counts_as_load(facts, item)


def _if_requested(name: str, applies: Callable[[Facts, Access], bool]) -> Callable[[Facts, Access], bool]:
    return lambda facts, access: name in facts.names and applies(facts, access)


_ALL = (ir.Load, ir.Store, ir.Atomic, ir.Check)
_EFFECTS = (ir.Load, ir.Store, ir.Atomic)

# In the order in which they come before an access.
PROBES = (
    Probe("bounds", _ALL, _if_requested("bounds", _is_indexed)),
    Probe("reach", _ALL, _if_requested("reach", _is_indexed)),
    Probe("banks", _ALL, _if_requested("banks", _is_workgroup), merges=True),
    Probe("banks", (ir.Load,), _if_requested("cached", _is_storage), merges=True),  # of the cache's data
    Probe("sectors", _ALL, _if_requested("sectors", _is_storage), merges=True),
    Probe("touched", _ALL, _if_requested("touched", _is_storage)),
    Probe("sampled", _ALL, _if_requested("sampled", _is_storage)),
    Probe("cached", (ir.Load,), _if_requested("cached", _is_storage), merges=True),
    Probe("writers", _ALL, _if_requested("writers", _writes_storage)),
    Probe("meets", _ALL, _if_requested("meets", _writes_storage), DestField.HALVES),
    Probe("loaded", (ir.Load,), _if_requested("loaded", _loads_what_is_stored), has_row=False),
    Probe("watch_order", _EFFECTS, _is_ordered, DestField.WRITES, watches_races=True, counts=_counts_for_order),
    Probe("watch_read", (ir.Load,), _may_race_unordered, watches_races=True),
    Probe("watch_write", (ir.Store,), _may_race_unordered, DestField.VALUE, per_unit=True, watches_races=True),
    Probe("watch_read", (ir.Atomic,), _is_unordered, watches_races=True, counts=_counts_as_load),
    Probe("watch_write", (ir.Atomic,), _is_unordered, DestField.OPERAND, watches_races=True, counts=_counts_as_store),
)


class ProbePlan:
    """Decides which probes the accesses of one program have.

    `merged`: by identity of an access, how many words it charges for (0: none), see `analysis.adjacent_accesses`. A
    merged access is added to `accesses`."""

    def __init__(self, names: frozenset[str], accesses: list[Access], merged: Mapping[int, int]) -> None:
        self._facts = Facts(names, frozenset(access.variable for access in accesses if access.writes))
        self._accesses = accesses
        self._merged = merged
        self._rows: dict[tuple[type[ir.Memory], int, str], list[Probe]] = {}
        self.writes_halves = any(access.unit == 2 for access in accesses if access.writes)

    def of(self, item: ir.Memory, *, per_unit: bool = False) -> Iterator[tuple[Probe, int]]:
        """The probes of an access, or (`per_unit`) those of each unit of it, with the number of the access that each
        charges for."""
        for probe in self._applying(item):
            if probe.per_unit != per_unit:
                continue
            access = self._accesses[item.access]
            words = self._merged.get(id(item), access.units) if probe.merges else access.units
            if words:
                yield probe, item.access if words == access.units else self._of_words(access, words)

    def _applying(self, item: ir.Memory) -> list[Probe]:
        key = type(item), item.access, item.op if isinstance(item, ir.Atomic) else ""
        if key not in self._rows:
            access, facts = self._accesses[item.access], self._facts
            probes = [p for p in PROBES if isinstance(item, p.events) and p.applies(facts, access)]
            self._rows[key] = [p for p in probes if p.counts(facts, item)]
        return self._rows[key]

    def _of_words(self, access: Access, words: int) -> int:
        """The number of an access of several words that begins where one of one word does."""
        wide = replace(access, units=words)
        if wide not in self._accesses:
            self._accesses.append(wide)
        return self._accesses.index(wide)
