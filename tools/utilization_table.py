"""The utilizations of the kernels in `shaders/`, a table of docs/utilization.md: `python -m tools.utilization_table`.

Each kernel runs in the first shape of its manifest, charged as an NVIDIA H200. tests/tools/test_utilization_table.py
computes some rows again.
"""

from __future__ import annotations

from pathlib import Path

from bankshot.oracle.manifests.cases import Plan, Request, plans
from bankshot.oracle.reports.tables import at
from bankshot.sim.utilization.utilization import DEFINITIONS

from .claims.bench import SHADERS, run_case

PAGE = Path(__file__).parents[1] / "docs" / "utilization.md"
BEGIN = "<!-- made by python -m tools.utilization_table -->\n"


def row(plan: Plan) -> str:
    """The row of a kernel."""
    case = plan.kernel.case(plan.shapes[0])
    used = run_case(case, probes=("lanes",)).utilization
    shares = [getattr(used, each.key) for each in DEFINITIONS]
    cells = ["not measured" if share is None else f"{share:.1%}" for share in shares]
    sizes = ", ".join(f"{name} {size:,}" for name, size in case.shape.dims.items())
    headline = used.headline
    cause = "" if headline is None else headline.cause
    if headline is not None and headline.span is not None:
        cause += f" ({at(headline.span)})"
    return f"| `{plan.kernel.name}` | {sizes} | {' | '.join(cells)} | {cause} |"


def table() -> list[str]:
    """The lines of the table."""
    labels = " | ".join(each.label for each in DEFINITIONS)
    head = [f"| kernel | sizes | {labels} | what the least of them is due to |", f"| --- | --- |{4 * ' ---: |'} --- |"]
    return head + [row(plan) for plan in plans([SHADERS], Request())]


def main() -> None:
    """Write the table."""
    before, _, _ = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + "\n".join(table()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
