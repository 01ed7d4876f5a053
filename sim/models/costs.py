"""The measured costs of a device: named constants, each with its spread, its source and the command that found it.

Names have no meaning here. A device file holds the costs (`sim.device_files`), and the model of time reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from difflib import get_close_matches

from ..fast_dataclass import sealed


class MissingCost(Exception):
    """A profile lacks a cost. The message is one sentence that names the cost and the profile's file."""


@sealed
class Cost:
    """One constant. `value` and `spread` have the unit that the name implies; `spread` is None where it is unknown.

    `source`: where the value comes from; `command`: what measures it again, '' if nothing does.
    """

    value: float
    spread: float | None
    source: str
    command: str = ""


@sealed
class MeasuredCosts:
    """The costs of a device by name, and what they were measured on, each '' where the file does not say.

    `calibrated`: they were measured on this device; otherwise they rank kernels but claim no time. `file`: where they
    were read, for messages.
    """

    costs: Mapping[str, Cost] = field(hash=False)
    calibrated: bool = True
    adapter: str = ""
    driver: str = ""
    date: str = ""
    command: str = ""
    file: str = field(default="", compare=False)

    def value(self, name: str) -> float:
        """Return the value of a cost. Raises `MissingCost`."""
        if name not in self.costs:
            close = get_close_matches(name, self.costs, n=1)
            hint = f", did you mean {close[0]!r}?" if close else ""
            raise MissingCost(f"{self.file or 'the device profile'}: [costs] lacks {name!r}{hint}")
        return self.costs[name].value
