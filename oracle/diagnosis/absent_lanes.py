"""A WGSL text in which shuffles return another value wherever they read a lane that is inactive or absent."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.text_edits import Edits

# The lane that each builtin reads, from its second argument.
_LANES: Mapping[str, str] = MappingProxyType(
    {
        "subgroupShuffle": "u32({0})",
        "subgroupBroadcast": "u32({0})",
        "subgroupShuffleUp": "bankshot_lane - ({0})",
        "subgroupShuffleDown": "bankshot_lane + ({0})",
        "subgroupShuffleXor": "bankshot_lane ^ ({0})",
    }
)
_OTHER = "1234"  # converts to each numeric type

_DECLARATIONS = """
var<private> bankshot_lane: u32;
fn bankshot_active(lane: u32) -> bool {
    let lanes = subgroupBallot(true);
    return lane < 128u && extractBits(lanes[(lane / 32u) % 4u], lane % 32u, 1u) == 1u;
}
"""


def with_other_lanes(pipeline: typed.Pipeline) -> str | None:
    """Return the text of a checked module where shuffles of an entry point read 1234 from lanes that are not active.

    The text is not uniform, so that it has to be checked without. None where there is no such shuffle.
    """
    text, edits, found = pipeline.module.source.text, Edits(), False
    for function in typed.reached(pipeline.entry):
        for part in typed.every_expression(function):
            if not isinstance(part, typed.BuiltinCall) or part.builtin.name not in _LANES:
                continue
            value, lane = part.args
            if any(isinstance(inner, typed.Call) for arg in (value, lane) for inner in typed.expressions(arg)):
                return None
            asked = _LANES[part.builtin.name].format(text[lane.span.start : lane.span.end])
            edits.around(part.span, f"select({_other(part.type)}, ", f", bankshot_active({asked}))")
            found = True
    body = pipeline.entry.body
    if not found or body is None:
        return None
    edits.at(body.span.start + 1, " bankshot_lane = subgroupExclusiveAdd(1u);")  # all lanes are active at the start
    return f"{edits.apply(text)}\n{_DECLARATIONS}"


def _other(type_: t.Type) -> str:
    return f"{type_}({_OTHER})"
