"""Real WebGPU implementations: which there are, and the same WGSL on them, in the process that `oracle.driver` is."""

from ..driver.messages import AdapterInfo, Offer
from .choosing import FALLBACK, adapters, offers, parse_adapters, require_adapter
from .resources import Slot
from .running import Begun, GpuRun, begin, for_wgpu, prepare, read_slots, refusal, run, slots_of

__all__ = [
    "FALLBACK",
    "AdapterInfo",
    "Begun",
    "GpuRun",
    "Offer",
    "Slot",
    "adapters",
    "begin",
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
