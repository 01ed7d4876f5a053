"""Real WebGPU implementations: list the adapters, and run WGSL on them through the worker process."""

from ..wgpu_worker.messages import AdapterInfo, Offer
from .adapter_choice import FALLBACK, adapters, offers, parse_adapters, require_adapter
from .binding_resources import Slot
from .gpu_run import GpuRun, PendingRun, begin, dispatch_request, for_wgpu, prepare, read_slots, refusal, run, slots_of
from .kernel_times import ROUNDS, KernelTimes, Timing, time_dispatches

__all__ = [
    "FALLBACK",
    "ROUNDS",
    "AdapterInfo",
    "GpuRun",
    "KernelTimes",
    "Offer",
    "PendingRun",
    "Slot",
    "Timing",
    "adapters",
    "begin",
    "dispatch_request",
    "for_wgpu",
    "offers",
    "parse_adapters",
    "prepare",
    "read_slots",
    "refusal",
    "require_adapter",
    "run",
    "slots_of",
    "time_dispatches",
]
