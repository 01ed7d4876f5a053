"""`python -m tools.layouts FOLDER...`: compare `bankshot advise --by wavefronts` with brute force on any shaders.

Shaders are found as `bankshot corpus` finds them, and get generated inputs that keep accesses in bounds and change an
output. A row for each workgroup array with bank conflicts: the wavefronts as written, the fewest that `advise` finds,
and the fewest of all layouts in its space: the rows and the values of each pitch that it names, each with every swizzle.
The exit status is 1 if one differs. Entry points that are not compared are counted by reason.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

import bankshot
from bankshot import Run, WgslError
from bankshot.oracle.advise.advice import Advice
from bankshot.oracle.advise.layout_search import SPREAD, Options, advise
from bankshot.oracle.cli.main import Guarded
from bankshot.oracle.corpus.corpus_survey import collect
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.errors import UsageError
from bankshot.oracle.guesses import invented_inputs
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.manifests.manifest import Case
from bankshot.sim.wgsl.check.pipeline import GRANTED
from bankshot.sim.wgsl.typed import Function, Module

from .brute_force import Array, Layout, TooLarge, array_of, fewest, swizzle_costs

EVERYWHERE = 16_384  # bytes of workgroup memory on every device
BUDGET = 1 << 18  # loop iterations of a trial run
GRIDS = {0: (), 1: (2,), 2: (2, 2), 3: (2, 2, 1)}  # workgroups, by the number of axes whose ids a shader reads
MOST_WORK = 1 << 35  # lanes that brute force looks at


class LeftOut(Exception):
    """The reason why an entry point is not compared."""


@dataclass(frozen=True, slots=True)
class Row:
    """An array: wavefronts as written, the fewest that `advise` finds, and those of brute force."""

    name: str
    written: int
    ideal: int
    found: int
    best: Layout
    exact: bool
    seconds: float

    @property
    def equal(self) -> bool:
        return self.found == self.best.wavefronts

    def line(self) -> str:
        verdict = "equal" if self.equal else "DIFFERENT" if self.exact else "different, said to be a heuristic"
        pitch = f"rows of {self.best.now} as {self.best.pitch}, " if self.best.pitch else ""
        figures = f"{self.written:>10,}{self.ideal:>10,}{self.found:>10,}{self.best.wavefronts:>10,}"
        return f"{figures}  {verdict:10} {self.seconds:6.1f} s  {self.name}  ({pitch}terms {list(self.best.terms)})"


def cases(shader: Shader, folder: Path, left_out: Counter[str]) -> Iterator[tuple[str, Case]]:
    """Each compute entry point of a shader that uses arrays in workgroup memory, with inputs."""
    try:
        module = bankshot.check(shader.text, uniformity="warning")
    except WgslError:
        left_out["not valid"] += 1
        return
    file = Path(tempfile.mkdtemp(dir=folder)) / "shader.wgsl"
    file.write_text(shader.text, encoding="utf-8")
    for function in module.entry_points:
        if function.stage == "compute":
            try:
                yield f"{shader.name}:{function.name}", _case(module, function, file)
            except LeftOut as reason:
                left_out[str(reason)] += 1
            except UsageError:
                left_out["no inputs can be generated"] += 1
            except WgslError as error:
                left_out[error.diagnostics[0].code] += 1


def _case(module: Module, function: Function, file: Path) -> Case:
    """An entry point with inputs with which it stays in bounds, ends and changes an output. Raises `LeftOut`."""
    overrides = invented_inputs.override_values(module)
    pipeline = module.pipeline(function.name, {**overrides}, GRANTED)
    if not any(variable.space == "workgroup" for variable in pipeline.store_types):
        raise LeftOut("no workgroup memory")
    grid, reason = invented_inputs.grid(function, GRIDS), "no output changed"
    for recipe in invented_inputs.RECIPES:
        given = invented_inputs.bindings(pipeline, recipe)
        run = bankshot.simulate(module, entry=function.name, grid=grid, bindings=given, overrides=overrides,
                                probes=("bounds",), budget=BUDGET, replay=False)  # fmt: skip
        if run.findings:
            reason = "every input leaves its bounds or does not end"
        elif any(bytes(after) != bytes(given[name]) for name, after in run.outputs.items()):
            (plan,) = plans([file], Request(grid=grid, entry=function.name, arrays=given, overrides=overrides))
            return plan.case(plan.shapes[0])
    raise LeftOut(reason)


def rows(name: str, case: Case) -> Iterator[Row]:
    """Compare each array with conflicts. Raises `LeftOut`."""
    run = bankshot.simulate(case.kernel.source, probes=("banks",), replay=False, **case.launch)
    conflicting = [each for each in dict.fromkeys(site.name for site in run.sites) if each and _excess(run, each)]
    if not conflicting:
        raise LeftOut("no bank conflicts")
    start = time.perf_counter()
    report = advise(case, Options(by="wavefronts"))
    seconds = time.perf_counter() - start
    for array in conflicting:
        found = [each for each in report.advice if each.array == array]
        accesses = array_of(case, run, array)
        written, ideal = _wavefronts(run, array)
        as_written = swizzle_costs(accesses)[()]
        if as_written != written:
            raise UsageError(f"{name}: {array}: brute force counts {as_written:,} wavefronts, the run {written:,}")
        best = _by_force(run, accesses, found)
        least = min([written, *(each.fewest.wavefronts for each in found)])
        yield Row(f"{name}:{array}", written, ideal, least, best, all(each.exact for each in found), seconds)


def _by_force(run: Run, array: Array, found: list[Advice]) -> Layout:
    taken = run.pipeline.workgroup_bytes
    most = max(EVERYWHERE, taken) - taken + array.length * array.stride
    pitches = {each.written.pitch for each in found} - {0}
    values = {now: range(1, SPREAD + 1) if now <= SPREAD else range(now, now + SPREAD + 1) for now in pitches}
    work = sum(map(len, values.values())) * 10_000 * sum(len(each.addresses) for each in array.accesses)
    if work > MOST_WORK:
        raise TooLarge(f"{work:,} lanes")
    return fewest(array, values.items(), most)


def _wavefronts(run: Run, array: str) -> tuple[int, int]:
    found = [site for site in run.sites if site.name == array]
    return sum(s.shared_wavefronts for s in found), sum(s.shared_ideal_wavefronts for s in found)


def _excess(run: Run, array: str) -> int:
    written, ideal = _wavefronts(run, array)
    return written - ideal


@click.group(cls=Guarded, invoke_without_command=True, context_settings={"allow_interspersed_args": True})
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--embedded", is_flag=True, help="Also search the string literals of other languages.")
def main(folders: tuple[Path, ...], embedded: bool) -> None:
    """Compare `bankshot advise` with brute force on the shaders in folders."""
    left_out: Counter[str] = Counter()
    compared: list[Row] = []
    shaders = [shader for collection in collect(folders, embedded) for shader in collection.shaders]
    click.echo(f"{'written':>10}{'ideal':>10}{'advise':>10}{'force':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for shader in shaders:
            for name, case in cases(shader, Path(folder), left_out):
                try:
                    for row in rows(name, case):
                        compared.append(row)
                        click.echo(row.line())
                except (LeftOut, TooLarge) as reason:
                    left_out["too many accesses" if isinstance(reason, TooLarge) else str(reason)] += 1
                except (UsageError, WgslError) as error:
                    left_out["an error"] += 1
                    click.echo(f"{name}: {error}", err=True)
    different = sum(not row.equal for row in compared)
    kernels = len({row.name.rpartition(":")[0] for row in compared})
    click.echo(f"{len(compared)} arrays of {kernels} kernels in {len(shaders)} shaders; {different} differ")
    for reason, count in left_out.most_common():
        click.echo(f"not compared: {count} {reason}")
    if different:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
