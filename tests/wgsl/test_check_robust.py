"""However much is written, the checker soon gives a module or a `WgslError`; `test_fuzz_reader` is for the rest."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

import pytest

import bankshot
from bankshot.sim.wgsl.check.check_module import check
from bankshot.sim.wgsl.diagnostics import WgslError, limits_are_errors
from bankshot.sim.wgsl.source import Source

if TYPE_CHECKING:
    from _typeshed import TraceFunction


@pytest.mark.parametrize("opening", ["(", "-", "!", "array<", "&"])
def test_deep_nesting_is_an_error(opening: str) -> None:
    with pytest.raises(WgslError):
        check(Source(f"const a = {opening * 5000}"))


def test_a_long_else_if_chain() -> None:
    chain = " else ".join(f"if x == {i} {{ y = {i}; }}" for i in range(100))
    check(Source(f"fn f(x: i32) {{ var y = 0; {chain} }}"))
    with pytest.raises(WgslError, match=r"nest"):
        check(Source(f"fn f(x: i32) {{ var y = 0; {' else '.join(['if x == 1 {}'] * 5000)} }}"))


def test_long_chains_of_calls_are_no_recursion() -> None:
    calls = "".join(f"fn f{i}(x: i32) -> i32 {{ return f{i + 1}(x); }}\n" for i in range(1500))
    text = f"{calls} fn f1500(x: i32) -> i32 {{ return x; }}"
    module = check(Source(text))
    assert len(module.functions) == 1501
    with pytest.raises(WgslError) as refused:
        check(Source(text.replace("return x;", "return f700(x);")))
    assert refused.value.diagnostics[0].message == "function 'f700' calls itself"


@pytest.mark.parametrize("declaration", ["const c{} = c{};", "alias c{} = c{};", "struct c{} {{ m: c{} }}"])
def test_long_chains_of_declarations_get_an_answer(declaration: str) -> None:
    chain = "".join(f"{declaration.format(i, i + 1)}\n" for i in range(4000))
    with pytest.raises(WgslError) as refused:
        check(Source(f"{chain} {declaration.format(4000, 4001)}"))
    assert {error.code for error in refused.value.diagnostics} <= {"limit", "unresolved-name"}


def test_running_out_of_memory_or_stack_is_an_error_of_the_module() -> None:
    for error, said in ((RecursionError(), "nests too deeply to be run"), (MemoryError("12 GiB"), r"\(12 GiB\)")):

        @limits_are_errors("run")
        def exhausted(raised: Exception) -> None:
            raise raised

        with pytest.raises(WgslError, match=said) as refused:
            exhausted(error)
        assert refused.value.diagnostics[0].code == "limit"


KERNEL = "@group(0) @binding(0) var<storage, read_write> s: i32;\n@compute @workgroup_size(1) fn main() {{ {} }}"


@pytest.mark.parametrize(
    ("before", "body", "said"),
    [
        (
            "var<workgroup> w: array<u32, 0x10000000>;",
            "w[0] = 1;",
            "1073741824 bytes of workgroup memory, and no device",
        ),
        ("override n = 0x7fffffff; var<workgroup> w: array<vec4u, n>;", "w[0] = vec4u();", "bytes of workgroup memory"),
        ("", "".join(f"let v{i} = s; if v{i} == {i} {{" for i in range(200)) + "}" * 200, "nested more than 127 deep"),
    ],
)
def test_a_run_that_no_machine_can_make_is_an_error(before: str, body: str, said: str) -> None:
    with pytest.raises(WgslError, match=said):
        bankshot.simulate(before + KERNEL.format(body), grid=1, bindings={"s": 0})


def test_workgroup_memory_that_no_device_has_is_a_warning() -> None:
    used = "@compute @workgroup_size(1) fn main() { w[0] = 1; }"
    for words, codes in ((1 << 18, []), ((1 << 18) + 1, ["workgroup-storage"])):
        module = check(Source(f"var<workgroup> w: array<u32, {words}>;\n{used}"))
        assert [warning.code for warning in module.warnings] == codes
    assert check(Source(f"override n = 0x7fffffff; var<workgroup> w: array<u32, n>;\n{used}")).warnings == []


def test_a_call_chain_too_deep_to_be_inlined_is_an_error() -> None:
    """The program nests the callees: `check` accepts the module, and `simulate` refuses it."""
    calls = "".join(f"fn f{i}(x: i32) -> i32 {{ return f{i + 1}(x); }}\n" for i in range(6000))
    module = check(Source(f"{calls} fn f6000(x: i32) -> i32 {{ return x; }} {KERNEL.format('s = f0(s);')}"))
    with pytest.raises(WgslError, match="nests too deeply to be run"):
        bankshot.simulate(module, grid=1, bindings={"s": 0})


# Texts of `n` errors, and of one error beside 500 `n` letters.
ERRORS: dict[str, Callable[[int], str]] = {
    "names in a function": lambda n: "fn f() {" + "\n".join(f"let v{i} = w{i}x;" for i in range(n)) + "}",
    "names in one line": lambda n: "fn f() {" + "".join(f"let v{i} = w{i}x;" for i in range(n)) + "}",
    "names of constants": lambda n: "".join(f"const v{i} = w{i}x;\n" for i in range(n)),
    "members": lambda n: (
        f"struct S {{ {', '.join(f'm{i}: i32' for i in range(1000))} }}\nfn f(s: S) {{"
        + "".join(f"_ = s.n{i};\n" for i in range(n))
        + "}"
    ),
    "syntax": lambda n: "".join(f"fn v{i}() {{ let x = ; }}\n" for i in range(n)),
    "attributes": lambda n: "".join(f"@compte fn v{i}() {{ }}\n" for i in range(n)),
    "types": lambda n: "fn f(a: i32, b: u32) {" + "".join(f"let v{i} = a + b;\n" for i in range(n)) + "}",
    "a long name": lambda n: f"const a = {'b' * 500 * n};",
    "a long declaration": lambda n: f"fn f() {{ {'bc' * 250 * n} = 1; }}",
    "a long comment": lambda n: f"fn f() {{ let a = ; /* {'b' * 500 * n} */ }}",
}


@pytest.mark.parametrize("text", ERRORS.values(), ids=ERRORS.keys())
def test_work_grows_with_the_number_of_errors_and_lines_stay_short(text: Callable[[int], str]) -> None:
    few, _ = work_of_errors(text(200))
    many, shown = work_of_errors(text(800))
    assert many < 5 * few, (few, many)
    assert max(map(len, shown.splitlines())) < 1500


def work_of_errors(text: str) -> tuple[int, str]:
    """The lines of Python that run until `text` is refused, and what the error says."""
    lines = 0

    def count(frame: FrameType, event: str, arg: object) -> TraceFunction:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        with pytest.raises(WgslError) as refused:
            check(Source(text))
        shown = str(refused.value)
    finally:
        sys.settrace(before)
    return lines, shown


def test_a_long_line_is_shown_around_the_caret() -> None:
    for before, after in ((0, 5000), (5000, 0), (5000, 5000)):
        with pytest.raises(WgslError) as refused:
            check(Source(f"/*{'a' * before}*/const x = nowhere;/*{'b' * after}*/"))
        head, line, caret, *_ = str(refused.value).splitlines()
        assert head.startswith(f"shader.wgsl:1:{before + 15}: error: ")
        assert line[caret.index("^") : caret.rindex("^") + 1] == "nowhere"
        assert len(line) <= 242
        assert (line[0] == "…", line[-1] == "…") == (before > 0, after > 0)


NESTED = (
    "".join(f"struct S{i} {{ a: S{i + 1}, b: S{i + 1}, c: S{i + 1} }}" for i in range(13)) + "struct S13 { a: i32 }"
)


@pytest.mark.parametrize(
    "text",
    [
        NESTED,
        "const a = array<i32, 100000000>();",
        "fn f() { let a = array<i32, 100000000>(); }",
        "const a = array<f32, 60000>(); const b = array(a, a);",
    ],
)
def test_what_is_too_large_to_write_is_an_error(text: str) -> None:
    with pytest.raises(WgslError) as refused:
        check(Source(text))
    assert refused.value.diagnostics[0].code == "limit"
