"""One try: a wrong kernel under a manifest, judged by a command, with what its exit code was."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np

import bankshot
from bankshot.oracle.cli.main import main
from bankshot.sim.wgsl.diagnostics import WgslError

from .drafts import Draft, draft
from .kernels import KERNELS, Kernel, default_case
from .slips import slip
from .wrongness import Output

ROOT = Path(__file__).parents[2]
_BUDGET = 1 << 14  # turns of a loop, after which a wrong kernel is no use
_IN_OWN_PROCESS = 0.02  # share of the tries that run in a process of their own
_LIMIT = 120.0  # seconds of such a process
FORMATS = ("text", "json", "github", "table")


@dataclass(frozen=True)
class Try:
    """`code`: the exit code. `about`: what was tried, in words. `files`: the files of its folder."""

    number: int
    code: int
    about: str
    files: dict[str, bytes]
    said: str

    @property
    def is_fooled(self) -> bool:
        """Whether the wrong kernel passed, or the command broke."""
        return self.code not in (1, 2)

    def __str__(self) -> str:
        shown = "\n".join(f"--- {name}\n{text.decode(errors='replace')}" for name, text in sorted(self.files.items()))
        return f"=== try {self.number}: exit {self.code}: {self.about}\n{shown}\n--- it says\n{self.said[-1500:]}\n"


def attempt(number: int, seed: int, *, gpu: bool = False, apart: float = _IN_OWN_PROCESS, way: str = "") -> Try:
    """Make try `number` of a seed, always the same. `way`: one of `WAYS`, else any."""
    random_ = random.Random(f"{seed} {number}")
    while True:
        kernel = random_.choice(KERNELS)
        wrong = _wrong(kernel, random_)
        if wrong and (made := draft(kernel, wrong[1], random_, way)):
            return _judged(number, made, wrong[0], random_, gpu, apart)


# ---- wrong kernels ----


@cache
def _expected(kernel: Kernel) -> dict[str, np.ndarray]:
    case = default_case(kernel)
    made = kernel.reference({name: np.asarray(array) for name, array in case.arrays.items()}, case.shape.dims)
    return {name: np.asarray(array, np.float64) for name, array in made.items()}


def outputs_of(kernel: Kernel, text: str, policy: str = "clamp") -> dict[str, Output] | None:
    """Run a text in place of the kernel's, with a policy for accesses out of bounds. Returns None where it does not run
    to its end."""
    case = default_case(kernel)
    try:
        module = bankshot.check(text, defines=case.kernel.defines)
        options = {**case.launch, "bindings": case.arrays, "budget": _BUDGET, "out_of_bounds": policy}
        run = bankshot.simulate(module, **options, probes="none")
    except (WgslError, bankshot.UsageError, ValueError):
        return None
    if any(finding.code == "endless-loop" for finding in run.findings):
        return None
    return {
        name: Output(np.asarray(run.outputs.get(name, case.arrays[name])), array)
        for name, array in _expected(kernel).items()
    }


def _wrong(kernel: Kernel, random_: random.Random) -> tuple[str, dict[str, Output]] | None:
    """A slip in a kernel that changes an output grossly on every device: a guard that is off by one changes none where
    accesses out of bounds are dropped."""
    text = slip(kernel.text, random_)
    if text == kernel.text:
        return None
    found = [outputs_of(kernel, text, policy) for policy in ("zero", "wrap", "clamp")]
    gross = all(outputs and any(each.is_gross for each in outputs.values()) for outputs in found)
    return (text, outputs) if gross and (outputs := found[-1]) else None


# ---- commands ----


def _judged(number: int, made: Draft, text: str, random_: random.Random, gpu: bool, apart: float) -> Try:
    with tempfile.TemporaryDirectory(prefix="adversary-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        write_files(folder, made, made.kernel.text)
        separate = made.fatal or random_.random() < apart
        if made.golden:
            run_here([*audit_command(folder / made.name, gpu), "--update-golden"], {})
        (folder / "k.wgsl").write_text(text, encoding="utf-8")
        arguments, pipe, environment = _command(folder, made, random_, gpu)
        if separate:
            by_pytest = random_.random() < 0.3 and not made.disguise
            code, said = _in_own_process(arguments, pipe, environment, folder, by_pytest)
        else:
            code, said = run_here(arguments, environment, pipe)
        files = {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.iterdir() if file.is_file()}
    shown = " ".join(arguments).replace(f"{name}/", "").replace(name, ".")
    where = "its own process, " if separate else ""
    words = f"{made.kernel.name}, {', '.join(made.about)}: {shown} ({where}{pipe}{', '.join(['', *environment])})"
    return Try(number, code, words, files, said)


def write_files(folder: Path, made: Draft, text: str) -> None:
    (folder / "k.wgsl").write_text(text, encoding="utf-8")
    (folder / made.name).write_bytes(made.manifest())
    if made.reference is not None:
        (folder / "reference.py").write_text(made.reference, encoding="utf-8")
    if "disguised" in made.about:
        good, kernel = folder / "good", KERNELS[1]
        good.mkdir()
        (good / "k.wgsl").write_text(kernel.text, encoding="utf-8")
        (good / "reference.py").write_text(kernel.reference_text(), encoding="utf-8")
        right = kernel.table().replace("\n", f'\nreference = "reference.py:{kernel.reference.__name__}"\n', 1)
        (good / "right.toml").write_text(right, encoding="utf-8")


def audit_command(path: Path, gpu: bool) -> list[str]:
    return ["audit", str(path), *([] if gpu else ["--no-gpu"])]


def _command(folder: Path, made: Draft, random_: random.Random, gpu: bool) -> tuple[list[str], str, dict[str, str]]:
    """A command that judges the folder, what reads its output, and the environment that it runs in."""
    maybe = lambda chance: random_.random() < chance  # noqa: E731
    path = folder if "disguised" in made.about or maybe(0.3) else folder / made.name
    path = folder / "k.wgsl" if path != folder and maybe(0.1) else path
    environment = {"GITHUB_ACTIONS": "true", "CI": "true"} if maybe(0.1) else {}
    pipe = random_.choices(("to the end", "closed", "first line", "full"), (10, 1, 1, 1))[0]
    if not made.golden and maybe(0.15):
        return ["sweep", str(path), "--out", str(folder / "t.csv"), "--jobs", "1"], pipe, environment
    arguments = [*audit_command(path, gpu), *made.options]
    arguments += ["--json"] if maybe(0.2) else ["--format", random_.choice(FORMATS)] if maybe(0.7) else []
    arguments += ["--html", str(folder / "page.html")] if maybe(0.1) else []
    arguments += ["--sarif", str(folder / "log.sarif")] if maybe(0.1) else []
    arguments += ["--listing", random_.choice(["auto", "full", "counted", "none"])] if maybe(0.3) else []
    arguments += random_.choice([["--check-classes"], ["--sample", "1"]]) if maybe(0.15) else []
    arguments += ["--sweep"] if maybe(0.15) else []
    arguments += (
        ["--device", random_.choice(["nvidia,apple", "lavapipe", "apple"])] if maybe(0.1) and not made.golden else []
    )
    arguments += ["--jobs", "2"] if maybe(0.02) else []
    return arguments, pipe, environment


class _Broken(io.RawIOBase):
    """A stream that fails after so many bytes, with an error number."""

    def __init__(self, room: int, error: OSError) -> None:
        self.room, self.error = room, error

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self.room <= 0:
            raise self.error
        self.room -= len(data)
        return len(data)


def _stream(pipe: str) -> io.TextIOBase:
    rooms = {"closed": (0, BrokenPipeError(32, "Broken pipe")), "first line": (40, BrokenPipeError(32, "Broken pipe")),
             "full": (40, OSError(28, "No space left on device"))}  # fmt: skip
    return io.TextIOWrapper(io.BufferedWriter(_Broken(*rooms[pipe]), 1)) if pipe in rooms else io.StringIO()


def run_here(arguments: list[str], environment: dict[str, str], pipe: str = "to the end") -> tuple[int, str]:
    """Run a command in this process. Returns its exit code, and what it said."""
    out, err = _stream(pipe), io.StringIO()
    with _environment(environment), redirect_stdout(out), redirect_stderr(err):
        try:
            main(arguments, prog_name="bankshot")
            code: object = 0
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            code = 99 if isinstance(error, Exception) else 130
            err.write(repr(error))
    said = err.getvalue() + (out.getvalue() if isinstance(out, io.StringIO) else "")
    with suppress(OSError, ValueError):
        out.close()
    return (0 if code is None else code if isinstance(code, int) else 1), said


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Variables for a while; those that CI sets are unset otherwise."""
    names = {*changes, "CI", "GITHUB_ACTIONS"}
    before = {name: os.environ.pop(name, None) for name in names}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _in_own_process(
    arguments: list[str], pipe: str, environment: dict[str, str], folder: Path, by_pytest: bool
) -> tuple[int, str]:
    """Run a command, or pytest on the folder, in a process of its own, whose output may have no reader."""
    command = [sys.executable, "-m", "bankshot", *arguments]
    if by_pytest:
        named = any(each.name == "bankshot" for each in entry_points(group="pytest11"))
        plugin = [] if named else ["-p", "bankshot.oracle.pytest_plugin.hooks"]
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *plugin, str(folder)]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {
        **{k: v for k, v in os.environ.items() if k not in ("CI", "GITHUB_ACTIONS")},
        "PYTHONPATH": path,
        **environment,
    }
    if pipe == "closed":
        command = ["bash", "-c", 'exec "$0" "$@" >&-', *command]
    out = open("/dev/full", "wb") if pipe == "full" else subprocess.PIPE  # noqa: SIM115
    process = subprocess.Popen(
        command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE
    )
    if pipe == "first line" and process.stdout is not None:
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
    try:
        told, err = process.communicate(timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        told, err = process.communicate()
    if out is not subprocess.PIPE:
        out.close()  # type: ignore[union-attr]
    return process.returncode, ((err or b"") + (told or b"")).decode(errors="replace")
