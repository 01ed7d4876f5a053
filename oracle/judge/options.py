"""What an audit is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import field
from typing import TypeVar

from ...sim.fast_dataclass import entity, frozen
from .case_run import Say, silent, timed

T = TypeVar("T")


@frozen
class Options:
    """`device`: the profile that is charged; `also`: more profiles, to set beside it. `gpu`: compare with wgpu;
    `adapter`: on which, see `wgpu_client.parse_adapters`; `require_gpu`: fail where there is none.

    `workgroups`: which run, as `bankshot.simulate` takes it; neither outputs nor counters of a sample are judged.
    `golden`: compare the run with its golden, where the manifest wants one; `update`: write it; `how`: the command that
    writes it, for reports. `record`: record accesses and a timeline, see `Recordings`.
    """

    device: str = "nvidia"
    also: tuple[str, ...] = field(default=(), kw_only=True)
    gpu: bool = True
    adapter: str | None = None
    require_gpu: bool = field(default_factory=lambda: os.environ.get("BANKSHOT_REQUIRE_GPU") == "1")
    workgroups: str | int = "classes"
    golden: bool = True
    update: bool = False
    how: str = "bankshot audit --update-golden"
    record: bool = False

    @property
    def insists(self) -> bool:
        """Whether it is an error where wgpu cannot be compared with."""
        return self.require_gpu or self.adapter is not None


@entity
class Log:
    """What an audit records on its way: notes, and seconds by step. `say` reports the step that begins."""

    say: Say = silent
    notes: list[str] = field(default_factory=list[str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    def note(self, text: str) -> None:
        self.notes.append(text)

    def timed(self, step: str, function: Callable[[], T]) -> T:
        return timed(self.seconds, step, function)
