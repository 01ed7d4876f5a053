"""The optimization passes, each of which can be turned off.

No pass changes outputs, counters or findings: counters and findings belong to source locations (`ir.Count`, `ir.Check`,
`ir.Inspect`, and the accesses themselves), which no pass moves or removes.
"""

from __future__ import annotations

Passes = frozenset[str]  # the passes that are on

# Name -> what it does, in order: as values are built, on the whole ir, on instructions.
PASSES = {
    "fold": "fold operations on constants",
    "simplify": "replace operations with a constant by an operand or a cheaper equal",
    "ranges": "remove limits that a value cannot exceed",
    "number": "build the same operation on the same values once",
    "forward": "use the value just written to a variable instead of reading it",
    "place": "hoist loop-invariant values",
    "combine": "join a product and the only sum that uses it",
    "uniform": "compute uniform values in one lane, and jump on them",
    "dead": "drop values that nothing uses",
    "address": "split addresses into a part per lane, a uniform part and a constant",
    "learn": "analyse addresses that loops reuse once",
    "tail_lanes": "skip lanes past the last active one",
    "interleaved": "interleave workgroups in which few lanes are active: the same lane of each side by side",
    "copies": "compute into variables, and read them in place",
    "checked": "join a sum of products and its checks",
    "rename": "compute values where they would be copied to",
    "tiles": "join sums of products that share factors into tiles",
    "wide": "join loads, or stores, of adjacent words",
    "rows": "share register rows between values that are not live together",
}
ALL: Passes = frozenset(PASSES)

# The models of GPU compilers (fma contraction, merged accesses) need the program as these passes leave it.
MODELLED: Passes = frozenset(("fold", "simplify", "ranges", "number", "forward", "place", "dead"))
