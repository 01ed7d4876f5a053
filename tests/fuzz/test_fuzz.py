"""Generated programs: valid, without findings, and the same on the adapter. Some here, many by `make fuzz`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings

import bankshot
from bankshot.oracle import wgpu_client
from bankshot.oracle.errors import GpuError, NoAdapter
from tests.fuzz import __main__ as command
from tests.fuzz import opinions
from tests.fuzz.batches import Log, Result, search
from tests.fuzz.contents import buffers
from tests.fuzz.judging import Judge, Verdict, compare
from tests.fuzz.known import FAULTS, Fault, answer_for, mended
from tests.fuzz.opinions import Answer, Opinion, Question
from tests.fuzz.programs import Program, programs
from tests.fuzz.reducing import reduce
from tests.fuzz.searching import program_of

SLOW = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def asked(profile: str) -> Iterator[Judge]:
    try:
        wgpu_client.require_adapter(profile)
    except NoAdapter as error:
        pytest.skip(str(error))
    with Opinion(profile) as opinion:
        yield Judge(opinion)


@pytest.fixture(scope="module")
def lavapipe() -> Iterator[Judge]:
    yield from asked("lavapipe")


@pytest.fixture(scope="module")
def swiftshader() -> Iterator[Judge]:
    yield from asked("swiftshader")


def test_calls_are_mended_from_the_inside() -> None:
    text = "fn f(x: f32) -> f32 { return mix(1.0, x, mix(x, 2.0, 0.5)); }"
    assert "mix" not in mended(Program(text), {"mix": "({0} - {R}(1)) * {1} + {2}"}).text
    assert mended(Program(text), {"max": "0"}).text == text


def test_a_call_is_mended_by_the_same_call_once() -> None:
    text = "fn f(m: mat2x3<f32>) -> mat2x3<f32> { return transpose(transpose(m)); }"
    around = "(transpose(((transpose((m)) + mat3x2<f32>()))) + mat2x3<f32>())"
    made = text.replace("transpose(transpose(m))", around)
    assert mended(Program(text), {"transpose": "transpose({0}) + {R}()"}).text == made


def test_overrides_are_mended_into_variables() -> None:
    text = "@id(7) override a: i32;\noverride b = 3u;\n@compute @workgroup_size(1) fn main() { _ = a + i32(b); }"
    made = mended(Program(text, overrides={"7": -2}), {"override": "var<private> {name}: {R} = {R}({value})"})
    assert made.text.splitlines()[:2] == ["var<private> a: i32 = i32(-2);", "var<private> b: u32 = u32(3);"]
    assert made.overrides == {}


def test_float_updates_are_mended() -> None:
    text = "fn f(a: f32) { var v: vec2f; var n = 1; var m: mat2x2f; v.x += (a * (a)); v -= vec2f(a); n += 1; m += m; }"
    made = "v.x = f32(2) * v.x + ((a * (a))); v -= vec2f(a); n += 1; m = f32(2) * m + (m); }"
    assert mended(Program(text), {"+=": "{0} = {R}(2) * {0} + {1}"}).text.endswith(made)


def test_statements_are_mended_away() -> None:
    text = "fn f() { var i = 0; loop { if i > 9 { break; } continuing { i++; break if i > (3 + 1); } } }"
    assert mended(Program(text), {"break if": ""}).text == text.replace("break if i > (3 + 1);", "")


def test_variables_without_a_value_are_mended() -> None:
    text = "fn f() { var a: u32; var b = 1; loop { var c: array<f32, 2>; break; } }"
    made = "fn f() { var a: u32 = u32(); var b = 1; loop { var c: array<f32, 2> = array<f32, 2>(); break; } }"
    assert mended(Program(text), {"var": "{R}()"}).text == made


@SLOW
@given(programs())
def test_every_program_is_valid_wgsl(program: Program) -> None:
    assert bankshot.check(program.text).pipeline("main", {**program.overrides}).entry.name == "main"


def test_a_program_is_the_same_again_and_after_a_file() -> None:
    assert program_of(7) == program_of(7) != program_of(8)
    assert Program.read(program_of(7).file()) == program_of(7)


def test_programs_agree(lavapipe: Judge) -> None:
    verdicts = {number: lavapipe.judge(program_of(number), count=number == 3) for number in range(30)}
    assert {n: v for n, v in verdicts.items() if not v.agreed and not answer_for(lavapipe, program_of(n), v)} == {}
    assert sum(v.word == "equal" for v in verdicts.values()) > 20


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_known_fault_is_still_there(fault: Fault, request: pytest.FixtureRequest) -> None:
    judge = request.getfixturevalue(fault.adapter)
    verdict = judge.judge(fault.smallest)
    assert fault.explains(verdict), f"no longer so, take it out of known.toml: {verdict}"
    assert not fault.mend or fault.is_evident(judge, fault.smallest, verdict)


MENDED = Fault("", "Mesa", "", "died", "", "", mend={"transpose": "transpose({0}) + {R}()"})
TRANSPOSED = "@compute @workgroup_size(1) fn main() { var m: mat2x3f; let t = transpose(m); }"


@pytest.mark.parametrize(
    ("fault", "text", "word", "then", "evident"),
    [
        (MENDED, TRANSPOSED, "died", "equal", True),
        (MENDED, TRANSPOSED, "differs", "within", True),
        (MENDED, TRANSPOSED, "died", "died", False),  # also without what the fault is about
        (MENDED, TRANSPOSED.replace("transpose(m)", "m"), "died", "equal", False),
        (MENDED, TRANSPOSED, "crashed", "equal", False),  # the simulator
        (replace(MENDED, mend={}), TRANSPOSED, "died", "equal", False),
        (replace(MENDED, adapter="swiftshader"), TRANSPOSED, "died", "equal", False),
        (replace(MENDED, adapter="swiftshader", whose="naga"), TRANSPOSED, "died", "equal", True),
    ],
)
def test_a_death_is_explained_where_a_mended_program_lives(
    fault: Fault, text: str, word: str, then: str, evident: bool
) -> None:
    judge = Mock(opinion=Mock(profile="lavapipe"), judge=lambda program, count: Verdict(then))
    assert fault.is_evident(judge, Program(text), Verdict(word)) is evident


def test_results_are_the_same_on_several_processes(lavapipe: Judge) -> None:
    alone = list(search("lavapipe", range(4), 1, 600.0))
    assert [result.number for result in alone] == [0, 1, 2, 3]
    assert sorted(search("lavapipe", range(4), 2, 600.0), key=lambda result: result.number) == alone
    assert list(search("lavapipe", range(4), 1, 0.0)) == []


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def found(profile: str, numbers: list[int], jobs: int, seconds: float) -> Iterator[Result]:
        asked.extend(numbers)
        yield from (Result(number, "equal") for number in numbers)

    monkeypatch.setattr(command, "search", found)
    monkeypatch.setattr(command, "_summary", Mock())
    log = Log(tmp_path / "lavapipe.jsonl")
    log.write([Result(11, "equal"), Result(12, "refused", "why", "naga's"), Result(99, "died")])
    with log.path.open("a") as file:
        file.write('{"number": 13, "wo')  # stopped here
    for more, wanted in (["--resume"], [10, 13]), ([], [10, 11, 12, 13]):
        asked.clear()
        monkeypatch.setattr("sys.argv", ["fuzz", "4", "--from", "10", "--into", str(tmp_path), *more])
        with pytest.raises(SystemExit) as left:
            command.main()
        assert not left.value.code
        assert asked == wanted
        assert sorted(result.number for result in log.results()) == [10, 11, 12, 13]


WRONG = """
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
fn f(x: u32) -> u32 { var y = x; for (var k = 0u; k < 3u; k++) { y += k; } return y; }
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
    let unused = f(i);
    if i < 2u { out[i] = f(i) * 2u + subgroupAdd(0u); } else { out[i] = 7u; }
}
"""


def test_a_program_is_reduced_to_what_matters() -> None:
    program = Program(WRONG.replace(" + subgroupAdd(0u)", ""), grid=(2, 2, 1))
    smaller = reduce(program, lambda p: "* 2u" in p.text and "out[i]" in p.text, seconds=60.0)
    assert smaller.grid == (1, 1, 1)
    assert len(smaller.text.splitlines()) < 7
    assert "fn f" not in smaller.text
    bankshot.check(smaller.text)


COMPARED = """
struct Out { f: vec3<f32>, n: i32, open: f32 }
@group(0) @binding(0) var<storage, read_write> out: array<Out>;
@compute @workgroup_size(1) fn main(@builtin(num_workgroups) n: vec3<u32>) {
    let one = f32(n.x);
    out[0] = Out(vec3<f32>(exp(one * 1.5f), 0f, 2f), 7, one * 1e38f * exp(one * 9f));
}
"""


@pytest.mark.parametrize(
    ("word", "theirs", "verdict"),
    [
        (0, 4.4816890, "equal"),
        (0, 4.4816895, "within"),
        (0, 4.49, "differs"),
        (1, -0.0, "equal"),
        (2, 2.0000002, "differs"),
        (3, 8, "differs"),
        (4, 5.0, "open"),  # an overflow
        (5, 9.0, "equal"),  # padding
    ],
)
def test_what_may_differ(word: int, theirs: float, verdict: str) -> None:
    program = Program(COMPARED)
    given = buffers(program, bankshot.check(program.text).pipeline("main", {}))
    data = {name: buffer.data for name, buffer in given.items()}
    run = bankshot.simulate(program.text, grid=1, bindings=data, device="lavapipe", probes="none")
    other = run.outputs["out"].copy()
    other.view(np.int32 if word == 3 else np.float32)[word] = theirs
    assert compare(run, Answer("ran", outputs={"out": other}), given).word == verdict


class Losing(Opinion):
    """Whose processes answer so, one after another."""

    def __init__(self, *words: str) -> None:
        super().__init__("lavapipe")
        self.words, self.started = list(words), 0

    def _start(self) -> None:
        self.started += 1
        self._process = Mock()
        self._there = Mock(recv=lambda: Answer(self.words.pop(0)))


@pytest.mark.parametrize(("words", "word"), [(["lost", "ran"], "ran"), (["lost", "lost"], "lost")])
def test_after_the_loss_of_the_device_another_process_is_asked_once(words: list[str], word: str) -> None:
    opinion = Losing(*words, "ran")
    opinion.ask(Question(FAULTS[0].smallest, {}))
    assert opinion.answer().word == word
    assert opinion.started == 2
    opinion.ask(Question(FAULTS[0].smallest, {}))
    assert opinion.answer().word == "ran"
    assert opinion.started == (2 if word == "ran" else 3)


def test_the_loss_of_the_device_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    question = Question(FAULTS[-1].smallest, {})
    for message, word in (("Parent device is lost", "lost"), ("no such type", "refused")):
        monkeypatch.setattr(wgpu_client, "run", Mock(side_effect=GpuError(message)))
        assert opinions._answer(question, "lavapipe").word == word


def test_after_a_death_another_process_answers(lavapipe: Judge) -> None:
    program = FAULTS[0].smallest
    opinion = Opinion("lavapipe")
    opinion.ask(Question(program, {}))
    opinion._process.kill()
    assert opinion.answer().word == "died"
    opinion.ask(Question(FAULTS[-1].smallest, {"out": np.zeros(32, np.uint8)}))
    assert opinion.answer().word == "ran"
    opinion.close()
