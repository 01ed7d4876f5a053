"""The result of `bankshot adapters`: text for people, entries for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .json_document import Entry

if TYPE_CHECKING:
    from ..wgpu_client.adapter_survey import Adapter

# The limits that kernels run into: name and label.
LIMITS = {
    "maxComputeInvocationsPerWorkgroup": "invocations per workgroup",
    "maxComputeWorkgroupStorageSize": "bytes of workgroup memory",
    "maxStorageBuffersPerShaderStage": "storage buffers",
    "maxStorageBufferBindingSize": "bytes per storage binding",
}


def adapter_lines(adapters: Sequence[Adapter], added: Sequence[Path], hint: str | None) -> Iterator[str]:
    for number, adapter in enumerate(adapters):
        info, limits = adapter.offer.info, adapter.offer.limits
        lanes = f", {adapter.subgroup_size} lanes per subgroup" if adapter.subgroup_size else ""
        why = "which rounds as it does" if adapter.known else "whose rounding was not measured"
        yield f"{info.name}{', the default' if number == 0 else ''}"
        yield f"  {info}"
        yield f"  {', '.join(name if has else f'no {name}' for name, has in adapter.abilities.items())}{lanes}"
        yield f"  {', '.join(f'{limits[name]:,} {words}' for name, words in LIMITS.items())}"
        yield f"  simulated as {adapter.profile}, {why}"
    yield from (f"driver found beside the installed ones: {manifest}" for manifest in added)
    if hint:
        yield f"note: {hint}"


def adapter_entries(adapters: Sequence[Adapter]) -> list[Entry]:
    return [
        {
            **dataclasses.asdict(adapter.offer.info),
            "features": list(adapter.offer.features),
            **adapter.abilities,
            "subgroup_size": adapter.subgroup_size,
            "limits": dict(adapter.offer.limits),
            "profile": adapter.profile,
            "profile_known": adapter.known,
        }
        for adapter in adapters
    ]
