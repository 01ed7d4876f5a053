"""The figures that a device file can give: what each must be, and which must agree with each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from ..fast_dataclass import frozen
from ..models import DEFAULT_LIMITS
from ..models.device import CHOICES, POWERS_OF_TWO, WIDTHS

_MOST = 2**31 - 1
_LARGEST = 1e300
NONE = "none"  # TOML has no null


class Unfit(Exception):
    """A value is not of its kind."""


@frozen
class Kind:
    """`what` a value must be, in words; `read` returns it as `Device` has it, or raises `Unfit`."""

    what: str
    read: Callable[[object], Any]


def _is_integer(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_power(value: object, least: int, most: int) -> bool:
    return _is_integer(value, least, most) and not cast("int", value) & (cast("int", value) - 1)


def _kind(what: str, holds: Callable[[object], bool], read: Callable[[Any], Any] = lambda value: value) -> Kind:
    def checked(value: object) -> Any:
        if not holds(value):
            raise Unfit
        return read(value)

    return Kind(what, checked)


def integer(least: int, most: int = _MOST) -> Kind:
    return _kind(f"an integer, {least:,} to {most:,}", lambda value: _is_integer(value, least, most))


def _power_of_two(least: int, most: int) -> Kind:
    return _kind(f"a power of two, {least} to {most}", lambda value: _is_power(value, least, most))


def number(positive: bool) -> Kind:
    """A finite number above 0, or from 0 on."""

    def holds(value: object) -> bool:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return False
        return (value > 0 or (value == 0 and not positive)) and value <= _LARGEST

    return _kind("a number above 0" if positive else "a number, 0 or more", holds, float)


def _or_none(kind: Kind, meaning: str) -> Kind:
    return Kind(f'{kind.what}, or "{NONE}" where {meaning}', lambda value: None if value == NONE else kind.read(value))


def text(most: int) -> Kind:
    """A text that a line of a message can show."""

    def holds(value: object) -> bool:
        return isinstance(value, str) and len(value) <= most and all(c.isprintable() for c in value)

    return _kind(f"a text of at most {most:,} characters, without control characters", holds)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 80 and value.isprintable() and "," not in value


def _lists(value: object, holds: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and all(map(holds, cast("list[object]", value)))


def _are_orders(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    orders = cast("dict[str, object]", value)
    widths = {str(width) for width in WIDTHS}
    return orders.keys() <= widths and all(_lists(o, lambda lane: _is_integer(lane, 0, 127)) for o in orders.values())


_SIZE = dict((name, (least, most)) for name, least, most in POWERS_OF_TWO)["subgroup_size"]
NAME = _kind("a name of 1 to 80 characters, without commas or control characters", _is_name)
BOOLEAN = _kind("true or false", lambda value: isinstance(value, bool))
LIMIT = integer(0, 2**53)
_ORDERS = _kind(
    "a table from bytes per lane to a list of lanes",
    _are_orders,
    lambda orders: {int(width): tuple(lanes) for width, lanes in orders.items()},
)
_SIZES = _kind(
    "a list of powers of two, {} to {}".format(*_SIZE),
    lambda value: bool(value) and _lists(value, lambda size: _is_power(size, *_SIZE)),
    tuple,
)
_UNCLAIMED = "no figure is claimed"

FIGURES: Mapping[str, Kind] = {
    **{name: _power_of_two(least, most) for name, least, most in POWERS_OF_TWO},
    **{
        name: _kind("one of " + ", ".join(f'"{each}"' for each in choices), choices.__contains__)
        for name, choices in CHOICES
    },
    "subgroup_sizes": _SIZES,
    "pair_merge": BOOLEAN,
    "lane_order": _ORDERS,
    "merge_adjacent": BOOLEAN,
    "loop_turns": _or_none(integer(1), "loops run until they end"),
    "workgroup_bytes_per_core": integer(1),
    "workgroup_bytes_max": integer(1),
    "workgroup_bytes_unit": integer(1),
    "workgroup_bytes_reserved": integer(0),
    "registers_per_core": integer(1),
    "register_unit": integer(1),
    "registers_per_lane_max": integer(1),
    "threads_per_core": integer(1),
    "subgroups_per_core": integer(1),
    "workgroups_per_core": integer(1),
    "cores": _or_none(integer(1), _UNCLAIMED),
    "peak_flops": _or_none(number(positive=True), _UNCLAIMED),
    "peak_bandwidth": _or_none(number(positive=True), _UNCLAIMED),
}
"""Every figure but `webgpu_limits`, which has a key for each limit."""


@frozen
class Rule:
    """Figures that must agree, and the sentence about those that do not."""

    figures: tuple[str, ...]
    holds: Callable[[Mapping[str, Any]], bool]
    broken: str


def _order_every_lane(facts: Mapping[str, Any]) -> bool:
    lanes = list(range(facts["subgroup_size"]))
    return all(sorted(order) == lanes for order in facts["lane_order"].values())


_STORAGE = "maxComputeWorkgroupStorageSize"

RULES = (
    Rule(
        ("subgroup_sizes", "subgroup_size"),
        lambda facts: facts["subgroup_size"] in facts["subgroup_sizes"],
        "`subgroup_sizes` must contain `subgroup_size`, which is {subgroup_size}",
    ),
    Rule(
        ("lane_order", "subgroup_size"),
        _order_every_lane,
        "`lane_order` must list each of the {subgroup_size} lanes of a subgroup once",
    ),
    Rule(
        ("threads_per_core", "subgroup_size"),
        lambda facts: facts["threads_per_core"] >= facts["subgroup_size"],
        "`threads_per_core` must be at least `subgroup_size`, which is {subgroup_size}",
    ),
    Rule(
        ("workgroup_bytes_max", "workgroup_bytes_per_core"),
        lambda facts: facts["workgroup_bytes_max"] <= facts["workgroup_bytes_per_core"],
        "`workgroup_bytes_max` must be at most `workgroup_bytes_per_core`, which is {workgroup_bytes_per_core}",
    ),
    Rule(
        ("workgroup_bytes_max", "webgpu_limits"),
        lambda facts: facts["workgroup_bytes_max"] >= facts["webgpu_limits"][_STORAGE],
        f"`workgroup_bytes_max` must be at least the limit {_STORAGE}",
    ),
    Rule(
        ("line_bytes", "sector_bytes"),
        lambda facts: facts["line_bytes"] % facts["sector_bytes"] == 0,
        "`line_bytes` must be a multiple of `sector_bytes`, which is {sector_bytes}",
    ),
)

LIMITS = tuple(DEFAULT_LIMITS)
MARKS = ("measured", "documented", "assumed")
