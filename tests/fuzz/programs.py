"""Whole programs: `programs()` is a hypothesis strategy of compute shaders that are valid, end, and have no race.

Invocations write their own element of `out`, their own places in workgroup memory between two barriers, and atomics
whose order cannot matter. Barriers and subgroup operations stand where control flow is uniform.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any

from hypothesis import strategies as st

from bankshot.sim.wgsl import types as t

from .expressions import Choice
from .scopes import Root
from .statements import ATOMICS, Counters, Flow, Lines, Statements

SIZES = ((1,), (4,), (8,), (3,), (8, 2), (5, 3), (16, 1, 2), (2, 3, 4), (64,))
GRIDS = ((1, 1, 1), (2, 1, 1), (2, 2, 1), (1, 1, 3))
SUBGROUP_OPERATIONS = {
    kind: names.split()
    for kind, names in {
        t.U32: "Add Min Max And Or Xor Mul InclusiveAdd ExclusiveAdd InclusiveMul ExclusiveMul BroadcastFirst",
        t.I32: "Add Min Max And Or Xor Mul InclusiveAdd ExclusiveAdd InclusiveMul ExclusiveMul BroadcastFirst",
        t.F32: "Add Min Max Mul InclusiveAdd ExclusiveAdd BroadcastFirst",
    }.items()
}
_LARGEST_SUBGROUP = 8  # of the adapters at hand


@dataclass(frozen=True)
class Program:
    """`seed`: of the contents of its buffers. The options stand in the first line of its file."""

    text: str
    grid: tuple[int, int, int] = (1, 1, 1)
    seed: int = 0
    overrides: dict[str, int] = field(default_factory=dict)

    def file(self) -> str:
        options = {key: value for key, value in asdict(self).items() if key != "text"}
        return f"// {json.dumps(options)}\n{self.text}"

    @classmethod
    def read(cls, file: str) -> Program:
        """Of the text of a file; see `file`."""
        first, _, text = file.partition("\n")
        options = json.loads(first.removeprefix("//"))
        return cls(text, **options | {"grid": tuple(options["grid"])})


@st.composite
def programs(draw: Callable[[Any], Any]) -> Program:
    """Programs, as hypothesis draws and shrinks them."""
    return _Maker(Choice(draw)).program()


@dataclass
class Shared:
    """A workgroup variable: each invocation has its own element, or all read all, in turns."""

    own: Root
    all: Root
    counters: Counters | None = None
    reading: bool = False

    @property
    def root(self) -> Root | None:
        if self.reading:
            return self.all
        return None if self.counters else self.own


class _Maker(Statements):
    """Makes one program, from the top of the text to the end."""

    def __init__(self, choice: Choice) -> None:
        super().__init__(choice, half=choice.chance(25), free=choice.chance(35))
        self.size = choice.of(SIZES)
        self.lanes = prod(self.size)
        self.shared: list[Shared] = []
        self.uniform: str | None = None
        self.head: Lines = ["enable f16;"] if self.half else []
        # Lavapipe lets no subgroup go on into the next row of a workgroup, which WGSL leaves open.
        self.subgroups = self.size[0] % _LARGEST_SUBGROUP == 0 and choice.chance(20)

    def program(self) -> Program:
        choice = self.choice
        grid = choice.of(GRIDS)
        if self.subgroups:
            self.head.append("enable subgroups;")
        public, private = self._constants(), []
        overrides = self._overrides(public)
        self._buffers(public)
        private = self._privates()
        functions = []
        for _ in range(choice.between(0, 2)):
            alone = choice.chance(50)
            functions += self.function(alone, public if alone else [*public, *private])
        main = self._main(public + private)
        return Program(indented([*self.head, *functions, *main]), grid, choice.below(1000), overrides)

    # ---- declarations ----

    def _struct(self, name: str, types: list[t.Type]) -> t.Struct:
        struct = t.layout(name, ((f"m{i}", type_, {}, None) for i, type_ in enumerate(types)))
        self.head += [f"struct {name} {{", *(f"{m.name}: {m.type}," for m in struct.members), "}"]
        return struct

    def _stored(self) -> t.Type:
        """A type that buffers and variables can hold."""
        type_ = self.type()
        return t.Array(type_, self.choice.between(1, 4)) if self.choice.chance(20) else type_

    def _constants(self) -> list[Root]:
        roots = []
        for _ in range(self.choice.below(3)):
            type_, name = self.type(), self.fresh("c")
            value = f"{type_}({self.literal(type_)})"
            self.head.append(f"const {name} = {value};")
            if isinstance(type_, t.Scalar):
                self.head.append(f"const_assert {name} == {value};")
            roots.append(Root(name, type_, constant=True))
        return roots

    def _overrides(self, roots: list[Root]) -> dict[str, int]:
        if not self.choice.chance(25):
            return {}
        self.head += ["override o1: u32 = 3u;", "@id(7) override o2: i32;"]
        roots += [Root("o1", t.U32, constant=True), Root("o2", t.I32, constant=True)]
        return {"7": self.choice.between(0, 9) - 4}

    def _buffers(self, roots: list[Root]) -> None:
        """What is given, and what comes out: an element of `out` for each invocation."""
        choice = self.choice
        given = self._struct("Given", [self.type() for _ in range(choice.between(1, 3))])
        nested = [self._struct("Inner", [self._stored(), self.type()])] if choice.chance(20) else []
        element = self._struct("Element", [*nested, *(self._stored() for _ in range(choice.between(1, 3)))])
        self.out = self._struct("Out", [*(self._stored() for _ in range(choice.between(1, 3))), *nested])
        kind = choice.of((t.U32, t.I32))
        self.head += [
            "@group(0) @binding(0) var<storage, read_write> out: array<Out>;",
            "@group(0) @binding(1) var<storage, read> src: array<Element>;",
            "@group(0) @binding(2) var<uniform> given: Given;",
            f"@group(0) @binding(3) var<storage, read_write> counts: array<atomic<{kind}>, {len(ATOMICS)}>;",
        ]
        self.counts = Counters("counts", kind)
        roots.append(Root("src", t.Array(element, None), owner="src", clamped=False))
        roots.append(Root("given", given, owner="given", clamped=False))

    def _privates(self) -> list[Root]:
        roots = []
        for _ in range(self.choice.below(3)):
            type_, name = self._stored(), self.fresh("g")
            start = f" = {self.literal(type_)}" if self.choice.chance(50) else ""
            self.head.append(f"var<private> {name}: {type_}{start};")
            roots.append(Root(name, type_, writable=True, space="private", owner=name))
        return roots

    def _workgroup(self) -> Lines:
        """Variables of a workgroup, and what gives them their first values."""
        start = []
        for _ in range(self.choice.below(3)):
            name, type_ = self.fresh("w"), self.type()
            self.head.append(f"var<workgroup> {name}: array<{type_}, {self.lanes}>;")
            start.append(f"{name}[i] = {self.value(type_, 1)};")
            own = Root(f"{name}[i]", type_, writable=True)
            self.shared.append(Shared(own, Root(name, t.Array(type_, self.lanes), owner=name, clamped=False)))
        if self.choice.chance(40):
            name, kind = self.fresh("a"), self.choice.of((t.U32, t.I32))
            self.head.append(f"var<workgroup> {name}: array<atomic<{kind}>, {len(ATOMICS)}>;")
            load = Root(f"atomicLoad(&{name}[#{len(ATOMICS)}])", kind, clamped=False)
            self.shared.append(Shared(load, load, Counters(name, kind)))
            start.append(f"if i == 0u {{ for (var k = 0u; k < {len(ATOMICS)}u; k++) {{")
            start += [f"atomicStore(&{name}[k], {kind}(k));", "} }", "workgroupBarrier();"]
        if self.choice.chance(30):
            self.uniform = self.fresh("w")
            self.head.append(f"var<workgroup> {self.uniform}: u32;")
        return start

    # ---- the entry point ----

    def roots(self) -> list[Root]:
        return [*super().roots(), *(root for each in self.shared if (root := each.root))]

    def _main(self, outside: list[Root]) -> Lines:
        sizes = ", ".join(map(str, self.size))
        self.scope.push()
        self.scope.add(
            *outside,
            Root("i", t.U32),
            Root("g", t.U32),
            *(Root(name, t.Vec(3, t.U32)) for name in ("at", "group", "groups", "id")),
        )
        start = self._workgroup()
        self.scope.add(Root("out[g]", self.out, writable=True, clamped=False))
        body = self._phases(2)
        last = [f"out[g].{m.name} = {self.value(m.type, 2)};" for m in self.out.members]
        self.scope.pop()
        return [
            f"@compute @workgroup_size({sizes})",
            "fn main(@builtin(local_invocation_index) i: u32, @builtin(local_invocation_id) at: vec3<u32>,",
            "@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,",
            "@builtin(global_invocation_id) id: vec3<u32>) {",
            f"let g = ((group.z * groups.y + group.y) * groups.x + group.x) * {self.lanes}u + i;",
            *start,
            *body,
            *last,
            "}",
        ]

    def _phases(self, depth: int) -> Lines:
        """Statements where control flow is uniform."""
        lines: Lines = []
        for _ in range(self.choice.between(1, 4)):
            match self.choice.below(7):
                case 4 if self.shared:
                    lines += self._barrier(self.choice.of(self.shared))
                case 5 if self.shared and depth > 0:
                    lines += self._uniform_loop(depth, self.choice.of(("2u", "(groups.x & 3u)", "(group.x + 1u)")))
                case 3 if self.subgroups:
                    lines += self._subgroup()
                case 6 if self.uniform:
                    lines += self._uniform_load(depth)
                case _:
                    self.counters = [self.counts, *(s.counters for s in self.shared if s.counters and not s.reading)]
                    lines += self.statement(2, Flow())
                    self.counters = []
        return lines

    def _barrier(self, *turned: Shared) -> Lines:
        for each in turned:
            each.reading = not each.reading
        return ["workgroupBarrier();"]

    def _uniform_load(self, depth: int) -> Lines:
        """A value of the first invocation for all of them, and a loop of so many turns."""
        name = self.fresh("s")
        lines = [f"if i == 0u {{ {self.uniform} = {self.value(t.U32, 2)}; }}"]
        lines.append(f"let {name} = workgroupUniformLoad(&{self.uniform});")
        self.scope.add(Root(name, t.U32))
        return [*lines, *self._uniform_loop(depth, f"({name} & 3u)")] if depth > 0 and self.shared else lines

    def _uniform_loop(self, depth: int, limit: str) -> Lines:
        """A loop with barriers, after which all shared variables are as they were."""
        k, before = self.fresh("k"), [each.reading for each in self.shared]
        self.scope.push()
        self.scope.add(Root(k, t.U32))
        body = [*self._barrier(*self.shared), *self._phases(depth - 1)]
        back = [each for each, was in zip(self.shared, before, strict=True) if each.reading != was]
        body += self._barrier(*back) if back else []
        self.scope.pop()
        return [f"for (var {k} = 0u; {k} < {limit}; {k}++) {{", *body, "}"]

    def _subgroup(self) -> Lines:
        name, kind = self.fresh("s"), self.choice.of((t.U32, t.I32, t.F32))
        type_ = t.Vec(self.choice.between(2, 4), kind) if self.choice.chance(30) else kind
        operation = self.choice.of(SUBGROUP_OPERATIONS[kind])
        line = f"let {name} = subgroup{operation}({self.moving(type_, 2)});"
        self.scope.add(Root(name, type_))
        return [line]


def indented(lines: Lines) -> str:
    """The text, indented by its braces."""
    depth, out = 0, []
    for line in lines:
        depth -= line.startswith("}")
        out.append("  " * depth + line)
        depth += line.count("{") - line.count("}") + line.startswith("}")
    return "\n".join(out) + "\n"
