"""The fixture `bankshot`: kernels inside tests, with figures to assert on.

def test_tile(bankshot):
    run = bankshot.run("tile.wgsl", grid=4, bindings={"x": x, "y": y})
    np.testing.assert_array_equal(run.outputs["y"], x.T)
    assert run.excess_wavefronts == 0
    assert run.utilization.useful_lane_efficiency >= 0.9
    assert not run.findings
    bankshot.golden(run)                # counters by line and bits of outputs did not change
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ... import sim
from ...sim.fast_dataclass import entity, sealed
from ...sim.run.run_view import html, one_line
from ..errors import UsageError
from ..goldens import golden_files
from ..goldens import golden_store as goldens
from ..judge.case_run import endless
from ..judge.counter_checks import with_derived
from ..judge.time_check import HINT, no_time
from ..reports.remarks import Entry, Remark, figures_of, golden_remarks, of_finding

if TYPE_CHECKING:
    from ...sim import Finding, Run, Site
    from ...sim.bindings.binding import Bindings, Key, Output
    from ...sim.models.time_model import Prediction
    from ...sim.utilization.utilization import Utilization


@sealed
class MeasuredRun:
    """A run, with the figures that tests set budgets for. `source`: the shader, if it is a file."""

    run: Run
    source: Path | None = None

    @property
    def outputs(self) -> Mapping[Key, Output]:
        """The writable bindings after the run, see `bankshot.Run`."""
        return self.run.outputs

    @property
    def counters(self) -> dict[str, float]:
        """The totals, `bank_conflicts` and `intensity` (FLOP per requested global byte)."""
        return with_derived(self.run.counters)

    @property
    def sites(self) -> Sequence[Site]:
        """The counters of each place in the source."""
        return self.run.sites

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings, without those that only inform."""
        return [finding for finding in self.run.findings if finding.severity != "info"]

    @property
    def excess_wavefronts(self) -> int:
        """Wavefronts of workgroup memory due to bank conflicts: those charged, less those that access widths need."""
        return self.run.excess_wavefronts

    @property
    def excess_sectors(self) -> int:
        """Sectors of global memory beyond those that the requested bytes would fill if packed."""
        return self.run.excess_sectors

    @property
    def utilization(self) -> Utilization:
        """The utilizations of lanes, subgroups and cores, from 0 to 1. The first use runs some workgroups again."""
        return self.run.utilization

    @property
    def predicted_time(self) -> Prediction:
        """How long the dispatch takes by the model of time, in microseconds: `assert run.predicted_time.us <= 250`.

        Raises `UsageError` where the device claims no time.
        """
        if why := no_time(self.run.device):
            raise UsageError(f"`predicted_time` needs a device that claims a time, and {why}; {HINT}")
        return self.run.predicted_time

    def __repr__(self) -> str:
        """One line for a failing assertion: the place with the most excess wavefronts, and the first finding."""
        return one_line(self.run, self.source.name if self.source else "a shader")

    def _repr_html_(self) -> str:
        return html(self.run)


@entity
class Bankshot:
    """What the fixture provides. `test` and `name`: the test's file and name; `how`: how users update goldens; `keep`
    receives what the test measured."""

    test: Path
    name: str
    device: str
    update: bool
    how: str
    keep: Callable[[Entry], None]
    _goldens: int = 0

    def run(
        self,
        wgsl: str | Path,
        *,
        grid: int | Sequence[int],
        bindings: Bindings | None = None,
        defines: Mapping[str, Any] | None = None,
        include_dirs: Sequence[str | Path] = (),
        **options: Any,
    ) -> MeasuredRun:
        """Simulate a dispatch with all probes.

        `wgsl`: a path relative to the test's file, or the text of a shader. `options`: those of `bankshot.simulate`:
        entry, overrides, device, ... Raises `bankshot.WgslError`, `UsageError`.
        """
        from ...sim.front_end import read
        from ..manifests.rendering_stages import check_for_compute

        source = self._file(wgsl)
        folders = [self.test.parent / folder for folder in include_dirs]
        module = check_for_compute(read(source or str(wgsl), defines=dict(defines or {}), include_dirs=folders))
        given: dict[str, Any] = {"device": self.device, **options}
        made = sim.simulate(module, grid=grid, bindings=bindings, **given)
        run = MeasuredRun(made, source)
        self.keep(Entry(self.name, ok=True, figures=figures_of(made.counters), remarks=_finding_remarks(run)))
        return run

    def _file(self, wgsl: str | Path) -> Path | None:
        if isinstance(wgsl, str) and ("\n" in wgsl or "{" in wgsl):
            return None
        path = self.test.parent / wgsl
        if not path.is_file():
            raise UsageError(f"{path}: no such file")
        return path

    def golden(self, run: MeasuredRun, name: str | None = None, *, outputs: bool = False) -> None:
        """Fail unless a run equals its golden.

        `name` distinguishes several goldens of one test; by default they are numbered. `outputs`: store the outputs
        themselves, so that differences can be shown element by element.
        """
        self._goldens += 1
        which = name or ("" if self._goldens == 1 else str(self._goldens))
        new = goldens.of_run(
            run.run,
            folder=self.test.parent,
            owner=self.test.name,
            title=f"{self.name} {which}".strip(),
            arrays=outputs,
            source=run.source,
        )
        path = golden_files.place(self.test.parent, self.test.stem, self.name, which)
        if endless(run.run):
            pytest.fail(f"golden {path.name}: the run was stopped, so that it has no outputs", pytrace=False)
        verdict = goldens.check(path, new, self.update, self.how)
        if self.update:
            self.keep(Entry(self.name, ok=verdict.ok, golden=verdict.state))
        if not verdict.ok:
            self.keep(Entry(self.name, ok=False, remarks=tuple(golden_remarks(verdict, self.test))))
            pytest.fail(str(verdict), pytrace=False)


def _finding_remarks(run: MeasuredRun) -> tuple[Remark, ...]:
    """The findings as remarks, which are reported if the test fails."""
    file = str(run.source or "shader.wgsl")
    return tuple(of_finding(finding, file) for finding in run.findings)
