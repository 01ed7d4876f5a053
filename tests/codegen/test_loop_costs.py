"""What an iteration of a loop costs: 1 for an instruction, 16 for a load or store, 4 for a choice of registers by an
index, 8 for atomic and subgroup operations and probes, 24 for transcendental functions, and the rows of a table that is
set as a whole. Jumps, and instructions that compute one lane for all, cost the same for any number of lanes, and are
counted apart: there, a load costs 64."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.machine import instruction as field
from bankshot.sim.machine import opcodes as op
from bankshot.sim.machine.opcodes import opcode_names

HEAD = """enable subgroups;
@group(0) @binding(0) var<storage, read_write> n: array<atomic<u32>, 8>;
@group(0) @binding(1) var<storage, read_write> x: array<u32, 8>;
@group(0) @binding(2) var<storage, read_write> v: array<vec4u, 8>;
@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
    _ = &n; _ = &x; _ = &v;
    var few = array(1u, 2u, 3u);
    var many: array<u32, 40>;
"""
BODIES = {
    "registers": "a = a * 3u + k;",
    "a load": "a += x[(i + k) & 7u];",
    "a store": "x[i] = k;",
    "a load and a store of four words": "v[i] += vec4u(k);",
    "a choice": "a += few[(i + k) % 3u];",
    "a change": "few[(i + k) % 3u] = k;",
    "a choice of many": "a += many[(i + k) % 40u]; many[k] = a;",
    "a table that is set as a whole": "many = array<u32, 40>(); many[(i + k) % 40u] = a; a += many[i];",
    "an atomic addition": "atomicAdd(&n[i], 1u);",
    "an atomic load": "a += atomicLoad(&n[i]);",
    "a subgroup operation": "a += subgroupAdd(k);",
    "a branch": "if (i + k) % 3u == 0u { a += x[i]; }",
    "a root and a curve": "a += u32(sqrt(f32(k)) + sin(f32(i + k)));",
    "a loop in it": "for (var j = 0u; j < 3u; j++) { x[(i + j) & 7u] += 1u; }",
}
ALONE = {"load", "load_known", "copy"}  # with scalar operations, those that may compute one lane for all
CURVES = {"sin_f32"}
MEMORY = {"load", "load_known", "store", "store_known", "store_four"}


def cost(row):
    code = int(row[field.OP])
    name = op.NAMES[code] if code < len(op.NAMES) else ""
    if name == "put_all":
        return int(row[field.COUNT])
    if name in MEMORY:
        return 16
    if name in ("pick", "put"):
        return 4
    if opcode_names()[code] in CURVES:
        return 24
    return 8 if name and code >= op.NAMES.index("atomic_load") else 1


def is_for_one(row):
    """Whether an instruction costs the same for any number of lanes."""
    code, name = int(row[field.OP]), opcode_names()[int(row[field.OP])]
    return name in ("jump", "jump_zero") or (row[field.MASK] == field.ONE_LANE and (code >= op.SCALAR or name in ALONE))


@pytest.mark.parametrize("probes", ["none", "all"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_each_loop_has_the_cost_of_its_instructions(body, probes):
    text = f"{HEAD}var a = 0u; for (var k = 0u; k < 3u; k++) {{ {body} }} x[i] = a; }}"
    bindings = {"n": np.zeros(8, np.uint32), "x": np.zeros(8, np.uint32), "v": np.zeros((8, 4), np.uint32)}
    code = bankshot.simulate(text, grid=1, bindings=bindings, probes=probes).program.code
    jumps = [at for at, row in enumerate(code) if row[field.OP] == op.JUMP and row[field.TARGET] <= at]
    assert len(jumps) == 1 + ("for" in body)
    for at in jumps:
        loop = code[code[at, field.TARGET] : at + 1]
        once = [row for row in loop if is_for_one(row)]
        assert code[at, field.COST] == sum(map(cost, loop)) - sum(map(cost, once))
        assert code[at, field.COST_ONCE] == sum(64 if cost(row) == 16 else cost(row) for row in once)
