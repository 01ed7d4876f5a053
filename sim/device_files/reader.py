"""A device file as a `Device`.

name = "mine"         # by default the file's name
base = "nvidia"       # a shipped profile, whose figures hold where the file gives none
banks = 64            # any figure of `Device`
calibrated = true     # the costs were measured on this device; the default where there are costs

[sources]
banks = { measured = "counters of a profiler" }   # or documented, assumed

[measured]            # on what, and how
adapter = "…"

[costs]
load = { value = 1.5, spread = 0.1, source = "…", command = "…" }
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any

from ..models import Cost, Device, MeasuredCosts
from ..models.device import Source
from ..models.devices import ANYWHERE
from ..wgsl.diagnostics import did_you_mean
from .figures import BOOLEAN, FIGURES, LIMIT, LIMITS, MARKS, NAME, RULES, Kind, Unfit, number, text
from .toml_text import TomlText

_ABOUT = ("adapter", "driver", "date", "command")  # of [measured]
_TABLES = ("webgpu_limits", "sources", "measured", "costs")
_KNOWN = ("name", "base", "calibrated", *FIGURES, *_TABLES)
_TEXT = text(2_000)
_COST: Mapping[str, Kind] = {
    "value": number(positive=False),
    "spread": number(positive=False),
    "source": _TEXT,
    "command": _TEXT,
}


def profile_of(file: TomlText, shipped: Callable[[str], Device]) -> Device:
    """Return the profile of a device file. `shipped` looks up a base, or raises ValueError. Raises `WgslError`."""
    return _Reader(file, shipped).device()


class _Reader:
    def __init__(self, file: TomlText, shipped: Callable[[str], Device]) -> None:
        self.file = file
        self.shipped = shipped
        self.data = file.data
        self.path = file.source.name

    def device(self) -> Device:
        """Check every key and return the profile."""
        self.known(self.data, _KNOWN)
        base = self.base()
        facts: dict[str, Any] = {} if base is None else {f.name: getattr(base, f.name) for f in fields(Device)}
        sources: dict[str, Source] = {} if base is None else dict(base.sources)
        if base is None:
            facts |= {name: fact.value for name, fact in ANYWHERE.items()}
            sources |= {name: fact.source for name, fact in ANYWHERE.items()}
        given = self.figures()
        if "subgroup_size" in given:
            facts["lane_order"] = {}  # a lane order belongs to one subgroup size
        facts |= given
        facts["webgpu_limits"] = dict(facts["webgpu_limits"]) | self.limits()
        facts["name"] = self.value("name", NAME) if "name" in self.data else Path(self.path).stem
        facts["costs"] = self.costs(base)
        sources |= {name: Source("assumed", f"given in {self.path}") for name in self.data if name in FIGURES}
        sources |= self.sources()
        for name in ("name", "sources", "costs"):
            sources[name] = Source("documented", f"the device file {self.path}")
        self.check(facts)
        facts["sources"] = sources
        return Device(**facts)

    def base(self) -> Device | None:
        if "base" not in self.data:
            return None
        try:
            return self.shipped(self.value("base", NAME))
        except ValueError as error:
            raise self.file.error(str(error), "base") from None

    def figures(self) -> dict[str, Any]:
        return {name: self.value(name, kind) for name, kind in FIGURES.items() if name in self.data}

    def limits(self) -> dict[str, int]:
        table = self.table("webgpu_limits")
        self.known(table, LIMITS, "webgpu_limits")
        return {name: self.value(name, LIMIT, "webgpu_limits") for name in table}

    def sources(self) -> dict[str, Source]:
        """Read `[sources]`: a figure's mark, and where the figure comes from."""
        table = self.table("sources")
        self.known(table, (*FIGURES, "webgpu_limits"), "sources")
        found: dict[str, Source] = {}
        for name in table:
            marks = self.table("sources", name)
            self.known(marks, MARKS, "sources", name)
            if len(marks) != 1:
                what = f"the source of `{name}` must be one of {', '.join(MARKS)}"
                raise self.file.error(what, "sources", name, hint=f'write {name} = {{ measured = "on what" }}')
            (mark,) = marks
            found[name] = Source(mark, self.value(mark, _TEXT, "sources", name))
        return found

    def costs(self, base: Device | None) -> MeasuredCosts | None:
        """Read `[measured]` and `[costs]`; without them, the base's costs, which are then of another device."""
        calibrated = self.value("calibrated", BOOLEAN) if "calibrated" in self.data else None
        about = self.about()
        costs = {name: self.cost(name) for name in self.table("costs")}
        theirs = base.costs if base and not costs else None
        if calibrated and not costs and theirs is None:
            raise self.file.error("a device without [costs] is not calibrated", "calibrated")
        if theirs is not None:
            costs, calibrated = dict(theirs.costs), bool(calibrated)
        if not costs and "measured" not in self.data:
            return None
        return MeasuredCosts(costs, bool(costs) if calibrated is None else calibrated, **about, file=self.path)

    def about(self) -> dict[str, str]:
        table = self.table("measured")
        self.known(table, _ABOUT, "measured")
        if isinstance(table.get("date"), date):
            table["date"] = table["date"].isoformat()
        return {name: self.value(name, _TEXT, "measured") for name in table}

    def cost(self, name: str) -> Cost:
        table = self.table("costs", name)
        self.known(table, tuple(_COST), "costs", name)
        for needed in ("value", "source"):
            if needed not in table:
                raise self.file.error(f"cost `{name}` lacks `{needed}`", "costs", name)
        given: dict[str, Any] = {"spread": None}
        given |= {each: self.value(each, kind, "costs", name) for each, kind in _COST.items() if each in table}
        return Cost(**given)

    def check(self, facts: Mapping[str, Any]) -> None:
        """Check that no figure is missing, and that they agree."""
        for name in (*FIGURES, "webgpu_limits"):
            if name not in facts:
                hint = 'give it, or start from a shipped profile with base = "nvidia"'
                raise self.file.error(f"the file lacks `{name}`", hint=hint)
        for rule in RULES:
            if not rule.holds(facts):
                at = next((name for name in rule.figures if name in self.data), rule.figures[0])
                raise self.file.error(rule.broken.format(**facts), at)

    def table(self, *keys: str) -> dict[str, Any]:
        """Return a table, empty where there is none."""
        found: Any = self.data
        for key in keys:
            found = found.get(key, {})
        if not isinstance(found, dict):
            raise self.file.error(f"`{keys[-1]}` must be a table", *keys)
        return found  # pyright: ignore[reportUnknownVariableType]  # TOML's keys are strings

    def value(self, name: str, kind: Kind, *tables: str) -> Any:
        value = self.table(*tables)[name]
        try:
            return kind.read(value)
        except Unfit:
            raise self.file.error(f"`{name}` must be {kind.what}", *tables, name) from None

    def known(self, table: Mapping[str, Any], names: tuple[str, ...], *keys: str) -> None:
        """Raise an error for the first key that is not one of these names."""
        for key in table:
            if key not in names:
                hint = did_you_mean(key, names) or f"known are {', '.join(names)}"
                inside = f"[{'.'.join(keys)}]" if keys else "a device file"
                raise self.file.error(f"{inside} has no key {key!r}", *keys, key, key=True, hint=hint)
