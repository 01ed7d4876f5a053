"""`python -m tools.layouts FOLDER...`: compare `bankshot advise` with brute force on any shaders.

Shaders are found as `bankshot corpus` finds them, and get generated inputs that keep accesses in bounds and change an
output. A row for each workgroup array with bank conflicts: what it takes as written, the least that `advise` finds, and
the least of brute force. The exit status is 1 if one differs. What is not compared is counted by reason; equal texts
are compared once.

By wavefronts, brute force counts every layout: the rows as written and with each value of each pitch that `advise`
names, each with every swizzle. By time, it runs the text with each swizzle of one term, and compares the shortest
predicted times; `advise` may find a shorter one, and takes as equal what is within 1%.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

import bankshot
from bankshot import Run, WgslError
from bankshot.oracle.advise.advice import Advice
from bankshot.oracle.advise.array_layouts import Change, Layouts
from bankshot.oracle.advise.layout_search import BY, SPREAD, Options, advise
from bankshot.oracle.advise.swizzles import Swizzle, Term
from bankshot.oracle.cli.main import Guarded
from bankshot.oracle.corpus.corpus_survey import collect
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.manifest import Case
from bankshot.oracle.manifests.reflection import check_module
from bankshot.sim.device_files import find, with_times
from bankshot.sim.models.time_model import predict
from bankshot.sim.wgsl import types

from .brute_force import Array, TooLarge, array_of, fewest, swizzle_costs, terms
from .generated_cases import LeftOut, cases

EVERYWHERE = 16_384  # bytes of workgroup memory on every device
MOST_WORK = 1 << 35  # lanes that brute force looks at
DEVICE = "nvidia"


@dataclass(frozen=True, slots=True)
class Row:
    """An array: what it takes as written, what `advise` finds, and brute force; wavefronts or microseconds. `layouts`:
    how many brute force compared; `best`: the best of them. `exact`: whether `advise` says that its layout is best."""

    name: str
    written: float
    found: float
    least: float
    layouts: int
    best: str
    exact: bool

    @property
    def worse(self) -> bool:
        """Whether brute force finds a better layout; times are equal within rounding."""
        return self.found > self.least * (1 + 1e-9)

    @property
    def differs(self) -> bool:
        return self.worse or (isinstance(self.found, int) and self.found != self.least)

    def line(self) -> str:
        said = "" if self.exact else ", said to be a heuristic"
        verdict = f"{'DIFFERENT' if self.differs else 'equal'}{said}"
        figures = "".join(f"{n:>12,}" if isinstance(n, int) else f"{n:>12.3f}" for n in self._figures)
        return f"{figures}{self.layouts:>10,}  {verdict}  {self.name}  ({self.best})"

    @property
    def _figures(self) -> tuple[float, ...]:
        return self.written, self.found, self.least


def rows(name: str, case: Case, by: str) -> Iterator[Row]:
    """Compare each array with conflicts. Raises `LeftOut`."""
    run = bankshot.simulate(check_module(case.kernel), probes=("banks", "sectors", "lanes"), replay=False,
                            device=DEVICE, **case.launch)  # fmt: skip
    stored = run.pipeline.store_types.items()
    arrays = [v.name for v, type_ in stored if v.space == "workgroup" and isinstance(type_, types.Array)]
    conflicting = [each for each in arrays if _excess(run, each)]
    if not conflicting:
        raise LeftOut("no bank conflicts")
    report = advise(case, Options(DEVICE, by=by))
    for array in conflicting:
        found = [each for each in report.advice if each.array == array]
        accesses = array_of(case, run, array)
        counted, as_written = swizzle_costs(accesses)[()], _wavefronts(run, array)
        if counted != as_written:
            raise UsageError(f"{name}: {array}: brute force counts {counted:,} wavefronts, the run {as_written:,}")
        made = _by_time(f"{name}:{array}", case, run, accesses, found) if by == "time" else _by_wavefronts(
            f"{name}:{array}", run, accesses, found)  # fmt: skip
        yield made


def _by_wavefronts(name: str, run: Run, array: Array, found: list[Advice]) -> Row:
    taken, written = run.pipeline.workgroup_bytes, _wavefronts(run, name.rpartition(":")[2])
    most = max(EVERYWHERE, taken) - taken + array.length * array.stride
    pitches = {each.written.pitch for each in found} - {0}
    values = {now: range(1, SPREAD + 1) if now <= SPREAD else range(now, now + SPREAD + 1) for now in pitches}
    work = sum(map(len, values.values())) * 10_000 * sum(len(each.addresses) for each in array.accesses)
    if work > MOST_WORK:
        raise TooLarge(f"{work:,} lanes")
    best, layouts = fewest(array, values.items(), most)
    pitch = f"rows of {best.now} as {best.pitch}, " if best.pitch else ""
    least = min([written, *(each.fewest.wavefronts for each in found)])
    exact = all(each.exact for each in found)
    return Row(name, written, least, best.wavefronts, layouts, f"{pitch}terms {list(best.terms)}", exact)


def _by_time(name: str, case: Case, run: Run, accesses: Array, found: list[Advice]) -> Row:
    timed = with_times(find(DEVICE))
    assert timed is not None
    layouts = Layouts(check_module(case.kernel), run.pipeline, name.rpartition(":")[2])
    if not layouts.indices:
        raise LeftOut("its indices cannot be changed")
    written = predict(run.work, timed).us
    times: dict[float, str] = {written: "as written"}
    known = terms(accesses.length, accesses.row or accesses.length, accesses.stride)
    for shift, bits, left in known:
        swizzle = Swizzle((Term(shift, bits, left),))
        module = layouts.swizzled(Change(), swizzle, accesses.row).module(layouts.module)
        swizzled = bankshot.simulate(module, probes=("banks", "sectors", "lanes"), replay=False, device=DEVICE,
                                     **case.launch)  # fmt: skip
        times.setdefault(predict(swizzled.work, timed).us, swizzle.text("index"))
    least = min([written, *(trial.us for each in found for trial in each.accepted if trial.us is not None)])
    best = min(times)
    return Row(name, written, least, best, 1 + len(known), times[best], all(each.exact for each in found))


def _wavefronts(run: Run, array: str) -> int:
    return sum(site.shared_wavefronts for site in run.sites if site.name == array)


def _excess(run: Run, array: str) -> int:
    return _wavefronts(run, array) - sum(site.shared_ideal_wavefronts for site in run.sites if site.name == array)


@click.group(cls=Guarded, invoke_without_command=True, context_settings={"allow_interspersed_args": True})
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--embedded", is_flag=True, help="Also search the string literals of other languages.")
@click.option("--by", type=click.Choice(BY), default="wavefronts", show_default=True)
@click.option("-D", "defines", multiple=True, metavar="NAME=VALUE", help="A macro, as hosts define it.")
def main(folders: tuple[Path, ...], embedded: bool, by: str, defines: tuple[str, ...]) -> None:
    """Compare `bankshot advise` with brute force on the shaders in folders."""
    macros = dict(each.split("=", 1) for each in defines)
    left_out: Counter[str] = Counter()
    compared: list[Row] = []
    shaders: dict[str, Shader] = {}  # by text
    for collection in collect(folders, embedded):
        for shader in collection.shaders:
            shaders.setdefault(shader.text, shader)
    click.echo(f"{'written':>12}{'advise':>12}{'force':>12}{'layouts':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for shader in shaders.values():
            for name, case in cases(shader, Path(folder), left_out, macros):
                try:
                    for row in rows(name, case, by):
                        compared.append(row)
                        click.echo(row.line())
                except LeftOut as reason:
                    left_out[str(reason)] += 1
                except TooLarge as reason:
                    left_out["too many accesses"] += 1
                    click.echo(f"{name}: {reason}", err=True)
                except (UsageError, WgslError) as error:
                    left_out["an error"] += 1
                    click.echo(f"{name}: {error}", err=True)
    different = sum(row.differs for row in compared)
    kernels = len({row.name.rpartition(":")[0] for row in compared})
    click.echo(f"{len(compared)} arrays of {kernels} kernels in {len(shaders)} shaders; {different} differ")
    for reason, count in left_out.most_common():
        click.echo(f"not compared: {count} {reason}")
    if different:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
