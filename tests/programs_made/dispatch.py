"""Run the body of an entry point on a few lanes, for the tests of lowering and analysis."""

from __future__ import annotations

import numpy as np

import bankshot

HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
"""
ENTRY = """
@compute @workgroup_size({size})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {{
{body}
}}
"""


def run(body, *, size=4, groups=1, before="", outputs=None, **options):
    """Run `body`, which has `i` (local index), `group` and the output `y`, one u32 per invocation."""
    bindings = {"y": np.zeros(outputs or size * groups, np.uint32), **options.pop("bindings", {})}
    source = before + HEAD + ENTRY.format(size=size, body=body)
    return bankshot.simulate(source, grid=groups, bindings=bindings, **options)


def values(body, **options):
    """Return what `y` holds after a run without findings."""
    done = run(body, **options)
    assert done.findings == []
    return done.outputs["y"].tolist()
