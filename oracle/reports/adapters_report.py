"""Adapters for people and for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..wgpu_client.adapter_survey import ABILITIES, Adapter

# The limits that kernels run into: name, and how it is said.
LIMITS = {
    "maxComputeInvocationsPerWorkgroup": "invocations to a workgroup",
    "maxComputeWorkgroupStorageSize": "bytes of workgroup memory",
    "maxStorageBuffersPerShaderStage": "storage buffers",
    "maxStorageBufferBindingSize": "bytes to a storage binding",
}


def adapter_lines(adapters: Sequence[Adapter], added: Sequence[Path], hint: str | None) -> Iterator[str]:
    for number, adapter in enumerate(adapters):
        info, limits = adapter.offer.info, adapter.offer.limits
        lanes = f", {adapter.subgroup_size} lanes to a subgroup" if adapter.subgroup_size else ""
        why = "which rounds as it does" if adapter.known else "for nobody has measured how it rounds"
        yield f"{info.name}{', taken by default' if number == 0 else ''}"
        yield f"  {info}"
        yield f"  {', '.join(name if adapter.has(name) else f'no {name}' for name in ABILITIES)}{lanes}"
        yield f"  {', '.join(f'{limits[name]:,} {words}' for name, words in LIMITS.items())}"
        yield f"  simulated as {adapter.profile}, {why}"
    yield from (f"driver found beside those that are installed: {manifest}" for manifest in added)
    if hint:
        yield f"note: {hint}"


def adapter_entries(adapters: Sequence[Adapter]) -> list[dict[str, Any]]:
    return [
        {
            **dataclasses.asdict(adapter.offer.info),
            "features": list(adapter.offer.features),
            **{name: adapter.has(name) for name in ABILITIES},
            "subgroup_size": adapter.subgroup_size,
            "limits": dict(adapter.offer.limits),
            "profile": adapter.profile,
            "profile_known": adapter.known,
        }
        for adapter in adapters
    ]
