"""The phrases that must not come back."""

import subprocess
import sys

import pytest

from tools.words import PHRASES, ROOT, files, findings


@pytest.mark.parametrize(
    ("text", "line", "phrase"),  # with ~ in phrases, so that this file is clean
    [
        ("first line\nIt is~to be a number.", 2, "is~to be"),
        ('"""The~same for pairs."""', 1, '"""the~same'),
        ("# No~body reads it.", 1, "no~body"),
        ("outputs are held~against a reference", 1, "held~against"),
        ("a race is~told~of", 1, "is~told~of"),
        ("it~stands~in row 3", 1, "it~stands"),
        ("the pool lets~go of them", 1, "lets~go of"),
    ],
)
def test_a_planted_phrase_is_found(text, line, phrase):
    text, phrase = (each.replace("o~b", "ob").replace("~", " ") for each in (text, phrase))
    assert (line, phrase) in [(found, words) for found, words, _ in findings(text)]


@pytest.mark.parametrize(
    "text",
    [
        "`x` stands for a type",
        "this is to become a list",
        "silent, excellent, talents",
        "the strand",
        "is no more than 5",
        "tell them apart",
        "a whole number of tiles",
    ],
)
def test_other_words_are_left_alone(text):
    assert findings(text) == []


def test_every_phrase_has_a_better_one():
    assert len(PHRASES) >= 72
    assert all(PHRASES.values())


def test_the_command_lists_a_phrase_of_a_file(tmp_path, monkeypatch, capsys):
    from tools import words

    (tmp_path / "note.md").write_text("fine\nwhat~comes~of it\n".replace("~", " "), encoding="utf-8")
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "files", lambda: [tmp_path / "note.md"])
    assert words.main([]) == 1
    assert "note.md:2: 'what~comes~of': write the result of\n".replace("~", " ") in capsys.readouterr().out
    assert words.main([str(tmp_path / "elsewhere")]) == 0


def test_comments_of_shaders_and_cells_of_notebooks_are_read():
    suffixes = {path.suffix for path in files()}
    assert {".py", ".md", ".wgsl", ".ipynb", ".toml", ".j2", ".sh", ".err"} <= suffixes
    assert ROOT / "tools" / "words.py" not in files()


def test_the_tree_is_clean():
    done = subprocess.run([sys.executable, "-m", "tools.words"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
