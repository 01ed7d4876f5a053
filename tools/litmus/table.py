"""The table that a suite prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """The result of one test. `kind`: a row of the table. `agrees`: None where the test cannot be said in WGSL, or
    decides nothing; `why` then says why."""

    name: str
    kind: str
    agrees: bool | None
    states: int = 0
    seconds: float = 0.0
    why: str = ""


def show(title: str, results: Iterable[Result], verbose: bool) -> int:
    """Print results as they come, and the table. Returns 1 if any differs from what is expected."""
    print(f"{title}\n")
    known: list[Result] = []
    for each in results:
        known.append(each)
        if verbose or each.agrees is False:
            word = {True: "ok", False: "DIFFERS", None: "-"}[each.agrees]
            print(
                f"  {word:8}{each.name}  {each.kind}  {each.states} states  {each.seconds:.2f} s  {each.why}",
                flush=True,
            )
    print(f"\n| {'test':40} | tests | as expected | states, most | seconds, median | seconds, most |")
    print(f"| {'-' * 40} | ----: | ----------: | -----------: | --------------: | ------------: |")
    ran = [each for each in known if each.agrees is not None]
    for kind in dict.fromkeys(each.kind for each in ran):
        rows = [each for each in ran if each.kind == kind]
        times = sorted(each.seconds for each in rows)
        right, most = sum(each.agrees is True for each in rows), max(each.states for each in rows)
        middle = times[len(times) // 2]
        print(f"| {kind:40} | {len(rows):5} | {right:11} | {most:12,} | {middle:15.2f} | {times[-1]:13.2f} |")
    skipped = Counter(each.why for each in known if each.agrees is None)
    if skipped:
        print(f"\nnot run: {sum(skipped.values())}")
        for why, count in skipped.most_common():
            print(f"  {count:4}  {why}")
    print()
    return int(any(each.agrees is False for each in known))
