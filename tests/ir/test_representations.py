"""What a record shows of itself: not what it is part of."""

from bankshot.sim.codegen.build import lowered
from bankshot.sim.ir import ir
from bankshot.sim.run.prepared import dispatch_of

TEXT = """\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    var a: array<u32, 8>;
    a[y[i] & 7u] = 1u;
    for (var k = 0u; k < y[i]; k++) {
        if (k == 3u) { break; }
        switch y[i] { case 1u: { y[i] = 3u; } default { a[k] = a[i]; } }
    }
    y[i] = a[y[i]];
}
"""


def test_every_item_of_a_program_has_a_representation() -> None:
    dispatch = dispatch_of(TEXT, grid=1, bindings={"y": [0] * 64})
    program = lowered(dispatch.pipeline, **dispatch.build_options(frozenset()))
    items = [*ir.items_of(program.body)]
    shown = {type(item): repr(item) for item in items}
    assert {ir.Set, ir.Pick, ir.Put, ir.If, ir.Loop, ir.Scope, ir.Jump} <= set(shown)
    assert "parent=" not in repr(program.body)


def test_a_variable_is_shown_by_its_name() -> None:
    slot = ir.Slot("u32", "a", ir.Region(None), ir.Block([]))
    assert repr(slot) == "Slot(kind='u32', name='a', uniform=False, rows=1)"
