"""`python -m tests.wgsl.fuzz_reader N` changes valid shaders at random, and reads each of the N texts.

Each must be read or refused; none may crash or hang the front end.

To read is what the simulator does before it runs: preprocess, check, and where a compute entry point is left, create
its pipeline and lower it. `--run` also runs every entry point with all probes, on a small grid and invented inputs. The
answer is yes, or a `WgslError`; any other exception, more than two seconds of processor time or a gigabyte of memory
(five seconds and two gigabytes for a run) is an internal error, and is printed with the text. Text number i is always
the same for the same shaders: `--only i` reads it alone.

The shaders are those of the project, with its tests of error messages; those that the conformance data wants accepted,
where it is present; and the `.wgsl` files of the folders given by `--shaders`.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import bankshot
from bankshot.oracle.errors import UsageError
from bankshot.oracle.guesses.invented_inputs import Recipe, bindings, override_values
from bankshot.sim.codegen.build import build
from bankshot.sim.ir.rounding import Rounding
from tests.conformance import data

SECONDS = {"read": 2.0, "run": 5.0}  # of processor time, for one text
_BYTES = {"read": 1 << 30, "run": 2 << 30}  # of memory, for one process
_GRACE = 60  # seconds after which a process that does not react is killed, with its traceback printed
_BUDGET = 1000  # iterations of loops
_INPUTS = Recipe("small", (1, 2, 4), 4, 256)
_LONGEST = 10_000  # characters of a shader that is taken: longer ones only take longer
_CHUNK = 250
_ROOT = Path(__file__).parents[2]

_INCLUDE = re.compile(r'^#include "(.*\.wgsl)".*', re.MULTILINE)
_TOKEN = re.compile(r"[\w.]+|\s+|[-+*/%&|^!=<>]+|.", re.DOTALL)
# What goes wrong where it is not expected; tokens of all the shaders are used as well.
_AWKWARD = (
    *("0", "1", "-1", "2147483647", "-2147483648", "4294967295u", "-9223372036854775808", "9" * 400, "65536", "0x"),
    *("1e38", "1e-45", "1e309", "0x1p127", "0x1p-149", "1.7976931348623157e308", "a.b" * 200, "__a", "_", '"'),
    *("( " * 300, ") " * 300, "{" * 200, "[" * 200, "-" * 400, "!" * 400, "<" * 100, "&*" * 100, ">>", "<<"),
    *("/*", "*/", "//", "\u2028", "\ufeff", "\0", "é", "\ud800", "\n#\n", " A ", "\n#undef A\n", '\n#include "x"\n'),
    *("\n#define A B B\n", "\n#define B A A A\n", "\n#if A\n", "\n#if (1 << 99999) / 0\n", "\n#else\n", "\n#endif\n"),
    *(
        "enable f16;",
        "diagnostic(off, a.b);",
        "const_assert ",
        "loop {",
        "continuing {",
        "switch 1 {",
        "break if true;",
    ),
    *("array<", "vec4<", "ptr<function, ", "atomic<u32>", "mat4x4<"),
)


# ---- the texts ---------------------------------------------------------------------------------------


FOLDERS: list[Path] = []  # of further shaders


@cache
def shaders() -> tuple[str, ...]:
    """Every shader there is to start from."""
    paths = [*_ROOT.glob("shaders/**/*.wgsl"), *_ROOT.glob("tests/files/**/*.wgsl")]
    found = [_with_includes(path) for path in sorted(paths)]
    found += [path.read_text("utf-8", "replace") for folder in FOLDERS for path in sorted(folder.rglob("*.wgsl"))]
    if data.path("valid").is_file():
        found += [record["wgsl"] for record in data.records("valid") if record["expect"]]
        found += [shader for record in data.records("exec") for shader in record["shaders"]]
        found += [record["wgsl"] for record in data.records("expr")]
    return tuple(dict.fromkeys(text for text in found if len(text) <= _LONGEST))


def _with_includes(path: Path) -> str:
    """Return the text of a file, for reading without its folder."""
    text = path.read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: _with_includes(path.parent / found[1]), text)


@cache
def _spare() -> tuple[str, ...]:
    """Tokens to put in: those of all shaders, each once, and as many awkward ones."""
    seen = {token for shader in shaders() for token in _TOKEN.findall(shader)}
    return (*sorted(seen), *itertools.islice(itertools.cycle(_AWKWARD), len(seen)))


_ALIKE = (re.compile(r"\d[\w.]*"), re.compile(r"[-+*/%&|^!=<>]+"), re.compile(r"[iuf]32|f16|bool|vec.*|mat.*|array"))


def _stretch(rng: random.Random, tokens: list[str]) -> slice:
    """A few tokens in a row."""
    start = rng.randrange(len(tokens) + 1)
    return slice(start, start + rng.choice((1, 1, 2, 5, 20)))


def _drop(rng: random.Random, tokens: list[str]) -> None:
    del tokens[_stretch(rng, tokens)]


def _repeat(rng: random.Random, tokens: list[str]) -> None:
    run = _stretch(rng, tokens)
    tokens[run.start : run.start] = tokens[run] * rng.choice((1, 1, 2, 10, 200))


def _move(rng: random.Random, tokens: list[str]) -> None:
    run = _stretch(rng, tokens)
    moved = tokens[run]
    del tokens[run]
    at = rng.randrange(len(tokens) + 1)
    tokens[at:at] = moved


def _replace(rng: random.Random, tokens: list[str]) -> None:
    at = rng.randrange(len(tokens) + 1)
    tokens[at : at + 1] = [rng.choice(_spare())]


def _rename(rng: random.Random, tokens: list[str]) -> None:
    """One token takes the text of another that is there, as a name or a number of the wrong kind would."""
    if tokens:
        tokens[rng.randrange(len(tokens))] = rng.choice(tokens)


def _alter(rng: random.Random, tokens: list[str]) -> None:
    """A number, an operator or a type becomes another: what is left is often valid still."""
    pattern = rng.choice(_ALIKE)
    here = [at for at, token in enumerate(tokens) if pattern.fullmatch(token)]
    there = list(filter(pattern.fullmatch, _TOKEN.findall(rng.choice(shaders()))))
    if here and there:
        tokens[rng.choice(here)] = rng.choice(there)


def _insert(rng: random.Random, tokens: list[str]) -> None:
    at = rng.randrange(len(tokens) + 1)
    tokens[at:at] = [rng.choice(_spare())]


def _splice(rng: random.Random, tokens: list[str]) -> None:
    other = _TOKEN.findall(rng.choice(shaders()))
    tokens[_stretch(rng, tokens)] = other[_stretch(rng, other)]


def _bytes(rng: random.Random, tokens: list[str]) -> None:
    """Bytes changed, put in, or all cut off from one on."""
    text = bytearray("".join(tokens).encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(4):
            case 0:
                text[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                text[at:at] = bytes([rng.randrange(128)])
            case 2:
                text[at : at + 1] = bytes(byte ^ (1 << rng.randrange(7)) for byte in text[at : at + 1])
            case _ if rng.random() < 0.2:
                del text[at:]
    tokens[:] = _TOKEN.findall(text.decode("utf-8", "replace"))


_CHANGES: tuple[Callable[[random.Random, list[str]], None], ...] = (
    *(_drop, _repeat, _move, _replace, _rename, _rename, _alter, _alter, _alter, _alter, _insert, _splice, _bytes),
)


def text_of(number: int, seed: int = 0) -> str:
    """Text number so many: a shader with one to four changes."""
    rng = random.Random(f"{seed} {number}")
    tokens = _TOKEN.findall(rng.choice(shaders()))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(_CHANGES)(rng, tokens)
    return "".join(tokens)


# ---- reading -----------------------------------------------------------------------------------------


class _OutOfTime(BaseException):
    """Not an `Exception`, so that no handler in between catches it."""


@dataclass(frozen=True)
class Answer:
    """`word` is accepted, refused, crashed or hung; `where` is the kind of a fault and the line that it came from."""

    word: str
    where: str = ""


def read(text: str, way: str = "read") -> Answer:
    """Read one text as the simulator does, or run it (`way`)."""
    signal.signal(signal.SIGPROF, _out_of_time)
    signal.setitimer(signal.ITIMER_PROF, SECONDS[way])
    try:
        WAYS[way](text)
    except bankshot.WgslError as error:
        if "not enough memory" in error.diagnostics[0].message:
            return Answer("crashed", str(error)[:80])
        return Answer("refused")
    except _OutOfTime as fault:
        return Answer("hung", _where(fault))
    except Exception as fault:
        return Answer("crashed", _where(fault))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return Answer("accepted")


def _read(text: str) -> None:
    module = bankshot.check(text)
    entries = [function for function in module.functions.values() if function.stage == "compute"]
    for entry in entries:
        build(
            module.pipeline(entry.name),
            rounding=Rounding(False, False, False),
            probes=frozenset(),
            workgroups_per_batch=1,
        )


def _run(text: str) -> None:
    """Run each compute entry point of a text on two workgroups; what a race or an index out of bounds does, too."""
    module = bankshot.check(text)
    values = override_values(module)
    for entry in [function for function in module.functions.values() if function.stage == "compute"]:
        try:
            given = bindings(module.pipeline(entry.name, values), _INPUTS)
        except UsageError:  # an input of a type that nothing can be invented for
            continue
        inputs = {name: bankshot.Sampler(**v) if isinstance(v, dict) else v for name, v in given.items()}
        bankshot.simulate(module, grid=2, bindings=inputs, entry=entry.name, overrides=values, budget=_BUDGET)


WAYS: dict[str, Callable[[str], None]] = {"read": _read, "run": _run}


def _out_of_time(*_: object) -> None:
    raise _OutOfTime


def _where(fault: BaseException) -> str:
    """Exception and line of ours; of a hang, the function at the middle of the stack, for the line says little."""
    ours = [f for f in traceback.extract_tb(fault.__traceback__) if f"{os.sep}sim{os.sep}" in f.filename]
    if not ours:
        return type(fault).__name__
    last = ours[-1]
    place = f"{Path(last.filename).relative_to(_ROOT)}"
    if isinstance(fault, _OutOfTime):
        return f"{place}, in {last.name}"
    return f"{place}:{last.lineno}, in {last.name}: {type(fault).__name__}: {str(fault)[:80]}"


def _limit_memory(way: str) -> None:
    os.environ["BANKSHOT_THREADS"] = "1"  # each thread reserves memory for its stack
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES[way], _BYTES[way]))


def _answers(numbers: range, seed: int, way: str) -> list[tuple[int, Answer]]:
    found: list[tuple[int, Answer]] = []
    for number in numbers:
        text = text_of(number, seed)
        faulthandler.dump_traceback_later(_GRACE, exit=True)  # compiled code does not react to signals
        found.append((number, read(text, way)))
        faulthandler.cancel_dump_traceback_later()
    return found


def answers(count: int, seed: int, jobs: int, way: str = "read") -> Iterator[tuple[int, Answer]]:
    """The answer to each of the texts 0 to `count`, with its number. A process that dies is the answer of its chunk."""
    chunks = [range(count)[start : start + _CHUNK] for start in range(0, count, _CHUNK)]
    _spare()  # what processes can share
    if way == "run":
        _compile()
    with ProcessPoolExecutor(jobs, initializer=_limit_memory, initargs=(way,)) as pool:
        todo = [(chunk, pool.submit(_answers, chunk, seed, way)) for chunk in chunks]
        for chunk, future in todo:
            try:
                yield from future.result()
            except BrokenProcessPool:
                yield (
                    chunk.start,
                    Answer("hung", f"a process died, in texts {chunk.start} to {chunk.stop - 1} or others"),
                )


def _compile() -> None:
    """Compile the machine once, in a process of its own: threads do not survive a fork."""
    with ProcessPoolExecutor(1) as pool:
        pool.submit(_run, "@compute @workgroup_size(1) fn main() {}").result()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.wgsl.fuzz_reader", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=20_000, help="texts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="print text number so many and read it, with the traceback")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--run", action="store_const", const="run", default="read", help="also run what is accepted")
    parser.add_argument("--shaders", type=Path, action="append", default=[], help="a folder of .wgsl files; repeatable")
    args = parser.parse_args()
    FOLDERS[:] = args.shaders
    if args.only is not None:
        print(text_of(args.only, args.seed))
        WAYS[args.run](text_of(args.only, args.seed))
        return
    start = time.perf_counter()
    words: Counter[str] = Counter()
    faults: dict[Answer, list[int]] = defaultdict(list)
    for number, answer in answers(args.count, args.seed, args.jobs, args.run):
        words[answer.word] += 1
        if answer.where:
            faults[answer].append(number)
    for answer, numbers in sorted(faults.items(), key=lambda item: -len(item[1])):
        text = min((text_of(number, args.seed) for number in numbers[:20]), key=len)
        print(f"\n{len(numbers)} {answer.word}: {answer.where}\nnumbers {numbers[:8]}\n{text[:3000]!a}")
    shown = ", ".join(f"{words[word]:,} {word}" for word in ("accepted", "refused", "crashed", "hung"))
    print(f"{args.count:,} texts from {len(shaders()):,} shaders: {shown}; {time.perf_counter() - start:.0f} s")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
