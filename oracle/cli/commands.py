"""The command `bankshot`: check, run, audit, diff, sweep, advise, adapters.

Exit codes: 0 clean, 1 findings or a mismatch, 2 wrong use (a broken shader, data that does not fit, a missing file),
70 an internal error. Where several hold, an audit, which goes on with the other cases, leaves with the largest.
Reports go to stdout, everything else to stderr.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from ...sim.dump import STAGES, debug_level
from ...sim.wgsl.diagnostics import WgslError
from ..errors import UsageError
from ..exit_codes import CLEAN, FOUND, INTERRUPTED, WRONG_USE, Failure
from ..judge.device_comparison import parse_devices
from ..manifests import inputs
from ..manifests.cases import Broken, Plan, Request, plans
from ..workers.progress import Meter, meter


class Guarded(click.Group):
    """Turns every failure into a message and an exit code. BANKSHOT_DEBUG=1..5 shows the traceback of internal errors,
    and the stages of each kernel that is simulated (see `sim.dump`)."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (UsageError, WgslError) as error:
            _annotate_error(error)
            self._leave(ctx, error)
        except MemoryError as error:
            self._leave(ctx, error)
        except BrokenPipeError:  # the reader of a pipe has seen enough
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
            ctx.exit(CLEAN)
        except (click.exceptions.Exit, click.Abort, click.ClickException):
            raise
        except Exception as error:
            if debug_level():
                raise
            self._leave(ctx, error)

    @staticmethod
    def _leave(ctx: click.Context, error: Exception) -> None:
        failure = Failure.of(error)
        click.echo(failure.text, err=True)
        ctx.exit(failure.code)


def _annotate_error(error: UsageError | WgslError) -> None:
    """Where GitHub listens, beside the source too."""
    from ..reports import ci as report_ci
    from ..reports.remarks import entry_of_error

    if report_ci.on_github():
        click.echo("\n".join(report_ci.github_lines([entry_of_error("", error)])), err=True)


@click.group(cls=Guarded, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="bankshot")
def main() -> None:
    """Run WGSL compute kernels on the CPU, count what a GPU would have to pay, and compare with real runs.

    PATHs are manifests (.toml), folders of them, or .wgsl files; a shader without a manifest takes its data from
    --bind and --grid.
    """


# ---- options -----------------------------------------------------------------------------------------

PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
ADAPTER = click.option("--adapter", metavar="NAME", help="Part of the wgpu adapter's name: llvmpipe, nvidia, ...")
ADAPTERS = click.option(
    "--adapter", metavar="NAME,...", help="Parts of adapters' names or kinds: llvmpipe,swiftshader; cpu; or all."
)


def _workgroups(command: Callable[..., Any]) -> Callable[..., Any]:
    """--sample and --check-classes, which make `workgroups` of `bankshot.simulate`."""
    sample = click.option(
        "--sample", type=click.IntRange(1), metavar="N", help="Run N workgroups, spread evenly, only."
    )
    check = click.option(
        "--check-classes",
        is_flag=True,
        help="Run all workgroups too, and hold the counters of those that stand for others against it.",
    )
    return sample(check(command))


def _which(sample: int | None, check_classes: bool) -> str | int:
    if sample is not None and check_classes:
        raise UsageError("--check-classes runs all workgroups, and --sample only some: give one of them")
    return sample or ("check" if check_classes else "classes")


def _preprocessing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """-D, -I and --preprocess, named as the parameters of `bankshot.check`."""
    options = (
        click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro; no value: 1."),
        click.option("-I", "include_dirs", multiple=True, type=click.Path(path_type=Path), metavar="DIR",
                     help="Look here for #include."),
        click.option("--preprocess", metavar="CMD", help="Put shaders through a command first, from its stdin to its "
                     "stdout, like 'cpp -w {includes} {defines}'."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _defines(given: Sequence[str]) -> dict[str, str]:
    """`-D TILE=8 -D PAD`, as the compilers of C read it."""
    split = (text.partition("=") for text in given)
    return {name: value if equals else "1" for name, equals, value in split}


def request_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What makes a `Request`: --kernel, --set, --bind, --grid, --entry, --override, and those of the preprocessor."""
    options = (
        click.option("--kernel", metavar="NAME", help="One kernel of a manifest that holds several."),
        click.option("--set", "sets", multiple=True, metavar="DIM=N", help="A size in the manifest's dims."),
        click.option("--bind", "binds", multiple=True, metavar="NAME=DATA", help="Contents of a binding: FILE.npy, "
                     "u32:1,2,3 or normal:f32:512,768."),
        click.option("--grid", metavar="X,Y,Z", help="Workgroups to dispatch."),
        click.option("--entry", metavar="NAME", help="Entry point, where there are several."),
        click.option("--override", "overrides", multiple=True, metavar="NAME=VALUE", help="A pipeline override."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return _preprocessing_options(command)


def _request(kernel: str | None, sets: Sequence[str], binds: Sequence[str], grid: str | None, entry: str | None,
             overrides: Sequence[str], defines: Sequence[str], include_dirs: tuple[Path, ...], preprocess: str | None,
             *, quick: bool = False, sweep: bool = True) -> Request:  # fmt: skip
    return Request(
        kernel=kernel,
        dims=_once("--set", [(name, inputs.parse_int("--set", value)) for name, value in map(_pair("--set"), sets)]),
        arrays=_once("--bind", [inputs.parse_bind(bind) for bind in binds]),
        grid=None if grid is None else inputs.parse_grid(grid),
        entry=entry,
        overrides=_once("--override", [(n, _override(value)) for n, value in map(_pair("--override"), overrides)]),
        defines=_defines(defines),
        include_dirs=include_dirs,
        preprocess=preprocess,
        quick=quick,
        sweep=sweep,
    )


def _trace(variable: str, workgroup: str, lanes: str) -> Any:
    from ... import sim

    chosen = None if lanes == "all" else inputs.parse_lanes(lanes)
    return sim.Trace(variable, inputs.parse_place(workgroup), chosen)


def _pair(option: str) -> Callable[[str], tuple[str, str]]:
    def split(text: str) -> tuple[str, str]:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option} {text}: write NAME=VALUE")
        return name, value

    return split


def _once(option: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs by name; two of one name are a mistake."""
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise UsageError(f"{option}: {name} is given {count} times")
    return dict(pairs)


def _override(text: str) -> bool | int | float:
    words = {"true": True, "false": False}
    for parse in (words.__getitem__, lambda t: int(t, 0), float):
        try:
            return parse(text)
        except (KeyError, ValueError):
            continue
    raise UsageError(f"--override: `{text}` is neither a number nor true or false")


# ---- commands ----------------------------------------------------------------------------------------


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE.wgsl...")
@_preprocessing_options
@click.option(
    "--portability", is_flag=True, help="Also say what other implementations refuse, or have to be asked for."
)
@JSON
def check(files: tuple[Path, ...], as_json: bool, defines: Sequence[str], **given: Any) -> None:
    """Check shaders as a WebGPU implementation would, and say what they hold.

    With --portability a warning (what wgpu refuses) makes the exit code 1; what a host must ask for is information.
    """
    from .check import check_files

    tally = check_files(files, as_json, defines=_defines(defines), **given)
    sys.exit(WRONG_USE if tally.wrong else FOUND if tally.noted else CLEAN)


@main.command()
@PATHS
@request_options
@click.option(
    "--device", default="nvidia", show_default=True, help="Device profile; more after commas are set beside it."
)
@click.option("--probes", default="all", show_default=True, help="all, counters, none, or names with commas between.")
@_workgroups
@click.option("--save", "saves", multiple=True, metavar="NAME=FILE.npy", help="Write what a binding holds afterwards.")
@click.option("--trace", metavar="VAR", help="Show the values of a variable as they change.")
@click.option("--workgroup", default="0", show_default=True, metavar="X,Y,Z", help="The workgroup that is traced.")
@click.option(
    "--timeline",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="Write who writes and reads workgroup memory between barriers; ui.perfetto.dev opens it.",
)
@click.option(
    "--lanes", default="0", show_default=True, metavar="LANES", help="The lanes that are traced: 0-3,7, or all."
)
@click.option(
    "--dump",
    "stages",
    multiple=True,
    type=click.Choice(list(STAGES)),
    help="Print a stage of the kernel as text instead of running it: the syntax tree as WGSL, the typed module, the "
    "lowered ir, the program, or the machine and its arrays. Can be repeated. In any command, BANKSHOT_DEBUG=1..5 "
    "prints the stages up to that number to stderr.",
)
@JSON
def run(paths: tuple[Path, ...], device: str, probes: str, saves: tuple[str, ...], trace: str | None, workgroup: str,
        timeline: Path | None, lanes: str, as_json: bool, sample: int | None, check_classes: bool,
        stages: tuple[str, ...], **given: Any) -> None:  # fmt: skip
    """Simulate kernels at their default sizes; show outputs, totals and findings."""
    from ..reports.json_report import run_entry
    from ..reports.text import show_run
    from . import run as room

    devices = parse_devices(device)
    chosen = _which(sample, check_classes)
    watched = None if trace is None else _trace(trace, workgroup, lanes)
    timed = None if timeline is None else room.Timed(timeline, inputs.parse_place(workgroup))
    targets = _once("--save", [(name, Path(value)) for name, value in map(_pair("--save"), saves)])
    work = plans(paths, _request(**given, sweep=False))
    if stages:
        from .dump import dump_kernels

        if as_json or targets or watched or timed:
            raise UsageError("--dump prints text and runs nothing: leave out --json, --save, --trace and --timeline")
        for text in dump_kernels(work, devices[0], probes, stages):
            click.echo(text, nl=False)
        return
    if (targets or timed) and len(work) > 1:
        names, option = ", ".join(plan.kernel.name for plan in work), "--save" if targets else "--timeline"
        raise UsageError(f"{option}: several kernels would write to the same file; choose one with --kernel: {names}")
    _each(
        "run",
        work,
        as_json,
        results=_of_each(
            work, lambda case, say: [room.run(case, devices, probes, targets, say, watched, timed, chosen)]
        ),
        show=show_run,
        entry=run_entry,
    )


@main.command()
@PATHS
@request_options
@click.option(
    "--device",
    default="nvidia",
    show_default=True,
    help="Device profile that is charged for and judged; more after commas are set beside it.",
)
@ADAPTERS
@click.option("--gpu/--no-gpu", default=True, show_default=True, help="Compare with wgpu, bit for bit.")
@click.option("--sweep", is_flag=True, help="Every shape of the manifest, those that it calls heavy too.")
@_workgroups
@click.option(
    "--listing",
    type=click.Choice(["auto", "full", "counted", "none"]),
    default="auto",
    show_default=True,
    help="The source with counters: all of it, only lines that were charged; auto: all of it once per kernel.",
)
@click.option("--update-golden", is_flag=True, help="Write the goldens that the manifests want; never where CI is set.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "table", "github", "json"]),
    default="text",
    help="table: a row for each case, and all of those that are not clean; github: text, and annotations beside the "
    "source; by itself where GITHUB_ACTIONS is set.",
)
@click.option("--sarif", type=click.Path(path_type=Path, dir_okay=False), help="Write a SARIF 2.1.0 log to this file.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write one page, too.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Processes that share the cases; left out, one for each processor, of up to eight, once that takes seconds.",
)
@click.option("--watch", is_flag=True, help="Again whenever a manifest, its shaders or its references are saved.")
@JSON
def audit(paths: tuple[Path, ...], device: str, adapter: str | None, gpu: bool, sweep: bool, listing: str,
          update_golden: bool, form: str, sarif: Path | None, html: Path | None, jobs: int | None,
          sample: int | None, check_classes: bool, watch: bool, as_json: bool, **given: Any) -> None:  # fmt: skip
    """Run kernels in the shapes of their manifests and judge them: outputs, counters per line, findings, goldens."""
    from ..goldens import golden_files
    from ..judge.options import Options
    from ..reports.audited import Reports, Wanted
    from ..reports.text import console
    from . import watch as watching
    from .audit_cases import Audits, in_turn

    first, *also = parse_devices(device)
    if update_golden:
        golden_files.may_write("--update-golden")
    request = _request(**given, quick=not sweep)
    if watch:
        watching.rounds(paths, request, gpu)
    golden, chosen = request.as_in_manifest, _which(sample, check_classes)
    options = Options(first, gpu, adapter, also=tuple(also), workgroups=chosen, golden=golden, update=update_golden)
    as_json = as_json or form == "json"
    out = console()
    wanted = Wanted("json" if as_json else form, listing, html, sarif, out.width, out.is_terminal)
    broken: list[Broken] = []
    work = plans(paths, request, broken)
    reports, audits = Reports(work, wanted, broken), Audits(work, options, wanted, broken)
    _each(
        "audit",
        work,
        as_json,
        results=lambda progress: map(reports.kept, in_turn(audits, jobs, progress)),
        show=lambda _, case: reports.show(case),
        entry=lambda case: case.entry,
        failed=lambda case: case.failure,
        more=len(broken),
        finish=reports.finish,
    )


@main.command()
@PATHS
@request_options
@click.option("--device", help="Device profile; left out, the one that rounds as the adapter does.")
@ADAPTERS
@click.option("--sweep", is_flag=True, help="Every shape of the manifest, not only its default sizes.")
@click.option("--worst", type=click.IntRange(min=0), default=10, show_default=True, help="How many differing elements.")
@click.option(
    "--counters",
    is_flag=True,
    help="Compare counters too: the shader runs again with probes written into it, on a part "
    "of the grid where it makes over 16 million rows: the longest axis is halved until it does not.",
)
@JSON
def diff(paths: tuple[Path, ...], device: str | None, adapter: str | None, sweep: bool, worst: int, counters: bool,
         as_json: bool, **given: Any) -> None:  # fmt: skip
    """Run the same WGSL in the simulator and through wgpu, and show every difference in bits.

    What an adapter cannot run, or nobody can count, is told with its reason; it is neither clean nor a mismatch.
    """
    from ..judge import diff as room
    from ..reports.json_report import diff_entry
    from ..reports.text import show_diff
    from ..wgpu_client import parse_adapters

    asked, options = parse_adapters(adapter), room.Options(device, worst, counters)
    work = plans(paths, _request(**given, sweep=sweep))
    _each(
        "diff",
        work,
        as_json,
        results=_of_each(work, lambda case, say: (room.diff(case, each, options, say) for each in asked)),
        show=show_diff,
        entry=diff_entry,
        times=len(asked),
        refused=lambda result: result.refused,
    )


@main.command()
@PATHS
@request_options
@click.option(
    "--dims",
    "sizes",
    multiple=True,
    metavar="DIM=SIZES,...",
    help="Sizes to go through: M=64:512:64,N=1,768. Left out, the shapes of the manifests.",
)
@click.option("--heavy", is_flag=True, help="Of the shapes of manifests, those that are called heavy too.")
@click.option("--device", default="nvidia", show_default=True, help="Device profiles, with commas between.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    required=True,
    help="A table, .csv or .parquet. "
    "Rows are kept in FILE.rows as they are made; who runs it again goes on from there.",
)
@click.option("--jobs", type=click.IntRange(1), help="Processes; left out, one for each processor.")
@click.option("--dask", metavar="ADDRESS", help="Run on the workers of a Dask scheduler instead, as tcp://host:8786.")
@JSON
def sweep(paths: tuple[Path, ...], sizes: tuple[str, ...], heavy: bool, device: str, out: Path, jobs: int | None,
          dask: str | None, as_json: bool, **given: Any) -> None:  # fmt: skip
    """Run kernels in many shapes, for many devices, and write a table with a row of figures for each."""
    from ..reports.json_report import document
    from ..sweep import cases, parse_dims
    from ..sweep import sweep_command as command

    dims = _once("--dims", [pair for text in sizes for pair in parse_dims(text).items()])
    wanted = cases(paths, dims=dims, devices=parse_devices(device), request=_request(**given, quick=not heavy))
    swept = command.run(wanted, out, jobs, dask)
    click.echo(document("sweep", swept.rows, swept.ok) if as_json else command.summary(swept, out))
    sys.exit(INTERRUPTED if swept.stopped else CLEAN if swept.ok else FOUND)


@main.command()
@PATHS
@request_options
@click.option("--device", default="nvidia", show_default=True, help="Device profile that is charged for.")
@click.option("--array", metavar="NAME", help="One workgroup array; left out, all that the entry point uses.")
@click.option("--pitch", metavar="NAME", help="The constant that is the row pitch; left out, it is looked for.")
@click.option("--pads", metavar="FROM..TO", help="What the pitch is to be: 0..33, or 33 more where it is more already.")
@JSON
def advise(paths: tuple[Path, ...], device: str, array: str | None, pitch: str | None, pads: str | None, as_json: bool,
           **given: Any) -> None:  # fmt: skip
    """Try other row pitches and swizzles of workgroup arrays: fewest wavefronts, then least memory."""
    from ..advise import layout_search as room
    from ..reports.advise_report import advised_entry, show_advised

    options = room.Options(device, array, pitch, None if pads is None else inputs.parse_range("--pads", pads))
    work = plans(paths, _request(**given, sweep=False))
    _each(
        "advise",
        work,
        as_json,
        results=_of_each(work, lambda case, say: [room.advise(case, options, say)]),
        show=show_advised,
        entry=advised_entry,
    )


@main.command()
@JSON
def adapters(as_json: bool) -> None:
    """What wgpu can run kernels on here: driver and version, features, limits, and the device profile of each.

    SwiftShader is found where Chromium or Chrome keeps it, or where BANKSHOT_VULKAN_DRIVERS says.
    """
    from ..reports.adapters_report import adapter_entries, adapter_lines
    from ..reports.json_report import document
    from ..wgpu_client import adapter_survey

    found = adapter_survey.survey()
    if as_json:
        click.echo(document("adapters", adapter_entries(found), ok=True))
    else:
        click.echo("\n".join(adapter_lines(found, *adapter_survey.added())))


@main.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FOLDER...")
@click.option("--embedded", is_flag=True, help="Look into string literals of JS, TS, HTML, C++, Rust and Python too.")
@click.option("--fill", "fills", multiple=True, metavar="NAME=TEXT", help="What to put for {{NAME}} and ${NAME}.")
@click.option("--jobs", type=click.IntRange(1), help="Processes; left out, one for each processor.")
@click.option("--limit", default=60.0, show_default=True, help="Seconds for one stage of one entry point.")
@click.option("--list", "everything", is_flag=True, help="Show every trial, not only what is not as it should be.")
@ADAPTER
@JSON
def corpus(folders: tuple[Path, ...], embedded: bool, fills: tuple[str, ...], jobs: int | None, limit: float,
           everything: bool, adapter: str | None, as_json: bool) -> None:  # fmt: skip
    """Try every shader in FOLDERs on made-up data, here and through wgpu, and say what came of each."""
    from ..corpus import corpus_survey as room
    from ..reports.corpus_report import corpus_json, show_corpus
    from ..reports.text import console

    found = room.collect(folders, embedded, dict(map(_pair("--fill"), fills)))
    options = room.Options(jobs or os.cpu_count() or 1, limit, adapter)
    with meter(sum(len(collection.shaders) for collection in found)) as progress:

        def done(shader: Any) -> None:
            progress.stage(shader.name, "tried")
            with progress.finish():
                pass

        room.corpus(found, options, done)
    ok = all(room.good(trial) for collection in found for trial in collection.trials)
    if as_json:
        click.echo(corpus_json(found, ok))
    else:
        show_corpus(console(), found, everything=everything)
    sys.exit(CLEAN if ok else FOUND)


# ---- what the commands share -------------------------------------------------------------------------


Results = Callable[[Meter], Iterable[Any]]  # of every case of every plan, in order; the meter is told of stages


def _of_each(work: list[Plan], compute: Callable[[Any, Callable[[str], None]], Iterable[Any]]) -> Results:
    """What `compute` gives for each case."""

    def results(progress: Meter) -> Iterator[Any]:
        for plan in work:
            for case in plan.cases():
                title = f"{plan.kernel.name} {case.shape}".strip()
                yield from compute(case, partial(progress.stage, title))
                del case  # arrays may be large: they go before those of the next case are made

    return results


def _each(
    verb: str,
    work: list[Plan],
    as_json: bool,
    *,
    results: Results,
    show: Callable[..., None],
    entry: Callable[[Any], dict[str, Any]],
    times: int = 1,
    refused: Callable[[Any], str | None] = lambda result: None,
    failed: Callable[[Any], Failure | None] = lambda result: None,
    more: int = 0,
    finish: Callable[[], None] = lambda: None,
) -> None:
    """Report the results of each case as they come, with progress, or all as JSON; leave with the verdict.

    There are `times` results of a case, and `more`; `refused` says why one is none, `failed` what error one is (each
    is told once). `finish` is done when all have run.
    """
    from ..reports.json_report import document
    from ..reports.text import console

    good, entries, total = 0, [], times * sum(len(plan.shapes) for plan in work) + more
    reasons: Counter[str] = Counter()
    failures: Counter[Failure] = Counter()
    try:
        with meter(total) as progress:
            for result in results(progress):
                good += result.ok
                reasons.update(filter(None, [refused(result)]))
                failure = failed(result)
                with progress.finish():
                    if failure is not None and failure not in failures:
                        click.echo(failure.text, err=True)
                    failures.update(filter(None, [failure]))
                    if as_json:
                        entries.append(entry(result))
                    else:
                        show(console(), result)
                del result
    except (UsageError, WgslError, MemoryError) as error:
        if as_json:
            click.echo(document(verb, entries, False, str(error)))
        raise
    finish()
    clean = good > 0 and good + reasons.total() == total
    if as_json:
        click.echo(document(verb, entries, clean, "\n".join(failure.reason for failure in failures) or None))
    else:
        left_out = sum(plan.left_out for plan in work)
        heavy = f"; {left_out} heavy left out, --sweep runs all" if left_out else ""
        not_run = f"; {failures.total()} could not be run" if failures else ""
        click.echo(f"{verb}: {good} of {total} cases clean{not_run}{heavy}")
        for reason, count in reasons.most_common():
            click.echo(f"{verb}: {count} not compared: {reason}")
    sys.exit(max((failure.code for failure in failures), default=CLEAN if clean else FOUND))
