"""Passes over ir that join products and sums: `contract` into fused multiply-adds, `combine` without fusing.

`contract` does what the compilers of some devices do, where `fma` of the device profile is "contracted". If every use
of a product is an addition or a subtraction, each of them becomes an fma, which rounds once. Of two products in one sum
the left one is fused. WGSL allows it ("Floating Point Evaluation"); the rules are those of an H200.

`combine` is for all other devices. It makes one instruction of a product and the one sum that uses it, and keeps both
roundings, so that no bit changes.

Both need the uses of values (`analysis.uses`).
"""

from __future__ import annotations

from collections import Counter

from ..analysis.uses import Uses, base
from ..ir import ir
from ..ir.ir import Region, Value

SUMS = ("add_f32", "sub_f32", "add_f16", "sub_f16")
PRODUCTS = ("mul_f32", "mul_f16")


def contract(body: Region, uses: Uses) -> None:
    """Fuse every product that only sums use with these sums."""
    for value, region, added in _sums(body, uses):
        _fuse(value, region, added, uses)


def combine(body: Region, uses: Uses) -> None:
    """Make one instruction of each f32 product and the only sum that uses it, unless a sign changes."""
    for value, _, added in _sums(body, uses):
        if value.op != "add_f32":
            continue
        for term, other in (value.args, value.args[::-1]):
            used_once = added[term] == uses.count[term] == 1
            if term.op == "mul_f32" and used_once and term.uniform == value.uniform:
                value.op, value.args = "mad_f32", (*term.args, other)
                break


def _sums(body: Region, uses: Uses) -> list[tuple[Value, Region, Counter[Value]]]:
    """Return the needed sums and differences, and the number of them that have each product as a term."""
    found = [
        (item, region)
        for region in ir.regions_of(body)
        for item in region.items
        if isinstance(item, Value) and item in uses.count and item.op in SUMS
    ]
    added = Counter(product for value, _ in found for term in value.args if (product := _product(term, uses)[0]))
    return [(value, region, added) for value, region in found]


def _fuse(value: Value, region: Region, added: Counter[Value], uses: Uses) -> None:
    left, right = value.args
    subtract = value.op.startswith("sub")
    for term, other, negative in ((left, right, False), (right, left, subtract)):
        product, negated = _product(term, uses)
        if product is None or added[product] != uses.count[product]:
            continue
        one, factor = product.args
        if negative != negated:
            one = _negated(one, value, region)
        if term is left and subtract:
            other = _negated(other, value, region)
        value.op, value.args = f"fma_{value.kind}", (one, factor, other)
        return


def _product(term: Value, uses: Uses) -> tuple[Value | None, bool]:
    """Return the product that a term is, if any, and whether the term is its negative (which nothing else uses)."""
    negated = False
    while term.op == f"neg_{term.kind}" and uses.count[base(term)] == 1:
        term, negated = term.args[0], not negated
    return (term if term.op in PRODUCTS else None), negated


def _negated(value: Value, before: Value, region: Region) -> Value:
    made = Value(f"neg_{value.kind}", (value,), value.kind, region, None, before.id)
    region.items.insert(region.items.index(before), made)
    return made
