"""Names and texts of others in terminals, GitHub's commands and job summaries: no sink passes on what it would obey."""

import io
import sys

import click
import pytest
from rich.console import Console
from rich.markup import escape

from bankshot.oracle.cli import streams
from bankshot.oracle.errors import UsageError, escape_controls, printable
from bankshot.oracle.reports.formats import github
from bankshot.oracle.reports.remarks import Entry, Remark
from bankshot.oracle.reports.terminal import console, print_command, say

EVIL = "a\n::error::pwned\r\x1b[2J\x1b]0;title\x07\x9b1A\u202e|<img>[link](http://x)`code`"
CONTROLS = set(map(chr, (*range(32), *range(127, 160)))) | set("\u2028\u2029\u202e")


def test_printable_has_no_control_characters():
    assert printable("".join(CONTROLS)).isascii()
    assert not CONTROLS & set(printable(EVIL))
    assert printable("naïve \u00b5 日本") == "naïve \u00b5 日本"
    assert printable("a\tb\n\x1b", keep="\t\n") == "a\tb\n\\x1b"


@pytest.fixture
def output(tmp_path, monkeypatch):
    """Return a function that calls another with stdout as the command line has it, and returns what that writes."""

    def written(sink):
        with (tmp_path / "out").open("w", encoding="utf-8") as file, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", streams.Output(file))
            sink()
            sys.stdout.flush()
        return (tmp_path / "out").read_text(encoding="utf-8")

    return written


@pytest.mark.parametrize(
    "sink",
    [
        print,
        click.echo,
        lambda text: say(Console(file=sys.stdout), text),
        lambda text: Console(file=sys.stdout).print(escape(text)),
        lambda text: sys.stdout.write(text),
    ],
    ids=["print", "click", "say", "rich", "write"],
)
@pytest.mark.parametrize("on_github", [False, True])
def test_terminals_and_logs(output, monkeypatch, sink, on_github):
    monkeypatch.setenv("GITHUB_ACTIONS", str(on_github).lower())
    text = output(lambda: sink(EVIL))
    assert "pwned" in text
    assert set(text) & CONTROLS == {"\n"}
    assert any(line.lstrip().startswith("::") for line in text.splitlines()) != on_github


def test_colours_and_tabs_stay(output):
    text = output(lambda: click.echo(click.style("red\t", fg="red"), color=True))
    assert text == "\x1b[31mred\t\x1b[0m\n"
    assert escape_controls("\x1b[31m\x1b[1A") == "\x1b[31m\\x1b[1A"


def test_progress_and_commands_pass_as_they_are(output, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert output(lambda: print_command("::notice title=x::fine\x1b")) == "::notice title=x::fine\\x1b\n"
    assert output(lambda: sys.stdout.unescaped.write("\x1b[1A")) == "\x1b[1A"


def entry():
    remark = Remark("error", "output", EVIL, EVIL, 3, 1, also=((EVIL, EVIL, 2),))
    return Entry(EVIL, False, {}, EVIL, (remark,))


def test_workflow_commands_are_single_lines():
    (line,) = github.workflow_commands([entry()])
    assert line.startswith("::error file=")
    assert not set(line) & CONTROLS
    assert line.count("::error") == 1 + line[2:].count("::error")
    properties, _, message = line[2:].partition("::")
    assert "pwned" in properties
    assert "pwned" in message
    assert "\n" not in line


def test_job_summaries_have_one_row_for_each_case_and_no_markup_of_others():
    text = github.summary([entry(), entry()])
    rows = [line for line in text.splitlines() if line.startswith("| **fails**")]
    assert len(rows) == 2
    cells = len(rows[0].replace("\\|", "").split("|"))
    assert {len(line.replace("\\|", "").split("|")) for line in text.splitlines() if line.startswith("|")} == {cells}
    assert "<img" not in text
    assert "](" not in text.replace("\\](", "")
    assert not (set(text) & CONTROLS) - {"\n"}
    assert not any(line.startswith("::") for line in text.splitlines())


def test_a_summary_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    with pytest.raises(UsageError, match=r"GITHUB_STEP_SUMMARY .*: cannot be written: Is a directory"):
        github.write_summary([entry()])


def test_a_stream_without_a_file_descriptor_is_left_alone(monkeypatch):
    kept = io.StringIO()
    monkeypatch.setattr(sys, "stdout", kept)
    monkeypatch.setattr(sys, "stderr", kept)
    streams.install()
    assert sys.stdout is kept


def test_text_that_reads_like_an_emoji_is_left_alone():
    out = io.StringIO()
    console(out).print("a:bomb:b")
    assert out.getvalue() == "a:bomb:b\n"
