"""Times of kernels on adapters: which a claim needs, the tables that hold them, and verdicts from them.

A table is `tests/hardware/times_NAME.csv`, written by `tools.claims.measure`: one row for each adapter, kernel and
case, with the median, the 10th and the 90th percentile of the timed passes, in microseconds, without the launch. A
verdict compares medians; that one kernel is faster than another needs percentiles that do not overlap. Adapters that
are CPUs are shown and do not decide.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from bankshot.sim.fast_dataclass import frozen

from .ledger import Decision, Verdict

TABLES = Path(__file__).parents[2] / "tests" / "hardware"
COLUMNS: tuple[str, ...] = (
    "device",
    "kind",
    "driver",
    "date",
    "command",
    "kernel",
    "case",
    "repeats",
    "median_us",
    "p10_us",
    "p90_us",
)
CAVEAT = "one GPU is one GPU"
WITH_PROCESSORS = "one GPU is one GPU, and processors that run shaders decide nothing"


@frozen
class Timing:
    """A dispatch whose time a claim needs: a kernel of `shaders/` at some sizes, with overrides, and with a change of
    its text, which `change` names."""

    kernel: str
    sizes: tuple[tuple[str, int], ...]
    overrides: tuple[tuple[str, int], ...] = ()
    change: str = ""
    edits: tuple[tuple[str, str], ...] = ()

    @property
    def case(self) -> str:
        """The case in words, as tables have it: `M=512 N=768 TK_PAD=17, unmasked`."""
        words = " ".join(f"{name}={value}" for name, value in (*self.sizes, *self.overrides))
        return f"{words}, {self.change}" if self.change else words


def at(
    kernel: str,
    sizes: Mapping[str, int],
    overrides: Mapping[str, int] | None = None,
    change: str = "",
    edits: Sequence[tuple[str, str]] = (),
) -> Timing:
    """The timing of a kernel at these sizes."""
    return Timing(kernel, tuple(sizes.items()), tuple((overrides or {}).items()), change, tuple(edits))


@frozen
class Spread:
    """A time, or a ratio of two: the median, and a range of likely values."""

    median: float
    low: float
    high: float

    def __truediv__(self, other: Spread) -> Spread:
        return Spread(self.median / other.median, self.low / other.high, self.high / other.low)


Work = Sequence[tuple[float, Timing]]
"""Several dispatches, each so many times: what takes as long as their sum."""


def once(*timings: Timing) -> Work:
    """Each dispatch once."""
    return [(1.0, timing) for timing in timings]


@frozen
class Pair:
    """What a claim compares: `times` is the time of `before` per that of `after`, above 1 where `after` is faster."""

    name: str
    before: Work
    after: Work


def timings(pairs: Sequence[Pair]) -> tuple[Timing, ...]:
    """What must be measured for some pairs, each once."""
    return tuple({timing: None for pair in pairs for _, timing in (*pair.before, *pair.after)})


# ---- tables ------------------------------------------------------------------------------------------


@frozen
class Adapter:
    """An adapter that a table has times of."""

    name: str
    kind: str  # CPU, DiscreteGPU, …
    driver: str

    def __str__(self) -> str:
        name, _, _ = self.name.partition(" (")
        return f"{name} ({self.driver})"

    @property
    def decides(self) -> bool:
        """Whether its times decide a claim: a CPU that runs shaders has none of a GPU's costs."""
        return self.kind != "CPU"


Times = Mapping[tuple[str, str], Spread]  # by kernel and case


@cache
def measured(folder: Path = TABLES) -> dict[Adapter, Times]:
    """The times in every table of a folder, by adapter. A later row replaces an earlier one of the same case."""
    found: dict[Adapter, dict[tuple[str, str], Spread]] = {}
    for path in sorted(folder.glob("times_*.csv")):
        for row in read(path):
            times = found.setdefault(Adapter(row["device"], row["kind"], row["driver"]), {})
            spread = Spread(float(row["median_us"]), float(row["p10_us"]), float(row["p90_us"]))
            times[row["kernel"], row["case"]] = spread
    return dict(found)


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def taken(work: Work, times: Times) -> Spread | None:
    """The time of some work, None if a dispatch has not been measured."""
    rows = [(count, times.get((timing.kernel, timing.case))) for count, timing in work]
    known = [(count, row) for count, row in rows if row is not None]
    if len(known) < len(rows):
        return None
    fields = ("median", "low", "high")
    return Spread(*(sum(count * getattr(row, field) for count, row in known) for field in fields))


def ratios(pairs: Sequence[Pair], times: Times) -> dict[str, Spread] | None:
    """The ratio of each pair, None if a dispatch has not been measured."""
    found = {pair.name: (taken(pair.before, times), taken(pair.after, times)) for pair in pairs}
    known = {name: before / after for name, (before, after) in found.items() if before and after}
    return known if len(known) == len(found) else None


# ---- verdicts ----------------------------------------------------------------------------------------

Rule = Callable[[Sequence[Spread]], Verdict]


def faster(found: Sequence[Spread]) -> Verdict:
    """Confirmed if `after` is faster in each pair, partly if in some, else refuted."""
    wins = [each.low > 1 for each in found]
    return Verdict.CONFIRMED if all(wins) else Verdict.PARTLY if any(wins) else Verdict.REFUTED


def between(least: float, most: float) -> Rule:
    """Confirmed if `after` is as many times as fast as claimed in each pair, rounded to hundredths; partly if it is so
    in some, or faster in some by less or by more; not decidable if no median says so, but a range reaches what is
    claimed; else refuted."""

    def rule(found: Sequence[Spread]) -> Verdict:
        inside = [least <= round(each.median, 2) <= most for each in found]
        if all(inside):
            return Verdict.CONFIRMED
        if any(inside) or any(each.low > 1 for each in found):
            return Verdict.PARTLY
        reached = any(each.low < most and least < each.high for each in found)
        return Verdict.UNDECIDABLE if reached else Verdict.REFUTED

    return rule


def decide(pairs: Sequence[Pair], rule: Rule, counts: str, claim: str, **figures: Any) -> Decision:
    """Decide a claim by measured times, and say what the counts are, too.

    `counts` is a format string over the figures. Not decidable while no table has every time that the claim needs.
    """
    said = counts.format(**figures)
    shown, verdicts, by_adapter = [], [], {}
    for adapter, times in measured().items():
        found = ratios(pairs, times)
        if found is None:
            continue
        shown.append(f"on {adapter} {words(found)}")
        by_adapter[adapter.name] = {name: each.median for name, each in found.items()}
        if adapter.decides:
            verdicts.append(rule(list(found.values())))
    figures = {**figures, "times_as_fast": by_adapter}
    caveat = CAVEAT if len(verdicts) == len(shown) else WITH_PROCESSORS
    said = f"{said}; times as fast, measured {'; '.join(shown)}; {caveat}" if shown else said
    if not verdicts:
        return Decision(Verdict.UNDECIDABLE, said, figures, needs(claim))
    verdict = verdicts[0] if len(set(verdicts)) == 1 else Verdict.PARTLY
    if verdict is Verdict.UNDECIDABLE:
        return Decision(verdict, said, figures, f"times with less spread, by `{command(claim)}`")
    return Decision(verdict, said, figures)


def needs(claim: str) -> str:
    """What decides a claim about time, in words."""
    return f"times on a GPU, by `{command(claim)}`"


def command(claim: str) -> str:
    """The command that measures the times of a claim."""
    return f"python -m tools.claims.measure --claim {claim}"


def words(found: Mapping[str, Spread]) -> str:
    """Ratios in words, with their ranges."""
    return ", ".join(f"{name} {each.median:.3g} ({each.low:.3g} to {each.high:.3g})" for name, each in found.items())
