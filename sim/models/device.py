"""The device profile: a record of figures, each with its source, and the cost of a memory access by them.

A source is measured (on what), documented (where) or assumed (why). The profiles are in `devices`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..fast_dataclass import sealed
from . import rules
from .costs import MeasuredCosts

WORD = 4  # bytes
WIDTHS = (1, 2, 4, 6, 8, 12, 16)  # bytes per lane of one access: a scalar or a vector


@sealed
class Source:
    """How certain a figure is (`measured`, `documented`, `assumed`) and where it comes from."""

    mark: str
    where: str


POWERS_OF_TWO = (
    ("subgroup_size", 1, rules.MAX_LANES),
    ("banks", 4, rules.MAX_BANKS),
    ("bank_width", WORD, 16),
    ("sector_bytes", WORD, 4096),
    ("line_bytes", WORD, 4096),
)
ROUNDINGS = ("separate", "fused", "contracted")  # of products that are added, see `Device.fma`
POLICIES = (
    "clamp",
    "zero",
    "wrap",
    "zero-buffers",
)  # for accesses past the end of an array, see `Device.out_of_bounds`
CHOICES = (
    ("out_of_bounds", POLICIES),
    ("fma", ROUNDINGS),
    ("texel_outside", ("zero", "nearest")),
    ("texel_f16", ("nearest", "zero")),
)


@sealed
class Device:
    """A device profile. Sizes are in bytes; counts are per core (SM, CU, WGP half, Xe core) where the name says so.

    `lane_order` gives the order in which the memory serves the lanes of a load, in groups of as many lanes as fill all
    banks once. Widths that it does not list are served in lane order.
    """

    name: str
    subgroup_size: int
    subgroup_sizes: tuple[int, ...]  # every size that the device supports
    banks: int  # of workgroup memory; a power of two
    bank_width: int  # bytes that a bank delivers per cycle; a power of two
    pair_merge: bool  # wide loads: two groups merge where lanes pair up on one address
    lane_order: Mapping[int, tuple[int, ...]] = field(hash=False)  # bytes per lane of a load -> lanes as served
    sector_bytes: int
    line_bytes: int
    merge_adjacent: bool  # model a compiler that merges adjacent scalar accesses into wide ones
    fma: str  # "separate": rounds twice; "fused": once; "contracted": so does a product with a single use, in a sum
    out_of_bounds: str  # goes to the last element ("clamp"); loads 0 and stores nothing, in buffers or everywhere
    texel_outside: str  # result of a load outside the texture: "zero" or the "nearest" texel
    loop_turns: int | None  # after so many turns of its loops together, a subgroup leaves each loop; None: never
    texel_f16: str  # rounding of a store to an f16 texel: to "nearest" or toward "zero"
    workgroup_bytes_per_core: int
    workgroup_bytes_max: int  # for one workgroup
    workgroup_bytes_unit: int  # allocation granularity
    workgroup_bytes_reserved: int  # overhead per workgroup, on top of its own
    registers_per_core: int  # 32-bit registers: lanes times registers per lane
    register_unit: int  # registers per lane are rounded up to a multiple of this
    registers_per_lane_max: int
    threads_per_core: int
    subgroups_per_core: int
    workgroups_per_core: int
    cores: int | None  # None where no figure is claimed
    peak_flops: float | None  # f32 operations per second; None where no figure is claimed
    peak_bandwidth: float | None  # bytes per second
    webgpu_limits: Mapping[str, int] = field(hash=False)
    costs: MeasuredCosts | None  # None where nothing was measured
    sources: Mapping[str, Source] = field(hash=False, compare=False)

    def __post_init__(self) -> None:
        for name, least, most in POWERS_OF_TWO:
            value = getattr(self, name)
            if not least <= value <= most or value & (value - 1):
                raise ValueError(
                    f"{name} of device {self.name} is {value}: it must be a power of two, {least} to {most}"
                )
        for width, order in self.lane_order.items():
            if sorted(order) != list(range(self.subgroup_size)):
                raise ValueError(f"lane_order of device {self.name} for {width} bytes is not an order of its lanes")
        for name, choices in CHOICES:
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(
                    f"{name} of device {self.name} is {value!r}: it must be {' or '.join(map(repr, choices))}"
                )

    def __hash__(self) -> int:
        """By name alone: each launch looks its device up, and other figures rarely tell devices apart."""
        return hash(self.name)

    @property
    def predicts_times(self) -> bool:
        """Whether what the model of time needs is known: costs and the number of cores."""
        return self.costs is not None and self.cores is not None

    @property
    def calibrated(self) -> bool:
        """Whether the device's costs were measured on it, so that a predicted time is a claim."""
        return self.costs is not None and self.costs.calibrated

    def __getstate__(self) -> dict[str, Any]:
        """For pickling, which knows no read-only mappings."""
        return {name: dict(cast("Mapping[str, Any]", value)) if isinstance(value, MappingProxyType) else value
                for name, value in vars(self).items()}  # fmt: skip

    def with_(self, **changes: Any) -> Device:
        """Return a copy with other figures, whose source is then the caller. Raises ValueError for an unknown name.

        A lane order belongs to one subgroup size: with a new `subgroup_size`, lanes are served in lane order unless
        `lane_order` is given, too.
        """
        unknown = sorted(changes.keys() - {f.name for f in fields(self)})
        if unknown:
            raise ValueError(f"a device has no {unknown[0]!r}{near_miss(unknown[0], [f.name for f in fields(self)])}")
        if "subgroup_size" in changes:
            changes = {"lane_order": {}, **changes}
        given = {name: Source("assumed", "given by the caller") for name in changes}
        return replace(self, **{"sources": {**self.sources, **given}, **changes})

    def lanes_together(self, bytes_per_lane: int) -> int:
        """Return how many lanes are served together: as many as fill all banks."""
        return self.banks * self.bank_width // max(_aligned_width(bytes_per_lane), self.bank_width)

    def bank_rule(self, bytes_per_lane: int, store: bool = False) -> rules.BankRule:
        """Return the parameters of `rules.wavefronts` for accesses of this width, with addresses in 4-byte words."""
        width = max(_aligned_width(bytes_per_lane), WORD)
        order = None if store else self.lane_order.get(width)
        return rules.BankRule(
            shift=(max(width, self.bank_width) // WORD).bit_length() - 1,
            columns=self.lanes_together(bytes_per_lane),
            merge=int(self.pair_merge and width > WORD and not store),
            order=np.array(range(self.subgroup_size) if order is None else order, np.int64),
        )

    def shared_wavefronts(
        self,
        byte_addresses: ArrayLike,
        bytes_per_lane: int,
        active: ArrayLike | None = None,
        store: bool = False,
    ) -> int:
        """Count the wavefronts that one access of one subgroup takes in workgroup memory.

        `byte_addresses` has one address per lane, `active` one truth value per lane (None: all are active); a subgroup
        may be partial. Raises ValueError for an invalid shape, width or alignment.
        """
        return self._shared(byte_addresses, bytes_per_lane, active, store)[0]

    def ideal_shared_wavefronts(
        self,
        byte_addresses: ArrayLike,
        bytes_per_lane: int,
        active: ArrayLike | None = None,
        store: bool = False,
    ) -> int:
        """Count the wavefronts that the access would take without bank conflicts."""
        return self._shared(byte_addresses, bytes_per_lane, active, store)[1]

    def shared_atomic_wavefronts(self, byte_addresses: ArrayLike, active: ArrayLike | None = None) -> int:
        """Count the wavefronts that one atomic read-modify-write of one subgroup takes in workgroup memory: one word
        per active lane."""
        return self._shared_atomic(byte_addresses, active)[0]

    def ideal_shared_atomic_wavefronts(self, byte_addresses: ArrayLike, active: ArrayLike | None = None) -> int:
        """Count the wavefronts that the atomic would take if no two lanes shared a bank."""
        return self._shared_atomic(byte_addresses, active)[1]

    def global_atomic_sectors(self, byte_addresses: ArrayLike, active: ArrayLike | None = None) -> int:
        """Count the sector passes of one atomic operation of one subgroup in storage: each sector passes once for each
        lane on its busiest word."""
        return self._global_atomic(byte_addresses, active)[0]

    def atomic_turns(self, byte_addresses: ArrayLike, active: ArrayLike | None = None) -> int:
        """Count the active lanes on the busiest word: those are serialized."""
        return self._global_atomic(byte_addresses, active)[1]

    def global_sectors(self, byte_addresses: ArrayLike, bytes_per_lane: int, active: ArrayLike | None = None) -> int:
        """Count the distinct sectors that one access of one subgroup touches in storage."""
        return self._global(byte_addresses, bytes_per_lane, active)[0]

    def ideal_global_sectors(
        self, byte_addresses: ArrayLike, bytes_per_lane: int, active: ArrayLike | None = None
    ) -> int:
        """Count the fewest sectors that could hold the distinct bytes requested."""
        return self._global(byte_addresses, bytes_per_lane, active)[1]

    def global_lines(self, byte_addresses: ArrayLike, bytes_per_lane: int, active: ArrayLike | None = None) -> int:
        """Count the distinct cache lines that one access of one subgroup touches in storage."""
        return self._global(byte_addresses, bytes_per_lane, active)[2]

    def _shared(
        self, byte_addresses: ArrayLike, bytes_per_lane: int, active: ArrayLike | None, store: bool
    ) -> tuple[int, int]:
        addresses, mask = self._lanes(byte_addresses, bytes_per_lane, active)
        rule = self.bank_rule(bytes_per_lane, store)
        total, ideal = rules.wavefronts(addresses // WORD, mask, 0, len(mask), *rule, rules.new_scratch())
        return int(total), int(ideal)

    def _shared_atomic(self, byte_addresses: ArrayLike, active: ArrayLike | None) -> tuple[int, int]:
        addresses, mask = self._lanes(byte_addresses, WORD, active)
        rule, scratch = self.bank_rule(WORD), rules.new_scratch()
        total, ideal = rules.atomic_wavefronts(addresses // WORD, mask, 0, len(mask), rule.shift, rule.columns, scratch)
        return int(total), int(ideal)

    def _global_atomic(self, byte_addresses: ArrayLike, active: ArrayLike | None) -> tuple[int, int]:
        addresses, mask = self._lanes(byte_addresses, WORD, active)
        sectors, turns = rules.atomic_sectors(addresses, mask, 0, len(mask), self.sector_bytes, rules.new_scratch())
        return int(sectors), int(turns)

    def _global(self, byte_addresses: ArrayLike, bytes_per_lane: int, active: ArrayLike | None) -> tuple[int, ...]:
        addresses, mask = self._lanes(byte_addresses, bytes_per_lane, active)
        sizes = (bytes_per_lane, self.sector_bytes, self.line_bytes)
        return tuple(int(n) for n in rules.sectors(addresses, mask, 0, len(mask), *sizes, rules.new_scratch()))

    def _lanes(
        self, byte_addresses: ArrayLike, bytes_per_lane: int, active: ArrayLike | None
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return addresses and mask as arrays, after checking their shapes and the alignment."""
        alignment = _aligned_width(bytes_per_lane)
        addresses = np.asarray(byte_addresses, np.int64)
        if addresses.ndim != 1 or not 0 < len(addresses) <= self.subgroup_size:
            raise ValueError(f"addresses have shape {addresses.shape}: one per lane, at most {self.subgroup_size}")
        mask = np.ones(addresses.shape, np.bool_) if active is None else np.asarray(active, np.bool_)
        if mask.shape != addresses.shape:
            raise ValueError(f"active has shape {mask.shape}, addresses have {addresses.shape}")
        wrong = mask & ((addresses < 0) | (addresses % alignment != 0))
        if wrong.any():
            lane = int(wrong.argmax())
            raise ValueError(f"lane {lane} has address {addresses[lane]}, not a multiple of {alignment}")
        return addresses, mask


def _aligned_width(bytes_per_lane: int) -> int:
    """Return the width that an access is aligned to and served as: three components count as four."""
    if bytes_per_lane not in WIDTHS:
        raise ValueError(f"no access is {bytes_per_lane} bytes per lane: it must be one of {WIDTHS}")
    return 1 << (bytes_per_lane - 1).bit_length()


def near_miss(name: str, names: Sequence[str]) -> str:
    """Return a suffix for the message about an unknown name, empty where no name is close."""
    close = get_close_matches(name, names, n=1)
    return f", did you mean {close[0]!r}?" if close else ""
