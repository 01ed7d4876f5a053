"""Error bounds by more instructions: every float value gets a companion that says how far off it may be.

`add_error_bounds(lowered)` puts, behind each operation of a program, ordinary operations that compute the largest
|legal result - result of this program|, where legal is what any implementation may compute that keeps to the spec's
accuracy table: results rounded up or down, products and sums fused or not, subnormal numbers flushed or not, sums of
one expression and of a subgroup in any order, zeros of either sign. The machine runs the whole as any other program.

A bound is an f32 that is never too small: every rounding of its own arithmetic is paid for. Infinity and NaN alike say
that nothing is known. Of integers and truth values a bound is 0, or anything else for "some implementation may have
another one". What no rounding can reach has no companion and costs nothing.

    arithmetic   writes operations, and lets rules be read as formulas
    numbers      float formats, and values with their bounds
    shapes       what belongs to one sum, and what a branch depends on
    slopes       how operations carry errors on
    jumps        operations that add none, or jump
    rules        the bound of a result, by those and by the accuracy table
    inexact      what can be off at all, and what a flipped branch can touch
    weaver       the walk over the program

Constants are exact: a constant expression is taken to be computed as every front end does, in float64 and rounded once.
What is not granted: other formulas that come to the same, such as a * (b + c) for a * b + a * c.
"""

from __future__ import annotations

from .instrument import Doubt, Instrumented, add_error_bounds

__all__ = ["Doubt", "Instrumented", "add_error_bounds"]
