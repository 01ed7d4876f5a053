"""The options of an audit, and its log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TypeVar

from ...sim.fast_dataclass import entity, frozen
from ..wgpu_client.adapter_choice import gpu_required
from .case_run import Say, silent, timed
from .schedule_options import ScheduleOptions

T = TypeVar("T")

SEVERITIES = ("error", "warning", "info")  # of findings, the worst first


@frozen
class Options:
    """The options of an audit.

    `device`: the profile to charge; `also`: more profiles to report beside it. `gpu`: compare with wgpu; `adapter`: on
    which adapters, see `wgpu_client.parse_adapters`; `require_gpu`: fail where there is none.
    `workgroups`: which of them run, as for `bankshot.simulate`; outputs and counters of a sample are not judged.
    `golden`: compare the run with its golden, if the manifest has `golden`; `update`: write it; `how`: the command that
    writes it, for reports. `record`: record accesses and a timeline, see `Recordings`. `fail_on`: the least severity of
    a finding that fails a kernel. `schedules`: the schedules to compare; `thorough`: make all
    reruns, however long they take.
    """

    device: str = "nvidia"
    also: tuple[str, ...] = field(default=(), kw_only=True)
    gpu: bool = True
    adapter: str | None = None
    require_gpu: bool = field(default_factory=gpu_required)
    workgroups: str | int = "classes"
    golden: bool = True
    update: bool = False
    how: str = "bankshot audit --update-golden"
    record: bool = False
    fail_on: str = "warning"
    schedules: ScheduleOptions | None = None
    thorough: bool = False

    @property
    def insists(self) -> bool:
        """Whether it is an error if wgpu cannot run."""
        return self.require_gpu or self.adapter is not None


@entity
class Log:
    """What an audit records as it runs: notes, what was not compared and why, and seconds by step. `say` reports the
    step that begins."""

    say: Say = silent
    notes: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    def note(self, text: str) -> None:
        self.notes.append(text)

    def leave_out(self, what: str) -> None:
        """Note a comparison that was not made: `with wgpu: no f16`."""
        self.left_out.append(what)
        self.note(f"not compared {what}")

    def timed(self, step: str, function: Callable[[], T]) -> T:
        return timed(self.seconds, step, function)
