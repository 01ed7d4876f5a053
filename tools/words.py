"""Phrases that must not come back: `python -m tools.words` lists where they stand and exits with 1.

One row of `PHRASES` is a phrase, as a regular expression, and what to write instead. The list grows when a reviewer
finds another phrase that a reader stumbles over.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUFFIXES = {".py", ".md", ".toml", ".sh", ".j2", ".yml", ".yaml", ".ipynb", ".err", ".txt", ".wgsl"}
EXEMPT = {"tools/words.py", "CHANGELOG.md", "docs/claims.md", "uv.lock", "LICENSE"}

PHRASES: dict[str, str] = {
    r"\bis to be\b": "must be, is",
    r"\bare to be\b": "must be, are",
    r"\bwas to be\b": "should have been",
    r"\bnobody\b": "name who or what does not",
    r"\btells? (?:nothing |something )?of\b": "reports, describes",
    r"\bis told (?:of|by)\b": "is reported, is shown by",
    r"\bare told (?:of|by)\b": "are reported, are shown by",
    r"\bwhat (?:comes|becomes|came|became) of\b": "the result of",
    r"\bheld against\b": "compared with",
    r"\bholds? \w+ against\b": "compares with",
    r"\ba fault of ours\b": "internal error",
    r"\bto come out\b": "expected",
    r"\bof one's own\b": "user-defined, your own",
    r"\bin its place\b": "say where",
    r"\bput in (?:its|their) places?\b": "inline, insert",
    r"\bcome(?:s)? to an end\b": "terminate",
    r"\bgoes? round\b": "iterate",
    r"\bgone round\b": "iterated",
    r"\bfor nothing\b": "unused, wasted",
    r"\bthe house\b": "Bankshot",
    r"\bstrangers?\b": "other projects",
    r"\bwho (?:asks|calls|wants|reads|has|makes|takes)\b": "the caller, the user",
    r"\bas it is written\b": "as written",
    r"\bone behind the other\b": "consecutively",
    r"\bwhat is there\b": "name it",
    r"\blikewise\.\"\"\"": "say what it does",
    r"\"\"\"(?:The same|The like|An? empty one|Of a run|What it is)\b": "an imperative sentence or a noun phrase",
    r"\bthan it is to\b": "than it must",
    r"\blent\b": "borrowed, passed by address",
    r"\bstrange (?:numbers?|values?)\b": "poison values",
    r"\babreast\b": "interleaved",
    r"\bmould\b": "template",
    r"\bweaver\b": "instrumenter",
}


def findings(path: Path) -> Iterator[tuple[int, str, str]]:
    """Each phrase of a file: its line, the words, and what to write instead."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for pattern, better in PHRASES.items():
            for match in re.finditer(pattern, line, re.IGNORECASE):
                yield number, match.group(), better


def files() -> list[Path]:
    """Every tracked text file that people read."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    return [ROOT / name for name in listed if Path(name).suffix in SUFFIXES and name not in EXEMPT]


def main(paths: list[str]) -> int:
    """List the phrases in these files and folders, or in all files. Returns the exit code."""
    wanted = [Path(path).resolve() for path in paths]
    found = 0
    for path in files():
        if wanted and not any(path.is_relative_to(each) for each in wanted):
            continue
        for line, words, better in findings(path):
            print(f"{path.relative_to(ROOT)}:{line}: {words!r}: write {better}")
            found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
