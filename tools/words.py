"""Phrases that must not come back: `python -m tools.words` lists their places and exits with 1.

One row of `PHRASES` is a phrase of whole words, as a regular expression in lower case, and what to write instead. The
list grows when a reviewer finds another phrase that a reader stumbles over.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUFFIXES = {".py", ".md", ".toml", ".sh", ".j2", ".yml", ".yaml", ".ipynb", ".err", ".txt", ".wgsl"}
EXEMPT = {"tools/words.py", "CHANGELOG.md", "docs/claims.md", "uv.lock", "LICENSE"}

PHRASES: dict[str, str] = {
    r"is to be": "must be, is",
    r"are to be": "must be, are",
    r"was to be": "should have been",
    r"nobody": "name who or what does not",
    r"tells? (?:nothing |something )?of": "reports, describes",
    r"is told (?:of|by)": "is reported, is shown by",
    r"are told (?:of|by)": "are reported, are shown by",
    r"what (?:comes|becomes|came|became) of": "the result of",
    r"held against": "compared with",
    r"holds? \w+ against": "compares with",
    r"a fault of ours": "internal error",
    r"to come out": "expected",
    r"of one's own": "user-defined, your own",
    r"in its place": "say where",
    r"put in (?:its|their) places?": "inline, insert",
    r"come(?:s)? to an end": "terminate",
    r"goes? round": "iterate",
    r"gone round": "iterated",
    r"for nothing": "unused, wasted",
    r"the house": "Bankshot",
    r"strangers?": "other projects",
    r"who (?:asks|calls|wants|reads|has|makes|takes)": "the caller, the user",
    r"as it is written": "as written",
    r"one behind the other": "consecutively",
    r"what is there": "name it",
    r"likewise\.\"\"\"": "say what it does",
    r"\"\"\"(?:the same|the like|an? empty one|of a run|what it is)": "an imperative sentence or a noun phrase",
    r"than it is to": "than it must",
    r"lent": "borrowed, passed by address",
    r"strange (?:numbers?|values?)": "poison values",
    r"(?:be|been|is|are|was|were) (?:not )?told(?! (?:to|apart))": "reported, shown",
    r"(?:is|are|was) said (?:to be|of|with|in)": "the report says, is reported",
    r"(?:it|that|what) stands(?! for)": "is",
    r"asked of": "requested from",
    r"what (?:it|they) (?:is|are) to": "must",
    r"what is to": "what must",
    r"from here on": "from now on, until",
    r"is no more(?! than)": "no longer exists",
    r"known of": "known about",
    r"not held": "unchecked",
    r"(?:is|are|was|were) held to": "must be within, is checked by",
    r"held (?:alike|together) with": "compared with",
    r"passed over": "skipped, ignored",
    r"puts? (?:it |this )?down to": "attributes to",
    r"brings? to light": "reveals, finds",
    r"brings? along": "includes, installs",
    r"g(?:ives?|ave|iven) back": "returns",
    r"lets? go of": "releases",
    r"is let go": "is released",
    r"work(?:s|ed)? off": "process",
    r"somebody": "name who or what",
    r"hangs? (?:on|together)": "depends on, is consistent",
    r"gets? to an? (?:output|store)": "flows into, reaches",
    r"to the letter": "exactly",
    r"goes? over (?:what|a|the) `?#?(?:define|file|manifest)": "overrides",
    r"makes? (?:something|nothing|much|little) of": "say what it does",
    r"who (?:edits|finds|comes|stores|writes|changes|needs|gets|gives|uses|opens)": "the caller, the user",
    r"finds? (?:its|their) way": "reaches",
    r"at one sitting": "at once",
    r"cannot be had": "is unavailable",
    r"can be had": "is available",
    r"to be had": "available",
    r"as if nothing": "unchanged",
    r"to and fro": "back and forth",
    r"go(?:es)? on from (?:there|here|where)": "resumes",
    r"went on": "continued",
    r"whoever": "the caller",
    r"by and by": "gradually",
    r"put aside": "stored",
    r"made sure of": "checked",
    r"as (?:it|they) (?:is|are|was|were) asked": "as requested",
    r"stands (?:in|at|on|beside|behind|before|here|there|between|once)": "is, comes",
    r"abreast": "interleaved",
    r"mould": "template",
    r"weaver": "instrumenter",
}


# Without a boundary in front, which is checked below, the search for a literal beginning is ten times as fast.
_COMPILED = [(re.compile(rf"(?:{pattern})(?!\w)"), better) for pattern, better in PHRASES.items()]


def findings(text: str) -> list[tuple[int, str, str]]:
    """Each phrase of a text: its line, the words, and what to write instead."""
    text = text.lower()
    found: list[tuple[int, str, str]] = []
    for pattern, better in _COMPILED:
        for match in pattern.finditer(text):
            start = match.start()
            if not (start and text[start].isalnum() and text[start - 1].isalnum()):
                found.append((text.count("\n", 0, start) + 1, match.group(), better))
    return sorted(found)


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
        for line, words, better in findings(path.read_text(encoding="utf-8")):
            print(f"{path.relative_to(ROOT)}:{line}: {words!r}: write {better}")
            found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
