"""Of nested loops, the finding names the one that does not end: not those in it, which end in each of its turns."""

import numpy as np
import pytest

import bankshot

HEAD = """@group(0) @binding(0) var<storage, read_write> y: array<u32, 1>;
@compute @workgroup_size(1)
fn main() {
"""
ENDS = "{name}: u32; {name} < 3u; {name}++"
FOREVER = "{name}: u32; {name} < 0xffffffffu; {name}++"


def nested(depth, endless):
    """Loops a, b, c, … in each other; only the one in position `endless` does not end."""
    heads = [f"for (var {(FOREVER if at == endless else ENDS).format(name='abcdef'[at])}) {{" for at in range(depth)]
    return f"{' '.join(heads)} y[0] += 1u; {'}' * depth}"


@pytest.mark.parametrize(("depth", "endless"), [(d, e) for d in (1, 2, 3, 5) for e in range(d)])
def test_the_loop_that_does_not_end_is_named(depth, endless):
    text = HEAD + nested(depth, endless) + "\n}"
    run = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(1, np.uint32)}, budget=20_000)
    (finding,) = [each for each in run.findings if each.code == "endless-loop"]
    assert text[finding.span.start :].startswith(f"for (var {'abcdef'[endless]}:")
