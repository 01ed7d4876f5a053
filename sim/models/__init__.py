"""Charging: device profiles, and what they charge for memory accesses, occupancy and limits."""

from .device import Device
from .devices import DEVICES, get
from .limits import DEFAULT_LIMITS, Exceeded, check_dispatch

__all__ = ["DEFAULT_LIMITS", "DEVICES", "Device", "Exceeded", "check_dispatch", "get"]
