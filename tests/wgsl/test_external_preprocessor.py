"""External preprocessors: the input of a command, its output, and every way in which it can fail."""

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

import bankshot
from bankshot.sim.wgsl.preprocess import external_preprocessor
from bankshot.sim.wgsl.preprocess.external_preprocessor import filtered

PYTHON = f'"{sys.executable}" -c'
BROKEN = "fn f() { return 1 }"


def run(command: str, text: str = "", **given) -> tuple[str, str]:
    options = {"defines": {}, "include_dirs": [], "folder": Path("kernels")} | given
    return filtered(text, "m.wgsl", command, **options)


def error(wgsl, **options) -> str:
    with pytest.raises(bankshot.WgslError) as caught:
        bankshot.check(wgsl, **options)
    return str(caught.value)


def test_text_goes_in_and_comes_out():
    swap = "import sys; sys.stdout.write(sys.stdin.read().replace('a', 'b'))"
    assert run(f'{PYTHON} "{swap}"', "a\nå") == ("b\nå", "m.wgsl")


def test_words_that_stand_for_what_is_given():
    given = {"defines": {"N": 4, "ON": True, "TYPE": "vec2<f32>"}, "include_dirs": [Path("lib"), Path("my lib")]}
    show = "import sys; print(sys.argv[1:])"
    written, _ = run(f'{PYTHON} "{show}" {{defines}} {{includes}} x={{folder}} {{other}} *', **given)
    words = ["-DN=4", "-DON=true", "-DTYPE=vec2<f32>", "-Ikernels", "-Ilib", "-Imy lib", "x=kernels", "{other}", "*"]
    assert written == f"{words}\n"


def test_ours_comes_after():
    emit = "print('#if N > 3\\nconst a = N;\\n#endif')"
    module = bankshot.check("", preprocess=f'{PYTHON} "{emit}"', defines={"N": 4})
    assert "const a = 4;" in module.source.text


def test_markers_lead_back():
    emit = "print('\\n\\n# 30 \\'made.tmpl\\'\\nconst a = ;'.replace(chr(39), chr(34)))"
    assert error("", preprocess=f'{PYTHON} "{emit}"').startswith("made.tmpl:30:11: error: expected an expression")


def test_lines_that_may_have_moved_are_not_called_the_shaders():
    same = "import sys; print(sys.stdin.read(), end='')"
    assert error("\n" + BROKEN, preprocess=f'{PYTHON} "{same}"').startswith("shader.wgsl:2:18: error")
    longer = "import sys; print('\\n\\n' + sys.stdin.read())"
    message = error("\n" + BROKEN, preprocess=f'{PYTHON} "{longer}"')
    assert message.startswith(f"shader.wgsl (as {Path(sys.executable).name} wrote it):4:18: error")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "the command of an outside preprocessor is empty"),
        ("  ", "the command of an outside preprocessor is empty"),
        ("no-such-program -x", "the preprocessor 'no-such-program -x' cannot be started: No such file or directory"),
        (".", "the preprocessor '.' cannot be started: Permission denied"),
        ("x\0y", "cannot be started: embedded null byte"),
        ("cat 'x", "the preprocessor 'cat 'x' cannot be read: no closing quotation"),
        (f'{PYTHON} "import sys; sys.exit(3)"', "failed with exit code 3"),
        (
            f"{PYTHON} \"import sys; sys.exit('line 4 is bad')\"",
            "failed with exit code 1\nnote: it says: line 4 is bad",
        ),
        (f'{PYTHON} "import sys; sys.stdout.buffer.write(bytes([255]))"', "wrote something that is not UTF-8 text"),
    ],
)
def test_failures(command, message):
    said = error("", preprocess=command)
    assert said.startswith("error: the ")
    assert message in said


def test_a_command_that_does_not_end():
    with pytest.raises(bankshot.WgslError, match=r"took more than 0\.2 seconds"):
        run(f'{PYTHON} "import time; time.sleep(9)"', seconds=0.2)


@pytest.mark.skipif(os.name != "posix", reason="ends the processes of a session")
@pytest.mark.parametrize("detail", ["sleep 60", "sleep 60 & echo"])
def test_processes_of_a_command_end_with_it(detail):
    """The shell's child holds the pipes, and would keep them open."""
    start = time.monotonic()
    with pytest.raises(bankshot.WgslError, match=r"took more than 0\.5 seconds"):
        run(f"sh -c '{detail}'", seconds=0.5)
    assert time.monotonic() - start < 30


def test_a_command_that_writes_too_much(monkeypatch):
    monkeypatch.setattr(external_preprocessor, "MOST_BYTES", 1 << 20)
    with pytest.raises(bankshot.WgslError, match="wrote more than 1 MiB"):
        run(f'{PYTHON} "while True: print(chr(120) * 9999)"')


def test_a_command_that_complains_at_length():
    with pytest.raises(bankshot.WgslError, match=r"failed with exit code 3\nnote: it says: x{50}"):
        run(f"{PYTHON} \"import sys; sys.stderr.write('x' * 1000000); sys.exit(3)\"")


@pytest.mark.parametrize("length", [3999, 4000, 4001])
def test_a_message_quotes_4000_characters(length):
    with pytest.raises(bankshot.WgslError) as caught:
        run(f"{PYTHON} \"import sys; sys.stderr.write('x' * {length}); sys.exit(3)\"")
    assert caught.value.diagnostics[0].notes[0].message == "it says: " + "x" * min(length, 4000)


def test_a_command_that_does_not_read():
    assert run(f'{PYTHON} ""', "x" * 1_000_000) == ("", "m.wgsl")


@pytest.mark.skipif(shutil.which("cpp") is None, reason="needs a C preprocessor: apt-get install cpp")
def test_the_c_preprocessor_expands_macros_with_parameters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "part.inc").write_text("#define TWICE(x) ((x) * SCALE)\n\nconst b = TWICE(nothing);\n")
    shader = tmp_path / "kernels" / "k.wgsl"
    shader.write_text('const a = 1;\n#include "part.inc"\nconst c = TWICE(a);\n')
    options = {"preprocess": "cpp -w {includes} {defines}", "defines": {"SCALE": 2}}
    assert error(Path("kernels/k.wgsl"), **options).startswith("kernels/part.inc:3:")
    (tmp_path / "kernels" / "part.inc").write_text("#define TWICE(x) ((x) * SCALE)\n")
    assert "const c = ((a) * 2);" in bankshot.check(shader, **options).source.text
    shader.write_text('const a = 1;\n\n#include "part.inc"\nconst c = TWICE(nothing);\n')
    assert error(Path("kernels/k.wgsl"), **options).startswith("kernels/k.wgsl:4:")


def test_a_preprocessor_that_says_nothing_is_not_quoted():
    assert "it says" not in error("", preprocess=f'{PYTHON} "import sys; sys.exit(3)"')


@pytest.mark.parametrize("name", ["", "-", "<stdin>"])
def test_a_marker_that_names_the_standard_input_is_the_shader(name):
    emit = f"print('# 7 \\'{name}\\'\\nconst a = ;'.replace(chr(39), chr(34)))"
    assert error("", preprocess=f'{PYTHON} "{emit}"').startswith("shader.wgsl:7:11: error: expected an expression")


def test_a_command_may_write_as_much_as_is_allowed(monkeypatch):
    monkeypatch.setattr(external_preprocessor, "MOST_BYTES", 1 << 20)
    write = 'PYTHON "import sys; sys.stdout.write(chr(120) * COUNT)"'.replace("PYTHON", PYTHON)
    assert len(run(write.replace("COUNT", str(1 << 20)))[0]) == 1 << 20
    with pytest.raises(bankshot.WgslError, match="wrote more than 1 MiB"):
        run(write.replace("COUNT", str((1 << 20) + 1)))


def test_what_a_command_says_is_read_to_its_end(monkeypatch):
    listen = external_preprocessor._listen
    monkeypatch.setattr(external_preprocessor, "_listen", lambda *given: (time.sleep(0.2), listen(*given)))
    command = f"{PYTHON} \"import sys; sys.exit('no such macro')\""
    assert error("", preprocess=command).endswith("note: it says: no such macro")
