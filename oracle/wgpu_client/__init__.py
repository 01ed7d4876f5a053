"""Real WebGPU implementations: which there are, and the same WGSL run on them, in the worker process."""

from ..wgpu_worker.messages import AdapterInfo, Offer
from .adapter_choice import FALLBACK, adapters, offers, parse_adapters, require_adapter
from .binding_resources import Slot
from .gpu_run import Begun, GpuRun, begin, for_wgpu, prepare, read_slots, refusal, run, slots_of

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
