"""Which of several nested loops does not end, and who waits for what."""

from __future__ import annotations

from collections.abc import Iterator

from ..codegen.loops import awaited_variables, loop_ranges, written_from
from ..ir.access import UNITS_PER_ACCESS
from ..launch.launch import Launch
from ..launch.long_loops import Stopped, Unit
from ..machine import instruction as field
from ..machine import layout as at
from ..wgsl.diagnostics import Note
from ..wgsl.source import Span
from .memory_paths import path

_LONGER = 4  # times as long as before: a loop that lasts longer is the one that does not end


def endless_loop(launch: Launch, stopped: Stopped) -> tuple[int, int | None]:
    """Return the loop that does not end, and after how many of its iterations its state repeats, if that is known."""
    if stopped.units:
        return stopped.loop, None
    around = _around(loop_ranges(launch.program.code), stopped.loop)
    if stopped.turned is None:
        return _longest_running(launch, stopped, around), None
    turned = stopped.turned.tolist()
    loop = next((n for n in reversed(around) if n < at.MOST_LOOPS - 1 and turned[n]), stopped.loop)
    is_known = len(launch.program.loops) <= at.MOST_LOOPS or loop < at.MOST_LOOPS - 1
    return loop, turned[min(loop, at.MOST_LOOPS - 1)] if is_known else None


def _longest_running(launch: Launch, stopped: Stopped, around: list[int]) -> int:
    """Return the loop that does not end, of the one that ran last and those around it.

    A loop that has ended in earlier turns of the one around it, after about as many iterations as it has made now, is
    not to blame.
    """
    loop, left = stopped.loop, int(stopped.progress[at.BUDGET_LEFT])
    for outer in around:
        number = min(outer, at.MOST_LOOPS - 1)
        turns, turned = int(stopped.progress[at.TURNS + number]), int(stopped.progress[at.TURNED + number])
        before = launch.options.budget - turned
        if not turns or (turned - left) * turns > _LONGER * before:
            break
        loop = outer
    return loop


def _around(ranges: dict[int, range], loop: int) -> list[int]:
    """Return the loops around a loop, from the inside out."""
    own = ranges[loop]
    around = [n for n, each in ranges.items() if each.start <= own.start and own.stop < each.stop]
    return sorted(around, key=lambda n: len(ranges[n]))


# ---- who waits for what ------------------------------------------------------------------------------

_MOST_NOTES = 4


def waits(launch: Launch, stopped: Stopped) -> list[Note]:
    """Say which invocations wait for what, and whether others could still store there."""
    alike: dict[tuple[str, str, Span | None], list[Unit]] = {}
    for unit in stopped.units:
        if unit.loop is not None:
            alike.setdefault(_awaited(launch, unit, unit.loop), []).append(unit)
    notes = [_wait(launch, stopped, *what, units) for what, units in alike.items()][:_MOST_NOTES]
    return [*notes, *_at_barriers(launch, stopped)]


def not_begun(launch: Launch, stopped: Stopped) -> int:
    """Return how many workgroups come after those that run side by side."""
    return max(0, launch.count - stopped.workgroup - launch.program.workgroups_per_batch)


def _awaited(launch: Launch, unit: Unit, loop: int) -> tuple[str, str, Span | None]:
    """Return the variable that a unit waits for, its element in words, and where it reads that."""
    program = launch.program
    if unit.awaited is None or unit.awaited not in loop_ranges(program.code)[loop]:
        names = sorted(each.name for each in awaited_variables(program, loop))
        return ", ".join(names), " or ".join(names), None
    access = program.accesses[int(program.code[unit.awaited, field.ACCESS]) // UNITS_PER_ACCESS]
    element, _ = path(launch.type_of(access.variable), (access.offset + unit.address) * access.unit)
    return access.variable.name, f"{access.variable.name}{element}", program.instruction_spans[unit.awaited]


def _wait(launch: Launch, stopped: Stopped, names: str, element: str, span: Span | None, units: list[Unit]) -> Note:
    first, program = units[0], launch.program
    others = [each for each in stopped.units if each is not first]
    if any(variable.name == names and variable.space == "workgroup" for variable in program.types):
        others = [each for each in others if each.place == first.place]
    places = {each.pc for each in others}  # few: most units are at one of the same
    storing = {pc for pc in places if names in {variable.name for variable in written_from(program, pc)}}
    able = next((each for each in others if each.pc in storing), None)
    what = element or "a value that no invocation stores"
    who = _who(launch, first) + (f" and {len(units) - 1:,} more like it" if len(units) > 1 else "")
    does = "wait" if len(units) > 1 or len(first.lanes) > 1 else "waits"
    if able:
        end = f"{_who(launch, able)} could still store to {names}, but waits, too"
    elif (left := not_begun(launch, stopped)) and names in {each.name for each in written_from(program, 0)}:
        end = f"{left:,} workgroups that could store to {names} have not begun"
    else:
        end = f"all others that could store to {names} have ended"
    return Note(f"{who} {does} for {what}{' here' * (span is not None)}; {end}", span)


def _at_barriers(launch: Launch, stopped: Stopped) -> Iterator[Note]:
    waiting = [unit for unit in stopped.units if unit.loop is None]
    if waiting:
        count = sum(len(unit.lanes) for unit in waiting)
        spans = {launch.program.instruction_spans[unit.pc - 1] for unit in waiting}
        lines = sorted({span.line for span in spans if span is not None})
        where = f" in line {' and '.join(map(str, lines))}" if lines else ""
        yield Note(f"{count:,} invocation{'s wait' if count > 1 else ' waits'} at a barrier{where}")


def _who(launch: Launch, unit: Unit) -> str:
    first, last = unit.lanes[0], unit.lanes[-1]
    lanes = f"invocation {first}" if first == last else f"invocations {first} to {last}"
    return f"{lanes} of workgroup {launch.workgroup(unit.place)}"
