"""Mutants that are always tried: those that earlier versions of the tests let pass."""

from __future__ import annotations

import re
from pathlib import Path

from .code import Code, Edit, Mutant

# File, a text that occurs in it once, and its replacement.
_NAMED = (
    ("sim/ir/simplify.py", '    ("and", 0xFFFFFFFF): "left",\n', ""),
    ("sim/ir/simplify.py", '    ("add", 0): "left",\n', ""),
    ("sim/ir/simplify.py", '    ("sub", 0): "left",\n', ""),
    ("sim/ir/simplify.py", '    ("mul", 1): "left",\n', ""),
    ("sim/ir/simplify.py", '    ("mul", 0): "zero",\n', ""),
    ("sim/ir/simplify.py", '    ("div", 1): "left",\n', ""),
    ("sim/ir/simplify.py", '    ("or", 0): "left",\n', ""),
    ("sim/ir/simplify.py", '    ("xor", 0): "left",\n', ""),
    ("sim/ir/simplify.py", '    ("and", 0): "zero",\n', ""),
    ("sim/ir/simplify.py", '    ("shl", 0): "left",\n', ""),
    ("sim/ir/simplify.py", '    ("shr", 0): "left",\n', ""),
    ("sim/ir/ranges.py", "largest < limit,", "largest <= limit,"),
    ("sim/ir/ranges.py", "min(left, right - 1)", "min(left, right)"),
    ("sim/ir/ranges.py", "min(left, right - 1)", "right - 1"),
    ("sim/ir/ranges.py", "limit & (limit + 1) == 0", "True"),
    ("sim/launch/workgroup_classes.py", "high + moved <= limit", "high + moved < limit"),
    ("sim/launch/workgroup_classes.py", "low + moved >= 0", "low + moved > 0"),
    ("sim/launch/workgroup_classes.py", "if high <= limit else", "if high < limit else"),
    ("sim/machine/checks.py", "-2147483904.0 < as_float", "-2147483904.0 <= as_float"),
    ("sim/machine/checks.py", "as_float < 2147483648.0", "as_float <= 2147483648.0"),
    ("sim/machine/checks.py", "-2147483904.0", "-2147483648.0"),
    ("oracle/goldens/golden_lines.py", "ALIKE = 0.5", "ALIKE = 0.9"),
    ("oracle/goldens/golden_lines.py", "ALIKE = 0.5", "ALIKE = 0.1"),
    ("oracle/goldens/golden_lines.py", "best >= ALIKE", "best > ALIKE"),
    ("sim/wgsl/analysis/uniformity.py", '"workgroup_id", ', ""),
    ("sim/wgsl/analysis/uniformity.py", '"num_workgroups", ', ""),
    ("sim/wgsl/analysis/uniformity.py", '"num_subgroups", ', ""),
    ("sim/wgsl/analysis/uniformity.py", ', "subgroup_size"', ""),
    ("sim/wgsl/analysis/uniformity.py", ' | {"subgroup_id"}', ""),
    ("oracle/judge/device_comparison.py", '"fma", ', ""),
    ("oracle/judge/device_comparison.py", '"subgroup_size", ', ""),
    ("oracle/judge/device_comparison.py", ', "texel_f16"', ""),
    ("oracle/judge/device_comparison.py", ', "texel_outside"', ""),
)


def named(root: Path) -> list[Mutant]:
    """Make the named mutants. Raises ValueError for a row whose text no longer occurs once."""
    found: list[Mutant] = []
    for file, before, after in _NAMED:
        code = Code(root / file, file)
        places = [match.start() for match in re.finditer(re.escape(before.encode()), code.source)]
        if len(places) != 1:
            raise ValueError(
                f"{file} has {before!r} {len(places)} times, not once; change its row in {Path(__file__).name}"
            )
        mutant = code.mutant("named", Edit(places[0], places[0] + len(before.encode()), after))
        assert mutant is not None, (file, before, after)
        found.append(mutant)
    return found
