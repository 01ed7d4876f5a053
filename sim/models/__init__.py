"""Device models: profiles, bank and sector rules, occupancy, the roofline and WebGPU's limits.

`DEVICES` and `get` give the profiles, a `Device` the cost of one access of one subgroup, `check_dispatch` the limits
that a dispatch exceeds. Plain Python and NumPy; the machine compiles the same `rules`.
"""

from .costs import Cost, MeasuredCosts, MissingCost
from .device import Device
from .devices import DEVICES, get
from .limits import DEFAULT_LIMITS, Exceeded, check_dispatch

__all__ = [
    "DEFAULT_LIMITS",
    "DEVICES",
    "Cost",
    "Device",
    "Exceeded",
    "MeasuredCosts",
    "MissingCost",
    "check_dispatch",
    "get",
]
