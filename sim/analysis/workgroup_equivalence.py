"""When two workgroups behave alike: the values that must be equal, and the addresses that may move.

A *pure* value is computed from constants, inputs and memory that the dispatch does not write, so that it does not
depend on the position in the program. All other values that decide something are brought into the linear form

    a part that is the same in every workgroup + the sum of coefficient * atom     (modulo 2^32)

where atoms are pure values that depend on workgroup_id. A value without such a form makes its atoms *exact*.

Two workgroups do the same, lane by lane and step by step, if every exact value is equal in each lane, each atom differs
by the same distance in all lanes, and no comparison of moving numbers changes its result. Then all branches go the same
way, the same lanes are active, and every address moves by the sum of coefficient * distance. If these moves are whole
lines of memory, and stay in bounds, every counter is equal. `bankshot.sim.launch.workgroup_classes` finds the
workgroups for which this holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum

from ..fast_dataclass import entity, frozen
from ..ir import ir
from ..ir.bottom_up import bottom_up
from ..ir.ir import Block, Slot, Value
from ..ir.lowered import Lowered
from ..wgsl.typed import Variable
from .uses import base

Form = dict[Value, int]  # atom -> coefficient, never 0; empty: the same in every workgroup
Axes = frozenset[int]  # the components of workgroup_id that a pure value depends on

_AXES = {"group_x": frozenset((0,)), "group_y": frozenset((1,)), "group_z": frozenset((2,))}
_NO_AXES: Axes = frozenset()
_WORD = 0xFFFFFFFF
_SAME_BITS = ("convert_i32_u32", "convert_u32_i32")  # a bitcast is no operation
_LEAST = {"lt": 1, "le": 0, "gt": 1, "ge": 0}  # by how much the larger side is larger, at least
_CONNECTIVES = frozenset(("and_bool", "or_bool", "lnot_bool"))


class _Nonlinear(Enum):
    """The value has no linear form."""

    NONLINEAR = 1


class Unproven(Exception):
    """Workgroups cannot be proved to behave alike. The message is the reason, for people."""


@frozen
class Moving:
    """An access, and the linear form in which its addresses move with the workgroup."""

    item: ir.Memory
    form: Form


@frozen
class Comparison:
    """A comparison whose sides may move: `value` is `one` < `other` (`least` 1) or <= (0). Workgroups agree in it if
    both sides move so little that its result never changes."""

    value: Value
    one: Value
    other: Value
    least: int
    signed: bool
    forms: tuple[Form, Form]


@entity
class Equivalence:
    """What workgroups must have in common.

    `exact`: values that must be equal in each lane. `accesses`: every access to memory and every checked index, in
    program order. `unknown`: factors that were not among the given numbers; with them, more values would have a form.
    """

    exact: list[Value]
    accesses: list[Moving]
    comparisons: list[Comparison]
    unknown: list[Value]
    axes: dict[Value, Axes]

    @property
    def atoms(self) -> list[Value]:
        """The atoms that addresses and comparisons move with."""
        forms = [access.form for access in self.accesses] + [form for each in self.comparisons for form in each.forms]
        return list(dict.fromkeys(atom for form in forms for atom in form))


def find_equivalence(lowered: Lowered, numbers: Mapping[Value, int | None]) -> Equivalence:
    """Analyse a program. Raises `Unproven` where data decides.

    `numbers`: the pure values that are the same in every lane of every workgroup (None: known not to be)."""
    return _Analysis(lowered, numbers).run()


class _Facts:
    """The sources of values."""

    def __init__(self, lowered: Lowered) -> None:
        self.makers: dict[Value, ir.Item] = {}
        self.sets: dict[Slot, list[Value]] = {}
        self.puts: dict[Block, list[ir.Put]] = {}
        self.written: set[Variable] = set()
        self.stored: dict[Variable, list[Value]] = {}
        for item in ir.items_of(lowered.body):
            self._note(item, lowered)

    def _note(self, item: ir.Item, lowered: Lowered) -> None:
        match item:
            case ir.Load(results=results) | ir.Collective(results=results) | ir.Atomic(results=results):
                self.makers.update(dict.fromkeys(results, item))
            case ir.Set(slot=slot, value=value):
                self.sets.setdefault(slot, []).append(value)
            case ir.Put(block=block):
                self.puts.setdefault(block, []).append(item)
            case _:
                pass
        if isinstance(item, (ir.Store, ir.Atomic)):
            variable = lowered.accesses[item.access].variable
            self.written.add(variable)
            self.stored.setdefault(variable, []).extend(item.values if isinstance(item, ir.Store) else item.args)


@entity
class _Analysis:
    """Walks the program until it refutes no more assumptions. A form of None is not known yet."""

    lowered: Lowered
    numbers: Mapping[Value, int | None]
    exact: dict[Value, None] = field(default_factory=dict[Value, None])
    unknown: dict[Value, None] = field(default_factory=dict[Value, None])
    changed: bool = False

    def __post_init__(self) -> None:
        self.facts = _Facts(self.lowered)
        self._axes: dict[Value, Axes | None] = {}
        self._forms: dict[Value, Form | None] = {}
        self._slots: dict[Slot, Form | None] = {}  # of the variables that decide something
        self._formless: set[Slot] = set()  # variables whose values have different forms
        self._contents: dict[Variable, None] = {}  # workgroup memory that decides something
        self._comparisons: dict[Value, Comparison] = {}

    def run(self) -> Equivalence:
        while True:
            self.changed = False
            self._forms.clear()
            self._comparisons.clear()
            accesses = [moving for item in ir.items_of(self.lowered.body) if (moving := self._item(item)) is not None]
            self._follow_memory()
            if not self.changed:
                break
        axes = {value: axes for value, axes in self._axes.items() if axes is not None}
        return Equivalence(list(self.exact), accesses, list(self._comparisons.values()), list(self.unknown), axes)

    def _follow_memory(self) -> None:
        """Follow what is written to the variables and workgroup memory that decide something."""
        try:
            for slot in list(self._slots):
                self._variable(slot)
            for variable in list(self._contents):
                for value in self.facts.stored.get(variable, []):
                    self.pin(value)
        except Unproven as reason:
            raise Unproven(f"a branch or an address depends on {reason}") from None

    def _item(self, item: ir.Item) -> Moving | None:
        """Require of what decides something that it is the same, or moves."""
        try:
            match item:
                case ir.If(condition=condition):
                    self.pin(condition)
                case ir.Loop(condition=condition, break_if=break_if):
                    for each in (condition, break_if):
                        if each is not None:
                            self.pin(each)
                case ir.Load() | ir.Store() | ir.Atomic() | ir.Check():
                    return self._access(item)
                case _:
                    pass
        except Unproven as reason:
            raise Unproven(f"{self._name(item)} depends on {reason}") from None
        return None

    def _name(self, item: ir.Item) -> str:
        span, what = self.lowered.spans.get(id(item)), "a loop" if isinstance(item, ir.Loop) else "a branch"
        if isinstance(item, ir.Memory):
            site = self.lowered.sites.rows[item.site]
            span, what = site.span, f"the address of the {site.kind} of {site.variable}"
        return what if span is None else f"{what} in line {span.line}"

    def _access(self, item: ir.Memory) -> Moving:
        if item.address is None:
            return Moving(item, {})
        if self.lowered.accesses[item.access].space == "workgroup":
            self.pin(item.address)
            return Moving(item, {})
        return Moving(item, self.form(item.address) or {})

    # ---- pure values ----

    def axes(self, value: Value) -> Axes | None:
        """Return the components of workgroup_id that a pure value depends on; None if it is not pure."""
        return bottom_up(base(value), self._axes, self._sources, self._axes_of)

    def _sources(self, value: Value) -> list[Value]:
        """Return the values that a pure value is computed from."""
        if value.op != "result":
            return [base(argument) for argument in value.args]
        load = self._fixed_load(value)
        return [] if load is None or load.address is None else [base(load.address)]

    def _axes_of(self, value: Value, sources: Sequence[Axes | None]) -> Axes | None:
        match value.op:
            case "input":
                return _AXES.get(value.imm, _NO_AXES)
            case "get" | "pick":
                return None
            case "result" if self._fixed_load(value) is None:
                return None
            case _:
                return None if None in sources else _NO_AXES.union(*(axes for axes in sources if axes))

    def _fixed_load(self, result: Value) -> ir.Load | None:
        """Return the load of a value from memory that the dispatch does not write; None if it is from elsewhere."""
        item = self.facts.makers[result]
        if not isinstance(item, ir.Load):
            return None
        access = self.lowered.accesses[item.access]
        return None if access.space == "workgroup" or access.variable in self.facts.written else item

    # ---- forms ----

    def form(self, value: Value) -> Form | None:
        return bottom_up(base(value), self._forms, self._formed, lambda each, _: self._find_form(each))

    def _formed(self, value: Value) -> list[Value]:
        """Return the operands whose forms `_find_form` needs: found first, as a chain of them may be long."""
        axes = self.axes(value)
        if value in self.exact or value.op in ("get", "pick", "result") or (axes is not None and len(axes) <= 1):
            return []
        operands = [base(argument) for argument in value.args]
        if value.op in _SAME_BITS or _is_linear(value):
            return operands
        return [each for each in operands if self.axes(each) is None] if axes is None else []

    def _find_form(self, value: Value) -> Form | None:
        if value in self.exact:
            return {}
        axes = self.axes(value)
        if axes is not None and len(axes) <= 1:
            return {value: 1} if axes else {}
        match value.op:
            case "get":
                return self._form_of_slot(value.imm)
            case "pick":
                return self._form_of_pick(value.imm)
            case "result":
                return {value: 1} if axes else self._form_of_result(self.facts.makers[value])
            case _:
                pass
        linear = self._linear(value)
        if not isinstance(linear, _Nonlinear):
            return linear
        if axes is not None:
            return {value: 1}
        if not self._is_compared(value):
            for argument in value.args:
                self.pin(argument)
        return {}

    def _is_compared(self, value: Value) -> bool:
        """Whether a value is an integer comparison. Its margin is measured if its sides move."""
        stem, _, kind = value.op.rpartition("_")
        if stem not in _LEAST or kind not in ("i32", "u32"):
            return False
        one, other = value.args if stem in ("lt", "le") else value.args[::-1]
        forms = self.form(one) or {}, self.form(other) or {}
        if any(forms):
            self._comparisons[value] = Comparison(value, one, other, _LEAST[stem], kind == "i32", forms)
        return True

    def _linear(self, value: Value) -> Form | _Nonlinear | None:
        """Return the form of a sum, difference or multiple of forms; `_NONLINEAR` of anything else."""
        if value.op in _SAME_BITS:
            return self.form(*value.args)
        if not _is_linear(value):
            return _NONLINEAR
        forms = [form for argument in value.args if (form := self.form(argument)) is not None]
        if len(forms) < len(value.args):
            return None
        return _LINEAR[value.op.rpartition("_")[0]](self, value, *forms)

    def number(self, value: Value) -> int | None:
        """Return a pure value that is one known number in every lane of every workgroup, else None."""
        value = base(value)
        if value.op == "const":
            return value.imm
        if self.axes(value) != _NO_AXES:
            return None
        if value not in self.numbers:
            self.unknown[value] = None
        return self.numbers.get(value)

    # ---- values that are not pure ----

    def pin(self, value: Value) -> None:
        """Require that workgroups have the same value in each lane."""
        waiting, seen = [base(value)], set[Value]()
        while waiting:
            value = waiting.pop()
            axes = self.axes(value)
            if axes is None:
                self._require(self.form(value) or {})
            elif len(axes) > 1 and value.op in _CONNECTIVES:
                waiting += [each for each in map(base, value.args[::-1]) if each not in seen]
                seen.update(waiting)
            elif axes:
                self._require({value: 1})

    def _require(self, exact: Form) -> None:
        """Require that workgroups have the same atoms of a form."""
        for atom in exact:
            if atom not in self.exact:
                self.exact[atom] = None
                self._forms.clear()
                self.changed = True

    def _form_of_slot(self, slot: Slot) -> Form | None:
        if slot not in self._slots:
            self._slots[slot] = None
            self.changed = True
        return {} if slot in self._formless else self._slots[slot]

    def _form_of_pick(self, pick: ir.Pick) -> Form:
        """Return the form of an element of an array that is indexed at run time: nothing in it moves."""
        self.pin(pick.index)
        for slot in pick.block.slots:
            self._form_of_slot(slot)
            self._give_up(slot)
        return {}

    def _variable(self, slot: Slot) -> None:
        """Require that all values written to a variable have one form, or are the same."""
        values = list(self.facts.sets.get(slot, []))
        for put in self.facts.puts.get(slot.block, []) if slot.block else []:
            self.pin(put.index)
            values.append(put.value)
        for value in values:
            if slot in self._formless:
                self.pin(value)
                continue
            form, known = self.form(value), self._slots[slot]
            if known is not None and not self.exact.keys().isdisjoint(known):
                known = {atom: factor for atom, factor in known.items() if atom not in self.exact}
                self.changed = True
            if known is None:
                known = form
                self.changed |= form is not None
            elif form is not None and form != known:
                self._give_up(slot)
            self._slots[slot] = known

    def _give_up(self, slot: Slot) -> None:
        if slot not in self._formless:
            self._formless.add(slot)
            self.changed = True

    def _form_of_result(self, item: ir.Item) -> Form:
        """Return the form of the result of an effect, which is the same if all its operands are."""
        if isinstance(item, ir.Collective):
            for argument in item.args:
                self.pin(argument)
            return {}
        assert isinstance(item, (ir.Load, ir.Atomic))
        access = self.lowered.accesses[item.access]
        if access.space == "workgroup":
            if access.variable not in self._contents:
                self._contents[access.variable] = None
                self.changed = True
        elif access.variable in self.facts.written:
            raise Unproven(f"what the dispatch stores to {access.variable.name}")
        if item.address is not None:
            self.pin(item.address)
        return {}


# ---- linear operations ----------------------------------------------------------------------------------

_NONLINEAR = _Nonlinear.NONLINEAR


def _is_linear(value: Value) -> bool:
    stem, _, kind = value.op.rpartition("_")
    return kind in ("i32", "u32") and stem in _LINEAR


def _sum(analysis: _Analysis, value: Value, one: Form, other: Form) -> Form:
    return _plus(one, other, 1)


def _difference(analysis: _Analysis, value: Value, one: Form, other: Form) -> Form:
    return _plus(one, other, -1)


def _negative(analysis: _Analysis, value: Value, one: Form) -> Form:
    return _plus({}, one, -1)


def _product(analysis: _Analysis, value: Value, one: Form, other: Form) -> Form | _Nonlinear:
    if not one and not other:
        return {}
    if one and other:
        return _NONLINEAR
    factor = analysis.number(value.args[0] if other else value.args[1])
    return _NONLINEAR if factor is None else _plus({}, one or other, factor)


def _shifted(analysis: _Analysis, value: Value, one: Form, amount: Form) -> Form | _Nonlinear:
    if not one and not amount:
        return {}
    count = None if amount else analysis.number(value.args[1])
    return _NONLINEAR if count is None else _plus({}, one, 1 << (count & 31))


def _masked(analysis: _Analysis, value: Value, one: Form, other: Form) -> Form | _Nonlinear:
    """Low bits of a sum do not change if it moves by multiples of what they count to."""
    if not one and not other:
        return {}
    mask = None if other else analysis.number(value.args[1])
    low = mask is not None and mask & (mask + 1) == 0 and all(factor & mask == 0 for factor in one.values())
    return {} if low else _NONLINEAR


def _plus(one: Form, other: Form, factor: int) -> Form:
    """one + factor * other."""
    total = dict(one)
    for atom, each in other.items():
        total[atom] = (total.get(atom, 0) + factor * each) & _WORD
    return {atom: each for atom, each in total.items() if each}


_LINEAR: dict[str, Callable[..., Form | _Nonlinear]] = {
    "add": _sum,
    "sub": _difference,
    "neg": _negative,
    "mul": _product,
    "shl": _shifted,
    "and": _masked,
}
