"""Real WebGPU implementations: which there are, and the same WGSL on them. Only `library` knows wgpu."""

from .library import (
    FALLBACK,
    AdapterInfo,
    Offer,
    adapters,
    device_of,
    offers,
    parse_adapters,
    require_adapter,
)
from .resources import Slot
from .running import GpuRun, for_wgpu, prepare, read_slots, refusal, run, slots_of

__all__ = [
    "FALLBACK",
    "AdapterInfo",
    "GpuRun",
    "Offer",
    "Slot",
    "adapters",
    "device_of",
    "for_wgpu",
    "offers",
    "parse_adapters",
    "prepare",
    "read_slots",
    "refusal",
    "require_adapter",
    "run",
    "slots_of",
]
