"""A WGSL text whose loops end as on a driver that limits them.

Mesa's software adapter leaves a loop after 65,535 turns of a subgroup. It counts all loops of an invocation together,
with the turn in which a loop ends; every loop makes at least one turn. Loops that it unrolls make none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ...sim.wgsl import typed
from ...sim.wgsl.text_edits import Edits

NEVER = (1 << 31) - 1  # a limit that no loop reaches: for a control, in which only the text changes
_MOST_UNROLLED = 3  # loops of which every subset is tried; of more, all or none
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "!="))

_DECLARATIONS = """
var<private> bankshot_turns: i32 = {limit};
fn bankshot_turn(first: bool) -> bool {{
    bankshot_turns = subgroupMin(bankshot_turns);
    if !first && bankshot_turns <= 0 {{ return false; }}
    bankshot_turns -= 1;
    return true;
}}
"""
_OF_LOOP = """\
var<private> bankshot_first_{n}: bool;
fn bankshot_turn_{n}() -> bool {{
    let first = bankshot_first_{n};
    bankshot_first_{n} = false;
    return bankshot_turn(first);
}}
"""


def limited(pipeline: typed.Pipeline, limit: int) -> Iterator[str]:
    """Yield texts with this limit that differ in the loops that count: the driver may unroll those with constant
    conditions. The text is not uniform, so that it has to be checked without."""
    loops = _loops(pipeline.entry)
    unrolled = [loop for loop in loops if _is_constant(loop)]
    counts = range(len(unrolled) + 1) if len(unrolled) <= _MOST_UNROLLED else (0, len(unrolled))
    for count in counts:
        for left_out in combinations(range(len(unrolled)), count):
            skipped = {id(unrolled[n]) for n in left_out}
            counted = [loop for loop in loops if id(loop) not in skipped]
            if counted:
                yield _limit(pipeline.module.source.text, counted, limit)


def _loops(entry: typed.Function) -> list[typed.Loop]:
    bodies = [function.body for function in typed.reached(entry) if function.body is not None]
    return [stmt for body in bodies for stmt in typed.statements(body) if isinstance(stmt, typed.Loop)]


def _is_constant(loop: typed.Loop) -> bool:
    """Whether a loop compares with a constant, so that a compiler may know how often it runs."""
    match loop.condition:
        case typed.BuiltinCall(builtin=builtin, args=args) if builtin.name in _COMPARISONS:
            return any(isinstance(arg, typed.Const) for arg in args)
        case _:
            return False


def _limit(text: str, loops: list[typed.Loop], limit: int) -> str:
    edits = Edits()
    for n, loop in enumerate(loops):
        edits.before(loop.span, f"bankshot_first_{n} = true; ")
        if loop.condition is None:
            edits.at(loop.body.span.start + 1, f" if !bankshot_turn_{n}() {{ break; }}")
        else:
            edits.around(loop.condition.span, f"bankshot_turn_{n}() && (", ")")
    functions = "".join(_OF_LOOP.format(n=n) for n in range(len(loops)))
    return f"enable subgroups; {edits.apply(text)}\n{_DECLARATIONS.format(limit=limit)}{functions}"
