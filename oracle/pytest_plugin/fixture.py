"""The fixture `bankshot`: kernels inside tests of one's own, with budgets to assert on.

def test_tile(bankshot):
    run = bankshot.run("tile.wgsl", grid=4, bindings={"x": x, "y": y})
    np.testing.assert_array_equal(run.outputs["y"], x.T)
    assert run.excess_wavefronts == 0
    assert run.utilization >= 0.9
    assert not run.findings
    bankshot.golden(run)                # counters by line and bits of outputs are as they were
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ... import sim
from ..errors import UsageError
from ..goldens import golden_files
from ..goldens import golden_store as goldens
from ..judge.counter_checks import with_derived
from ..reports.remarks import ERROR, Entry, Remark, figures_of, golden_remarks, of_finding


@dataclass(frozen=True, repr=False)
class MeasuredRun:
    """A run (`bankshot.Run`), with the figures that people set budgets for. `source`: the file, where it is one."""

    run: Any
    source: Path | None = None

    @property
    def outputs(self) -> Mapping[Any, Any]:
        return self.run.outputs

    @property
    def counters(self) -> dict[str, float]:
        """The totals, `bank_conflicts` and `intensity` (FLOP per byte asked of global memory)."""
        return with_derived(self.run.counters)

    @property
    def sites(self) -> Sequence[Any]:
        return self.run.sites

    @property
    def findings(self) -> Sequence[Any]:
        """Findings but those that only inform."""
        return [finding for finding in self.run.findings if finding.severity != "info"]

    @property
    def excess_wavefronts(self) -> int:
        """Wavefronts of workgroup memory that bank conflicts cost: those charged, less those that the widths need."""
        return sum(map(_excess, self.run.sites))

    @property
    def excess_sectors(self) -> int:
        """Sectors of global memory beyond those that hold what was asked for, packed."""
        counters = self.run.counters
        return int(counters["global_sectors"] - counters["global_ideal_sectors"])

    @property
    def utilization(self) -> float:
        """Invocations that do work / invocations launched."""
        return self.run.counters["thread_utilization"]

    def __repr__(self) -> str:
        """In one line, for a failing assertion: where most wavefronts are lost, and what was found."""
        worst = max(self.run.sites, key=_excess, default=None)
        words = []
        if worst is not None and _excess(worst):
            place = worst.span.place
            rate = worst.shared_wavefronts / worst.shared_requests
            words.append(f"most excess at {Path(place.file).name}:{place.line}, {rate:.4g} wavefronts per request")
        words += [f"{f.code}, {f.message}" for f in self.findings[:1]]
        return f"<run of {self.source.name if self.source else 'a shader'}: {'; '.join(words) or 'no excess'}>"


def _excess(site: Any) -> int:
    return site.shared_wavefronts - site.shared_ideal_wavefronts


@dataclass
class Bankshot:
    """What the fixture gives to a test. `test`: its file; `told`: is told of what the test measured."""

    test: Path
    name: str
    device: str
    update: bool
    how: str
    told: Callable[[Entry], None]
    _goldens: int = 0

    def run(
        self,
        wgsl: str | Path,
        *,
        grid: int | Sequence[int],
        bindings: Mapping[Any, Any] | None = None,
        defines: Mapping[str, Any] | None = None,
        include_dirs: Sequence[str | Path] = (),
        **options: Any,
    ) -> MeasuredRun:
        """Simulate a dispatch with all probes. `options`: those of `bankshot.simulate`: entry, overrides, device, ...

        `wgsl`: a file, as seen from the test's, or a text of several lines. Raises `bankshot.WgslError`, `UsageError`.
        """
        source = self._file(wgsl)
        folders = [self.test.parent / folder for folder in include_dirs]
        module = sim.check(source or str(wgsl), defines=dict(defines or {}), include_dirs=folders)
        made = sim.simulate(module, grid=grid, bindings=bindings, **{"device": self.device, **options})
        run = MeasuredRun(made, source)
        self.told(Entry(self.name, ok=True, figures=figures_of(made.counters), remarks=_finding_remarks(run)))
        return run

    def _file(self, wgsl: str | Path) -> Path | None:
        if isinstance(wgsl, str) and ("\n" in wgsl or "{" in wgsl):
            return None
        path = self.test.parent / wgsl
        if not path.is_file():
            raise UsageError(f"{path}: there is no such file")
        return path

    def golden(self, run: MeasuredRun, name: str | None = None, *, outputs: bool = False) -> None:
        """Fail unless a run is as its golden has it. `name` tells several of one test apart, which are numbered else.

        `outputs`: keep the outputs themselves, so that a difference can be shown element by element.
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
        verdict = goldens.check(path, new, self.update, self.how)
        if not verdict.ok or verdict.state == goldens.OTHER_DEVICE:
            self.told(Entry(self.name, ok=False, remarks=tuple(golden_remarks(verdict, self.test))))
            pytest.fail(str(verdict), pytrace=False)


def _finding_remarks(run: MeasuredRun) -> tuple[Remark, ...]:
    """Told where the test fails; one that is content with its findings has no complaint."""
    file = str(run.source or "shader.wgsl")
    return tuple(of_finding(ERROR, finding, file) for finding in run.findings)
