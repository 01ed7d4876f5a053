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
from collections.abc import Iterable

from ..analysis.uses import Uses, base
from ..ir import ir
from ..ir.builder import Builder
from ..ir.ir import Region, Value
from ..ir.lowered import Lowered

SUMS = frozenset(("add_f32", "sub_f32", "add_f16", "sub_f16"))
PRODUCTS = frozenset(("mul_f32", "mul_f16"))


def has_products(lowered: Lowered) -> bool:
    """Whether there is anything to join."""
    return not PRODUCTS.isdisjoint(lowered.builder.operations)


def contract(lowered: Lowered, uses: Uses) -> None:
    """Fuse every product that only sums use with these sums."""
    sums = _sums(lowered.body, uses)
    added = _times_added(sums, uses)
    if not added:
        return
    lowered.builder = builder = Builder.extending(lowered.builder)
    to_fuse, concerned = set(sums), {value.region for value in sums}
    for region in filter(concerned.__contains__, ir.regions_of(lowered.body)):
        for item in builder.rewrite(region):
            if isinstance(item, Value) and item in to_fuse:
                _fuse(item, added, uses, builder)
            builder.append(item)


def combine(body: Region, uses: Uses) -> None:
    """Make one instruction of each f32 product and the only sum that uses it, unless a sign changes; `uses` stays
    true."""
    sums = _sums(body, uses)
    added = _times_added(sums, uses)
    for value in sums:
        if value.op != "add_f32":
            continue
        for term, other in (value.args, value.args[::-1]):
            used_once = added[term] == uses.count[term] == 1
            if term.op == "mul_f32" and used_once and term.uniform == value.uniform:
                value.op, value.args = "mad_f32", (*term.args, other)
                del uses.count[term]
                uses.in_all_lanes.discard(term)
                break


def _sums(body: Region, uses: Uses) -> list[Value]:
    """Return the sums and differences that are needed."""
    values = (item for region in ir.regions_of(body) for item in region.items if isinstance(item, Value))
    return [value for value in values if value.op in SUMS and value in uses.count]


def _times_added(sums: Iterable[Value], uses: Uses) -> Counter[Value]:
    """Return, for each product, how many of these sums and differences have it as a term."""
    return Counter(product for value in sums for term in value.args if (product := _product(term, uses)[0]))


def _fuse(value: Value, added: Counter[Value], uses: Uses, builder: Builder) -> None:
    """Make an fma of a sum, in place, if a term is a product that only sums use. Negations come before it."""
    left, right = value.args
    subtract = value.op.startswith("sub")
    for term, other, negative in ((left, right, False), (right, left, subtract)):
        product, negated = _product(term, uses)
        if product is None or added[product] != uses.count[product]:
            continue
        one, factor = product.args
        if negative != negated:
            one = _negated(one, builder)
        if term is left and subtract:
            other = _negated(other, builder)
        value.op, value.args = f"fma_{value.kind}", (one, factor, other)
        return


def _product(term: Value, uses: Uses) -> tuple[Value | None, bool]:
    """Return the product that a term is, if any, and whether the term is its negative (which nothing else uses)."""
    negated = False
    while term.op == f"neg_{term.kind}" and uses.count[base(term)] == 1:
        term, negated = term.args[0], not negated
    return (term if term.op in PRODUCTS else None), negated


def _negated(value: Value, builder: Builder) -> Value:
    return builder.computed(f"neg_{value.kind}", value)
