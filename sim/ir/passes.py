"""The passes that make programs shorter, each with a switch of its own.

None changes what a shader computes, what is counted or what is found: counters and findings belong to places in the
source (`ir.Count`, `ir.Check`, `ir.Inspect`, and the accesses themselves), which no pass moves or takes away.
"""

from __future__ import annotations

Passes = frozenset[str]  # those that are on

# Name -> what it does, in the order in which they come: while values are made, over the whole, as instructions.
PASSES = {
    "fold": "operations on constants are done at once",
    "simplify": "operations with a constant that leave their operand, or have a cheaper equal, are that",
    "ranges": "what cannot be beyond a limit is not held below it",
    "number": "the same operation on the same values is made once",
    "forward": "a variable that has just been written is not read",
    "place": "what a loop does not change is computed before it",
    "combine": "a product and the sum that alone uses it are one instruction",
    "uniform": "what is alike in every lane is computed in one, and branches on it are jumps",
    "dead": "what nothing needs is not computed",
    "address": "what all lanes share of an address, and its constant, are operands of the access",
    "learn": "the machine looks once at addresses that a loop uses again and again",
    "idle": "lanes past the last active one are left out",
    "interleaved": "workgroups in which few have much to do go abreast: the same lane of each, one next to the other",
    "copies": "an operation writes the variable itself, and who reads it reads it there",
    "checked": "a sum of products and the checks of what it makes are one instruction",
    "rename": "what is copied is computed where it is copied to",
    "tiles": "sums of products that share factors are one instruction",
    "wide": "loads, or stores, of neighbouring words are one instruction",
    "rows": "registers that are not alive together share a row",
}
ALL: Passes = frozenset(PASSES)

# What models of compilers look at (`contract`, `merging`) is the program as these leave it.
MODELLED: Passes = frozenset(("fold", "simplify", "ranges", "number", "forward", "place", "dead"))
