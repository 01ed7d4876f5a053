"""Error bounds, computed by added instructions: how far each float may be from the result of another implementation.

`add_error_bounds(lowered)` adds, behind each operation of a program, operations that compute the largest
|legal result - result of this program|. Legal is what any implementation may compute that follows the spec's accuracy
table: results rounded up or down, products and sums fused or not, subnormal numbers flushed or not, sums of one
expression and of a subgroup in any order, zeros of either sign. The machine runs the result like any other program.

A bound is an f32 that is never too small: it covers every rounding of its own arithmetic. Infinity and NaN both mean
that nothing is known. The bound of an integer or a bool is 0 if all implementations agree, and anything else if some
may differ. Values that no rounding can reach have no bound and cost nothing.

    arithmetic       lets rules read like formulas
    formats          float formats
    shapes           which operations make up one sum, and what branches depend on
    rule_context     operands with their bounds, and formulas that rules share
    slopes           how operations carry errors on
    discontinuities  operations that add no error, or are discontinuous
    error_rules      the bound of a result, by these tables and the accuracy table
    inexact          which values can be inexact, and what a flipped branch can affect
    subgroup_bounds  the exchange of values in subgroups
    instrument       the walk over the program

Constants are exact: every front end computes constant expressions in float64 and rounds once. Bounds do not allow for
other formulas of equal value, such as a * (b + c) for a * b + a * c.
"""

from __future__ import annotations

from .instrument import Doubt, Instrumented, add_error_bounds

__all__ = ["Doubt", "Instrumented", "add_error_bounds"]
